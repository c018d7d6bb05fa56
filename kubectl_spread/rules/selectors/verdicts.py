"""SPR103 to SPR106 and SPR108: stored selectors that differ from the merged ones."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from kubectl_spread import phrases
from kubectl_spread.audit.evaluation.evaluate import EvaluatedPod
from kubectl_spread.audit.merge.verdicts import KeyVerdict, Verdict
from kubectl_spread.report.projections import timestamp
from kubectl_spread.report.severity import Severity
from kubectl_spread.rules.model import KUBERNETES, Evidence, Rule, Values, names
from kubectl_spread.rules.rule_input import InputPart, RuleInput


def key_of(member: EvaluatedPod, verdict: Verdict) -> KeyVerdict:
    """Return the first key of a pod that has a verdict."""
    return next(key for key in member.keys if key.verdict is verdict)


def _writer(key: KeyVerdict) -> str:
    """Return the writer of the label, as a part of the message; "" if it is unknown."""
    changed = key.changed_by
    if changed is None or changed.time is None:
        return ""
    return f" (by {changed.manager}, at or before {timestamp(changed.time)})"


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
    for evidence in _with_verdict(rule_input, Verdict.LATE_LABEL):
        term = rule_input.rows[0].term
        active = term.required and not term.spread
        yield Evidence(evidence.pods, evidence.values, Severity.WARNING if active else Severity.INFO)


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
    source="https://kep.k8s.io/3243",
    parts=InputPart.MEMBERS,
    check=partial(_with_verdict, verdict=Verdict.PRE_UPGRADE),
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
    source=f"{KUBERNETES}/pkg/registry/core/pod/strategy.go",
    parts=InputPart.MEMBERS,
    check=partial(_with_verdict, verdict=Verdict.MERGE_OFF),
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
    parts=InputPart.MEMBERS,
    check=_late_label,
)
DUPLICATE: Final = Rule(
    code="SPR106",
    name="duplicate",
    severity=Severity.WARNING,
    summary="A matchLabelKeys key appears more than once in the selector",
    message="{key}: {evidence}; no merging apiserver admits such a pod",
    why=(
        "kube-apiserver refuses a pod whose selector names a matchLabelKeys key twice, so this one came past it: a "
        "direct write to storage, or another API that copies pods. All requirements are ANDed."
    ),
    fix="find out what wrote the pod; then {restart}",
    source=f"{KUBERNETES}/pkg/registry/core/pod/strategy.go",
    parts=InputPart.MEMBERS,
    check=partial(_with_verdict, verdict=Verdict.DUPLICATE),
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
    source="https://kep.k8s.io/3243",
    parts=InputPart.MEMBERS,
    check=partial(_with_verdict, verdict=Verdict.UNMERGED),
)
