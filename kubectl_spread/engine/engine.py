"""The engine of one cluster: why a pod waits, and which change would let it run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from itertools import count
from random import Random
from typing import Final

from msgspec.structs import replace

from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.engine.answers import Fix, Reason, Removable, Shortfall, Trial
from kubectl_spread.engine.cluster import Journal, SimulatedCluster
from kubectl_spread.engine.controllers import (
    Actor,
    DaemonRollout,
    Rollout,
    SimulatedEvent,
    left_of,
    run,
    unfinished,
)
from kubectl_spread.engine.destinations import Destinations, NextPod, destinations, next_destinations, next_pods
from kubectl_spread.engine.events import Apply, Restart, Scale
from kubectl_spread.engine.fixes import FixTrials, without_surge
from kubectl_spread.engine.kinds import SchedulingKind
from kubectl_spread.engine.newnodes import messages, needs_new_node, new_nodes
from kubectl_spread.engine.planner import RUNS, FirstWave, Planner
from kubectl_spread.engine.pods import SimulatedPod
from kubectl_spread.engine.reasons import everywhere, reason
from kubectl_spread.engine.runs import RunResult, Simulation, skews
from kubectl_spread.engine.world import World
from kubectl_spread.kube.api.labels import HOSTNAME, ZONE
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.workloads import DaemonSet, Deployment, PodTemplateSpec, StatefulSet
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.report.explanation import NewNodes

_TRIES: Final = 3
"""The runs in which a change is tried."""
_MANY_TRIES: Final = 20
"""Those of a rollout of few pods, which may be stuck in one of ten runs where nodes are almost full."""
_STEPS: Final = 1_000
"""The number of steps of pods after which a rollout is tried no more often than other changes."""
_SURE_STEPS: Final = 4_000
"""The number of steps of pods in all trials after which a rollout that surely ends is tried no more.

After half of them it is tried no more often than other changes.
"""
_FEW_STEPS: Final = 300
"""The number of steps of pods after which a rollout that surely ends is tried no more often than other changes."""
_ALONE: Final = 10
"""The most pods whose removal is tried alone."""
_RUNS: Final = 2
"""The runs with which the trial of a fix is compared."""
_PLANNED: Final = 50
"""The most workloads whose plan is made for one report."""
_MANY_PODS: Final = 2_000
"""The number of pods above which waves are tried in fewer runs."""
_CHANGES: Final = 400_000
"""The number of times that pods may come or go in trials of fixes, so that a large cluster has fewer of them."""


class Engine:
    """The model of one cluster; everything is computed when it is asked for the first time."""

    def __init__(self, snapshot: Snapshot, behaviour: Behaviour, now: datetime | None = None) -> None:
        """Take a snapshot with all pods of the cluster, as far as they were read."""
        self._world = World(snapshot, behaviour, now)
        self._reasons: dict[object, Reason] = {}
        self._new_nodes: dict[SchedulingKind, NewNodes] = {}
        self._changes, self._steps = 0, 0
        self._planners: dict[bool, Planner] = {}
        self._opened: dict[frozenset[str], RunResult] = {}
        self._first_waves: dict[tuple[ObjectRef, bool], FirstWave] = {}

    @cached_property
    def _now(self) -> SimulatedCluster:
        """The cluster as it is now, with the pods that are being deleted."""
        return SimulatedCluster(self._world, Random(0), now=True)  # noqa: S311 - nothing is decided by it

    @cached_property
    def _pending(self) -> Mapping[ObjectRef, SimulatedPod]:
        return {pod.record.ref: pod for pod in self._now.pending}

    def wait_of(self, pod: PodRecord) -> Reason:
        """Return why a pending pod of the cluster waits."""
        cluster, pending = self._now, self._pending[pod.ref]
        # Pods that their volumes keep from the same nodes may have different causes for it.
        volumes = cluster.volumes_of(pending)
        question = (
            pending.kind,
            pending.refused,
            pending.pin,
            pending.held,
            cluster.user_of_claim(pending),
            *volumes.refusals,
        )
        if question not in self._reasons:
            self._reasons[question] = reason(cluster, pending)
        return replace(self._reasons[question], unknown=volumes.unknown)

    def has_node(self, pod: PodRecord) -> bool:
        """Tell whether any node would take a pending pod of the cluster now."""
        pending = self._pending[pod.ref]
        if pending.held or everywhere(self._now, pending):
            return False
        return bool(self._now.state.feasible(pending.kind, pending.refused))

    def waits(self, pod: PodRecord) -> bool:
        """Tell whether a pod of the cluster is pending."""
        return pod.ref in self._pending

    def destinations(self, pod: PodRecord) -> Destinations:
        """Return the nodes that would take a pending pod of the cluster."""
        pending = self._pending[pod.ref]
        return destinations(self._now, pending, self._now.volumes.of(pod).unknown)

    def new_nodes(self, pod: PodRecord) -> NewNodes | None:
        """Return whether a node can be made for a pending pod; None where no autoscaler was read, or it needs none."""
        if not self._world.snapshot.node_autoscalers.known or pod.ref not in self._pending:
            return None
        pending = self._pending[pod.ref]
        if not needs_new_node(pending, self.wait_of(pod)):
            return None
        if pending.kind not in self._new_nodes:
            self._new_nodes[pending.kind] = new_nodes(self._now, pending)
        answer = self._new_nodes[pending.kind]
        return replace(answer, messages=list(messages(self._now, pod, answer.node_pools)))

    def next_destinations(self, like: PodRecord) -> Destinations:
        """Return the nodes that would take one more pod like one that was read."""
        with self._now.tried():
            return next_destinations(self._now, like)

    def next_pods(self, like: PodRecord, number: int) -> list[NextPod]:
        """Place more pods like one that was read, until one finds no node."""
        with self._now.tried():
            return list(next_pods(self._now, like, number))

    def fix_of(self, reason: Reason, workloads: Iterable[ObjectRef]) -> Fix | None:
        """Return a change after which no pod of some workloads waits; None where no known change was seen to help."""
        trials = FixTrials(self._as_is, lambda: self._runs, lambda changes: self._changes + changes < _CHANGES)
        fix = trials.first_that_helps(reason, frozenset(workloads))
        self._changes += trials.changes
        return fix

    def waiting_when_open(self, nodes: Collection[str], workload: ObjectRef) -> Shortfall | None:
        """Return the pods of a workload that wait after nodes are uncordoned; None for none, or where not tried."""
        opened = frozenset(nodes)
        if opened not in self._opened:
            if self._changes >= _CHANGES:
                return None
            world = self._world
            open_nodes = [world.uncordoned(each) if each.metadata.name in opened else each for each in world.nodes]
            self._opened[opened] = Simulation(world.variant(nodes=open_nodes), ()).run(0)
            self._changes += self._opened[opened].changes
        result = self._opened[opened]
        left = result.of(workload)
        reasons = [result.reasons[key].text for key in left.reasons]
        return Shortfall(workload, left.pending, "; ".join(dict.fromkeys(reasons))) if left.pending else None

    def first_wave(self, workload: ObjectRef, *, soft: bool) -> FirstWave | None:
        """Return the evictions with which the plan for a workload begins, after those that were returned for others.

        None after many workloads.

        Args:
            workload: The workload.
            soft: Whether skews of soft constraints are ended too.
        """
        if (workload, soft) in self._first_waves:
            return self._first_waves[workload, soft]
        if len(self._first_waves) >= _PLANNED:
            return None
        if soft not in self._planners:
            runs = _TRIES if len(self._world.records) > _MANY_PODS else RUNS
            self._planners[soft] = Planner(self._world, (), frozenset[ObjectRef]().__contains__, runs=runs, soft=soft)
        return self._first_waves.setdefault((workload, soft), self._planners[soft].first_wave(workload))

    def removable(self, pods: Sequence[PodRecord]) -> Removable:
        """Return which of some pods of one workload can be removed at once."""
        trial = self._removal(pods)
        if trial.shortfall is None:
            return Removable(tuple(pods), trial=trial)
        for pod in pods[:_ALONE] if len(pods) > 1 else ():
            alone = self._removal((pod,))
            if alone.shortfall is None:
                return Removable((pod,), trial.shortfall.why, alone)
        return Removable((), trial.shortfall.why)

    def shortfall_after_removal(self, pods: Sequence[PodRecord]) -> Shortfall | None:
        """Return which pods of the workload wait after some of its pods are removed, even if they did before."""
        return self._removal(pods, ends=True).shortfall

    def _removal(self, pods: Sequence[PodRecord], *, ends: bool = False) -> Trial:
        """Try to remove pods of one workload together; a bare pod is created again."""

        def remove(cluster: SimulatedCluster) -> Mapping[ObjectRef, Actor]:
            for pod in (self._by_ref[record.ref] for record in pods if record.ref in self._by_ref):
                cluster.remove(pod, lost=True)
                if pod.owner is None:
                    created = self._world.created_again(pod.record)
                    cluster.create(created, pod.workload, None)
            return {}

        return self._try(remove, self._world.snapshot.workload(pods[0]), ends=ends)

    def rollout(self, workload: ObjectRef, template: PodTemplateSpec | None = None) -> Trial:
        """Try a rollout of a workload, whose pending pods are deleted where it is a StatefulSet that waits for them.

        Args:
            workload: The workload.
            template: The new pod template; None for a restart, which has to replace all pods.

        Raises:
            SpreadError: The workload was not read, or has no rollouts.
        """
        return self._rollout(workload, template, [])

    def roomier_rollout(self, workload: ObjectRef, template: PodTemplateSpec | None = None) -> tuple[Fix, Trial] | None:
        """Return the change of a strategy with which such a rollout makes nothing worse, and what it leaves.

        Raises:
            SpreadError: As ``rollout``.
        """
        changed = without_surge(self._world, workload)
        if changed is None:
            return None
        trial = self._rollout(workload, template, [changed[0]])
        return None if trial.shortfall is not None else (changed[1], trial)

    def rollout_from_none(self, workload: ObjectRef, template: PodTemplateSpec) -> Trial:
        """Try a rollout of a workload that is scaled to 0 before and back after it, so that no old pod is left.

        Raises:
            SpreadError: As ``rollout``.
        """
        return self._rollout(workload, template, [Scale(workload, 0)], ends=True)

    def _rollout(
        self,
        workload: ObjectRef,
        template: PodTemplateSpec | None,
        first: Sequence[SimulatedEvent],
        *,
        ends: bool = False,
    ) -> Trial:
        numbers, earlier = count(), self._steps

        def begin(cluster: SimulatedCluster) -> Mapping[ObjectRef, Actor] | None:
            for each in first:
                each.begin(cluster)
                if isinstance(each, Scale):
                    run(cluster)
            stored = self._world.object(workload)
            if template is not None and isinstance(stored, Deployment | StatefulSet | DaemonSet):
                event: SimulatedEvent = Apply(workload, replace(stored, spec=replace(stored.spec, template=template)))
            else:
                event = Restart(workload)
            rollouts = event.begin(cluster).rollouts
            surely = [
                isinstance(each, Rollout | DaemonRollout) and each.surely_ends(cluster) for each in rollouts.values()
            ]
            few = self._steps < min(earlier + _FEW_STEPS, _SURE_STEPS // 2)
            is_tried = self._steps < _SURE_STEPS and (next(numbers) < _TRIES or few)
            if surely and all(surely) and (isinstance(stored, DaemonSet) or not is_tried):
                return None
            if isinstance(stored, StatefulSet):
                for pod in [pod for pod in cluster.of(workload) if not pod.node]:
                    cluster.remove(pod, lost=True)
            return rollouts

        return self._try(begin, workload, ends=ends or template is None, tries=_MANY_TRIES)

    def _try(
        self,
        act: Callable[[SimulatedCluster], Mapping[ObjectRef, Actor] | None],
        workload: ObjectRef,
        *,
        ends: bool,
        tries: int = _TRIES,
    ) -> Trial:
        """Make a change in a few runs, and undo it; the first run in which something is worse decides.

        Args:
            act: Makes the change, and returns its rollouts; None where that need not be tried.
            workload: The workload that the change is about.
            ends: Whether no pod of the workload may wait afterwards, even if one did before.
            tries: The number of runs, of which a change of many pods has fewer.
        """
        cluster, steps = self._settled, 0
        before, trial = _left(self._now, workload, Trial()), Trial()
        for number in range(tries):
            if number >= _TRIES and steps >= _STEPS:
                break
            cluster.reseed(Random(number))  # noqa: S311 - it decides on nothing secret
            journal = cluster.begin()
            # Nothing is left to do for owners that the change does not touch.
            cluster.forget_touched()
            try:
                if (rollouts := act(cluster)) is None:
                    break
                run(cluster, rollouts)
                stuck = any(left_of(each, cluster) for each in rollouts.values())
                trial = _tried(cluster, journal, workload, trial, ends=ends, stuck=stuck)
                steps += len(journal.steps)
                self._steps += len(journal.steps)
            finally:
                cluster.undo()
                self._world.forget()
            if trial.shortfall is not None:
                break
        return replace(
            trial,
            together=trial.together - before.together,
            uneven=trial.uneven - before.uneven,
            last=trial.last and not before.last,
        )

    @cached_property
    def _settled(self) -> SimulatedCluster:
        """The cluster after controllers and the scheduler have done what they would do anyway."""
        cluster = SimulatedCluster(self._world, Random(0))  # noqa: S311 - as above
        run(cluster, unfinished(cluster))
        return cluster

    @cached_property
    def _by_ref(self) -> Mapping[ObjectRef, SimulatedPod]:
        return {pod.record.ref: pod for pod in self._settled.all_pods()}

    @cached_property
    def _as_is(self) -> Simulation:
        return Simulation(self._world, ())

    @cached_property
    def _runs(self) -> Sequence[RunResult]:
        """Runs in which nothing happens but what controllers and the scheduler do anyway."""
        runs = self._as_is.fixed(_RUNS, about=())
        self._changes += sum(run.changes for run in runs)
        return runs


def _tried(
    cluster: SimulatedCluster, journal: Journal, workload: ObjectRef, earlier: Trial, *, ends: bool, stuck: bool
) -> Trial:
    """Return what the change in a journal leaves, and what it left in ``earlier`` runs.

    Args:
        cluster: The cluster after it.
        journal: The journal.
        workload: The workload that the change is about.
        earlier: What it left in earlier runs.
        ends: Whether no pod of the workload may wait.
        stuck: Whether its rollout has not ended, which is worse unless fewer pods wait than before.
    """
    _, pending = journal.changes()
    for each in sorted({*pending, workload}):
        own = each == workload
        waiting = [pod for pod in cluster.pending if pod.workload == each] if own or pending[each] > 0 else []
        if not waiting:
            continue
        left = Shortfall(each, len(waiting), reason(cluster, waiting[-1]).text)
        if own and (ends or (stuck and pending[each] == 0)):
            return Trial(left)
        if pending[each] > 0:
            return Trial(replace(left, pods=pending[each]))
        if own:
            earlier = replace(earlier, waiting=left)
    return _left(cluster, workload, earlier)


def _left(cluster: SimulatedCluster, workload: ObjectRef, earlier: Trial) -> Trial:
    """Return what a cluster has of what a change may leave, and what ``earlier`` runs left."""
    owners = dict.fromkeys((workload, *cluster.world.owners_below(workload)))
    running = [pod for owner in owners for pod in cluster.of(owner) if pod.node in cluster.table.numbers]
    if not running:
        return earlier
    newest = running[-1].kind
    uneven = {each.topology_key for each, skew in skews(cluster, newest) if skew > each.max_skew and not each.hard}
    return replace(
        earlier,
        together=earlier.together | _together(cluster, [pod.node for pod in running]),
        uneven=earlier.uneven | uneven,
        last=earlier.last or bool(newest.hard and not cluster.state.admits(newest)),
    )


def _together(cluster: SimulatedCluster, places: Sequence[str]) -> frozenset[str]:
    """Return the topology keys by which the nodes of several pods are in one domain; none for a single pod."""
    if len(places) <= 1:
        return frozenset()
    zones = cluster.table.values(ZONE)
    of_zones = {zones[cluster.table.numbers[place]] for place in places}
    values_of: dict[str, set[str | None]] = {HOSTNAME: {*places}, ZONE: of_zones}
    return frozenset(key for key, values in values_of.items() if len(values) == 1 and None not in values)
