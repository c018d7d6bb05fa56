"""SPR101 to SPR106 and SPR108: stored selectors that differ from the merged ones."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from functools import partial
from typing import Final

from kubectl_spread import phrases
from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedPod
from kubectl_spread.audit.merge.verdicts import Confidence, KeyVerdict, Verdict
from kubectl_spread.audit.snapshot.records import ENCODER, PodRecord
from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.field import FieldPath
from kubectl_spread.kube.api.labels import Operator
from kubectl_spread.kube.api.types import LabelSelector
from kubectl_spread.phrases import in_domain
from kubectl_spread.report.model import Operation, Severity
from kubectl_spread.rules import patches
from kubectl_spread.rules.inputs import PodsInput
from kubectl_spread.rules.model import Evidence, Remedy, Rule, Values, names
from kubectl_spread.rules.remedy import changed

_BARE_DUPLICATE: Final = "find out what wrote the pod, and create it again from a manifest that names the key once"

_BARE_UNMERGED: Final = "nothing to do: a new pod of the same manifest is merged"


def key_of(member: EvaluatedPod, verdict: Verdict) -> KeyVerdict:
    """Return the first key of a pod that has a verdict."""
    return next(key for key in member.keys if key.verdict is verdict)


def _writer(key: KeyVerdict) -> str:
    """Return the writer of the label, as a part of the message; "" if it is unknown."""
    changed = key.changed_by
    if changed is None or changed.time is None:
        return ""
    return f" (by {changed.manager})"


def values_of(members: list[EvaluatedPod], verdict: Verdict) -> Values:
    """Return the values of the message: the keys with a verdict, their values in the selectors and their labels."""
    keys = [key for member in members for key in member.keys if key.verdict is verdict]
    writers = {_writer(key) for key in keys} - {""}
    return {
        "key": phrases.some(sorted({key.key for key in keys})),
        "stored": phrases.some(sorted({phrases.value(key.stored or "") for key in keys})),
        "label": phrases.some(sorted({phrases.value(key.label or "") for key in keys})),
        "changed": writers.pop() if len(writers) == 1 else "",
    }


def _with_verdict(rule_input: PodsInput, verdict: Verdict) -> Iterator[Evidence]:
    """Yield the pods with a verdict, with the evidence of the first pod."""
    if members := rule_input.members(verdict):
        values = {**values_of(members, verdict), "evidence": "; ".join(key_of(members[0], verdict).evidence)}
        yield Evidence(names(member.pod for member in members), values)


def _late_label(rule_input: PodsInput) -> Iterator[Evidence]:
    members = rule_input.members(Verdict.LATE_LABEL)
    for evidence in _with_verdict(rule_input, Verdict.LATE_LABEL):
        term = members[0].term
        severity = Severity.WARNING if term.required and not term.spread else Severity.INFO
        values = {**evidence.values, "effect": _effect_of_late(term, str(evidence.values["key"]))}
        yield Evidence(evidence.pods, values, severity, _label_in_template(members, rule_input))


def _effect_of_late(term: TopologyTerm, key: str) -> str:
    if term.spread:
        return "The scheduler adds it itself, but other readers of the selector see the pods of all values together"
    return f"The {'required' if term.required else 'preferred'} term acts on pods with any value of {key}"


def _label_in_template(members: Sequence[EvaluatedPod], rule_input: PodsInput) -> Remedy:
    """Return how to create pods with the label; with a patch if all pods of the workload have the same value of it."""
    late = {(key.key, key.label) for member in members for key in member.keys if key.verdict is Verdict.LATE_LABEL}
    everywhere = len(members) == sum(len(row.pods) for row in rule_input.rows)
    chain = rule_input.audit.snapshot.owner_chain(members[0].pod)
    operations: tuple[Operation, ...] = ()
    if len(late) == 1 and everywhere and chain:
        ((key, label),) = late
        path = FieldPath((*rule_input.pod_spec[:-1], "metadata", "labels", key))
        if key not in chain[0].template_keys:
            operations = (patches.test(path, None), Operation(op="add", path=path.pointer, value=label))
    return changed("add the label to the pod template, so that new pods are created with it", operations, rule_input)


def _owned_or_bare(rule_input: PodsInput, verdict: Verdict, bare: str) -> Iterator[Evidence]:
    """Yield the pods with a verdict; ``bare`` is the fix for a pod without owner."""
    for evidence in _with_verdict(rule_input, verdict):
        yield Evidence(evidence.pods, evidence.values, fix=bare if rule_input.workload.kind == "Pod" else None)


PRE_UPGRADE: Final = Rule(
    code="SPR103",
    name="pre-upgrade",
    severity=Severity.INFO,
    summary="The pods were created before kube-apiserver merged matchLabelKeys into selectors",
    message=(
        "The pods were created before kube-apiserver merged {key} into the selector. The scheduler adds it itself, so "
        "nothing changes for them."
    ),
    fix="nothing to do: the next rollout creates merged pods",
    of_members=partial(_owned_or_bare, verdict=Verdict.PRE_UPGRADE, bare=_BARE_UNMERGED),
)
MERGE_OFF: Final = Rule(
    code="SPR104",
    name="merge-off",
    severity=Severity.INFO,
    summary="Feature gates switch off the merge on a server that could merge",
    message=(
        "Feature gates switch the merge off, so the selector lacks {key}. The scheduler adds it itself, but other "
        "readers of the selector count all revisions together."
    ),
    fix=(
        "set MatchLabelKeysInPodTopologySpreadSelectorMerge=true on kube-apiserver if other programs read the selectors"
    ),
    of_members=partial(_with_verdict, verdict=Verdict.MERGE_OFF),
)
LATE_LABEL: Final = Rule(
    code="SPR105",
    name="late-label",
    severity=Severity.INFO,
    summary="A label that matchLabelKeys or mismatchLabelKeys lists was added after the pod was created",
    message="Label {key}={label} was added after creation{changed}, so the selector lacks it. {effect}.",
    fix="add the label to the pod template, so that new pods are created with it",
    of_members=_late_label,
)
DUPLICATE: Final = Rule(
    code="SPR106",
    name="duplicate",
    severity=Severity.WARNING,
    summary="A matchLabelKeys key appears more than once in the stored selector",
    message=(
        "The selector names {key} more than once, which kube-apiserver refuses, so the pods were stored without its "
        "checks. The constraint counts only pods that meet all of these requirements."
    ),
    fix="find out what wrote the pods. Then {restart}",
    removes_pods=True,
    of_members=partial(_owned_or_bare, verdict=Verdict.DUPLICATE, bare=_BARE_DUPLICATE),
)
UNMERGED: Final = Rule(
    code="SPR108",
    name="unmerged",
    severity=Severity.INFO,
    summary="The selector lacks a label that the pods have, and the cause is unknown",
    message=(
        "The selector lacks {key}, and the API does not show why. The scheduler adds it itself, but other readers of "
        "the selector count all revisions together."
    ),
    fix="nothing to do: the next rollout creates merged pods",
    of_members=partial(_owned_or_bare, verdict=Verdict.UNMERGED, bare=_BARE_UNMERGED),
)


CHANGED: Final = "changed from {stored} to {label} after creation"
REMOVED: Final = "was removed after creation"
_MISSING: Final = "is missing"
_REMOVED_OR_AUTHORED: Final = " It was removed after creation, or the author wrote the requirement."
_UNHURRIED: Final = "nothing to do: new pods get the label from the pod template and a selector that fits"
_UNHURRIED_BARE: Final = "nothing to do while the pod runs"


def _relabelled(rule_input: PodsInput, verdict: Verdict) -> Iterator[Evidence]:
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


def _not_counting(members: Sequence[EvaluatedPod], verdict: Verdict, rule_input: PodsInput) -> int:
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


def _selectors(rule_input: PodsInput, *, except_for: Container[str]) -> list[tuple[LabelSelector | None, int]]:
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
    fix="{restart}",
    removes_pods=True,
    of_members=partial(_relabelled, verdict=Verdict.STALE_LABEL),
)
REMOVED_LABEL: Final = Rule(
    code="SPR102",
    name="removed-label",
    severity=Severity.WARNING,
    summary="A label was removed after its value was merged into the selector",
    message="Label {key} {missing}, but the selector {requirement}.{cause} {effect}",
    fix="{restart}",
    removes_pods=True,
    of_members=partial(_relabelled, verdict=Verdict.REMOVED_LABEL),
)
