"""Controllers: what do the controllers of Kubernetes do after an event, by the kind of a workload?

A pod that has found a node is taken as ready.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cmp_to_key
from typing import Final, NamedTuple, Protocol

from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.audit.snapshot.revisions import revision_of
from kubectl_spread.engine.cluster import SimulatedCluster
from kubectl_spread.engine.drains import Drain
from kubectl_spread.engine.pods import SimulatedPod
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.workloads import DaemonSet, Deployment, Job, StatefulSet, ordinal_of
from kubectl_spread.kube.custom import NOT_REPLACED, base_kind
from kubectl_spread.phrases import named

_COUNTS_UNAVAILABLE: Final = 37
"""The minor from which the gate MaxUnavailableStatefulSet is on, so that a rollout first replaces pods that wait."""


class Actor(Protocol):
    """A controller, or a command, that acts until it has nothing more to do."""

    def step(self, cluster: SimulatedCluster) -> bool:
        """Do what is possible now; tell whether anything changed."""
        ...


NO_ROLLOUTS: Final[Mapping[ObjectRef, Actor]] = {}


def run(
    cluster: SimulatedCluster,
    rollouts: Mapping[ObjectRef, Actor] = NO_ROLLOUTS,
    actors: Sequence[Actor] = (),
    drains: Sequence[Drain] = (),
    maker: Actor | None = None,
) -> None:
    """Let rollouts, other actors, controllers and the scheduler act until nothing changes any more.

    A rollout acts when pods of its workload have changed. Only when nothing else changes does ``maker`` make a node,
    and only after that does a drain leave a node whose pods may not be evicted.
    """
    changed = True
    while changed:
        changed = False
        if cluster.hurries():
            cluster.settle()
        for owner in cluster.touched:
            if reconcile(cluster, owner):
                changed = True
            else:
                cluster.finished(owner)
        changed |= cluster.settle()
        if not changed:
            changed = _roll_out(cluster, rollouts)
            for actor in (*actors, *drains):
                changed |= actor.step(cluster)
        if not changed and maker is not None:
            changed = maker.step(cluster)
        if not changed:
            changed = any(drain.go_on(cluster) for drain in drains)


def _roll_out(cluster: SimulatedCluster, rollouts: Mapping[ObjectRef, Actor]) -> bool:
    """Let the rollouts act of workloads that have changed; tell whether any did something."""
    acted = [
        workload for workload in cluster.take_changed() if workload in rollouts and rollouts[workload].step(cluster)
    ]
    cluster.changed |= dict.fromkeys(acted)
    return bool(acted)


def reconcile(cluster: SimulatedCluster, owner: ObjectRef) -> bool:
    """Let the controller of an owner create or delete pods; tell whether it did."""
    kind = base_kind(owner.kind)
    if kind in NOT_REPLACED:
        return False
    if kind == "StatefulSet":
        return _stateful_set(cluster, owner)
    if kind == "Job" and _fails(cluster, owner):
        return False
    there = len(cluster.of(owner)) + len(_awaited(cluster, owner))
    missing = desired(cluster, owner) - _failed_indexes(cluster, owner) - there
    if missing > 0:
        for _ in range(missing):
            if not _create(cluster, owner):
                return False
    elif missing < 0:
        for pod in first_deleted(cluster, owner, -missing):
            cluster.remove(pod)
    return missing != 0


def _awaited(cluster: SimulatedCluster, owner: ObjectRef) -> Collection[SimulatedPod]:
    """Return the terminating pods of a Job that it replaces only when they have ended."""
    job = cluster.world.object(owner)
    return () if not isinstance(job, Job) or job.replaces_terminating else cluster.terminating_of(owner)


def _failures(cluster: SimulatedCluster, owner: ObjectRef) -> int:
    """Return the number of pods that a Job has lost, and counts as failed."""
    return cluster.lost_of[owner] - len(_awaited(cluster, owner))


def desired(cluster: SimulatedCluster, owner: ObjectRef) -> int:
    """Return the number of pods that an owner is to have.

    An owner with fewer pods than it asks for is kept from creating more, for example by a quota, so its number stays.
    A StatefulSet only waits for the pods that it has.
    """
    if owner not in cluster.desired:
        record = cluster.world.snapshot.ownership.record(owner)
        number = cluster.world.number_of_pods(owner)
        replicas = None if record is None else record.replicas
        waits = not number or base_kind(owner.kind) == "StatefulSet"
        pods = number if replicas is None else replicas if waits else min(replicas, number)
        cluster.desired[owner] = max(0, pods)
    return cluster.desired[owner]


def _create(cluster: SimulatedCluster, owner: ObjectRef, name: str = "", index: int = 0) -> bool:
    """Create a pod of an owner; tell whether its template is known."""
    world = cluster.world
    former = index < cluster.partitions.get(owner, 0)
    rolled = None if former else cluster.rolled.get(owner)
    if rolled is None:
        pod_class = world.created(owner, name, index, former=former)
    else:
        pod_class = world.numbered(rolled, name, index) if name else rolled
    if pod_class is None:
        return False
    like = world.newest_pods.get(owner)
    record = world.record(owner, pod_class, name or f"{owner.name}-new-{cluster.next_number()}", like)
    pod = cluster.create(record, world.root(owner), owner)
    pod.revised = rolled is not None
    return True


def _stateful_set(cluster: SimulatedCluster, owner: ObjectRef) -> bool:
    """Create the first missing pod, or all of them, and delete the last ones that are too many.

    Source: kubernetes v1.37.1 pkg/controller/statefulset/stateful_set_control.go, updateStatefulSet and
    processCondemned.
    """
    workload = cluster.world.object(owner)
    ordered = not isinstance(workload, StatefulSet) or workload.ordered
    start = _first_ordinal(cluster, owner)
    # A pod whose node does not answer keeps its name until its node answers, or is deleted.
    pods = {pod.name: pod for pod in (*cluster.of(owner), *cluster.terminating_of(owner))}
    changed = False
    number = desired(cluster, owner)
    ordinals = range(start, start + number) if workload is not None else sorted(cluster.world.ordinals(owner))
    for ordinal in ordinals:
        pod = pods.get(f"{owner.name}-{ordinal}")
        if pod is None:
            _create(cluster, owner, f"{owner.name}-{ordinal}", ordinal)
            changed = True
        if ordered and (pod is None or not pod.ready):
            return changed
    surplus = sorted((pod for pod in pods.values() if _ordinal(pod) >= start + number), key=_ordinal)
    if not ordered:
        surplus = [pod for pod in surplus if not pod.terminating]
    if workload is None or not surplus or surplus[-1].terminating:
        return changed
    waiting = next((pod for pod in surplus if not pod.ready), None)
    if ordered and not surplus[-1].ready and surplus[-1] is not waiting:
        # The controller waits for a pod that it would delete later.
        return changed
    cluster.remove(surplus[-1])
    return True


def _first_ordinal(cluster: SimulatedCluster, owner: ObjectRef) -> int:
    workload = cluster.world.object(owner)
    return workload.spec.ordinals.start if isinstance(workload, StatefulSet) else 0


def _ordinal(pod: SimulatedPod) -> int:
    return ordinal_of(pod.name)


def _failed_indexes(cluster: SimulatedCluster, owner: ObjectRef) -> int:
    """Return the number of indexes of a Job that fail because of lost pods, so that these are not replaced.

    Which index has failed before is not read, so all pods that are lost count for different ones.

    Source: kubernetes v1.37.1 pkg/controller/job/backoff_utils.go and indexed_job_utils.go.
    """
    job = cluster.world.object(owner)
    limit = job.failures_per_index if isinstance(job, Job) else None
    if limit is None:
        return 0
    if limit and _failures(cluster, owner):
        cluster.world.unknown[
            f"backoffLimitPerIndex of {named(owner.kind, owner.name)}: earlier failures were not read"
        ] = None
    return 0 if limit else _failures(cluster, owner)


def failed_indexes(cluster: SimulatedCluster) -> Iterator[tuple[ObjectRef, int]]:
    """Yield the Jobs with failed indexes that still have pods, each with the number of these indexes."""
    for owner, pods in cluster.pods.items():
        if owner is not None and pods and (number := _failed_indexes(cluster, owner)):
            yield owner, number


def _fails(cluster: SimulatedCluster, owner: ObjectRef) -> bool:
    """Tell whether a Job has failed, because it has lost more pods than it allows; its pods are gone."""
    job = cluster.world.object(owner)
    if not isinstance(job, Job):
        return False
    failed, most = _failed_indexes(cluster, owner), job.spec.max_failed_indexes
    if most is not None and failed > most:
        cluster.failed[owner] = f"its maxFailedIndexes ({most}) allows no further failure, so the Job fails"
    else:
        limit = job.failures
        if limit is None or _failures(cluster, owner) <= limit:
            return False
        cluster.failed[owner] = f"its backoffLimit ({limit}) allows no further failure, so the Job fails"
    for pod in list(cluster.of(owner)):
        cluster.remove(pod)
    return True


def first_deleted(cluster: SimulatedCluster, owner: ObjectRef, number: int) -> list[SimulatedPod]:
    """Return the pods that a ReplicaSet deletes first when it has too many.

    Source: kubernetes v1.37.1 pkg/controller/controller_utils.go, ActivePodsWithRanks.
    """
    pods = list(cluster.of(owner))
    # Between pods that are equal in all that follows, nothing decides.
    cluster.random.shuffle(pods)
    if number >= len(pods):
        return pods
    root = cluster.world.root(owner)
    on_node = Counter(pod.node for related in cluster.world.siblings(owner, root) for pod in cluster.of(related))
    now = cluster.now

    def rank(pod: SimulatedPod) -> tuple[object, ...]:
        state = pod.state
        return (bool(pod.node), state.running, pod.ready, state.deletion_cost, -on_node[pod.node])

    def compare(left: SimulatedPod, right: SimulatedPod) -> int:
        if rank(left) != rank(right):
            return -1 if rank(left) < rank(right) else 1
        order = _by_age(left, right, left.state.ready_since, right.state.ready_since, now) if left.ready else 0
        return order or _by_age(left, right, left.record.created, right.record.created, now)

    return sorted(pods, key=cmp_to_key(compare))[:number]


def _by_age(
    left: SimulatedPod,
    right: SimulatedPod,
    of_left: datetime | None,
    of_right: datetime | None,
    now: datetime | None,
) -> int:
    """Compare two pods by moments: negative if the first one is younger, 0 if the moments are the same.

    Of ages of one magnitude, the UIDs decide.

    Source: kubernetes v1.37.1 pkg/controller/controller_utils.go, logarithmicRankDiff.
    """
    of_left, of_right = (None if left.simulated else of_left), (None if right.simulated else of_right)
    if of_left == of_right:
        return 0
    difference = _bucket(of_left, now) - _bucket(of_right, now)
    return difference or (-1 if (left.state.uid or "") < (right.state.uid or "") else 1)


def _bucket(moment: datetime | None, now: datetime | None) -> int:
    """Return the logarithm of an age."""
    if moment is None or now is None:
        return -1
    age = int((now - moment).total_seconds() * 1e9)
    return -1 if age <= 0 else int(math.log2(age))


def _rivals(cluster: SimulatedCluster) -> int:
    """Return the most pods of workloads with waiting pods that could be placed while another workload rolls out.

    Room that old pods leave may let them run, and their rollouts then continue. Pods with gates, and those that are too
    large for every node, stay as they are.
    """
    waiting = [pod for pod in cluster.pending if not pod.held and not cluster.table.is_too_large(pod.kind)]
    roots = {pod.workload for pod in waiting}
    owners = {owner for pod in waiting if (owner := pod.owner)}
    owners |= {each for pod in waiting if pod.owner for each in cluster.world.siblings(pod.owner, pod.workload)}
    objects = (cluster.world.object(root) for root in roots)
    replicas = sum(each.replicas or 0 for each in objects if each is not None)
    return replicas + sum(len(cluster.of(owner)) for owner in owners) + sum(pod.owner is None for pod in waiting)


class Rollout:
    """The rollout of a Deployment: new pods within its surge, and fewer old ones as far as it may.

    Source: kubernetes v1.37.1 pkg/controller/deployment/rolling.go, rolloutRolling, and recreate.go.
    """

    def __init__(self, cluster: SimulatedCluster, workload: ObjectRef, new: ObjectRef) -> None:
        """Let the pods of ``new`` replace those of the other ReplicaSets of ``workload``."""
        self._workload, self._new = workload, new
        # In what people write by hand, pods may name the Deployment itself.
        owners = (workload, *cluster.world.owners_below(workload))
        self._old = [owner for owner in owners if owner != new and cluster.of(owner)]
        for owner in (*self._old, new):
            desired(cluster, owner)
        cluster.changed[workload] = None

    def surely_ends(self, cluster: SimulatedCluster) -> bool:
        """Tell whether all new pods find nodes whatever the scheduler chooses, even next to all old pods."""
        pod_class, deployment = cluster.rolled.get(self._new), cluster.world.object(self._workload)
        if pod_class is None or not isinstance(deployment, Deployment) or pod_class.spec.node_name:
            return False
        pod = cluster.world.record(self._new, pod_class, self._new.name, like=None)
        if pod.gates or pod.claims or cluster.world.refusal(self._new, pod_class):
            return False
        replicas = cluster.replicas.get(self._workload, deployment.replicas)
        return cluster.state.surely_takes(cluster.world.kind(pod_class, self._workload), replicas, _rivals(cluster))

    def left(self, cluster: SimulatedCluster) -> int:
        """Return the number of pods that are not of the new revision."""
        return sum(len(cluster.of(owner)) for owner in self._old)

    def step(self, cluster: SimulatedCluster) -> bool:
        """Create or delete pods if that is allowed now."""
        deployment = cluster.world.object(self._workload)
        if not isinstance(deployment, Deployment):
            return False
        numbers, new = cluster.desired, self._new
        replicas = cluster.replicas.get(self._workload, deployment.replicas)
        if not deployment.rolls:
            if left := [owner for owner in self._old if numbers[owner]]:
                return all(self._scale(cluster, owner, 0) for owner in left)
            # Nothing tells whether a pod still runs whose node does not answer.
            if any(cluster.terminating_of(owner) for owner in self._old):
                return False
            return self._scale(cluster, new, replicas)
        pace = deployment.pace_of(replicas)
        if self._add_new(cluster, replicas, pace.surge):
            return True
        total = numbers[new] + sum(numbers[owner] for owner in self._old)
        least = replicas - pace.unavailable
        new_unavailable = numbers[new] - _available(cluster, new)
        allowed = total - least - new_unavailable
        if allowed <= 0 or not any(numbers[owner] for owner in self._old):
            return False
        removed = self._remove_old(cluster, allowed, least)
        # The controller does not wait until the old pods are gone.
        self._add_new(cluster, replicas, pace.surge)
        return removed

    def _add_new(self, cluster: SimulatedCluster, replicas: int, surge: int) -> bool:
        """Let the new ReplicaSet have as many pods as the surge allows; tell whether it gets more."""
        numbers, new = cluster.desired, self._new
        if numbers[new] >= replicas:
            return False
        room = replicas + surge - numbers[new] - sum(numbers[owner] for owner in self._old)
        return room > 0 and self._scale(cluster, new, min(replicas, numbers[new] + room))

    def _remove_old(self, cluster: SimulatedCluster, allowed: int, least: int) -> bool:
        """Remove old pods: first those that are not available, then as many as the minimum allows."""
        numbers, changed = cluster.desired, False
        for owner in self._old:
            removed = min(allowed, numbers[owner] - _available(cluster, owner))
            if removed > 0:
                allowed -= removed
                changed |= self._scale(cluster, owner, numbers[owner] - removed)
        available = sum(_available(cluster, owner) for owner in (self._new, *self._old))
        spare = available - least
        for owner in self._old:
            removed = min(numbers[owner], max(spare, 0))
            if removed:
                spare -= removed
                changed |= self._scale(cluster, owner, numbers[owner] - removed)
        return changed

    def _scale(self, cluster: SimulatedCluster, owner: ObjectRef, number: int) -> bool:
        if cluster.desired[owner] == number:
            return False
        cluster.desired[owner] = number
        cluster.touch(owner)
        return True


def _available(cluster: SimulatedCluster, owner: ObjectRef) -> int:
    return sum(pod.ready for pod in cluster.of(owner))


class OrderedRollout:
    """The rollout of a StatefulSet from its highest ordinal, one pod after another."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        workload: ObjectRef,
        pod_class: PodClass,
        *,
        partition: int,
        at_once: int = 1,
    ) -> None:
        """Replace the pods with ordinals from ``partition`` on by pods of a class, some at once."""
        self._workload, self._partition, self._at_once = workload, partition, at_once
        cluster.changed[workload] = None
        stored = cluster.world.object(workload)
        cluster.rolled[workload] = pod_class
        cluster.partitions[workload] = (stored.partition or 0) if isinstance(stored, StatefulSet) else 0
        for pod in cluster.of(workload):
            pod.revised = False

    def left(self, cluster: SimulatedCluster) -> int:
        """Return the number of pods that are not of the new revision, although they are not below the partition."""
        return sum(_ordinal(pod) >= self._partition and not pod.revised for pod in self._wanted(cluster))

    def _wanted(self, cluster: SimulatedCluster) -> list[SimulatedPod]:
        """Return the pods, the last first, without those that are too many since a scaling."""
        end = _first_ordinal(cluster, self._workload) + desired(cluster, self._workload)
        pods = (*cluster.of(self._workload), *cluster.terminating_of(self._workload))
        return sorted((pod for pod in pods if _ordinal(pod) < end), key=_ordinal, reverse=True)

    def step(self, cluster: SimulatedCluster) -> bool:
        """Delete the next old pods, if that is allowed now; the controller creates them again."""
        chosen = self._next(cluster)
        for pod in chosen:
            cluster.remove(pod)
            cluster.touch(self._workload)
        return bool(chosen)

    def _next(self, cluster: SimulatedCluster) -> Sequence[SimulatedPod]:
        """Return the old pods to delete now.

        Source: kubernetes v1.37.1 pkg/controller/statefulset/stateful_set_control.go, updateStatefulSet and
        updateStatefulSetAfterInvariantEstablished, which the gate MaxUnavailableStatefulSet chooses.
        """
        pods = self._wanted(cluster)
        rolled = [pod for pod in pods if _ordinal(pod) >= self._partition]
        old = [pod for pod in rolled if not (pod.revised or pod.terminating)]
        workload = cluster.world.object(self._workload)
        if not isinstance(workload, StatefulSet) or workload.recreates:
            return old
        missing = [pod for pod in pods if not pod.ready]
        ends = any(pod not in pods for pod in cluster.terminating_of(self._workload))
        if workload.ordered and (missing or ends):
            return ()
        if cluster.world.behaviour.minor < _COUNTS_UNAVAILABLE:
            first = next((pod for pod in rolled if not (pod.revised and pod.ready)), None)
            return () if first is None or first.revised or first.terminating else (first,)
        if len(missing) >= self._at_once and all(pod.revised or pod.terminating for pod in missing):
            return ()
        more = max(self._at_once - len(missing), 0)
        return [*(pod for pod in old if not pod.ready), *[pod for pod in old if pod.ready][:more]]


class DaemonRollout:
    """The rollout of a DaemonSet, node by node: new pods replace old ones, or come before them within its surge.

    Source: kubernetes v1.37.1 pkg/controller/daemon/update.go, rollingUpdate.
    """

    def __init__(self, cluster: SimulatedCluster, workload: ObjectRef, pod_class: PodClass) -> None:
        """Replace the pods by pods of a class."""
        self._workload = workload
        cluster.changed[workload] = None
        cluster.rolled[workload] = pod_class
        for pod in cluster.of(workload):
            pod.revised = False

    def surely_ends(self, cluster: SimulatedCluster) -> bool:
        """Tell whether each new pod takes the place of its old one, of which it asks nothing more than that did."""
        workload, world, state, table = self._workload, cluster.world, cluster.state, cluster.table
        daemon_set, pod_class, old = world.object(workload), cluster.rolled[workload], list(cluster.of(workload))
        if not isinstance(daemon_set, DaemonSet) or not old or daemon_set.pace_on(len(old)).surge or _rivals(cluster):
            return False
        pod, kind = world.record(workload, pod_class, workload.name, like=None), world.kind(pod_class, workload)
        if (
            pod.gates
            or pod.claims
            or world.refusal(workload, pod_class)
            or state.depends_on_others(kind)
            or not all(each.ready for each in old)
        ):
            return False
        if any((each.kind.usage, each.kind.excluding) != (kind.usage, kind.excluding) for each in old):
            return False
        numbers = [table.numbers.get(each.node) for each in old]
        allowed = table.answers(kind).allowed
        return all(n is not None and allowed >> n & 1 and state.is_within_bounds(kind, n) for n in numbers)

    def left(self, cluster: SimulatedCluster) -> int:
        """Return the number of pods on nodes that answer that are not of the new revision."""
        daemon_set = cluster.world.object(self._workload)
        if not isinstance(daemon_set, DaemonSet) or not daemon_set.replaces:
            return 0
        return sum(not pod.revised and pod.node not in cluster.unreachable for pod in cluster.of(self._workload))

    def step(self, cluster: SimulatedCluster) -> bool:
        """Create new pods and delete old ones, if that is allowed now."""
        daemon_set = cluster.world.object(self._workload)
        if not isinstance(daemon_set, DaemonSet) or not daemon_set.replaces:
            return False
        new = {pod.pin or pod.node: pod for pod in cluster.of(self._workload) if pod.revised}
        old = {pod.pin or pod.node: pod for pod in cluster.of(self._workload) if not pod.revised}
        pace = daemon_set.pace_on(len({*new, *old} - cluster.unreachable.keys()))
        if pace.surge:
            return self._surge(cluster, new, old, pace.surge)
        missing = [pod for pod in old.values() if not pod.ready]
        ready = [pod for pod in old.values() if pod.ready]
        cluster.random.shuffle(ready)
        allowed = pace.unavailable - len(missing) - sum(not pod.ready for pod in new.values())
        allowed -= len(cluster.terminating_of(self._workload))
        chosen = [*missing, *ready[: max(allowed, 0)]]
        for pod in chosen:
            cluster.remove(pod)
            self._create_on(cluster, pod)
        return bool(chosen)

    def _surge(
        self,
        cluster: SimulatedCluster,
        new: Mapping[str, SimulatedPod],
        old: Mapping[str, SimulatedPod],
        surge: int,
    ) -> bool:
        silent = cluster.unreachable
        done = [pod for node, pod in old.items() if node in silent or (node in new and new[node].ready)]
        for pod in done:
            cluster.remove(pod)
        left = [pod for node, pod in old.items() if not (node in new or node in silent)]
        ready = [pod for pod in left if pod.ready]
        cluster.random.shuffle(ready)
        allowed = surge - sum(node in old and not pod.ready for node, pod in new.items())
        created = [*(pod for pod in left if not pod.ready), *ready[: max(allowed, 0)]]
        for pod in created:
            self._create_on(cluster, pod)
        return bool(done or created)

    def _create_on(self, cluster: SimulatedCluster, pod: SimulatedPod) -> None:
        """Create a new pod on the node of another one, if that answers."""
        if (pod.pin or pod.node) in cluster.unreachable:
            return
        pod_class = cluster.rolled[self._workload]
        name = f"{self._workload.name}-new-{cluster.next_number()}"
        record = cluster.world.record(self._workload, pod_class, name, None)
        created = cluster.create(record, pod.workload, pod.owner)
        created.revised = True
        cluster.pin(created, pod.pin or pod.node)


def left_of(actor: Actor, cluster: SimulatedCluster) -> int:
    """Return the number of pods that a rollout has not replaced; 0 for other actors."""
    return actor.left(cluster) if isinstance(actor, Rollout | OrderedRollout | DaemonRollout) else 0


def unfinished(cluster: SimulatedCluster) -> dict[ObjectRef, Actor]:
    """Return the rollouts that have begun, but not ended, when the cluster was read, by their workloads.

    Older ReplicaSets of a Deployment have pods, a pod of a StatefulSet does not have the revision of its status, or one
    of a DaemonSet does not have its template.
    """
    rollouts: dict[ObjectRef, Actor] = {}
    for owner in list(cluster.pods):
        if owner is None or not cluster.of(owner):
            continue
        workload = cluster.world.root(owner)
        stored = cluster.world.object(workload)
        if isinstance(stored, Deployment) and workload not in rollouts and not stored.spec.paused:
            below = cluster.world.owners_below(workload)
            if owner in below[:-1]:
                newest = below[-1]
                _prepare(cluster, newest, like=owner)
                rollouts[workload] = Rollout(cluster, workload, newest)
        elif isinstance(stored, StatefulSet):
            rollout = _unfinished_of(cluster, workload, stored)
            if rollout is not None:
                rollouts[workload] = rollout
        elif isinstance(stored, DaemonSet) and (daemons := _unfinished_daemons(cluster, workload, stored)):
            rollouts[workload] = daemons
    return rollouts


def _prepare(cluster: SimulatedCluster, newest: ObjectRef, like: ObjectRef) -> None:
    """Let a ReplicaSet without pods create them from its template, with what admission adds to pods of another one."""
    world = cluster.world
    stored = world.object(newest)
    if stored is not None and newest not in world.newest_pods:
        cluster.rolled[newest] = world.from_template(stored.template, newest, world.newest_pods[like].pod_class)


def _unfinished_of(cluster: SimulatedCluster, workload: ObjectRef, stored: StatefulSet) -> OrderedRollout | None:
    """Return the rollout of a StatefulSet that has not ended; None where it has, or where its status was not read."""
    revision, partition = stored.status.update_revision, stored.partition
    if not revision or partition is None:
        return None
    pods = cluster.of(workload)
    revised = [pod for pod in pods if revision_of(pod.kind.labels) == revision]
    if all(pod in revised for pod in pods if _ordinal(pod) >= partition):
        return None
    like = cluster.world.newest_pods[workload].pod_class
    pod_class = cluster.world.from_template(stored.template, workload, like, revision=revision)
    rollout = OrderedRollout(cluster, workload, pod_class, partition=partition, at_once=stored.unavailable)
    for pod in revised:
        pod.revised = True
    return rollout


def _unfinished_daemons(cluster: SimulatedCluster, workload: ObjectRef, stored: DaemonSet) -> DaemonRollout | None:
    """Return the rollout of a DaemonSet that has not ended; None where it has, or where no pod tells its revision.

    Source: kubernetes v1.37.1 pkg/controller/daemon/util/daemonset_util.go, IsPodUpdated.
    """
    pods = cluster.of(workload)
    newest = [pod for pod in pods if stored.is_of_template(pod.kind.labels)]
    if not newest or not stored.replaces:
        return None
    revisions = {revision_of(pod.kind.labels) for pod in newest}
    revised = [pod for pod in pods if revision_of(pod.kind.labels) in revisions]
    if len(revised) == len(pods):
        return None
    like = cluster.world.newest_pods[workload].pod_class
    pod_class = cluster.world.from_template(stored.template, workload, like, revision=min(revisions))
    rollout = DaemonRollout(cluster, workload, pod_class)
    for pod in revised:
        pod.revised = True
    return rollout


class Begun(NamedTuple):
    """An event that has happened: in words, with the drain and the rollout that follow."""

    text: str
    drains: Sequence[Drain] = ()
    rollouts: Mapping[ObjectRef, Actor] = {}


class SimulatedEvent(Protocol):
    """An event of a simulation."""

    def begin(self, cluster: SimulatedCluster) -> Begun:
        """Let the event happen.

        Raises:
            SpreadError: The event names what is not there.
        """
        ...
