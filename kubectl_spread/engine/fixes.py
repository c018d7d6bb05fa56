"""Fixes: what would let pending pods run? Each one is simulated before it is reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

import msgspec
from msgspec.structs import replace

from kubectl_spread.audit.evaluation.obstacles import ObstacleKind
from kubectl_spread.engine.answers import NO_NODES, Fix, Reason, RefusalCause
from kubectl_spread.engine.controllers import SimulatedEvent
from kubectl_spread.engine.events import Add, Apply, Delete, DrainNodes, Lose, NodeChoice
from kubectl_spread.engine.runs import RunResult, Simulation
from kubectl_spread.engine.world import ConstraintChange, World
from kubectl_spread.kube.api.labels import HOSTNAME, ZONE
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import Node
from kubectl_spread.kube.api.workloads import Deployment, StatefulSet
from kubectl_spread.kube.custom import NOT_REPLACED, base_kind
from kubectl_spread.kube.scheduler import taints
from kubectl_spread.phrases import domains, in_domain, listed, named, plural

OF_TRIAL: Final = 3
"""The runs in which a fix has to help."""
_MANY_CHANGES: Final = 100_000
"""The number of times that pods come and go in a run of which one is enough: it tries a fix on many pods."""
_ADDED: Final = (1, 2, 4, 8)
"""The numbers of nodes that are tried."""
_NAMED: Final = 6
_DELETED: Final = (
    "their pods are then gone for Kubernetes: StatefulSets create them again, and volumes are detached by force, so "
    "that two pods write to one volume if a machine still runs"
)
"""What the deletion of a node that does not answer does."""
_MORE_NODES_HELP: Final = frozenset(
    {ObstacleKind.CONSTRAINED, ObstacleKind.FULL, ObstacleKind.CORDONED, ObstacleKind.REPELLED}
)


class _Candidate(msgspec.Struct, frozen=True):
    """A fix that is to be tried."""

    fix: Fix
    simulation: Simulation


class FixTrials:
    """The trials of fixes for the pods that stay pending after a simulation.

    Attributes:
        changes: The number of times that pods came or went in the trials.
    """

    def __init__(
        self, simulation: Simulation, runs: Callable[[], Sequence[RunResult]], proceed: Callable[[int], bool]
    ) -> None:
        """Take a simulation and its runs.

        Args:
            simulation: The events, after which pods stay pending.
            runs: Returns its runs.
            proceed: Tells whether another fix may be tried after trials in which this number of pods came or went.
        """
        self._simulation, self._runs_of, self._proceed = simulation, runs, proceed
        self._after_deletion: Sequence[RunResult] | None = None
        self.changes = 0

    @cached_property
    def _runs(self) -> Sequence[RunResult]:
        """The runs without a fix, made when a trial is first compared with them."""
        return self._runs_of()

    def first_that_helps(self, reason: Reason, workloads: frozenset[ObjectRef]) -> Fix | None:
        """Return the first fix after which no pod of some workloads stays pending; None where none is known or needed.

        Args:
            reason: Why they do.
            workloads: Their workloads.
        """
        for candidate in _candidates(self._simulation, reason, workloads):
            if not self._proceed(self.changes) or not self._stay_pending(workloads):
                return None
            if self._helps(candidate.simulation, workloads):
                return candidate.fix
        return None

    def deletion(self, workloads: frozenset[ObjectRef]) -> Fix | None:
        """Return the deletion of the nodes that do not answer, if each of some workloads has more running pods then.

        None of their pods may wait. The first time, it says what else it does.
        """
        names = self._runs[0].unreachable
        if not names or (self._after_deletion is None and not self._proceed(self.changes)):
            return None
        what = f"delete {'node' if len(names) == 1 else 'nodes'} {listed(names, _NAMED)}, if their machines are off"
        if self._after_deletion is None:
            what = f"{what} ({_DELETED})"
            delete = Delete(NodeChoice("", names, ""))
            self._after_deletion = [*self._tried(self._simulation.with_world(self._simulation.world, [delete]))]
        results = self._after_deletion
        helps = not _harms(results, self._runs) and all(
            not any(result.of(workload).pending for result in results)
            and min(result.of(workload).running for result in results)
            > min(run.of(workload).running for run in self._runs)
            for workload in workloads
        )
        return Fix(what, (("kubectl", "delete", "node", *names),)) if helps else None

    def budget(self, namespace: str, name: str) -> Fix | None:
        """Return the change of a budget after which a drain evicts all of its pods; None where others wait then."""
        world = self._simulation.world
        stored = next(
            each
            for each in world.snapshot.budgets
            if (each.metadata.namespace, each.metadata.name) == (namespace, name)
        )
        spec = replace(stored.spec, min_available=None, max_unavailable=1)
        changed = self._simulation.with_world(world.variant(budget=replace(stored, spec=spec)))
        if not self._proceed(self.changes):
            return None
        for result in self._tried(changed):
            refused = any(pod.namespace == namespace and name in pod.budgets for pod in result.refused)
            if refused or any(each.new > self._most_new(workload) for workload, each in result.workloads.items()):
                return None
        patch = '{"spec":{"maxUnavailable":1,"minAvailable":null}}'
        return Fix(
            f"set maxUnavailable: 1 in budget {name}",
            (("kubectl", "patch", "pdb", name, "-n", namespace, "--type=merge", "-p", patch),),
        )

    def _most_new(self, workload: ObjectRef) -> int:
        return max(run.of(workload).new for run in self._runs)

    def _stay_pending(self, workloads: Iterable[ObjectRef]) -> bool:
        """Tell whether pods stay pending without a fix, and are not removed or replaced by their controllers."""
        return any(run.of(workload).pending for run in self._runs for workload in workloads)

    def _helps(self, simulation: Simulation, workloads: Iterable[ObjectRef]) -> bool:
        results: list[RunResult] = []
        for result in self._tried(simulation):
            results.append(result)
            if any(result.of(workload).pending for workload in workloads):
                return False
        return not _harms(results, self._runs)

    def _tried(self, simulation: Simulation) -> Iterator[RunResult]:
        """Yield the runs in which a fix has to help."""
        for number in range(OF_TRIAL):
            result = simulation.run(number, about=())
            self.changes += result.changes
            yield result
            if result.changes >= _MANY_CHANGES:
                break


def _harms(results: Sequence[RunResult], runs: Sequence[RunResult]) -> bool:
    """Tell whether a workload is worse off than without the fix.

    It loses more pods, fewer run or are replaced, or its rollout does not end.

    The pods of a DaemonSet belong to their nodes.
    """
    if {workload for result in results for workload in result.unfinished} - {
        workload for run in runs for workload in run.unfinished
    }:
        return True
    workloads = {workload for result in (*results, *runs) for workload in result.workloads}
    for workload in (each for each in workloads if base_kind(each.kind) not in NOT_REPLACED):
        before, after = [run.of(workload) for run in runs], [result.of(workload) for result in results]
        if (
            max(each.pending for each in after) > max(each.pending for each in before)
            or max(each.lost for each in after) > max(each.lost for each in before)
            or max(each.not_replaced.total() for each in after) > max(each.not_replaced.total() for each in before)
            or min(each.running for each in after) < min(each.running for each in before)
        ):
            return True
    return False


def _candidates(simulation: Simulation, reason: Reason, workloads: frozenset[ObjectRef]) -> Iterator[_Candidate]:
    """Yield fixes, those first that change least."""
    kinds = {refusal.kind for refusal in reason.refusals}
    constraints = [refusal for refusal in reason.refusals if refusal.topology_key]
    if any(refusal.right_key is not None for refusal in constraints):
        # Any other change would keep the wrong key.
        yield from _right_keys(simulation, constraints, workloads)
        return
    if ObstacleKind.CORDONED in kinds:
        yield from _uncordon(simulation, reason)
    for refusal in constraints:
        if refusal.lacks_domains:
            yield from _constraint(simulation, refusal.topology_key, workloads, "min_domains", None)
    if constraints and kinds & {ObstacleKind.CORDONED, ObstacleKind.TAINTED, ObstacleKind.UNHEALTHY}:
        yield from _constraint(simulation, constraints[0].topology_key, workloads, "node_taints_policy", "Honor")
    if ObstacleKind.REPELLED in kinds:
        yield from _without_surge(simulation, workloads)
    if reason == NO_NODES or (kinds & _MORE_NODES_HELP and not reason.too_large):
        yield from _added(simulation, reason)
    if constraints:
        yield from _deleted(simulation, reason)
    for key in dict.fromkeys(refusal.topology_key for refusal in constraints):
        yield from _constraint(simulation, key, workloads, "when_unsatisfiable", "ScheduleAnyway")


def _right_keys(
    simulation: Simulation, constraints: Iterable[RefusalCause], workloads: frozenset[ObjectRef]
) -> Iterator[_Candidate]:
    """Use the labels that were meant by topology keys that no node has."""
    for refusal in constraints:
        if refusal.right_key:
            yield from _constraint(simulation, refusal.topology_key, workloads, "topology_key", refusal.right_key)


def _uncordon(simulation: Simulation, reason: Reason) -> Iterator[_Candidate]:
    """Uncordon the nodes that were cordoned before the events: those of the lowest domains, or all."""
    world = simulation.world
    cordoned = [node for node in world.nodes if node.spec.unschedulable]
    key, values = reason.lowest
    lowest = [node for node in cordoned if node.metadata.labels.get(key) in values]
    for chosen in [nodes for nodes in (lowest, cordoned) if nodes]:
        names = {node.metadata.name for node in chosen}
        nodes = [world.uncordoned(node) if node.metadata.name in names else node for node in world.nodes]
        command = ("kubectl", "uncordon", *sorted(names))
        what = f"uncordon {'node' if len(names) == 1 else 'nodes'} {listed(sorted(names), _NAMED)}"
        yield _Candidate(Fix(what, (command,)), simulation.with_world(world.variant(nodes=nodes)))


def _constraint(
    simulation: Simulation, key: str, workloads: frozenset[ObjectRef], field: str, value: object
) -> Iterator[_Candidate]:
    change = ConstraintChange(workloads, key, {field: value})
    first, *others = field.split("_")
    name = f"{first}{''.join(map(str.capitalize, others))}"
    where = f"in their constraint on {in_domain(key, '').split()[-1]}"
    text = f"remove {name} {where}" if value is None else f"set {name}: {value} {where}"
    if field == "node_taints_policy":
        patches = [_patch(simulation.world, workload, key, name, change.fields) for workload in sorted(workloads)]
        readable = [patch for patch in patches if patch is not None]
        if len(readable) == len(patches):
            rollouts, commands = [event for event, _ in readable], tuple(command for _, command in readable)
            yield _Candidate(Fix(text, commands), simulation.with_world(simulation.world, rollouts))
    yield _Candidate(Fix(text), simulation.with_world(simulation.world.variant(change=change)))


def _patch(
    world: World, workload: ObjectRef, key: str, name: str, fields: Mapping[str, object]
) -> tuple[Apply, tuple[str, ...]] | None:
    """Return the rollout and the command that change hard constraints in the pod template of a workload.

    None where no such template was read.

    Args:
        world: The cluster.
        workload: The workload.
        key: The topology key of the constraints.
        name: The name of the field.
        fields: Its new value, by its name in Python.
    """
    stored = world.object(workload)
    if not isinstance(stored, Deployment | StatefulSet):
        return None
    constraints = list(stored.template.spec.topology_spread_constraints)
    path, operations = "/spec/template/spec/topologySpreadConstraints", list[Mapping[str, object]]()
    for index, constraint in enumerate(constraints):
        if (constraint.topology_key, constraint.when_unsatisfiable) == (key, "DoNotSchedule"):
            constraints[index] = replace(constraint, **fields)
            operations.append({"op": "test", "path": f"{path}/{index}/topologyKey", "value": key})
            operations += [{"op": "add", "path": f"{path}/{index}/{name}", "value": value} for value in fields.values()]
    if not operations:
        return None
    spec = replace(stored.template.spec, topology_spread_constraints=tuple(constraints))
    template = replace(stored.template, spec=spec)
    command = ("kubectl", "patch", named(workload.kind, workload.name), "-n", workload.namespace, "--type=json", "-p")
    manifest = replace(stored, spec=replace(stored.spec, template=template))
    return Apply(workload, manifest), (*command, msgspec.json.encode(operations).decode())


def _without_surge(simulation: Simulation, workloads: frozenset[ObjectRef]) -> Iterator[_Candidate]:
    """Let the rollout of a Deployment remove a pod before it adds one: old pods repel new ones until they are gone."""
    for workload in sorted(workloads) if len(workloads) == 1 else ():
        if (changed := without_surge(simulation.world, workload)) is not None:
            event, fix = changed
            yield _Candidate(fix, simulation.with_world(simulation.world, [event]))


def without_surge(world: World, workload: ObjectRef) -> tuple[Apply, Fix] | None:
    """Return what lets the rollouts of a Deployment remove an old pod before a new one runs.

    None where they do so, and for a workload of another kind.
    """
    stored = world.object(workload)
    if not isinstance(stored, Deployment) or not stored.rolls or stored.pace.unavailable:
        return None
    strategy = stored.spec.strategy
    strategy = replace(strategy, rolling_update=replace(strategy.rolling_update, max_unavailable=1))
    patch = '{"spec":{"strategy":{"rollingUpdate":{"maxUnavailable":1}}}}'
    name = named(workload.kind, workload.name)
    command = ("kubectl", "patch", name, "-n", workload.namespace, "--type=merge", "-p", patch)
    text = "set maxUnavailable: 1 in its strategy, so that an old pod may go before a new one runs"
    return Apply(workload, replace(stored, spec=replace(stored.spec, strategy=strategy))), Fix(text, (command,))


def _added(simulation: Simulation, reason: Reason) -> Iterator[_Candidate]:
    """Add nodes to the first of the lowest domains, or like the newest node."""
    key, values = reason.lowest
    nodes = simulation.world.nodes
    lowest = [node for node in nodes if values and node.metadata.labels.get(key) == values[0]]
    if lowest:
        like = NodeChoice("", (lowest[0].metadata.name,), "")
        choice = like if key == HOSTNAME else NodeChoice(key, values[:1], values[0])
    elif nodes and not values:
        newest = max(nodes, key=lambda node: (str(node.metadata.creation_timestamp or ""), node.metadata.name))
        zone = newest.metadata.labels.get(ZONE)
        choice = NodeChoice(ZONE, (zone,), zone) if zone else NodeChoice("", (newest.metadata.name,), "")
    else:
        return
    place = f"in {choice.text}" if choice.key else f"like {choice.values[0]}"
    for number in _ADDED:
        events: Sequence[SimulatedEvent] = [Add(choice, number)]
        yield _Candidate(Fix(f"add {plural(number, 'node')} {place}"), simulation.with_world(simulation.world, events))


def _deleted(simulation: Simulation, reason: Reason) -> Iterator[_Candidate]:
    """Delete the nodes of the lowest domains all of whose nodes take no pods, but still count."""
    key, lowest = reason.lowest
    closing = (event for event in simulation.events if isinstance(event, DrainNodes | Lose))
    closed = {node.metadata.name for event in closing for node in event.nodes.chosen(simulation.world.nodes)}
    by_value: dict[str, list[Node]] = {value: [] for value in lowest}
    for node in simulation.world.nodes:
        if (value := node.metadata.labels.get(key, "")) in by_value:
            by_value[value].append(node)
    values = tuple(
        value
        for value, nodes in by_value.items()
        if nodes and all(node.metadata.name in closed or taints.keep_pods_away(node) for node in nodes)
    )
    if values:
        names = sorted(node.metadata.name for value in values for node in by_value[value])
        text = f"delete the nodes of {domains(key, values)}, which still count although they take no pods"
        yield _Candidate(
            Fix(text, (("kubectl", "delete", "node", *names),)),
            simulation.with_world(simulation.world, [Delete(NodeChoice(key, values, values[0]))]),
        )
