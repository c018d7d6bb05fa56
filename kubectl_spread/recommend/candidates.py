"""Proposals: the changes of a workload that may help, the smallest first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from kubectl_spread.audit.snapshot.templates import template_of, template_refusals
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.field import FieldPath
from kubectl_spread.kube.api.labels import HOSTNAME, ZONE
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import LabelSelector, ObjectMeta, TopologySpreadConstraint
from kubectl_spread.kube.api.workloads import Deployment, ReplicatedWorkload, template_path
from kubectl_spread.kube.disruption import Budgets, PodDisruptionBudget
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.phrases import topology_name
from kubectl_spread.report.model import Operation
from kubectl_spread.rules import patches

HASHES: Final = {"Deployment": "pod-template-hash", "StatefulSet": "controller-revision-hash"}
"""Maps a kind to the label by which its controller distinguishes the pods of a rollout."""
HARD: Final = "DoNotSchedule"
SOFT: Final = "ScheduleAnyway"
EVICTIONS: Final = "evictions"
"""Stands, next to the words of ``--survive``, for drains that evict too many pods at once, or do not end."""
RESTART: Final = "only a restart, which places the pods again"
_HONOR: Final = "Honor"
_ADDED_TO_ZONE: Final = ((HOSTNAME, SOFT),)
_ADDED: Final = (
    ((ZONE, SOFT),),
    ((ZONE, SOFT), (HOSTNAME, SOFT)),
    ((ZONE, HARD),),
    ((ZONE, HARD), (HOSTNAME, SOFT)),
)
"""The constraints that are added where there is none by zone."""
_MOST_CHANGES: Final = 4
_CONSTRAINTS: Final = "topologySpreadConstraints"
_MAX_UNAVAILABLE: Final = FieldPath(("spec", "strategy", "rollingUpdate", "maxUnavailable"))


class Draft(msgspec.Struct, frozen=True):
    """A workload with its changes.

    Attributes:
        constraints: The spread constraints of its pod template.
        makes_room: Whether maxUnavailable becomes 1.
        budget: A new budget of its pods, or a changed one; None for neither.
    """

    constraints: tuple[TopologySpreadConstraint, ...]
    makes_room: bool = False
    budget: PodDisruptionBudget | None = None


class ProposedChange(msgspec.Struct, frozen=True, eq=False):
    """A change.

    Attributes:
        text: The change in words.
        size: How much it changes: 1 for a field, more for a constraint or an object.
        make: Returns the changed draft; None where another change excludes it.
        families: The events against which it may help, as words of ``--survive``.
    """

    text: str
    size: int
    make: Callable[[Draft], Draft | None]
    families: frozenset[str] = frozenset({"zone", "node", "drain", "restart", ""})


class Proposal(msgspec.Struct, frozen=True):
    """Changes that are tried together.

    Attributes:
        texts: The changes in words.
        draft: The workload with them.
        manifest: The same as an object to apply.
        restarts: Whether it is only a restart.
    """

    texts: tuple[str, ...]
    draft: Draft
    manifest: ReplicatedWorkload
    restarts: bool = False

    @property
    def text(self) -> str:
        """All changes in words."""
        return "; ".join(self.texts)


class Proposals:
    """The candidates of one workload."""

    def __init__(
        self, workload: ObjectRef, manifest: ReplicatedWorkload, behaviour: Behaviour, budgets: Budgets, *, stored: bool
    ) -> None:
        """Take a manifest; ``stored`` tells whether its pods exist, so that they can be restarted."""
        self._workload, self._manifest, self._behaviour, self._budgets = workload, manifest, behaviour, budgets
        self._stored = stored
        self.own = manifest.template.spec.topology_spread_constraints
        self._hash = HASHES.get(workload.kind, "") if behaviour.scheduler_adds_match_label_keys else ""

    def ordered(self, families: Iterable[str], stopping: str) -> Iterator[Proposal]:
        """Yield the candidates, those first that change least.

        Args:
            families: The words of ``--survive`` for the events that are not survived, and ``EVICTIONS``.
            stopping: The budget that stops drains; "" for none.
        """
        failing = {*families, ""}
        changes = [change for change in self._changes(stopping) if change.families & failing]
        sets = [each for size in range(1, _MOST_CHANGES + 1) for each in combinations(changes, size)]
        if self._stored:
            yield Proposal((RESTART,), Draft(self.own), self._manifest, restarts=True)
        for chosen in sorted(sets, key=lambda each: sum(change.size for change in each)):
            draft: Draft | None = Draft(self.own)
            for change in chosen:
                draft = None if draft is None else change.make(draft)
            if draft is not None:
                candidate = Proposal(tuple(change.text for change in chosen), draft, self._applied(draft))
                if not self._refused(candidate.manifest):
                    yield candidate

    def _applied(self, draft: Draft) -> ReplicatedWorkload:
        manifest = self._manifest
        template = manifest.template
        spec = replace(template.spec, topology_spread_constraints=draft.constraints)
        fields: dict[str, Any] = {"template": replace(template, spec=spec)}
        if draft.makes_room and isinstance(manifest, Deployment):
            strategy = manifest.spec.strategy
            fields["strategy"] = replace(strategy, rolling_update=replace(strategy.rolling_update, max_unavailable=1))
        return replace(manifest, spec=replace(manifest.spec, **fields))

    def _refused(self, manifest: ReplicatedWorkload) -> bool:
        """Tell whether an API server would refuse a manifest or its pods."""
        return bool(template_refusals(template_of(self._workload, manifest, None, ""), self._behaviour))

    def _changes(self, stopping: str) -> Iterator[ProposedChange]:
        for index, constraint in enumerate(self.own):
            yield from self._fields(index, constraint)
        yield from self._strategy()
        yield from self._budget(stopping)
        yield from self._actions()
        yield from self._added()

    def _fields(self, index: int, constraint: TopologySpreadConstraint) -> Iterator[ProposedChange]:
        """Yield changes of one field of a constraint."""
        honors = constraint.when_unsatisfiable == HARD and self._behaviour.node_inclusion_policies
        if honors and constraint.node_taints_policy != _HONOR:
            yield self._changing(index, f"nodeTaintsPolicy: {_HONOR}", 1, node_taints_policy=_HONOR)
        if self._may_list_hash(constraint):
            keys = (*constraint.match_label_keys, self._hash)
            yield self._changing(index, f"matchLabelKeys: [{', '.join(keys)}]", 1, match_label_keys=keys)
        if constraint.min_domains is not None:
            yield self._changing(index, "no minDomains", 1, min_domains=None)

    def _changing(self, index: int, text: str, size: int, **fields: Any) -> ProposedChange:
        """Return the change of some fields of a constraint; a soft one does not get nodeTaintsPolicy alone."""

        def make(draft: Draft) -> Draft | None:
            new = replace(draft.constraints[index], **fields)
            if fields.get("node_taints_policy") and new.when_unsatisfiable != HARD:
                return None
            return replace(draft, constraints=(*draft.constraints[:index], new, *draft.constraints[index + 1 :]))

        where = f"in the constraint on {topology_name(self.own[index].topology_key)}"
        return ProposedChange(f"{text} {where}", size, make)

    def _may_list_hash(self, constraint: TopologySpreadConstraint) -> bool:
        selector = constraint.label_selector
        return (
            bool(self._hash)
            and selector is not None
            and self._hash not in labelselectors.keys(selector)
            and self._hash not in constraint.match_label_keys
        )

    def _actions(self) -> Iterator[ProposedChange]:
        """Yield changes of hard constraints to soft ones, and the reverse."""
        for index, constraint in enumerate(self.own):
            if constraint.when_unsatisfiable == HARD:
                fields = {"when_unsatisfiable": SOFT, "min_domains": None}
                yield self._changing(index, f"whenUnsatisfiable: {SOFT}", 3, **fields)
            elif self._behaviour.node_inclusion_policies:
                text = f"whenUnsatisfiable: {HARD} and nodeTaintsPolicy: {_HONOR}"
                yield self._changing(index, text, 3, when_unsatisfiable=HARD, node_taints_policy=_HONOR)
            else:
                yield self._changing(index, f"whenUnsatisfiable: {HARD}", 3, when_unsatisfiable=HARD)

    def _added(self) -> Iterator[ProposedChange]:
        """Yield constraints that are added; an own constraint switches the default ones of the scheduler off."""
        keys = {constraint.topology_key for constraint in self.own}
        for constraints in (_ADDED_TO_ZONE,) if ZONE in keys else _ADDED:
            if keys.isdisjoint(key for key, _ in constraints):
                yield self._adding(*constraints)

    def _adding(self, *constraints: tuple[str, str]) -> ProposedChange:
        made = tuple(self._made(key, action) for key, action in constraints)
        names = " and ".join(f"{topology_name(each.topology_key)} ({each.when_unsatisfiable})" for each in made)
        hard = any(each.when_unsatisfiable == HARD for each in made)
        text = f"{'a constraint' if len(made) == 1 else 'constraints'} on {names}"

        def make(draft: Draft) -> Draft | None:
            keys = {each.topology_key for each in draft.constraints}
            if any(each.topology_key in keys for each in made):
                return None
            return replace(draft, constraints=(*draft.constraints, *made))

        return ProposedChange(text, 1 + len(made) + hard, make)

    def _made(self, key: str, action: str) -> TopologySpreadConstraint:
        """Return a constraint that counts the pods of the workload, in a rollout only the new ones."""
        selector = self._manifest.selector or LabelSelector(match_labels=self._manifest.template.metadata.labels)
        constraint = TopologySpreadConstraint(
            max_skew=1, topology_key=key, when_unsatisfiable=action, label_selector=selector
        )
        if action == HARD and self._behaviour.node_inclusion_policies:
            constraint = replace(constraint, node_taints_policy=_HONOR)
        return replace(constraint, match_label_keys=(self._hash,)) if self._may_list_hash(constraint) else constraint

    def _strategy(self) -> Iterator[ProposedChange]:
        """Yield the change with which an old pod may go before a new one runs."""
        manifest = self._manifest
        if isinstance(manifest, Deployment) and manifest.rolls and not manifest.pace.unavailable:
            families = frozenset({"restart", ""})
            yield ProposedChange(
                "maxUnavailable: 1 in the strategy", 1, lambda draft: replace(draft, makes_room=True), families
            )

    def _budget(self, stopping: str) -> Iterator[ProposedChange]:
        """Yield a budget where none selects the pods, or the change of one that stops each drain."""
        namespace, labels = self._workload.namespace, self._manifest.template.metadata.labels
        protecting = self._budgets.of(namespace, labels)
        budget = next((each for each in protecting if each.metadata.name == stopping), None)
        if budget is not None and len(protecting) == 1:
            changed = replace(budget, spec=replace(budget.spec, min_available=None, max_unavailable=1))
            text = f"maxUnavailable: 1 in place of the limit of PodDisruptionBudget {stopping}"
        elif not protecting and self._manifest.selector is not None:
            names = {each.metadata.name for each in self._budgets if each.metadata.namespace == namespace}
            name = self._workload.name if self._workload.name not in names else f"{self._workload.name}-budget"
            new = PodDisruptionBudget(metadata=ObjectMeta(name=name, namespace=namespace))
            changed = replace(new, spec=replace(new.spec, max_unavailable=1, selector=self._manifest.selector))
            text = "a PodDisruptionBudget with maxUnavailable: 1"
        else:
            return
        yield ProposedChange(text, 2, lambda draft: replace(draft, budget=changed), frozenset({EVICTIONS}))


def operations(kind: str, manifest: ReplicatedWorkload, draft: Draft) -> list[Operation]:
    """Return the JSON patch that makes a draft of a stored workload; it is refused where that has changed."""
    path, own = template_path(kind) / _CONSTRAINTS, manifest.template.spec.topology_spread_constraints
    made: list[Operation] = []
    for index, (old, new) in enumerate(zip(own, draft.constraints, strict=False)):
        if old != new:
            made += _of_constraint(path / index, _as_json(old), _as_json(new))
    added = [_as_json(each) for each in draft.constraints[len(own) :]]
    if added and not own:
        made += (patches.test(path, None), Operation(op="add", path=path.pointer, value=added))
    elif added:
        last = len(own) - 1
        made.append(patches.test(path / last / "topologyKey", own[last].topology_key))
        made += (
            Operation(op="add", path=(path / index).pointer, value=each) for index, each in enumerate(added, len(own))
        )
    if draft.makes_room and isinstance(manifest, Deployment):
        made += _made_room(manifest)
    return made


def _of_constraint(path: FieldPath, old: dict[str, Any], new: dict[str, Any]) -> Iterator[Operation]:
    yield patches.test(path / "topologyKey", old["topologyKey"])
    for field in [*old, *(field for field in new if field not in old)]:
        place = path / field
        if field not in new:
            yield from patches.removed(place, old[field])
        elif field not in old:
            yield Operation(op="add", path=place.pointer, value=new[field])
        elif old[field] != new[field]:
            yield from patches.replaced(place, old[field], new[field])


def _made_room(manifest: Deployment) -> Iterator[Operation]:
    limits = manifest.spec.strategy.rolling_update
    if limits.max_unavailable is not None:
        yield from patches.replaced(_MAX_UNAVAILABLE, limits.max_unavailable, 1)
    else:
        yield Operation(op="add", path=_MAX_UNAVAILABLE.pointer, value=1)


def _as_json(constraint: TopologySpreadConstraint) -> dict[str, Any]:
    """Return a constraint as JSON has it, without defaults."""
    fields: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(constraint))
    return fields


def budget_operations(old: PodDisruptionBudget) -> list[Operation]:
    """Return the JSON patch that replaces the limit of a budget by maxUnavailable: 1."""
    spec = FieldPath(("spec",))
    if old.spec.min_available is not None:
        removed = patches.removed(spec / "minAvailable", old.spec.min_available)
        return [*removed, Operation(op="add", path=(spec / "maxUnavailable").pointer, value=1)]
    return [*patches.replaced(spec / "maxUnavailable", old.spec.max_unavailable, 1)]


def budget_manifest(budget: PodDisruptionBudget) -> dict[str, Any]:
    """Return a new budget as a manifest."""
    spec: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(budget.spec))
    metadata = {"name": budget.metadata.name, "namespace": budget.metadata.namespace}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}


def limits(constraints: Sequence[TopologySpreadConstraint]) -> list[str]:
    """Return what hard and soft constraints cannot promise, a sentence each."""
    actions = {constraint.when_unsatisfiable for constraint in constraints}
    sentences = []
    if SOFT in actions:
        sentences.append("ScheduleAnyway is a preference: where nodes are full, pods may share a zone or node.")
    if HARD in actions:
        sentences.append("DoNotSchedule lets pods wait where no allowed domain has room.")
    return sentences
