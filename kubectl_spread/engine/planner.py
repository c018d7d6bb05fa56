"""Planner: waves of evictions, each tried in all runs of a simulation before it is in the plan.

A wave is accepted only if in every run budgets allow its evictions together, no workload has more pending or fewer
running pods at its end, and each skew above maxSkew falls by its evictions while no other one grows. So the sum of
skews above maxSkew and of stale pods falls with each wave, and a plan ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations, islice
from random import Random
from typing import Final

import msgspec

from kubectl_spread.audit.evaluation.volumes import UNREAD
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.engine import controllers
from kubectl_spread.engine.cluster import PodStep, SimulatedCluster
from kubectl_spread.engine.drains import refusing_budgets
from kubectl_spread.engine.kinds import SchedulingKind
from kubectl_spread.engine.pods import SimulatedPod
from kubectl_spread.engine.reasons import reason
from kubectl_spread.engine.runs import note_devices, number_preempting
from kubectl_spread.engine.standing import Standing
from kubectl_spread.engine.targets import (
    PlanTarget,
    Scope,
    SpreadTarget,
    StalePod,
    StaleTarget,
    affected,
    same_in,
    spread_targets,
)
from kubectl_spread.engine.world import World
from kubectl_spread.kube.api.content import is_object_name
from kubectl_spread.kube.api.labels import ascending
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.phrases import domains, in_domain, listed, named, noun, some

RUNS: Final = 10
"""The runs in which each wave is tried, unless the user chooses another number."""
_TRIES: Final = 3
"""The most sets of evictions that are tried for one wave."""
_MOST_CANDIDATES: Final = 32
"""The most pods that are tried for one skew."""
_MOST_PAIRED: Final = 8
"""The most pods that are tried for one skew together with another pod that makes room."""
_MOST_SETS: Final = 1_000
"""The most sets of pods that make room that are tried for one plan."""
_UNNAMED: Final = "its other pods there are replaced by this plan: plan again afterwards"
_UNREAD_VOLUMES: Final = "its claims and volumes were not read, so its replacement may have to stay where it is"
_UNDECIDED: Final = "it depends on where other pods go: plan again afterwards"


class Candidate(msgspec.Struct, frozen=True, eq=False):
    """An eviction to try.

    Attributes:
        pod: The pod in the first run.
        target: The skew or stale pod that it is to end.
        value: The domain of the pod; "" where its node has none.
        makes_room: Whether it only makes room for the replacement of another pod of the wave.
    """

    pod: SimulatedPod
    target: PlanTarget
    value: str
    makes_room: bool = False


class PlannedStep(msgspec.Struct, frozen=True):
    """An eviction of a plan.

    Attributes:
        record: The pod.
        workload: Its workload.
        owner: Its direct owner.
        replicas: The number of pods of that owner.
        topology_key: The topology key of the domains.
        value: The domain that the pod leaves.
        to: The domains to which its replacement may go.
        why: What the eviction ends.
    """

    record: PodRecord
    workload: ObjectRef
    owner: ObjectRef
    replicas: int
    topology_key: str
    value: str
    to: tuple[str, ...]
    why: str


class PlannedWaves(msgspec.Struct, frozen=True):
    """Waves of evictions, and what they leave.

    Attributes:
        waves: The evictions of each wave.
        uneven: The workloads with a skew above maxSkew or a stale pod before the plan.
        left: The reasons why some of these have one after it.
        preempting: The most pending pods of a run that could preempt others.
    """

    waves: Sequence[Sequence[PlannedStep]]
    uneven: Collection[ObjectRef]
    left: Mapping[ObjectRef, Sequence[str]]
    preempting: int


class FirstWave(msgspec.Struct, frozen=True):
    """The evictions with which the plan for a workload begins, or why there are none, as far as that is known.

    Attributes:
        steps: The evictions.
        why: Why there are none; "" where there are some, and where the plan has nothing to do for the workload.
        ended: Whether those that were returned for other workloads end the skews of this one.
    """

    steps: tuple[PlannedStep, ...]
    why: str = ""
    ended: bool = False


_Failures = dict[Candidate | None, str]
"""Maps evictions to what speaks against them; None stands for all evictions of a wave."""


class Planner:
    """The plan of one cluster."""

    def __init__(
        self,
        world: World,
        stale: Iterable[StalePod],
        scope: Scope,
        *,
        runs: int,
        seed: int = 0,
        soft: bool = False,
        most: int = 1,
    ) -> None:
        """Plan for the workloads in ``scope``.

        Args:
            world: The cluster.
            stale: The stale pods.
            scope: Tells whether a workload is in the plan.
            runs: The number of runs in which each wave is tried.
            seed: Decides what is not determined.
            soft: Whether skews of soft constraints are ended too.
            most: The most pods of a workload that a wave evicts.
        """
        self._standing = Standing(world.snapshot)
        self._scope, self._most = scope, most
        self._runs = [SimulatedCluster(world, Random(f"{seed}/plan/{number}")) for number in range(runs)]  # noqa: S311
        for cluster in self._runs:
            controllers.run(cluster)
        first = self._runs[0]
        pods = {pod.record.ref: pod for pod in first.all_pods()}
        self._groups = spread_targets(first, soft=soft)
        self._by_namespace: dict[str, list[SpreadTarget]] = {}
        for group in self._groups:
            self._by_namespace.setdefault(group.kind.namespace, []).append(group)
        self._counting: dict[SchedulingKind, list[SpreadTarget]] = {}
        self._excess = [{group: group.excess(cluster) for group in self._groups} for cluster in self._runs]
        self._stale = [
            StaleTarget(each, pods[each.record.ref])
            for each in stale
            if scope(each.workload) and each.record.ref in pods
        ]
        self._pods: dict[SchedulingKind, list[SimulatedPod]] = {}
        self._owners: dict[ObjectRef, dict[ObjectRef | None, None]] = {}
        for pod in first.all_pods():
            self._pods.setdefault(pod.kind, []).append(pod)
            self._owners.setdefault(pod.workload, {})[pod.owner] = None
        self._to: dict[Candidate, set[str]] = {}
        self._before: dict[Candidate, int] = {}
        self._sets_left = _MOST_SETS
        self._seed = seed
        uneven = (group for group in self._groups if any(excess[group] for excess in self._excess))
        self._uneven = {workload for group in uneven for workload in group.workloads}

    def first_wave(self, workload: ObjectRef) -> FirstWave:
        """Return the first wave of the plan for one workload, after those that were returned for others."""
        self._scope, self._sets_left = {workload}.__contains__, _MOST_SETS
        if not self._targets():
            return FirstWave((), ended=workload in self._uneven)
        reasons: dict[PlanTarget, str] = {}
        wave = self._wave() or next(self._one_by_one(reasons), ())
        return FirstWave(tuple(wave), "" if wave else "; ".join(dict.fromkeys(reasons.values())))

    def plan(self) -> PlannedWaves:
        """Return the plan."""
        uneven = {ref for target in self._targets() for ref in self._reported(target)}
        waves: list[Sequence[PlannedStep]] = []
        reasons: dict[PlanTarget, str] = {}
        while True:
            while wave := self._wave():
                waves.append(wave)
            reasons.clear()
            alone = [*self._one_by_one(reasons)]
            waves += alone
            if not alone:
                break
        left: dict[ObjectRef, list[str]] = {}
        for target in self._targets():
            for ref in self._reported(target):
                texts = left.setdefault(ref, [])
                if reasons[target] not in texts:
                    texts.append(reasons[target])
        for cluster in self._runs:
            for pod in cluster.pending:
                note_devices(cluster, pod)
        return PlannedWaves(waves, uneven, left, max(map(number_preempting, self._runs)))

    def _targets(self) -> list[PlanTarget]:
        """Return what is left to end in any run: stale pods first, because they decide what constraints count."""
        stale: list[PlanTarget] = [target for target in self._stale if any(map(target.excess, self._runs))]
        uneven = [
            group
            for group in self._groups
            if any(excess[group] for excess in self._excess) and any(map(self._scope, group.workloads))
        ]
        return [*stale, *uneven]

    def _reported(self, target: PlanTarget) -> list[ObjectRef]:
        """Return the workloads on which a target is reported: those with pods in a domain that is too full."""
        refs = [ref for ref in target.workloads if self._scope(ref)]
        if not isinstance(target, SpreadTarget):
            return refs
        cluster = next(each for each in self._runs if target.excess(each))
        uneven = target.uneven(cluster)
        there = {
            pod.workload
            for owner in (owner for ref in refs for owner in self._owners[ref])
            for pod in cluster.of(owner)
            if pod.workload in refs and target.value_on(cluster, pod) in uneven
        }
        return sorted(there) or refs

    def _wave(self) -> Sequence[PlannedStep]:
        """Let the next wave happen in all runs and return its evictions; () where no set that is tried helps."""
        rejected: set[SimulatedPod] = set()
        most: int | None = None
        queues = {target: self._candidates(target) for target in self._targets()}
        for _ in range(_TRIES):
            candidates = self._chosen(queues, rejected)[:most]
            if not candidates:
                return ()
            failures = self._try(candidates)
            if not failures:
                return self._accepted(candidates)
            if None in failures:
                most = len(candidates) // 2
            rejected |= {candidate.pod for candidate in failures if candidate is not None}
        return self._rest(queues, rejected, most)

    def _rest(
        self, queues: Mapping[PlanTarget, Sequence[Candidate]], rejected: Collection[SimulatedPod], most: int | None
    ) -> Sequence[PlannedStep]:
        """Return a last, smaller wave: without the targets whose evictions have failed until now."""
        failing = {candidate.target for queue in queues.values() for candidate in queue if candidate.pod in rejected}
        left = {target: queue for target, queue in queues.items() if target not in failing}
        candidates = self._chosen(left, rejected)[:most]
        if not candidates or self._try(candidates):
            return ()
        return self._accepted(candidates)

    def _one_by_one(self, reasons: dict[PlanTarget, str]) -> Iterator[Sequence[PlannedStep]]:
        """Yield waves of single evictions, and store why none of a target's is accepted."""
        for target in self._targets():
            if not any(map(target.excess, self._runs)):
                continue
            queue = self._candidates(target)
            if not queue:
                reasons[target] = self._without_candidates(target)
            for candidates in (*([candidate] for candidate in queue), *self._with_room(target, queue)):
                failures = self._try(candidates, explained=target not in reasons)
                if not failures:
                    yield self._accepted(candidates)
                    break
                reasons.setdefault(target, next(iter(failures.values())))

    def _with_room(self, target: PlanTarget, queue: Sequence[Candidate]) -> Iterator[list[Candidate]]:
        """Yield an eviction of a target with those of one or two pods of other workloads on a node that lacks room."""
        if not isinstance(target, SpreadTarget):
            return
        first = self._runs[0]
        for candidate in queue[:_MOST_PAIRED] if self._sets_left else ():
            full = target.open_nodes(first) & ~first.state.room(candidate.pod.kind).fits
            full &= first.table.answers(candidate.pod.kind).allowed
            sets = (each for number in (1, 2) for node in ascending(full) for each in self._sets(node, number, target))
            allowed = (each for each in sets if all(other.pod.workload != candidate.pod.workload for other in each))
            for each in islice(allowed, min(_MOST_CANDIDATES, self._sets_left)):
                self._sets_left -= 1
                yield [candidate, *each]

    def _sets(self, node: int, number: int, target: PlanTarget) -> Iterator[tuple[Candidate, ...]]:
        """Yield the sets of a number of pods of different workloads on a node that may be evicted to make room."""
        first = self._runs[0]
        value = first.table.values(target.topology_key)[node] or ""
        pods = [pod for pod in self._on_nodes.get(first.table.names[node], ()) if self._movable(pod)]
        pods.sort(key=lambda pod: _rank(pod, 0, 0, own=False))
        for chosen in combinations(pods, number):
            if len({pod.workload for pod in chosen}) == number:
                yield tuple(Candidate(pod, target, value, makes_room=True) for pod in chosen)

    @cached_property
    def _on_nodes(self) -> Mapping[str, Sequence[SimulatedPod]]:
        """Maps a node to the pods that were on it at the beginning."""
        pods: dict[str, list[SimulatedPod]] = {}
        for pod in (pod for of_kind in self._pods.values() for pod in of_kind):
            pods.setdefault(pod.node, []).append(pod)
        return pods

    def _without_candidates(self, target: PlanTarget) -> str:
        if isinstance(target, StaleTarget) and target.stale.lasting:
            return target.stale.lasting
        obstacles = (self._standing.obstacle(ref) for ref in self._reported(target))
        return next(filter(None, obstacles), _UNNAMED if target.excess(self._runs[0]) else _UNDECIDED)

    def _chosen(
        self, queues: Mapping[PlanTarget, Sequence[Candidate]], rejected: Collection[SimulatedPod]
    ) -> list[Candidate]:
        """Return the next eviction of each target, several only as far as a wave may evict them of one workload."""
        chosen: list[Candidate] = []
        of_workload: Counter[ObjectRef] = Counter()
        taken = set(rejected)
        for target, queue in queues.items():
            room = self._room(target, queue)
            for candidate in queue:
                pod = candidate.pod
                if room[candidate.value] > 0 and pod not in taken and of_workload[pod.workload] < self._most:
                    chosen.append(candidate)
                    taken.add(pod)
                    of_workload[pod.workload] += 1
                    room[candidate.value] -= 1
        return chosen

    def _room(self, target: PlanTarget, queue: Sequence[Candidate]) -> Counter[str]:
        """Return the number of evictions from each domain that lower a target."""
        if isinstance(target, SpreadTarget):
            return Counter(target.uneven(self._runs[0]))
        return Counter({candidate.value: 1 for candidate in queue})

    def _candidates(self, target: PlanTarget) -> list[Candidate]:
        """Return the evictions that may lower a target, the best first; of equal pods only as many as a wave has."""
        if isinstance(target, StaleTarget):
            return [*self._of_stale(target)]
        first = self._runs[0]
        uneven = target.uneven(first)
        ranked: list[tuple[tuple[object, ...], Candidate]] = []
        others = [
            (group, group.uneven(first))
            for group in self._by_namespace[target.kind.namespace]
            if self._excess[0][group]
        ]
        for pod in (pod for kind, pods in self._pods.items() if target.counts(kind) for pod in pods):
            value = target.value_on(first, pod)
            if value in uneven and value is not None and self._movable(pod):
                gain = sum(group.value_on(first, pod) in each for group, each in others)
                ranked.append(
                    (
                        _rank(pod, gain, uneven[value], own=pod.workload in target.workloads),
                        Candidate(pod, target, value),
                    )
                )
        ranked.sort(key=lambda pair: pair[0])
        alike: Counter[object] = Counter()
        distinct: list[Candidate] = []
        for _, candidate in ranked:
            key = (candidate.pod.kind, candidate.pod.node, candidate.pod.owner, candidate.pod.record.claims)
            alike[key] += 1
            if alike[key] <= self._most:
                distinct.append(candidate)
        return distinct[:_MOST_CANDIDATES]

    def _of_stale(self, target: StaleTarget) -> Iterator[Candidate]:
        if not target.stale.lasting and self._movable(target.pod):
            labels = self._runs[0].table.sets.nodes[self._runs[0].table.numbers[target.pod.node]].metadata.labels
            yield Candidate(target.pod, target, labels.get(target.topology_key, ""))

    def _movable(self, pod: SimulatedPod) -> bool:
        """Tell whether a pod has a name and a node that are known, and its workload is complete."""
        if not self._scope(pod.workload) or self._standing.obstacle(pod.workload) or pod.record.node != pod.node:
            return False
        # A script has these names in the path of a request.
        if not (is_object_name(pod.name) and is_object_name(pod.namespace)):
            return False
        return pod.node in self._runs[0].table.numbers and all(same_in(each, pod) for each in self._runs)

    def _try(self, candidates: Sequence[Candidate], *, explained: bool = False) -> _Failures:
        """Evict pods in all runs; if anything speaks against it, undo it and return what does.

        Why a pod stays pending takes longer than the try, so it is named only if the reasons are to be ``explained``.
        """
        self._to = {candidate: set() for candidate in candidates}
        first = self._runs[0]
        self._before = {
            candidate: candidate.target.skew(first)
            for candidate in candidates
            if isinstance(candidate.target, SpreadTarget)
        }
        for number, cluster in enumerate(self._runs):
            # Equal tries have equal ends, whatever was tried before.
            cluster.reseed(Random(f"{self._seed}/wave/{number}"))  # noqa: S311
            cluster.begin()
            if failures := self._evict(number, candidates, explained=explained):
                for begun in self._runs[: number + 1]:
                    begun.undo()
                return failures
        return {}

    def _evict(self, number: int, candidates: Sequence[Candidate], *, explained: bool) -> _Failures:
        cluster = self._runs[number]
        failures: _Failures = {}
        for candidate in candidates:
            pod = same_in(cluster, candidate.pod)
            if pod is None:
                failures[candidate] = _UNNAMED
            elif budgets := refusing_budgets(cluster, pod):
                failures[candidate] = _refused(", ".join(budget.metadata.name for budget in budgets))
            elif cluster.volumes.of(pod.record).unknown == UNREAD:
                failures[candidate] = _UNREAD_VOLUMES
            else:
                cluster.remove(pod, lost=True)
        if failures:
            return failures
        controllers.run(cluster)
        return _unplaced(cluster, candidates, explained=explained) or self._not_lower(number, candidates)

    def _not_lower(self, number: int, candidates: Sequence[Candidate]) -> _Failures:
        """Return the evictions whose targets do not fall, or after which another skew grows."""
        cluster, before = self._runs[number], self._excess[number]
        failures: _Failures = {}
        for group in self._changed(cluster):
            own = [each for each in candidates if each.target is group and not each.makes_room]
            if group.excess(cluster) <= before[group] - len(own):
                continue
            for candidate in own:
                failures[candidate] = _does_not_help(candidate, self._destinations(cluster, candidate))
            if not own:
                touching: list[Candidate | None] = [
                    each for each in candidates if group.counts(each.pod.kind) or each.pod.workload in group.workloads
                ]
                unknown = candidates[0] if len(candidates) == 1 else None
                failures.update(dict.fromkeys(touching or [unknown], _against(group)))
        for candidate in () if failures else candidates:
            to = self._destinations(cluster, candidate)
            self._to[candidate] |= to
            returns = isinstance(candidate.target, SpreadTarget) and not candidate.makes_room and candidate.value in to
            if returns:
                failures[candidate] = _does_not_help(candidate, to)
        return failures

    def _changed(self, cluster: SimulatedCluster) -> Iterator[SpreadTarget]:
        """Yield the groups whose counts changed."""
        steps = () if cluster.journal is None else cluster.journal.steps
        kinds = dict.fromkeys(pod.kind for _, pod, _ in steps)
        for namespace in {kind.namespace: None for kind in kinds}:
            of_namespace = [kind for kind in kinds if kind.namespace == namespace]
            yield from affected(self._by_namespace.get(namespace, ()), of_namespace, self._counting)

    def _destinations(self, cluster: SimulatedCluster, candidate: Candidate) -> set[str]:
        """Return the domains to which the replacement of a pod may go."""
        created = () if cluster.journal is None else cluster.journal.of(PodStep.CREATED)
        target = candidate.target
        values: set[str] = set()
        for pod in created:
            if pod.owner == candidate.pod.owner and pod.node:
                values |= cluster.destinations(pod, target.topology_key, scored=not target.hard)
        return values

    def _accepted(self, candidates: Sequence[Candidate]) -> Sequence[PlannedStep]:
        """Keep the evictions that were tried last, and return them as a wave."""
        texts = {candidate: self._why(candidate) for candidate in candidates}
        for cluster, excess in zip(self._runs, self._excess, strict=True):
            for group in self._changed(cluster):
                excess[group] = group.excess(cluster)
            cluster.keep()
        steps = [self._step(candidate, texts[candidate]) for candidate in candidates]
        return sorted(steps, key=lambda step: (step.workload, step.record.name))

    def _why(self, candidate: Candidate) -> str:
        target = candidate.target
        if candidate.makes_room:
            return f"makes room for {listed([named(ref.kind, ref.name) for ref in target.workloads])}"
        if isinstance(target, StaleTarget):
            return target.stale.why
        after = max(target.skew(cluster) for cluster in self._runs)
        before = self._before[candidate]
        return f"{noun(target.topology_key)} skew {before} to {after} (maxSkew {target.constraint.max_skew})"

    def _step(self, candidate: Candidate, why: str) -> PlannedStep:
        pod = candidate.pod
        owner = pod.owner or pod.workload
        return PlannedStep(
            record=pod.record,
            workload=pod.workload,
            owner=owner,
            replicas=self._runs[0].world.number_of_pods(owner),
            topology_key=candidate.target.topology_key,
            value=candidate.value,
            to=tuple(sorted(self._to[candidate])),
            why=why,
        )


def _rank(pod: SimulatedPod, gain: int, excess: int, *, own: bool) -> tuple[object, ...]:
    """Return the order in which pods are tried: by skews that end, by domain, by deletion cost, the youngest first."""
    created = pod.record.created
    return (
        -gain,
        not own,
        -excess,
        pod.state.deletion_cost,
        -(created.timestamp() if created else 0.0),
        pod.workload,
        pod.name,
    )


def _unplaced(cluster: SimulatedCluster, candidates: Sequence[Candidate], *, explained: bool) -> _Failures:
    """Return the evictions after which a workload has more pending or fewer running pods."""
    running, pending = (Counter(), Counter()) if cluster.journal is None else cluster.journal.changes()
    failures: _Failures = {}
    evicted = {candidate.pod.workload for candidate in candidates}
    for workload in sorted(ref for ref in {*running, *pending} if pending[ref] > 0 or running[ref] < 0):
        text = _why_pending(cluster, workload) if explained else ""
        if workload not in evicted:
            whose = named(workload.kind, workload.name)
            failures[None if len(candidates) > 1 else candidates[0]] = f"a pod of {whose} would stay pending: {text}"
        for candidate in candidates:
            if candidate.pod.workload == workload:
                failures[candidate] = text
    return failures


def _why_pending(cluster: SimulatedCluster, workload: ObjectRef) -> str:
    """Return why a workload has more pending or fewer running pods than before."""
    created = () if cluster.journal is None else cluster.journal.of(PodStep.CREATED)
    waiting = next((pod for pod in created if pod.workload == workload and not pod.node), None)
    if waiting is None:
        return "nothing replaces its pod"
    text = reason(cluster, waiting).text
    first, _, _ = text.partition("; ")
    return first if first.startswith(_VOLUME) else f"its replacement would stay pending: {text}"


_VOLUME: Final = "its volume is "


def _refused(budget: str) -> str:
    if ", " in budget:
        return f"budgets {budget} select its pods together, so the API server evicts none of them"
    return f"budget {budget} allows no eviction now"


def _does_not_help(candidate: Candidate, to: Collection[str]) -> str:
    key = candidate.target.topology_key
    if candidate.value in to or not to:
        return f"its replacement may go back to {domains(key, [candidate.value])}"
    return f"its replacement may go to {domains(key, sorted(to))}, and then the skew does not fall"


def _against(group: SpreadTarget) -> str:
    names = some([named(ref.kind, ref.name) for ref in group.workloads])
    return f"its replacement may raise the skew of {names} on {in_domain(group.topology_key, '').split()[-1]}"
