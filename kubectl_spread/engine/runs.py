"""Runs: the same events again and again, with what is not determined decided by other random numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from kubectl_spread.engine import outages
from kubectl_spread.engine.answers import Reason
from kubectl_spread.engine.cluster import SimulatedCluster
from kubectl_spread.engine.controllers import (
    Actor,
    SimulatedEvent,
    failed_indexes,
    left_of,
    run,
    unfinished,
)
from kubectl_spread.engine.drains import BudgetHealth, Drain, RefusedPod
from kubectl_spread.engine.kinds import SchedulingKind
from kubectl_spread.engine.outages import TaintEviction
from kubectl_spread.engine.placing import minimum
from kubectl_spread.engine.pods import SimulatedPod
from kubectl_spread.engine.reasons import reason
from kubectl_spread.engine.world import World
from kubectl_spread.kube.api.labels import HOSTNAME, ZONE, ascending
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import Constraint

if TYPE_CHECKING:
    from kubectl_spread.engine.provisioning import MadeNode, Provisioning

AboutNewNodes: TypeAlias = Callable[[SimulatedCluster, SimulatedPod, Reason], str]
"""Returns whether a node could be made for a pending pod, as a sentence; "" where no node autoscaler has to."""
_FAILED_INDEX: Final = (
    "an index of a Job fails with its pod (by backoffLimitPerIndex or podFailurePolicy), and the Job when the other "
    "indexes have ended"
)
STEPS: Final = (1, 5, 10, 20, 50, 100, 200)
"""The numbers of runs after which a simulation may end, so that a slower machine seldom has another number."""


class WorkloadResult(msgspec.Struct):
    """The pods of one workload at the end of a run.

    Attributes:
        running: The pods with a node that answers, unless a volume is attached to one that does not.
        ready: Those that are ready.
        pending: The pods without a node.
        new: How many more of these there are than before the events.
        lost: The pods that events removed, or whose nodes they let fail.
        least: The fewest ready pods at any moment since the events began.
        domains: The running pods by topology key and value.
        skews: The skew of each hard or soft constraint of its pods, by topology key.
        reasons: The pending pods by the key of their reason.
        new_reasons: Those of ``new`` by the key of their reason.
        not_replaced: The pods that nothing replaces, on nodes that do not answer or of failed indexes of a Job, by the
            reason; "" for those of a DaemonSet or without a controller.
    """

    running: int = 0
    ready: int = 0
    pending: int = 0
    new: int = 0
    lost: int = 0
    least: int = 0
    domains: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)
    skews: dict[str, int] = msgspec.field(default_factory=dict)
    reasons: Counter[object] = msgspec.field(default_factory=Counter)
    new_reasons: Counter[object] = msgspec.field(default_factory=Counter)
    not_replaced: Counter[str] = msgspec.field(default_factory=Counter)


_NOTHING: Final = WorkloadResult()
_MOST_PREEMPTED: Final = 200
"""The nodes on which a pod is tried in place of others; where none of so many suffices, another one may."""


class RunResult(msgspec.Struct):
    """The end of one run.

    Attributes:
        texts: The events in words.
        workloads: The result of each workload.
        reasons: The reasons by their keys.
        new_nodes: Whether nodes could be made for the pods, as sentences, by the keys of their reasons. Pods that wait
            for the same may have several; there are none where no node autoscaler was read.
        refused: The pods that drains leave, because budgets refuse their eviction.
        budgets: These budgets, by namespace and name.
        terminating: The number of pods for whose end drains wait, by their nodes, which do not answer.
        needs: The pods that kubectl evicts only with a flag, by the flag: namespace and name.
        preempting: The pending pods that could preempt others.
        nodes: The number of nodes at the end.
        failed: Why Jobs have failed.
        unfinished: The number of old pods of each rollout that an event has begun, and that does not end.
        unreachable: The nodes that do not answer.
        changes: The number of times that pods came or went, each pod that was read included.
        made: The nodes that were made for pods that waited.
        unsized: What could make a node, but has none whose size a new one could have.
        missed: The zones where a node would be made if any node there answered.
    """

    texts: list[str]
    workloads: dict[ObjectRef, WorkloadResult]
    reasons: dict[object, Reason]
    new_nodes: dict[object, set[str]]
    refused: list[RefusedPod]
    budgets: dict[tuple[str, str], BudgetHealth]
    terminating: dict[str, int]
    needs: dict[str, list[tuple[str, str]]]
    preempting: int
    nodes: int
    failed: dict[ObjectRef, str]
    unfinished: dict[ObjectRef, int]
    unreachable: tuple[str, ...]
    changes: int
    made: Counter[MadeNode]
    unsized: set[str]
    missed: set[str]

    def of(self, workload: ObjectRef) -> WorkloadResult:
        """Return the result of a workload; that of one without pods has only zeros."""
        return self.workloads.get(workload, _NOTHING)


class Simulation:
    """Events on a cluster."""

    def __init__(
        self,
        world: World,
        events: Sequence[SimulatedEvent],
        seed: int = 0,
        new_nodes: AboutNewNodes | None = None,
        maker: Callable[[], Provisioning] | None = None,
    ) -> None:
        """Simulate events; runs with the same seed and number are the same.

        Args:
            world: The cluster.
            events: The events, in this order. Without any, controllers and the scheduler do what they would do anyway.
            seed: Decides what is not determined.
            new_nodes: Returns whether a node could be made for a pending pod; trials of fixes leave it out.
            maker: Returns what makes nodes for pods that wait; None where no nodes are made.
        """
        self._maker = maker
        self._new_nodes = new_nodes
        self.world = world
        self.events = events
        self.seed = seed

    def with_world(self, world: World, more: Sequence[SimulatedEvent] = ()) -> Simulation:
        """Return the simulation of the same events, and of ``more`` events after them, on another cluster."""
        return Simulation(world, [*self.events, *more], self.seed)

    def with_maker(self, maker: Callable[[], Provisioning]) -> Simulation:
        """Return the simulation of the same events with what makes nodes."""
        return Simulation(self.world, self.events, self.seed, maker=maker)

    def before(self) -> dict[ObjectRef, WorkloadResult]:
        """Return the pods of each workload before the events."""
        cluster = SimulatedCluster(self.world, Random(self.seed))  # noqa: S311 - nothing is placed
        cluster.find_outages()
        return _results(cluster)

    def run(self, number: int, *, about: Collection[ObjectRef] | None = None) -> RunResult:
        """Return the end of the run with a number.

        Args:
            number: The number.
            about: The workloads of which domains, skews and reasons are wanted; None for all. Pods of all are counted.

        Raises:
            SpreadError: An event names what is not there.
        """
        self.world.forget()
        cluster = SimulatedCluster(self.world, Random(f"{self.seed}/{number}"))  # noqa: S311 - they decide on nothing secret
        cluster.find_outages()
        cluster.watch()
        waiting = Counter(pod.workload for pod in cluster.pending)
        rollouts, texts = unfinished(cluster), []
        begun_now: dict[ObjectRef, Actor] = {}
        drains: list[Drain] = []
        maker = self._maker and self._maker()
        if not self.events:
            run(cluster, rollouts, [TaintEviction(cluster)])
        for event in self.events:
            silent = {*cluster.unreachable}
            begun = event.begin(cluster)
            texts.append(begun.text)
            rollouts |= begun.rollouts
            begun_now |= begun.rollouts
            eviction = TaintEviction(cluster, cluster.unreachable.keys() - silent)
            run(cluster, rollouts, [eviction], begun.drains, maker)
            drains += begun.drains
        results = _results(cluster, about)
        reasons, nodes_for = _explain(cluster, results, waiting, self._new_nodes, about)
        return RunResult(
            texts=texts,
            workloads=results,
            reasons=reasons,
            new_nodes=nodes_for,
            refused=[pod for drain in drains for pod in drain.refused],
            budgets={name: health for drain in drains for name, health in drain.health.items()},
            terminating={node: number for drain in drains for node, number in drain.terminating.items()},
            needs=_needs(drains),
            preempting=number_preempting(cluster),
            nodes=len(cluster.nodes),
            failed=cluster.failed,
            unfinished=_unfinished(cluster, begun_now),
            unreachable=tuple(sorted(cluster.unreachable)),
            changes=cluster.state.changes,
            made=maker.made if maker else Counter(),
            unsized=maker.unsized if maker else set(),
            missed=maker.missed if maker else set(),
        )

    def runs(self, proceed: Callable[[int], bool]) -> list[RunResult]:
        """Return several runs.

        Args:
            proceed: Tells after a number of runs whether to make more; it is asked after each of ``STEPS``.
        """
        results: list[RunResult] = []
        for step in STEPS:
            results += [self.run(number) for number in range(len(results), step)]
            if step == STEPS[-1] or not proceed(step):
                break
        return results

    def fixed(self, number: int, *, about: Collection[ObjectRef] | None = None) -> list[RunResult]:
        """Return a fixed number of runs; ``about`` as in ``run``."""
        return [self.run(each, about=about) for each in range(number)]


def _unfinished(cluster: SimulatedCluster, rollouts: Mapping[ObjectRef, Actor]) -> dict[ObjectRef, int]:
    left = {workload: left_of(actor, cluster) for workload, actor in rollouts.items()}
    return {workload: number for workload, number in left.items() if number}


def _needs(drains: Iterable[Drain]) -> dict[str, list[tuple[str, str]]]:
    needs: dict[str, list[tuple[str, str]]] = {}
    for flag, pods in (item for drain in drains for item in drain.needs.items()):
        needs.setdefault(flag, []).extend((pod.namespace, pod.name) for pod in pods)
    return needs


def _results(cluster: SimulatedCluster, about: Collection[ObjectRef] | None = None) -> dict[ObjectRef, WorkloadResult]:
    results: dict[ObjectRef, WorkloadResult] = {}
    nodes = {node.metadata.name: node.metadata.labels for node in cluster.nodes}
    kinds: dict[ObjectRef, SchedulingKind] = {}
    for pod in cluster.all_pods():
        result = results.get(pod.workload)
        if result is None:
            result = results[pod.workload] = WorkloadResult()
        if pod.workload not in kinds or pod.simulated:
            kinds[pod.workload] = pod.kind
        if not pod.node:
            result.pending += 1
            continue
        if pod.node in cluster.unreachable or pod.lacks_volume:
            continue
        result.running += 1
        result.ready += pod.ready
        labels = nodes.get(pod.node, {})
        for key in topology_keys(pod.kind) if about is None or pod.workload in about else ():
            if key in labels:
                result.domains[key, labels[key]] += 1
    for workload, kind in kinds.items():
        if about is None or workload in about:
            results[workload].skews = _worst_skews(cluster, kind)
    _add_lost(cluster, results)
    return results


def _add_lost(cluster: SimulatedCluster, results: dict[ObjectRef, WorkloadResult]) -> None:
    """Add the pods that were lost, those that are not replaced, and the fewest ready ones."""
    for workload, lost in cluster.lost.items():
        results.setdefault(workload, WorkloadResult()).lost = lost
    for workload, least in cluster.least.items():
        results.setdefault(workload, WorkloadResult()).least = least
    for pod, why in outages.not_replaced(cluster):
        results.setdefault(pod.workload, WorkloadResult()).not_replaced[why] += 1
    for owner, number in failed_indexes(cluster):
        results[cluster.world.root(owner)].not_replaced[_FAILED_INDEX] += number


def topology_keys(kind: SchedulingKind) -> list[str]:
    """Return the topology keys by which pods are reported: the zone and those of their own constraints, but no host."""
    keys = (term.topology_key for term in kind.pod_class.terms if term.constraint is not None and not term.default)
    return [key for key in dict.fromkeys((ZONE, *keys)) if key != HOSTNAME]


def _worst_skews(cluster: SimulatedCluster, kind: SchedulingKind) -> dict[str, int]:
    """Return the largest skew of a kind's own constraints, by topology key."""
    worst: dict[str, int] = {}
    for constraint, skew in skews(cluster, kind):
        worst[constraint.topology_key] = max(skew, worst.get(constraint.topology_key, 0))
    return worst


def skews(cluster: SimulatedCluster, kind: SchedulingKind) -> Iterator[tuple[Constraint, int]]:
    """Yield each of a kind's own constraints that has domains, with its skew."""
    answers = cluster.table.answers(kind)
    own = {term.topology_key for term in kind.pod_class.terms if term.constraint is not None and not term.default}
    for constraint, counted in (
        *zip(kind.hard, answers.hard, strict=True),
        *zip(kind.soft, answers.soft, strict=True),
    ):
        if constraint.topology_key in own and counted.domains and (constraint.hard or answers.ranked):
            tally = cluster.state.spread(kind, constraint, counted)
            most = max(tally.counts.values(), default=0)
            yield constraint, most - minimum(constraint, counted.domains, tally)


def _explain(
    cluster: SimulatedCluster,
    results: Mapping[ObjectRef, WorkloadResult],
    waiting: Mapping[ObjectRef, int],
    new_nodes: AboutNewNodes | None,
    about: Collection[ObjectRef] | None,
) -> tuple[dict[object, Reason], dict[object, set[str]]]:
    """Count the pending pods of each workload by their reasons, and return the reasons, and whether nodes can be made.

    As many pods as waited before the events are not new, first of all those that did.
    """
    reasons: dict[object, Reason] = {}
    nodes_for: dict[object, set[str]] = {}
    sentences: dict[object, str] = {}
    answered: dict[object, Reason] = {}
    left = Counter(waiting)
    for pod in sorted(cluster.pending, key=lambda pod: pod.simulated):
        result = results[pod.workload]
        is_new = not left[pod.workload]
        left[pod.workload] -= not is_new
        result.new += is_new
        note_devices(cluster, pod)
        if about is not None and pod.workload not in about:
            continue
        question = (pod.kind, pod.refused, pod.pin, pod.held, cluster.user_of_claim(pod))
        if question not in answered:
            answered[question] = reason(cluster, pod)
            sentences[question] = new_nodes(cluster, pod, answered[question]) if new_nodes else ""
        key = (pod.workload, answered[question].key)
        reasons.setdefault(key, answered[question])
        if sentences[question]:
            nodes_for.setdefault(key, set()).add(sentences[question])
        result.reasons[key] += 1
        if is_new:
            result.new_reasons[key] += 1
    return reasons, nodes_for


def note_devices(cluster: SimulatedCluster, pod: SimulatedPod) -> None:
    """Note the resources of a pod that no node lists, but a device class may provide."""
    for name, _ in pod.kind.requests:
        if "/" in name and name not in cluster.table.resources:
            cluster.world.unknown[f"devices (no node lists {name})"] = None


def number_preempting(cluster: SimulatedCluster) -> int:
    """Return the number of pending pods that would fit on a node without its pods of a lower priority."""
    waiting = [pod for pod in cluster.pending if pod.kind.preempts and not pod.held]
    background = cluster.world.background
    lowest = min((pod.kind.priority for pod in cluster.all_pods()), default=0)
    lowest = lowest if background is None else min(lowest, background.lowest_priority)
    waiting = [pod for pod in waiting if pod.kind.priority > lowest]
    if background is not None:
        # Its pods are none of this run, so that none can be tried without them.
        return len(waiting)
    on: dict[str, list[SimulatedPod]] = {}
    for pod in cluster.all_pods() if waiting else ():
        on.setdefault(pod.node, []).append(pod)
    answers: dict[object, bool] = {}
    for pod in waiting:
        question = (pod.kind, pod.refused)
        if question not in answers:
            answers[question] = _could_preempt(cluster, pod, on)
    return sum(answers[pod.kind, pod.refused] for pod in waiting)


def _could_preempt(cluster: SimulatedCluster, pod: SimulatedPod, on: Mapping[str, Sequence[SimulatedPod]]) -> bool:
    """Tell whether a pod would fit on a node without its pods of a lower priority.

    Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go,
    SelectVictimsOnNode.
    """
    state, allowed, tried = cluster.state, cluster.table.answers(pod.kind).allowed & ~pod.refused, 0
    for number in ascending(allowed):
        victims = [each for each in on.get(cluster.table.names[number], ()) if each.kind.priority < pod.kind.priority]
        if not victims:
            continue
        tried += 1
        for each in victims:
            state.add(each.kind, number, -1)
        fits = state.feasible(pod.kind, pod.refused) >> number & 1
        for each in victims:
            state.add(each.kind, number)
        if fits or tried >= _MOST_PREEMPTED:
            return True
    return False
