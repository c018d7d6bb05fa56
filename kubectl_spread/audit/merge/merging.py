"""Merging and unmerging: the changes that the API makes to an object at creation, and their removal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from kubectl_spread.audit.merge.verdicts import KeyVerdict, ServerFacts, Verdict, judge
from kubectl_spread.audit.snapshot.templates import controller_labels, pod_refusals, template_errors, template_labels
from kubectl_spread.audit.snapshot.terms import Key, SelectorParts, TopologyTerm, split, topology_terms
from kubectl_spread.kube import apiserver
from kubectl_spread.kube.api.field import FieldError, FieldPath
from kubectl_spread.kube.api.labels import Operator, describe_requirement
from kubectl_spread.kube.api.types import LabelSelectorRequirement, Pod, PodSpec
from kubectl_spread.kube.api.workloads import WorkloadObject, template_path
from kubectl_spread.kube.features import Behaviour

_REMOVED: Final = frozenset({Verdict.MERGED, Verdict.STALE_LABEL})
_MISSING: Final = frozenset(
    {Verdict.UNMERGED, Verdict.LATE_LABEL, Verdict.PRE_UPGRADE, Verdict.MERGE_OFF, Verdict.BIND_LABEL}
)


class Change(msgspec.Struct, frozen=True):
    """A change of one spread constraint or affinity term.

    Attributes:
        path: The path of the term in its object.
        removed: The indices of the items that are removed from matchExpressions, ascending.
        appended: The requirements that are appended.
        dropped: The fields that are removed from the term itself.
    """

    path: FieldPath
    removed: tuple[int, ...] = ()
    appended: tuple[LabelSelectorRequirement, ...] = ()
    dropped: tuple[str, ...] = ()


class PodsOutcome(msgspec.Struct, frozen=True):
    """The API's errors on the pods of a workload, and the labels that its controller presumably adds."""

    errors: tuple[FieldError, ...]
    presumed_labels: tuple[str, ...]


class Outcome(msgspec.Struct, frozen=True):
    """The API's answer to the creation of an object, and the changes to the object.

    Attributes:
        errors: The API's errors, in its order; an object without errors is admitted.
        warnings: The API's warnings about an admitted object.
        notes: Further notes for the user, one sentence each.
        changes: The changes of the object's terms.
        pods: The API's answer to the pods of a workload; None for a pod.
    """

    errors: tuple[FieldError, ...]
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    pods: PodsOutcome | None = None


def merge_pod(pod: Pod, behaviour: Behaviour) -> Outcome:
    """Return the changes that an API server of this behaviour makes to a pod at creation, or its errors."""
    stored = apiserver.prepare_for_create(pod.spec, pod.metadata.labels, behaviour)
    if errors := apiserver.pod_errors(stored, behaviour):
        return Outcome(errors)
    pairs = zip(topology_terms(pod.spec), topology_terms(stored), strict=True)
    changes = tuple(change for before, after in pairs if (change := _merged(before, after)))
    notes = tuple(
        f"{change.path}.{name}: dropped, as its feature gate is off" for change in changes for name in change.dropped
    )
    return Outcome((), tuple(apiserver.pod_warnings(stored, behaviour)), notes, changes)


def judge_workload(kind: str, workload: WorkloadObject, behaviour: Behaviour) -> Outcome:
    """Return the API's answer to a workload, which it never changes, and to the pods of its template."""
    path = template_path(kind)
    spec = workload.template.spec
    template = apiserver.drop_disabled_fields(spec, behaviour)
    errors = template_errors(kind, spec, behaviour)
    labels = template_labels(kind, workload)
    return Outcome(
        errors,
        () if errors else tuple(apiserver.pod_warnings(template, behaviour, path)),
        pods=PodsOutcome(pod_refusals(spec, labels, behaviour), controller_labels(kind, workload)),
    )


def unmerge_pod(pod: Pod, behaviour: Behaviour) -> Outcome:
    """Return the removal of the requirements that the merge appended, and the API's answer to the pod without them.

    A requirement that may be the author's stays, with a note. Other notes name the requirements that an API server of
    this behaviour would store differently when the pod is created again.
    """
    labels = pod.metadata.labels
    terms = topology_terms(pod.spec)
    selectors = split(terms)
    context = ServerFacts(behaviour, gates_known=False)
    verdicts = judge(terms, selectors, labels, bound=bool(pod.spec.node_name), context=context)
    unmerged_terms = [_UnmergedTerm(*parts) for parts in zip(terms, selectors, verdicts, strict=True)]
    changes = tuple(change for unmerged in unmerged_terms if (change := unmerged.change))
    spec = without(pod.spec, changes)
    recreated = apiserver.prepare_for_create(spec, labels, behaviour)
    was_created = bool(pod.metadata.uid or changes)
    notes = dict.fromkeys(
        f"{unmerged.term.path}: {note}"
        for unmerged, after in zip(unmerged_terms, topology_terms(recreated), strict=True)
        for note in (*unmerged.remaining, *(unmerged.differing(after) if was_created else ()))
    )
    errors = apiserver.pod_errors(recreated, behaviour)
    warnings = () if errors else tuple(apiserver.pod_warnings(recreated, behaviour))
    return Outcome(errors, warnings, tuple(notes), changes)


def applied(document: Mapping[str, Any], changes: Sequence[Change]) -> dict[str, Any]:
    """Return a JSON object with the changes made; unchanged parts are shared."""
    changed: Any = document
    for change in changes:
        changed = _applied_at(changed, change.path, change)
    return dict(changed)


class _UnmergedTerm(msgspec.Struct, frozen=True):
    """One term of a stored pod from which the merged requirements are removed, with the verdicts on its keys."""

    term: TopologyTerm
    parts: SelectorParts
    keys: tuple[KeyVerdict, ...]

    @property
    def verdicts(self) -> Mapping[Key, KeyVerdict]:
        """The verdicts by key, in the order of the merge."""
        return {(verdict.operator, verdict.key): verdict for verdict in self.keys}

    @property
    def change(self) -> Change | None:
        """The removal of the merged requirements, if there are any."""
        removed = tuple(index for index, _, verdict in self._tail() if verdict.verdict in _REMOVED)
        return Change(self.term.path, removed=removed) if removed else None

    @property
    def remaining(self) -> Iterator[str]:
        """The reasons why requirements that look merged stay."""
        tail = {index: tail_verdict for index, _, tail_verdict in self._tail()}
        for index, requirement in enumerate(self._expressions):
            if (verdict := self._looks_merged(requirement)) is None:
                continue
            text = describe_requirement(requirement)
            if verdict.verdict is Verdict.DUPLICATE:
                yield f"{text} stays: {verdict.evidence[0]}, which no merge leaves behind"
            elif index not in tail and verdict.verdict is Verdict.AUTHORED:
                yield f"{text} stays: written by hand ({self._why_by_hand(requirement)})"
            elif index in tail and verdict.verdict is Verdict.REMOVED_LABEL:
                yield f"{text} stays: the pod has no label {requirement.key}, so it may be the author's"

    def differing(self, after: TopologyTerm) -> Iterator[str]:
        """Yield the differences between the stored requirements and those of a re-created pod."""
        stored = {(verdict.operator, verdict.key): verdict.stored for _, _, verdict in self._tail()}
        selector = after.selector
        expressions = () if selector is None else selector.match_expressions
        for key, verdict in self.verdicts.items():
            present = describe_requirement(_requirement(key, stored.get(key) or ""))
            future = describe_requirement(_requirement(key, verdict.label or ""))
            returns = any(describe_requirement(requirement) == future for requirement in expressions)
            if verdict.verdict in _REMOVED and not returns:
                yield f"a re-creation would not store {present}"
            elif verdict.verdict is Verdict.STALE_LABEL:
                yield f"a re-creation would store {future} instead of {present}"
            elif verdict.verdict in _MISSING and returns:
                yield f"a re-creation would store {future}, which is not there now"

    @property
    def _expressions(self) -> tuple[LabelSelectorRequirement, ...]:
        selector = self.term.selector
        return () if selector is None else selector.match_expressions

    def _tail(self) -> Iterator[tuple[int, LabelSelectorRequirement, KeyVerdict]]:
        first = len(self._expressions) - len(self.parts.tail)
        for index, requirement in enumerate(self._expressions[first:], first):
            yield index, requirement, self.verdicts[Operator(requirement.operator), requirement.key]

    def _looks_merged(self, requirement: LabelSelectorRequirement) -> KeyVerdict | None:
        """Return the verdict on the key of a requirement that the merge could have written; None for any other."""
        if len(requirement.values) != 1 or requirement.operator not in (Operator.IN, Operator.NOT_IN):
            return None
        return self.verdicts.get((Operator(requirement.operator), requirement.key))

    def _why_by_hand(self, requirement: LabelSelectorRequirement) -> str:
        if (Operator(requirement.operator), requirement.key) in self.parts.handwritten:
            return "another constraint or term of this pod names the key and lacks it"
        return "what the merge appends stands last, in the order of the keys"


def _requirement(key: Key, value: str) -> LabelSelectorRequirement:
    return LabelSelectorRequirement(key=key[1], operator=key[0], values=(value,))


def _merged(before: TopologyTerm, after: TopologyTerm) -> Change | None:
    """Return the changes that creation makes to a term, if any."""
    appended: tuple[LabelSelectorRequirement, ...] = ()
    if before.selector is not None and after.selector is not None:
        appended = after.selector.match_expressions[len(before.selector.match_expressions) :]
    remaining = _fields(after)
    dropped = tuple(name for name in _fields(before) if name not in remaining)
    return Change(before.path, appended=appended, dropped=dropped) if appended or dropped else None


def _fields(term: TopologyTerm) -> Mapping[str, object]:
    """Return the fields of a term that a feature gate may drop, by their names in the API, where they are set."""
    if term.constraint is not None:
        fields: dict[str, object] = msgspec.to_builtins(term.constraint)
        return {name: value for name, value in fields.items() if name != "labelSelector"}
    keys = {"matchLabelKeys": term.match_label_keys, "mismatchLabelKeys": term.mismatch_label_keys}
    return {name: value for name, value in keys.items() if value}


def without(spec: PodSpec, changes: Sequence[Change]) -> PodSpec:
    """Return the spec of a pod after changes that remove requirements."""
    document = applied({"spec": msgspec.to_builtins(spec)}, changes)
    return msgspec.convert(document["spec"], type(spec))


def _applied_at(value: Any, steps: Sequence[str | int], change: Change) -> Any:
    if not steps:
        return _changed_term(value, change)
    step, *rest = steps
    if isinstance(value, dict):
        return {**value, step: _applied_at(value[step], rest, change)}
    return [_applied_at(entry, rest, change) if index == step else entry for index, entry in enumerate(value)]


def _changed_term(term: dict[str, Any], change: Change) -> dict[str, Any]:
    changed = {name: value for name, value in term.items() if name not in change.dropped}
    if not change.removed and not change.appended:
        return changed
    selector = dict(term["labelSelector"])
    stored = selector.get("matchExpressions") or ()
    expressions = [expression for index, expression in enumerate(stored) if index not in change.removed]
    expressions += [
        {"key": requirement.key, "operator": str(requirement.operator), "values": list(requirement.values)}
        for requirement in change.appended
    ]
    selector["matchExpressions"] = expressions
    if not expressions:
        del selector["matchExpressions"]
    return {**changed, "labelSelector": selector}
