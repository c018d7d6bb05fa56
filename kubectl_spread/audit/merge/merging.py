"""Merging and unmerging: what would the API make of an object, and what did the merge put into a stored one?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from kubectl_spread.audit.merge.verdicts import KeyVerdict, ServerFacts, Verdict, judge
from kubectl_spread.audit.snapshot.tails import Key, SelectorParts, split
from kubectl_spread.audit.snapshot.templates import controller_labels, pod_refusals, template_labels
from kubectl_spread.audit.snapshot.terms import TopologyTerm, clauses
from kubectl_spread.kube.api.field import FieldError
from kubectl_spread.kube.api.fieldpath import FieldPath
from kubectl_spread.kube.api.labels import Operator, describe_requirement
from kubectl_spread.kube.api.types import LabelSelectorRequirement, Pod, PodSpec
from kubectl_spread.kube.api.workloads import WorkloadObject, template_path
from kubectl_spread.kube.apiserver import podwarnings, strategy, validation
from kubectl_spread.kube.features import Behaviour

_TAKEN_OUT: Final = frozenset({Verdict.MERGED, Verdict.STALE_LABEL})
_MISSING: Final = frozenset(
    {Verdict.UNMERGED, Verdict.LATE_LABEL, Verdict.PRE_UPGRADE, Verdict.MERGE_OFF, Verdict.BIND_LABEL}
)


class Change(msgspec.Struct, frozen=True):
    """What is changed in one spread constraint or affinity term.

    Attributes:
        path: The clause's path in its object.
        removed: The indices of the items of matchExpressions that are taken out, ascending.
        appended: The requirements that are appended.
        dropped: The fields that are taken out of the clause itself.
    """

    path: FieldPath
    removed: tuple[int, ...] = ()
    appended: tuple[LabelSelectorRequirement, ...] = ()
    dropped: tuple[str, ...] = ()


class PodsOutcome(msgspec.Struct, frozen=True):
    """What the API would say to the pods of a workload, and the labels that its controller is presumed to add."""

    errors: tuple[FieldError, ...]
    presumed_labels: tuple[str, ...]


class Outcome(msgspec.Struct, frozen=True):
    """What the API says to the creation of an object, and what is changed in it.

    Attributes:
        errors: Why it would be refused, in the API's order; none: it is admitted.
        warnings: The API's warnings on one that is admitted.
        notes: What else a person should know, one sentence each.
        changes: The clauses that change.
        pods: Of a workload, what the API would say to its pods.
    """

    errors: tuple[FieldError, ...]
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    pods: PodsOutcome | None = None


def merge_pod(pod: Pod, behaviour: Behaviour) -> Outcome:
    """Return what an apiserver of this behaviour would store for a pod that is created, or why it refuses it."""
    stored = strategy.prepare_for_create(pod.spec, pod.metadata.labels, behaviour)
    if errors := validation.pod_errors(stored, behaviour):
        return Outcome(errors)
    pairs = zip(clauses(pod.spec), clauses(stored), strict=True)
    changes = tuple(change for before, after in pairs if (change := _merged(before, after)))
    notes = tuple(
        f"{change.path}.{name}: dropped, as its feature gate is off" for change in changes for name in change.dropped
    )
    return Outcome((), tuple(podwarnings.pod_warnings(stored, behaviour)), notes, changes)


def judge_workload(kind: str, workload: WorkloadObject, behaviour: Behaviour) -> Outcome:
    """Return what the API says to a workload, which it never changes, and to the pods of its template."""
    path = template_path(kind)
    written = workload.template.spec
    template = strategy.drop_disabled_fields(written, behaviour)
    errors = validation.pod_errors(template, behaviour, path)
    labels = template_labels(kind, workload)
    return Outcome(
        errors,
        () if errors else tuple(podwarnings.pod_warnings(template, behaviour, path)),
        pods=PodsOutcome(pod_refusals(written, labels, behaviour), controller_labels(kind, workload)),
    )


def unmerge_pod(pod: Pod, behaviour: Behaviour) -> Outcome:
    """Return what the merge appended to the selectors of a stored pod, and what the API says to it without that.

    A requirement that may be the author's stays, and a note says so; other notes say where an apiserver of this
    behaviour would store something else when the pod is created again.
    """
    labels = pod.metadata.labels
    found = clauses(pod.spec)
    parts = split(found)
    context = ServerFacts(behaviour, gates_known=False)
    verdicts = judge(found, parts, labels, bound=bool(pod.spec.node_name), context=context)
    judged = [_Unmerging(*one) for one in zip(found, parts, verdicts, strict=True)]
    changes = tuple(change for one in judged if (change := one.change))
    spec = _without(pod.spec, changes)
    again = strategy.prepare_for_create(spec, labels, behaviour)
    told = bool(pod.metadata.uid or changes)
    notes = dict.fromkeys(
        f"{one.clause.path}: {note}"
        for one, after in zip(judged, clauses(again), strict=True)
        for note in (*one.left, *(one.differing(after) if told else ()))
    )
    errors = validation.pod_errors(again, behaviour)
    warnings = () if errors else tuple(podwarnings.pod_warnings(again, behaviour))
    return Outcome(errors, warnings, tuple(notes), changes)


def applied(found: Mapping[str, Any], changes: Sequence[Change]) -> dict[str, Any]:
    """Return an object as JSON has it with the changes made; what does not change is shared."""
    changed: Any = found
    for change in changes:
        changed = _applied_at(changed, change.path, change)
    return dict(changed)


class _Unmerging(msgspec.Struct, frozen=True):
    """One clause of a stored pod: which of its requirements are the merge's."""

    clause: TopologyTerm
    part: SelectorParts
    keys: tuple[KeyVerdict, ...]

    @property
    def verdicts(self) -> Mapping[Key, KeyVerdict]:
        """The verdicts by key, in the order of the merge."""
        return {(found.operator, found.key): found for found in self.keys}

    @property
    def change(self) -> Change | None:
        """What is taken out, if anything is."""
        removed = tuple(index for index, _, found in self._tail() if found.verdict in _TAKEN_OUT)
        return Change(self.clause.path, removed=removed) if removed else None

    @property
    def left(self) -> Iterator[str]:
        """Say of each requirement that looks merged why it stays."""
        tail = {index: found for index, _, found in self._tail()}
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
        """Say where the pod, created again, would hold something else than it does."""
        stored = {(found.operator, found.key): found.stored for _, _, found in self._tail()}
        selector = after.selector
        expressions = () if selector is None else selector.match_expressions
        for key, found in self.verdicts.items():
            now = describe_requirement(_requirement(key, stored.get(key) or ""))
            then = describe_requirement(_requirement(key, found.label or ""))
            comes = any(describe_requirement(item) == then for item in expressions)
            if found.verdict in _TAKEN_OUT and not comes:
                yield f"a re-creation would not store {now}"
            elif found.verdict is Verdict.STALE_LABEL:
                yield f"a re-creation would store {then} instead of {now}"
            elif found.verdict in _MISSING and comes:
                yield f"a re-creation would store {then}, which is not there now"

    @property
    def _expressions(self) -> tuple[LabelSelectorRequirement, ...]:
        selector = self.clause.selector
        return () if selector is None else selector.match_expressions

    def _tail(self) -> Iterator[tuple[int, LabelSelectorRequirement, KeyVerdict]]:
        """Yield the requirements of the tail with their indices and verdicts."""
        first = len(self._expressions) - len(self.part.tail)
        for index, requirement in enumerate(self._expressions[first:], first):
            yield index, requirement, self.verdicts[Operator(requirement.operator), requirement.key]

    def _looks_merged(self, requirement: LabelSelectorRequirement) -> KeyVerdict | None:
        """Return the verdict on a key of which the merge could have written this requirement."""
        if len(requirement.values) != 1 or requirement.operator not in (Operator.IN, Operator.NOT_IN):
            return None
        return self.verdicts.get((Operator(requirement.operator), requirement.key))

    def _why_by_hand(self, requirement: LabelSelectorRequirement) -> str:
        if (Operator(requirement.operator), requirement.key) in self.part.handwritten:
            return "another constraint or term of this pod names the key and lacks it"
        return "what the merge appends stands last, in the order of the keys"


def _requirement(key: Key, value: str) -> LabelSelectorRequirement:
    return LabelSelectorRequirement(key=key[1], operator=key[0], values=(value,))


def _merged(before: TopologyTerm, after: TopologyTerm) -> Change | None:
    """Return what creation changes in a clause, if anything."""
    appended: tuple[LabelSelectorRequirement, ...] = ()
    if before.selector is not None and after.selector is not None:
        appended = after.selector.match_expressions[len(before.selector.match_expressions) :]
    kept = _fields(after)
    dropped = tuple(name for name in _fields(before) if name not in kept)
    return Change(before.path, appended=appended, dropped=dropped) if appended or dropped else None


def _fields(clause: TopologyTerm) -> Mapping[str, object]:
    """Return the fields of a clause that a feature gate may drop, as the API names them, where they are set."""
    if clause.constraint is not None:
        fields: dict[str, object] = msgspec.to_builtins(clause.constraint)
        return {name: value for name, value in fields.items() if name != "labelSelector"}
    keys = {"matchLabelKeys": clause.match_label_keys, "mismatchLabelKeys": clause.mismatch_label_keys}
    return {name: value for name, value in keys.items() if value}


def _without(spec: PodSpec, changes: Sequence[Change]) -> PodSpec:
    found = applied({"spec": msgspec.to_builtins(spec)}, changes)
    return msgspec.convert(found["spec"], PodSpec)


def _applied_at(value: Any, steps: Sequence[str | int], change: Change) -> Any:
    if not steps:
        return _changed_clause(value, change)
    step, *rest = steps
    if isinstance(value, dict):
        return {**value, step: _applied_at(value[step], rest, change)}
    return [_applied_at(item, rest, change) if index == step else item for index, item in enumerate(value)]


def _changed_clause(clause: dict[str, Any], change: Change) -> dict[str, Any]:
    changed = {name: value for name, value in clause.items() if name not in change.dropped}
    if not change.removed and not change.appended:
        return changed
    selector = dict(clause["labelSelector"])
    written = selector.get("matchExpressions") or ()
    expressions = [item for index, item in enumerate(written) if index not in change.removed]
    expressions += [
        {"key": item.key, "operator": item.operator, "values": list(item.values)} for item in change.appended
    ]
    selector["matchExpressions"] = expressions
    if not expressions:
        del selector["matchExpressions"]
    return {**changed, "labelSelector": selector}
