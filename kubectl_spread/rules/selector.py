"""SPR1xx: the stored selector against what the merge makes of the pod's labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from kubectl_spread.audit import phrases
from kubectl_spread.audit.evaluate import Member
from kubectl_spread.audit.projections import timestamp
from kubectl_spread.audit.templates import Template
from kubectl_spread.audit.verdicts import BINDING_KEYS, KeyVerdict, Verdict
from kubectl_spread.kube import labels as labelselectors
from kubectl_spread.kube.labels import Operator
from kubectl_spread.rules.model import Evidence, Part, Rule, Severity, Subject

_MERGE_SOURCE: Final = "https://kep.k8s.io/3243"
_STRATEGY_SOURCE: Final = "https://github.com/kubernetes/kubernetes/blob/v1.37.1/pkg/registry/core/pod/strategy.go"


def _key(member: Member, verdict: Verdict) -> KeyVerdict:
    return next(found for found in member.keys if found.verdict is verdict)


def _names(members: list[Member]) -> tuple[str, ...]:
    return tuple(member.pod.name for member in members)


def _writer(found: KeyVerdict) -> str:
    """Return who wrote the label, as a clause of the message; "" where nothing tells."""
    changed = found.changed_by
    if changed is None or changed.time is None:
        return ""
    return f" ({changed.manager}, at or before {timestamp(changed.time)})"


def _said(members: list[Member], verdict: Verdict) -> dict[str, str]:
    """Return what is said of the keys with a verdict: the keys, and their stored values and labels on all the pods."""
    found = [key for member in members for key in member.keys if key.verdict is verdict]
    writers = {_writer(key) for key in found} - {""}
    return {
        "key": phrases.some(sorted({key.key for key in found})),
        "stored": phrases.some(sorted({phrases.value(key.stored or "") for key in found})),
        "label": phrases.some(sorted({phrases.value(key.label or "") for key in found})),
        "changed": writers.pop() if len(writers) == 1 else "",
    }


def _effect(members: list[Member], found: KeyVerdict) -> tuple[Severity, str]:
    """Return how a selector that no longer fits the pod's labels acts, on the worst of the pods."""
    clause = members[0].clause
    pending = [member for member in members if not member.pod.node and member.pod.shape.known_scheduler]
    if clause.spread and pending:
        removed = found.verdict is Verdict.REMOVED_LABEL
        who = phrases.plural(len(pending), "pending pod")
        how = "placed by the pods that still have it" if removed else "not held to the constraint"
        return Severity.ERROR, f"{who} {'is' if len(pending) == 1 else 'are'} {how}"
    if clause.spread:
        return (
            Severity.WARNING,
            "the scheduler read it when it placed the pods; other tools and copies still do",
        )
    if clause.required:
        which = "all pods but those" if found.operator is Operator.NOT_IN else "pods"
        return Severity.ERROR, f"the term goes on acting on {which} with the old value"
    return Severity.WARNING, "the term goes on scoring by the old value"


def _stale_label(subject: Subject) -> Iterator[Evidence]:
    if members := subject.members(Verdict.STALE_LABEL):
        found = _key(members[0], Verdict.STALE_LABEL)
        severity, effect = _effect(members, found)
        values = {**_said(members, Verdict.STALE_LABEL), "effect": effect}
        yield Evidence(_names(members), values, severity)


def _removed_label(subject: Subject) -> Iterator[Evidence]:
    if members := subject.members(Verdict.REMOVED_LABEL):
        found = _key(members[0], Verdict.REMOVED_LABEL)
        severity, effect = _effect(members, found)
        values = {**_said(members, Verdict.REMOVED_LABEL), "operator": str(found.operator), "effect": effect}
        yield Evidence(_names(members), values, severity)


def _missing(subject: Subject, verdict: Verdict) -> Iterator[Evidence]:
    """Yield the pods whose selector lacks a key for one reason, with the first pod's key and evidence."""
    if members := subject.members(verdict):
        found = _key(members[0], verdict)
        values = {**_said(members, verdict), "evidence": "; ".join(found.evidence)}
        yield Evidence(_names(members), values)


def _pre_upgrade(subject: Subject) -> Iterator[Evidence]:
    return _missing(subject, Verdict.PRE_UPGRADE)


def _merge_off(subject: Subject) -> Iterator[Evidence]:
    return _missing(subject, Verdict.MERGE_OFF)


def _unmerged(subject: Subject) -> Iterator[Evidence]:
    return _missing(subject, Verdict.UNMERGED)


def _late_label(subject: Subject) -> Iterator[Evidence]:
    for evidence in _missing(subject, Verdict.LATE_LABEL):
        clause = subject.rows[0].clause
        active = clause.required and not clause.spread
        yield Evidence(evidence.pods, evidence.values, Severity.WARNING if active else Severity.INFO)


def _duplicate(subject: Subject) -> Iterator[Evidence]:
    return _missing(subject, Verdict.DUPLICATE)


def _absent_key(subject: Subject) -> Iterator[Evidence]:
    """Name the pods that lack a key, whatever else is wrong with their other keys; or the template that does."""
    if subject.template is not None:
        yield from _absent_from_template(subject.path, subject.template)
    found: dict[str, list[Member]] = {}
    for member in subject.taken:
        for key in member.keys:
            if key.verdict is Verdict.ABSENT_KEY and key.key not in BINDING_KEYS:
                found.setdefault(key.key, []).append(member)
    if found:
        pods = sorted({member.pod.name for members in found.values() for member in members})
        yield Evidence(tuple(pods), _absent(found))


def _absent_from_template(path: str, template: Template) -> Iterator[Evidence]:
    for clause in template.clauses:
        if clause.path != path or clause.selector is None:
            continue
        authored = labelselectors.keys(clause.selector)
        keys = {*clause.match_label_keys} - authored | {*clause.mismatch_label_keys}
        if absent := keys - template.labels.keys() - BINDING_KEYS:
            yield Evidence((), _absent(absent))


def _absent(keys: Iterable[str]) -> dict[str, str]:
    """Return what is said of keys that the pods lack."""
    listed = sorted(keys)
    one = len(listed) == 1
    return {
        "keys": ", ".join(listed),
        "labels": f"label {listed[0]}" if one else f"labels {', '.join(listed)}",
        "effect": "the key does nothing" if one else "the keys do nothing",
    }


STALE_LABEL: Final = Rule(
    code="SPR101",
    name="stale-label",
    severity=Severity.WARNING,
    summary="A label that is merged into the selector has another value now",
    message="{key} was {stored} when the pod was created and is {label} now{changed}: {effect}",
    why=(
        "kube-apiserver writes the value of a matchLabelKeys label into the selector once, when the pod is "
        "created. A label that changes later leaves a selector for a value the pod no longer has. While the "
        "pod is pending the scheduler adds the current value to the stored one, both together select "
        "nothing, and the constraint is silently off. A required anti-affinity term goes on repelling pods "
        "by the old value for as long as the pod lives."
    ),
    fix="{restart}",
    source=_MERGE_SOURCE,
    needs_nodes=False,
    of=frozenset({Part.MEMBERS}),
    check=_stale_label,
)
REMOVED_LABEL: Final = Rule(
    code="SPR102",
    name="removed-label",
    severity=Severity.WARNING,
    summary="A label that is merged into the selector is gone from the pod",
    message="{key} {operator} [{stored}] is in the selector and the pod has no label {key}: {effect}",
    why=(
        "The selector still asks for a label that the pod no longer has, so the pod does not count itself. A "
        "pending pod is placed by the pods that still have the label. managedFields does not record who "
        "removed a label."
    ),
    fix="{restart}",
    source=_MERGE_SOURCE,
    needs_nodes=False,
    of=frozenset({Part.MEMBERS}),
    check=_removed_label,
)
PRE_UPGRADE: Final = Rule(
    code="SPR103",
    name="pre-upgrade",
    severity=Severity.INFO,
    summary="The pod was created by an apiserver that did not merge yet",
    message="{key} is not in the selector: {evidence}",
    why=(
        "Before Kubernetes 1.34 kube-apiserver stored spread selectors as written and the scheduler added "
        "the keys itself, as it still does. Running pods need nothing; what reads their selectors sees all "
        "revisions together."
    ),
    fix="nothing to do; the next rollout creates merged pods",
    source=_MERGE_SOURCE,
    needs_nodes=False,
    of=frozenset({Part.MEMBERS}),
    check=_pre_upgrade,
)
MERGE_OFF: Final = Rule(
    code="SPR104",
    name="merge-off",
    severity=Severity.INFO,
    summary="The merge is switched off by feature gates on a server that could merge",
    message="{key} is not in the selector: {evidence}",
    why=(
        "With MatchLabelKeysInPodTopologySpreadSelectorMerge off, selectors are stored as written. The scheduler "
        "still adds the keys, but every other reader of the selector sees all revisions together."
    ),
    fix=(
        "set MatchLabelKeysInPodTopologySpreadSelectorMerge=true on kube-apiserver, then restart the pods when "
        "convenient"
    ),
    source=_STRATEGY_SOURCE,
    needs_nodes=False,
    of=frozenset({Part.MEMBERS}),
    check=_merge_off,
)
LATE_LABEL: Final = Rule(
    code="SPR105",
    name="late-label",
    severity=Severity.INFO,
    summary="A label named by matchLabelKeys or mismatchLabelKeys was added after the pod was created",
    message="{key}={label} came after the pod was created{changed}, so the selector lacks it ({evidence})",
    why=(
        "The merge happens once, at creation, with the labels the pod has then. An affinity term without the "
        "requirement acts on every revision or tenant; in a spread constraint the scheduler adds the value while "
        "the pod is pending."
    ),
    fix="put the label into the pod template, then {restart}",
    source="https://kep.k8s.io/3633",
    needs_nodes=False,
    of=frozenset({Part.MEMBERS}),
    check=_late_label,
)
DUPLICATE: Final = Rule(
    code="SPR106",
    name="duplicate",
    severity=Severity.WARNING,
    summary="A matchLabelKeys key stands more than once in the selector",
    message="{key}: {evidence}; no merging apiserver admits such a pod",
    why=(
        "kube-apiserver refuses a pod whose selector names a matchLabelKeys key twice, so this one came past it: a "
        "direct write to storage, or another API that copies pods. All requirements are ANDed."
    ),
    fix="find out what wrote the pod; then {restart}",
    source=_STRATEGY_SOURCE,
    needs_nodes=False,
    of=frozenset({Part.MEMBERS}),
    check=_duplicate,
)
ABSENT_KEY: Final = Rule(
    code="SPR107",
    name="absent-key",
    severity=Severity.WARNING,
    summary="A key to match or mismatch is not among the pod's labels and does nothing",
    message="the pods do not have the {labels}: {effect}",
    why=(
        "A key that the pod lacks is skipped without a word, by the merge and by the scheduler. A misspelt key, or "
        "one that only another controller sets, makes the clause look at every revision."
    ),
    fix="correct the key or add the label to the pod template",
    source="https://github.com/kubernetes/kubernetes/issues/127263",
    needs_nodes=False,
    of=frozenset({Part.MEMBERS, Part.TEMPLATE}),
    check=_absent_key,
)
UNMERGED: Final = Rule(
    code="SPR108",
    name="unmerged",
    severity=Severity.INFO,
    summary="The label is there, the selector lacks it, and nothing proves why",
    message="{key} is not in the selector: {evidence}",
    why=(
        "Either the apiserver that created the pod did not merge, or the label came later. Say --merge-since TIME "
        "if you know when every apiserver began to merge."
    ),
    fix="nothing to do for running pods; {restart} to have the selector merged",
    source=_MERGE_SOURCE,
    needs_nodes=False,
    of=frozenset({Part.MEMBERS}),
    check=_unmerged,
)
