"""SPR401, SPR402 and SPR407: effects of servers of some versions on pods."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

import msgspec

from kubectl_spread.audit.evaluation.evaluate import EvaluatedConstraint
from kubectl_spread.audit.merge.verdicts import MERGE_RELEASED, KeyVerdict, Verdict
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.types import LabelSelector
from kubectl_spread.kube.custom import base_kind
from kubectl_spread.phrases import plural, versions
from kubectl_spread.report.model import Severity
from kubectl_spread.report.projections import timestamp
from kubectl_spread.rules import patches
from kubectl_spread.rules.inputs import PodsInput, TemplateInput, TermInput
from kubectl_spread.rules.model import Evidence, Remedy, Rule, Values, names
from kubectl_spread.rules.remedy import changed

_SAME_MOMENT: Final = timedelta(seconds=1)
"""The resolution of creation times in the API."""
_NOT_MERGED: Final = frozenset({Verdict.UNMERGED, Verdict.PRE_UPGRADE, Verdict.SCHEDULER_MERGED})
_UNPROVEN: Final = frozenset({Verdict.UNMERGED, Verdict.SCHEDULER_MERGED})
_STUCK_MESSAGE: Final = " The finalizers of {} cannot be removed, so their deletion or their Job never ends."
_REVISION: Final = "controller-revision-hash"
_STUCK: Final = "upgrade kube-apiserver to 1.34 or newer with default feature gates, which accepts edits of these pods"
_BROKEN: Final = "find out what created the pods, correct the field there, then replace the pods"


def _uneditable(rule_input: PodsInput) -> Iterator[Evidence]:
    """Yield the pods that nobody can edit; that is an error if nobody can remove their finalizers."""
    pods, errors = rule_input.refused_pods(rule_input.audit.admission.edits)
    if not pods:
        return
    stuck = [pod for pod in pods if pod.held and (pod.terminating or _of_job(pod))]
    values = {
        "minor": f"1.{rule_input.behaviour.minor}",
        "errors": "; ".join(errors),
        "stuck": _STUCK_MESSAGE.format(plural(len(stuck), "pod")) if stuck else "",
    }
    severity = Severity.ERROR if stuck else Severity.WARNING
    fix = _STUCK if stuck else None
    if rule_input.behaviour.merges_spread_selectors:
        fix = _BROKEN
    yield Evidence(names(pods), values, severity, fix)


def _of_job(pod: PodRecord) -> bool:
    """Tell whether a Job owns the pod, whose controller removes a finalizer after it has counted the pod."""
    return base_kind(pod.pod_class.kind) == "Job"


class _Siblings(msgspec.Struct):
    """Pods of one revision of one owner with the same value of a key: pods with a merged selector, and pods without."""

    merged: list[PodRecord] = msgspec.field(default_factory=list)
    unmerged: list[PodRecord] = msgspec.field(default_factory=list)


def _mixed_servers(rule_input: PodsInput) -> Iterator[Evidence]:
    """Yield unmerged pods whose merged siblings are not all younger, as they would be after an upgrade."""
    mixed = {key: siblings for key, siblings in _mixed_siblings(rule_input) if _interleave(siblings, rule_input)}
    if mixed:
        key, siblings = next(iter(mixed.items()))
        merged, unmerged = min(siblings.merged, key=_age), max(siblings.unmerged, key=_age)
        values: Values = {
            "key": key,
            "merged_pods": plural(len(siblings.merged), "pod"),
            "unmerged_pods": plural(len(siblings.unmerged), "sibling"),
            "merged": merged.name,
            "merged_at": timestamp(_created(merged)),
            "unmerged": unmerged.name,
            "unmerged_at": timestamp(_created(unmerged)),
        }
        pod_names = {pod.name for siblings in mixed.values() for pod in siblings.unmerged}
        yield Evidence(tuple(sorted(pod_names)), values)


def _mixed_siblings(rule_input: PodsInput) -> Iterator[tuple[str, _Siblings]]:
    """Yield each key with siblings of the same value, if some of them are merged and others are not."""
    rows = [row for row in rule_input.rows if row.term.spread]
    if not any(key.verdict in _NOT_MERGED for row in rows for member in row.members for key in member.keys):
        return
    families: dict[object, tuple[str, _Siblings]] = {}
    for row in rows:
        for pod, key, merged in _keys_of_owned(row):
            labels = pod.pod_class.labels
            family = (pod.pod_class.owner, labels.get(_REVISION), key, labels.get(key))
            _, siblings = families.setdefault(family, (key, _Siblings()))
            (siblings.merged if merged else siblings.unmerged).append(pod)
    for key, siblings in families.values():
        if siblings.merged and siblings.unmerged:
            yield key, siblings


def _keys_of_owned(row: EvaluatedConstraint) -> Iterator[tuple[PodRecord, str, bool]]:
    """Yield each owned pod with each of its keys that is certainly merged, or certainly was not at creation."""
    keys = {member.pod.name: member.keys for member in row.members}
    for pod in row.pods:
        if pod.pod_class.owner is None or pod.created is None:
            continue
        if pod.name not in keys:
            yield from ((pod, key, True) for key in row.term.match_label_keys)
        for verdict_key in keys.get(pod.name, ()):
            if verdict_key.verdict is Verdict.MERGED or _unmerged_from_the_start(pod, verdict_key):
                yield pod, verdict_key.key, verdict_key.verdict is Verdict.MERGED


def _unmerged_from_the_start(pod: PodRecord, key: KeyVerdict) -> bool:
    """Tell whether the key was not merged when the pod was created, although it had the label."""
    written_later = any(owner.key == key.key and not owner.at_creation for owner in pod.owners)
    return key.verdict in _NOT_MERGED and not (key.verdict in _UNPROVEN and written_later)


def _interleave(siblings: _Siblings, rule_input: PodsInput) -> bool:
    """Tell whether neither an upgrade nor, on an older server, a downgrade explains the creation times."""
    merged, unmerged = [_created(pod) for pod in siblings.merged], [_created(pod) for pod in siblings.unmerged]
    upgraded = max(unmerged) + _SAME_MOMENT < min(merged)
    merges = rule_input.behaviour.could_merge_spread_selectors
    downgraded = not merges and max(merged) + _SAME_MOMENT < min(unmerged)
    return not upgraded and not downgraded


def _created(pod: PodRecord) -> datetime:
    return pod.created or MERGE_RELEASED


def _age(pod: PodRecord) -> tuple[datetime, str]:
    return _created(pod), pod.name


def _namespace_selector_twice(rule_input: TermInput) -> Iterator[Evidence]:
    """Yield new pods with a term that would act on every namespace."""
    behaviours = (rule_input.behaviour, *rule_input.audit.context.extra_checks.upgrade)
    minors = {behaviour.minor for behaviour in behaviours if behaviour.matches_namespace_selectors_twice}
    terms = [term for term in rule_input.terms if not term.spread and term.selector is not None]
    selectors = [term.namespace_selector for term in terms if term.namespace_selector is not None]
    unlabelled = [
        selector
        for selector in selectors
        if not labelselectors.is_empty(selector) and labelselectors.matches(selector, {})
    ]
    if minors and unlabelled:
        pods = _incoming(rule_input) if isinstance(rule_input, PodsInput) else ()
        if pods or isinstance(rule_input, TemplateInput):
            values: Values = {"minor": versions(minors), "selector": labelselectors.describe(unlabelled[0])}
            if not rule_input.behaviour.matches_namespace_selectors_twice:
                values["compared"] = values["minor"]
            yield Evidence(pods, values, fix=_with_requirement(unlabelled[0], rule_input))


def _with_requirement(selector: LabelSelector, rule_input: TermInput) -> Remedy:
    """Return the patch that adds a requirement which every namespace meets, but not the absence of all labels."""
    path = rule_input.term_path / "namespaceSelector" / "matchExpressions"
    expressions = msgspec.to_builtins(selector.match_expressions)
    requirement = {"key": "kubernetes.io/metadata.name", "operator": "Exists"}
    operations = (*patches.replaced(path, expressions, [*expressions, requirement]),)
    text = "require the label kubernetes.io/metadata.name, which every namespace has, in namespaceSelector"
    return changed(text, operations, rule_input)


def _incoming(rule_input: PodsInput) -> tuple[str, ...]:
    """Return the pending pods; without any, the pods of an owner whose template was not read."""
    refusals = rule_input.audit.admission.manifests
    pods = [pod for row in rule_input.rows for pod in row.pods if not refusals(pod.pod_class)]
    pending = [pod for pod in pods if not pod.node]
    bare = rule_input.workload.kind == "Pod"
    if pending or bare or any(template.workload == rule_input.workload for template in rule_input.audit.templates):
        return names(pending)
    return names(pods)


UNEDITABLE: Final = Rule(
    code="SPR401",
    name="uneditable",
    severity=Severity.WARNING,
    summary="This API server refuses every edit of the stored pods, even one that changes nothing",
    message=(
        "kube-apiserver {minor} refuses every edit of these pods, even of labels and finalizers.{stuck} Error: "
        "{errors}."
    ),
    fix="edit the pods through a kube-apiserver of 1.34 or newer with default feature gates, or {restart}",
    removes_pods=True,
    of_pods=_uneditable,
)
MIXED_SERVERS: Final = Rule(
    code="SPR402",
    name="mixed-servers",
    severity=Severity.WARNING,
    summary="Some pods of one revision are merged and others are not, and no upgrade explains it",
    message=(
        "{key} was merged into {merged_pods} but not into {unmerged_pods} of the same revision, and creation times "
        "show no upgrade in between. API servers of two versions or with different feature gates created them."
    ),
    fix="bring every kube-apiserver to one version with the same feature gates, then replace the unmerged pods",
    of_members=_mixed_servers,
)
NAMESPACE_SELECTOR_TWICE: Final = Rule(
    code="SPR407",
    name="namespace-selector-twice",
    severity=Severity.WARNING,
    summary="The scheduler of 1.34 to 1.36 applies the affinity term to the pods of every namespace",
    message=(
        "kube-scheduler {minor} applies this term of a new pod to the pods of every namespace, not only to those with "
        "{selector}, so the pod may be kept from nodes that it could use."
    ),
    fix="list the namespaces, or require the label kubernetes.io/metadata.name, which every namespace has",
    compares=True,
    of_pods=_namespace_selector_twice,
    of_template=_namespace_selector_twice,
)
