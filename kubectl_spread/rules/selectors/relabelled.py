"""SPR101 and SPR102: labels that changed or were removed after the merge into a selector, and the effects."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from functools import partial
from typing import Final

from kubectl_spread import phrases
from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedPod
from kubectl_spread.audit.merge.verdicts import Confidence, KeyVerdict, Verdict
from kubectl_spread.audit.snapshot.records import ENCODER, PodRecord
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.field import FieldPath
from kubectl_spread.kube.api.labels import Operator
from kubectl_spread.kube.api.types import LabelSelector
from kubectl_spread.phrases import in_domain
from kubectl_spread.report.model import Severity
from kubectl_spread.rules.model import Evidence, InputPart, Rule, RuleInput, Values, names
from kubectl_spread.rules.selectors.verdicts import key_of, values_of

CHANGED: Final = "changed from {stored} to {label} after creation"
REMOVED: Final = "was removed after creation"
_MISSING: Final = "is missing"
_REMOVED_OR_AUTHORED: Final = " It was removed after creation, or the author wrote the requirement."
_UNHURRIED: Final = "nothing to do: new pods get the label from the pod template and a selector that fits"
_UNHURRIED_BARE: Final = "nothing to do while the pod runs"


def _relabelled(rule_input: RuleInput, verdict: Verdict) -> Iterator[Evidence]:
    if members := rule_input.members(verdict):
        key = key_of(members[0], verdict)
        siblings = _not_counting(members, verdict, rule_input)
        severity, effect = _effect(members, key, verdict, siblings)
        requires = "excludes" if key.operator is Operator.NOT_IN else "requires"
        was_there = _was_there(members, verdict)
        values: Values = {
            **values_of(members, verdict),
            "operator": str(key.operator),
            "requirement": f"{'still ' if was_there else ''}{requires} {_old(members, verdict)}",
            "effect": effect,
            "siblings": siblings,
        }
        if verdict is Verdict.STALE_LABEL:
            values["change"] = CHANGED.format(**values)
        else:
            values["missing"] = REMOVED if was_there else _MISSING
            values["cause"] = "" if was_there else _REMOVED_OR_AUTHORED
        unhurried = _UNHURRIED_BARE if rule_input.workload.kind == "Pod" else _UNHURRIED
        fix = unhurried if severity is Severity.INFO else None
        yield Evidence(names(member.pod for member in members), values, severity, fix)


def _was_there(members: Sequence[EvaluatedPod], verdict: Verdict) -> bool:
    """Tell whether all pods are known to have been created with the labels that their selectors name."""
    keys = (key for member in members for key in member.keys if key.verdict is verdict)
    return all(key.confidence is Confidence.CERTAIN for key in keys)


def _effect(members: Sequence[EvaluatedPod], key: KeyVerdict, verdict: Verdict, siblings: int) -> tuple[Severity, str]:
    """Return the severity and the effect of a selector that no longer fits the labels, for the most affected pods."""
    term = members[0].term
    old = _old(members, verdict)
    pending = [member.pod for member in members if not member.pod.node and member.pod.pod_class.known_scheduler]
    if term.spread and pending:
        return Severity.WARNING, _effect_on_pending(pending, key, verdict, old, term.topology_key)
    if term.required and not term.spread:
        return Severity.ERROR, _effect_of_affinity(members, key, old)
    severity = Severity.WARNING if siblings else Severity.INFO
    if term.spread:
        return severity, _effect_on_running(members, verdict, siblings, old, term.topology_key)
    siblings_text = f" {_siblings_text(members, verdict, siblings, old)}." if siblings else ""
    return severity, f"The preferred term still scores by {_selected_pods(key, old)}.{siblings_text}"


def _effect_of_affinity(members: Sequence[EvaluatedPod], key: KeyVerdict, old: str) -> str:
    term = members[0].term
    if "podAntiAffinity" in term.path:
        return f"The required anti-affinity term still keeps {_selected_pods(key, old)} away."
    domain = in_domain(term.topology_key, "its" if len(members) == 1 else "their")
    return f"The required affinity term still asks for {_selected_pods(key, old)} {domain}."


def _selected_pods(key: KeyVerdict, old: str) -> str:
    return f"all pods except those with {old}" if key.operator is Operator.NOT_IN else f"pods with {old}"


def _effect_on_pending(
    pending: Sequence[PodRecord], changed_key: KeyVerdict, verdict: Verdict, old: str, key: str
) -> str:
    pods, single = phrases.plural(len(pending), "pending pod"), len(pending) == 1
    if verdict is Verdict.REMOVED_LABEL:
        if single:
            return f"The constraint counts only pods with {old}, so {pods} does not count itself."
        return f"The constraint counts only pods with {old}, so {pods} do not count themselves."
    both = f"both {old} and {changed_key.key}={phrases.value(changed_key.label or '')}"
    requires = f"its selector requires {both}" if single else f"their selectors require {both}"
    placement = f"{'it' if single else 'they'} may be placed {in_domain(key, 'any')}"
    return f"The constraint has no effect for {pods}: {requires}, so {placement}."


def _effect_on_running(members: Sequence[EvaluatedPod], verdict: Verdict, siblings: int, old: str, key: str) -> str:
    single = len(members) == 1
    if not siblings:
        pods = "the running pod" if single else "the running pods"
        return f"Nothing changes for {pods}, and no other pod of the workload selects {old}."
    domain = in_domain(key, "its" if single else "their")
    return f"{_siblings_text(members, verdict, siblings, old)}, so new ones may be placed {domain}."


def _siblings_text(members: Sequence[EvaluatedPod], verdict: Verdict, siblings: int, old: str) -> str:
    """Return the number of siblings that do not count the pods, or no longer, and their selector."""
    whose, which = ("Its", "this pod") if len(members) == 1 else ("Their", "these pods")
    single = siblings == 1
    if _was_there(members, verdict):
        count = f"still {'selects' if single else 'select'} {old} and no longer {'counts' if single else 'count'}"
    else:
        count = f"{'selects' if single else 'select'} {old} and {'does' if single else 'do'} not count"
    return f"{whose} {'sibling' if single else f'{siblings} siblings'} {count} {which}"


def _old(members: Sequence[EvaluatedPod], verdict: Verdict) -> str:
    old_values = {(key.key, key.stored or "") for member in members for key in member.keys if key.verdict is verdict}
    return phrases.some(sorted(f"{key}={phrases.value(stored)}" for key, stored in old_values))


def _not_counting(members: Sequence[EvaluatedPod], verdict: Verdict, rule_input: RuleInput) -> int:
    """Return the number of other pods that selected some of ``members`` by their old labels, and no longer do."""
    member_of_each_class = {member.pod.pod_class: member for member in members}.values()
    number = 0
    for selector, pods in _selectors(rule_input, except_for={member.pod.name for member in members}):
        if any(_stopped_selecting(selector, member, verdict) for member in member_of_each_class):
            number += pods
    return number


def _stopped_selecting(selector: LabelSelector | None, member: EvaluatedPod, verdict: Verdict) -> bool:
    labels = member.pod.pod_class.labels
    old = {key.key: key.stored for key in member.keys if key.verdict is verdict and key.stored is not None}
    return labelselectors.matches(selector, {**labels, **old}) and not labelselectors.matches(selector, labels)


def _selectors(rule_input: RuleInput, *, except_for: Container[str]) -> list[tuple[LabelSelector | None, int]]:
    """Return the selectors of other pods of the workload at the same path, with their numbers of pods."""
    audit = rule_input.audit
    selectors: dict[bytes, tuple[LabelSelector | None, int]] = {}
    siblings = audit.counted.siblings(rule_input.workload)
    for pod in (sibling for sibling in siblings if sibling.name not in except_for):
        for selector in _selector_at(rule_input.path, pod, audit):
            key = ENCODER.encode(selector)
            selectors[key] = (selector, selectors.get(key, (selector, 0))[1] + 1)
    return list(selectors.values())


def _selector_at(path: FieldPath, pod: PodRecord, audit: Audit) -> list[LabelSelector | None]:
    effective = audit.evaluator.of(pod.pod_class).effective
    return [selector for term, selector in zip(pod.pod_class.terms, effective, strict=True) if term.path == path]


STALE_LABEL: Final = Rule(
    code="SPR101",
    name="stale-label",
    severity=Severity.WARNING,
    summary="A label changed after its old value was merged into the selector",
    message="Label {key} {change}{changed}. {effect}",
    why=(
        "kube-apiserver writes the value of a matchLabelKeys label into the selector once, when the pod is created. "
        "If the label changes later, the selector still has the old value. Nothing happens to a running pod, but "
        "siblings that select the old value no longer count it. For a pending pod the scheduler adds the present "
        "value to the stored one, no pod has both, and the constraint has no effect. A required anti-affinity term "
        "keeps pods with the old value away for as long as the pod lives."
    ),
    fix="{restart}",
    source="https://kep.k8s.io/3243",
    cases=(
        (Severity.ERROR, "A required affinity or anti-affinity term."),
        (Severity.WARNING, "A pod is pending, or other pods of the workload still select the old value."),
        (Severity.INFO, "The pods run, and no other pod of the workload selects the old value."),
    ),
    remedies=("command",),
    no_remedy="The pods run, and no other pod is affected. New pods are merged with the labels that they have.",
    removes_pods=True,
    parts=InputPart.MEMBERS,
    check=partial(_relabelled, verdict=Verdict.STALE_LABEL),
)
REMOVED_LABEL: Final = Rule(
    code="SPR102",
    name="removed-label",
    severity=Severity.WARNING,
    summary="A label was removed after its value was merged into the selector",
    message="Label {key} {missing}, but the selector {requirement}.{cause} {effect}",
    why=(
        "The selector names a label that the pod does not have, so the pod does not count itself, and siblings "
        "that select the label do not count it either. A pending pod is placed as if it were not one of the pods "
        "that it counts. The API does not record that a label was removed. Without an owner whose pod template has the "
        "label, the author of the pod may also have written the requirement, as SPR109 reports of manifests."
    ),
    fix="{restart}",
    source="https://kep.k8s.io/3243",
    cases=(
        (Severity.ERROR, "A required affinity or anti-affinity term."),
        (Severity.WARNING, "A pod is pending, or other pods of the workload still select the label."),
        (Severity.INFO, "The pods run, and no other pod of the workload selects the label."),
    ),
    remedies=("command",),
    no_remedy="The pods run, and no other pod is affected. New pods are merged with the labels that they have.",
    removes_pods=True,
    parts=InputPart.MEMBERS,
    check=partial(_relabelled, verdict=Verdict.REMOVED_LABEL),
)
