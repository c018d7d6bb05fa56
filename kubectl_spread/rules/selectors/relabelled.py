"""SPR101 and SPR102: labels that changed, or went, after they were merged into a selector; and what that does."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Final

from kubectl_spread import phrases
from kubectl_spread.audit.evaluation.counting import ENCODER
from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedPod
from kubectl_spread.audit.merge.verdicts import KeyVerdict, Verdict
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.fieldpath import FieldPath
from kubectl_spread.kube.api.labels import Operator
from kubectl_spread.kube.api.types import LabelSelector
from kubectl_spread.report.severity import Severity
from kubectl_spread.rules.model import Evidence, Rule
from kubectl_spread.rules.rule_input import InputPart, RuleInput
from kubectl_spread.rules.selectors.verdicts import key_of, names_of, said

_MERGE_SOURCE: Final = "https://kep.k8s.io/3243"
_UNHURRIED: Final = "nothing to do while the pod runs; to have its selector merged again, {restart}"
_HOSTNAME: Final = "kubernetes.io/hostname"


def _stale_label(subject: RuleInput) -> Iterator[Evidence]:
    return _relabelled(subject, Verdict.STALE_LABEL)


def _removed_label(subject: RuleInput) -> Iterator[Evidence]:
    return _relabelled(subject, Verdict.REMOVED_LABEL)


def _relabelled(subject: RuleInput, verdict: Verdict) -> Iterator[Evidence]:
    if members := subject.members(verdict):
        found = key_of(members[0], verdict)
        siblings = _not_counting(members, verdict, subject)
        severity, effect = _effect(members, found, verdict, siblings)
        values: dict[str, str | int] = {
            **said(members, verdict),
            "operator": str(found.operator),
            "effect": effect,
            "siblings": siblings,
        }
        yield Evidence(names_of(members), values, severity, _UNHURRIED if severity is Severity.INFO else None)


def _effect(
    members: Sequence[EvaluatedPod], found: KeyVerdict, verdict: Verdict, siblings: int
) -> tuple[Severity, str]:
    """Return what a selector that no longer fits the pods' labels does, on the worst of the pods."""
    clause = members[0].clause
    old = _old(members, verdict)
    pending = [member.pod for member in members if not member.pod.node and member.pod.shape.known_scheduler]
    if clause.spread and pending:
        return Severity.ERROR, _effect_on_pending(pending, found, verdict, old, clause.topology_key)
    if clause.required and not clause.spread:
        return Severity.ERROR, f"The required term still acts on {_acted_on(found, old)}."
    severity = Severity.WARNING if siblings else Severity.INFO
    if clause.spread:
        return severity, _effect_on_running(members, siblings, old, clause.topology_key)
    told = f" {_told(members, siblings, old)}." if siblings else ""
    return severity, f"The preferred term still scores by {_acted_on(found, old)}.{told}"


def _acted_on(found: KeyVerdict, old: str) -> str:
    return f"all pods except those with {old}" if found.operator is Operator.NOT_IN else f"pods with {old}"


def _effect_on_pending(pending: Sequence[PodRecord], found: KeyVerdict, verdict: Verdict, old: str, key: str) -> str:
    who, one = phrases.plural(len(pending), "pending pod"), len(pending) == 1
    if verdict is Verdict.REMOVED_LABEL:
        does = "is placed by the pods that have it and does not count itself"
        many = "are placed by the pods that have it and do not count themselves"
        return f"{who} {does if one else many}."
    both = f"both {old} and {found.key}={phrases.value(found.label or '')}"
    requires = f"its selector requires {both}" if one else f"their selectors require {both}"
    where = f"{'it' if one else 'they'} may be placed {_anywhere(key)}"
    return f"The constraint has no effect for {who}: {requires}, so {where}."


def _effect_on_running(members: Sequence[EvaluatedPod], siblings: int, old: str, key: str) -> str:
    one = len(members) == 1
    if not siblings:
        pods = "the running pod" if one else "the running pods"
        return f"Nothing changes for {pods}, and no other pod of the workload selects {old}."
    return f"{_told(members, siblings, old)}, so new ones may be placed {_there(key, 'its' if one else 'their')}."


def _told(members: Sequence[EvaluatedPod], siblings: int, old: str) -> str:
    """Return how many siblings no longer count the pods, and what they still select."""
    whose, which = ("Its", "this pod") if len(members) == 1 else ("Their", "these pods")
    if siblings == 1:
        return f"{whose} sibling still selects {old} and no longer counts {which}"
    return f"{whose} {siblings} siblings still select {old} and no longer count {which}"


def _anywhere(key: str) -> str:
    return _there(key, "any")


def _there(key: str, which: str) -> str:
    """Return where a pod is placed, in a word for the topology key: ``in its zone``, ``on any node``."""
    return f"on {which} node" if key == _HOSTNAME else f"in {which} {key.rpartition('/')[2]}"


def _old(members: Sequence[EvaluatedPod], verdict: Verdict) -> str:
    found = {(key.key, key.stored or "") for member in members for key in member.keys if key.verdict is verdict}
    return phrases.some(sorted(f"{key}={phrases.value(stored)}" for key, stored in found))


def _not_counting(members: Sequence[EvaluatedPod], verdict: Verdict, subject: RuleInput) -> int:
    """Return how many other pods select some of ``members`` by the labels that these were created with, and not now."""
    member_of_each_class = {member.pod.shape: member for member in members}.values()
    number = 0
    for selector, pods in _selectors(subject, except_for={member.pod.name for member in members}):
        if any(_counted_once(selector, member, verdict) for member in member_of_each_class):
            number += pods
    return number


def _counted_once(selector: LabelSelector | None, member: EvaluatedPod, verdict: Verdict) -> bool:
    labels = member.pod.shape.labels
    old = {key.key: key.stored for key in member.keys if key.verdict is verdict and key.stored is not None}
    return labelselectors.matches(selector, {**labels, **old}) and not labelselectors.matches(selector, labels)


def _selectors(subject: RuleInput, *, except_for: Container[str]) -> list[tuple[LabelSelector | None, int]]:
    """Return the selectors that other pods of the workload have in the subject's clause, with their number of pods."""
    audit = subject.audit
    found: dict[bytes, tuple[LabelSelector | None, int]] = {}
    siblings = audit.counted.siblings(subject.workload)
    for pod in (one for one in siblings if one.name not in except_for):
        for selector in _selector_at(subject.path, pod, audit):
            key = ENCODER.encode(selector)
            found[key] = (selector, found.get(key, (selector, 0))[1] + 1)
    return list(found.values())


def _selector_at(path: FieldPath, pod: PodRecord, audit: Audit) -> list[LabelSelector | None]:
    effective = audit.views.of(pod.shape).effective
    return [selector for clause, selector in zip(pod.shape.clauses, effective, strict=True) if clause.path == path]


STALE_LABEL: Final = Rule(
    code="SPR101",
    name="stale-label",
    severity=Severity.WARNING,
    summary="A label that is merged into the selector has another value now",
    message="Label {key} changed from {stored} to {label} after creation{changed}. {effect}",
    why=(
        "kube-apiserver writes the value of a matchLabelKeys label into the selector once, when the pod is "
        "created. A label that changes later leaves a selector for a value that the pod no longer has. Nothing happens "
        "to a running pod, but its siblings no longer count it: a warning, or info if it has none. While the "
        "pod is pending the scheduler adds the current value to the stored one, both together select "
        "nothing, and the constraint has no effect: an error. A required anti-affinity term still repels pods "
        "by the old value for as long as the pod lives: an error."
    ),
    fix="{restart}",
    source=_MERGE_SOURCE,
    needs_nodes=False,
    of=frozenset({InputPart.MEMBERS}),
    check=_stale_label,
)
REMOVED_LABEL: Final = Rule(
    code="SPR102",
    name="removed-label",
    severity=Severity.WARNING,
    summary="A label that is merged into the selector is gone from the pod",
    message="Label {key} was removed after creation and the selector still has {key} {operator} [{stored}]. {effect}",
    why=(
        "The selector still asks for a label that the pod no longer has, so the pod does not count itself. Siblings "
        "that still ask for it no longer count the pod either: a warning, or info if it has none. A "
        "pending pod is placed by the pods that still have the label: an error. managedFields does not record who "
        "removed a label."
    ),
    fix="{restart}",
    source=_MERGE_SOURCE,
    needs_nodes=False,
    of=frozenset({InputPart.MEMBERS}),
    check=_removed_label,
)
