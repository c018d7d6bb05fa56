"""SPR103 to SPR106 and SPR108: stored selectors that differ from the merged ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from kubectl_spread import phrases
from kubectl_spread.audit.evaluation.evaluate import EvaluatedPod
from kubectl_spread.audit.merge.verdicts import KeyVerdict, Verdict
from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.kube.api.field import FieldPath
from kubectl_spread.report.model import Operation, Severity
from kubectl_spread.rules import patches
from kubectl_spread.rules.model import KUBERNETES, Evidence, InputPart, Remedy, Rule, RuleInput, Values, names
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


def _with_verdict(rule_input: RuleInput, verdict: Verdict) -> Iterator[Evidence]:
    """Yield the pods with a verdict, with the evidence of the first pod."""
    if members := rule_input.members(verdict):
        values = {**values_of(members, verdict), "evidence": "; ".join(key_of(members[0], verdict).evidence)}
        yield Evidence(names(member.pod for member in members), values)


def _late_label(rule_input: RuleInput) -> Iterator[Evidence]:
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


def _label_in_template(members: Sequence[EvaluatedPod], rule_input: RuleInput) -> Remedy:
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


def _unmerged(rule_input: RuleInput, verdict: Verdict) -> Iterator[Evidence]:
    for evidence in _with_verdict(rule_input, verdict):
        bare = rule_input.workload.kind == "Pod"
        yield Evidence(evidence.pods, evidence.values, fix=_BARE_UNMERGED if bare else None)


def _duplicate(rule_input: RuleInput) -> Iterator[Evidence]:
    for evidence in _with_verdict(rule_input, Verdict.DUPLICATE):
        bare = rule_input.workload.kind == "Pod"
        yield Evidence(evidence.pods, evidence.values, fix=_BARE_DUPLICATE if bare else None)


PRE_UPGRADE: Final = Rule(
    code="SPR103",
    name="pre-upgrade",
    severity=Severity.INFO,
    summary="The pods were created before kube-apiserver merged matchLabelKeys into selectors",
    message=(
        "The pods were created before kube-apiserver merged {key} into the selector. The scheduler adds it itself, so "
        "nothing changes for them."
    ),
    why=(
        "Before Kubernetes 1.34 kube-apiserver stored spread selectors as they were written. The scheduler added the "
        "keys itself, and still does. Other programs that read the selectors of these pods count all revisions "
        "together."
    ),
    fix="nothing to do: the next rollout creates merged pods",
    source="https://kep.k8s.io/3243",
    no_remedy="Nothing is wrong with the pods, and the next rollout replaces them.",
    parts=InputPart.MEMBERS,
    check=partial(_unmerged, verdict=Verdict.PRE_UPGRADE),
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
    why=(
        "While MatchLabelKeysInPodTopologySpreadSelectorMerge is off, kube-apiserver stores selectors as they are "
        "written. The scheduler still adds the keys. The descheduler and other programs read the stored selector."
    ),
    fix=(
        "set MatchLabelKeysInPodTopologySpreadSelectorMerge=true on kube-apiserver if other programs read the selectors"
    ),
    source=f"{KUBERNETES}/pkg/registry/core/pod/strategy.go",
    no_remedy="A feature gate is a flag of kube-apiserver, which kubectl does not set.",
    parts=InputPart.MEMBERS,
    check=partial(_with_verdict, verdict=Verdict.MERGE_OFF),
)
LATE_LABEL: Final = Rule(
    code="SPR105",
    name="late-label",
    severity=Severity.INFO,
    summary="A label that matchLabelKeys or mismatchLabelKeys lists was added after the pod was created",
    message="Label {key}={label} was added after creation{changed}, so the selector lacks it. {effect}.",
    why=(
        "The merge happens once, at creation, with the labels that the pod has then. An affinity term without the "
        "requirement acts on every revision or tenant. In a spread constraint the scheduler adds the value while "
        "the pod is pending."
    ),
    fix="add the label to the pod template, so that new pods are created with it",
    source="https://kep.k8s.io/3633",
    cases=(
        (Severity.WARNING, "An affinity term is required: it acts on pods with any value of the label."),
        (Severity.INFO, "The scheduler adds the value of a spread constraint itself, or a term is only preferred."),
    ),
    remedies=("command", "patch"),
    no_remedy="The pods have several values of the label, only some have it, or a stored pod template cannot change.",
    parts=InputPart.MEMBERS,
    check=_late_label,
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
    why=(
        "kube-apiserver refuses a pod whose selector names a matchLabelKeys key twice. Such a pod was written directly "
        "to storage, or by another API server that copies pods. All requirements of a selector must hold."
    ),
    fix="find out what wrote the pods. Then {restart}",
    source=f"{KUBERNETES}/pkg/registry/core/pod/strategy.go",
    remedies=("command",),
    no_remedy="The manifest of a pod without owner is to be corrected by hand before the pod is created again.",
    removes_pods=True,
    parts=InputPart.MEMBERS,
    check=_duplicate,
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
    why=(
        "Either the API server that created the pods did not merge, or the label was added later. --merge-since TIME "
        "says since when every API server merges, which decides between the two."
    ),
    fix="nothing to do: the next rollout creates merged pods",
    source="https://kep.k8s.io/3243",
    no_remedy="The scheduler adds the keys itself, and the next rollout replaces the pods.",
    parts=InputPart.MEMBERS,
    check=partial(_unmerged, verdict=Verdict.UNMERGED),
)
