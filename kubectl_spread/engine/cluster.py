"""Cluster: the nodes and pods of one run, which events, controllers and the scheduler change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from datetime import timedelta
from enum import Enum
from itertools import chain
from random import Random
from typing import Final, TypeVar

from msgspec.structs import replace

from kubectl_spread.audit.evaluation import domains
from kubectl_spread.audit.evaluation.volumes import MADE, UNBOUND, Bindings, VolumeNodes, Volumes
from kubectl_spread.audit.snapshot.records import PodClass, PodRecord, PodState
from kubectl_spread.engine.kinds import SchedulingKind
from kubectl_spread.engine.placing import Placements
from kubectl_spread.engine.pods import READY, SimulatedPod
from kubectl_spread.engine.queue import Arrival, EqualPods, SchedulingQueue, Turns
from kubectl_spread.engine.world import World, owner_of
from kubectl_spread.kube import nodelifecycle
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import ZONE
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.sparse import DetailedPodSpec
from kubectl_spread.kube.api.types import Node
from kubectl_spread.kube.api.workloads import Deployment
from kubectl_spread.kube.custom import NOT_REPLACED, base_kind
from kubectl_spread.kube.disruption import PodDisruptionBudget
from kubectl_spread.kube.scheduler import resources
from kubectl_spread.phrases import named

K = TypeVar("K")
V = TypeVar("V")


class PodStep(Enum):
    """How a pod of a run changes."""

    CREATED = "created"
    PLACED = "placed"
    REMOVED = "removed"


class Outage(Enum):
    """What happens to the pods of a node that does not answer."""

    QUEUED = "its zone may keep the node lifecycle controller from evicting them"
    TAINTED = "it was tainted when the cluster was read, so those that are left are evicted after their tolerations"
    EVICTED = "they were evicted, except those that tolerate the taint without end"


class Journal:
    """The changes of a run since ``SimulatedCluster.begin``, in their order, so that they can be undone.

    Attributes:
        steps: How pods changed, with the state that each had before.
    """

    def __init__(self, cluster: SimulatedCluster) -> None:
        self.steps: list[tuple[PodStep, SimulatedPod, PodState]] = []
        self._before = {name: copy(getattr(cluster, name)) for name in _COUNTED}
        self._start = cluster.state.start

    def of(self, step: PodStep) -> list[SimulatedPod]:
        """Return the pods that changed in this way."""
        return [pod for each, pod, _ in self.steps if each is step]

    def changes(self) -> tuple[Counter[ObjectRef], Counter[ObjectRef]]:
        """Return how many more running and pending pods each workload has than before."""
        running: Counter[ObjectRef] = Counter()
        pending: Counter[ObjectRef] = Counter()
        for step, pod, _ in self.steps:
            match step:
                case PodStep.CREATED:
                    pending[pod.workload] += 1
                case PodStep.PLACED:
                    pending[pod.workload] -= 1
                    running[pod.workload] += 1
                case PodStep.REMOVED:
                    (running if pod.node else pending)[pod.workload] -= 1
        return running, pending

    def restore(self, cluster: SimulatedCluster) -> None:
        """Restore what controllers remember, but no pods."""
        for name, value in self._before.items():
            setattr(cluster, name, value)
        cluster.state.start = self._start


_LATER: Final = 60.0
"""The seconds after which the events happen, at most: ages of pods have then another rank."""
_REPLACED_WHEN_GONE: Final = frozenset({"StatefulSet", *NOT_REPLACED})
"""The controllers that create a pod only when the old one has ended."""
_HURRIES: Final = 0.5
"""How often waiting pods are tried before others are replaced, where pods come one by one."""
_ENDS_LATE: Final = 0.5
"""The share of runs in which deleted pods end only after the scheduler has tried their replacements."""
_COUNTED: Final = ("bindings", "desired", "lost", "failed", "rolled", "replicas", "_dirty", "lost_of")
"""The attributes of a cluster that controllers change."""


class SimulatedCluster:
    """The cluster of one run.

    Attributes:
        world: The facts that all runs share.
        random: The source of what is not determined.
        now: When the events happen; None where it is unknown when the cluster was read.
        nodes: The nodes.
        pods: The pods by their direct owner, and then by name; pods without an owner are under None.
        desired: The number of pods that each owner is to have.
        lost: The number of pods of each workload that an event removed, or whose nodes it let fail.
        lost_of: The number of pods of each direct owner that an event removed.
        failed: The Jobs that failed.
        rolled: The classes from which a rollout creates the pods of an owner.
        partitions: The ordinals of StatefulSets below which a rollout does not create pods.
        replicas: The replicas of workloads that an event has scaled.
        bindings: Maps the namespaces and names of claims that were bound in this run to their volumes.
        pending: The pods without a node, in the order in which they came.
        unreachable: The nodes that do not answer, with what happens to their pods.
        changed: The workloads of which pods, their number or the manifest changed since ``take_changed``.
        least: The fewest ready pods of each workload since ``watch``.
        journal: The changes that can be undone; None where none are noted.
        workloads_of: The workloads that have, or had, pods of each kind.
        unknown_room: Maps the nodes of which it is unknown what pods may still request to the reason.
    """

    def __init__(self, world: World, random: Random, *, now: bool = False) -> None:
        """Start with the pods that were read.

        Args:
            world: The facts that all runs share.
            random: The source of what is not determined.
            now: Whether terminating pods are still there, as they are while the cluster is read, and take room.
        """
        self.world = world
        self.reseed(random)
        self.now = None if world.now is None else world.now + timedelta(seconds=random.uniform(0, _LATER))
        self.pods: dict[ObjectRef | None, dict[str, SimulatedPod]] = {}
        self.desired: dict[ObjectRef, int] = {}
        self.lost: Counter[ObjectRef] = Counter()
        self.failed: dict[ObjectRef, str] = {}
        self.rolled: dict[ObjectRef, PodClass] = {}
        self.partitions: dict[ObjectRef, int] = {}
        self.replicas: dict[ObjectRef, int] = {}
        self.pending: dict[SimulatedPod, None] = {}
        self.bindings: Bindings = {}
        self.journal: Journal | None = None
        self.workloads_of: dict[SchedulingKind, dict[ObjectRef, None]] = {}
        self.unreachable: dict[str, Outage] = {}
        self.changed: dict[ObjectRef, None] = {}
        self.least: dict[ObjectRef, int] = {}
        self._ready: Counter[ObjectRef] | None = None
        self._terminating: dict[ObjectRef | None, dict[str, SimulatedPod]] = {}
        self._mirrors: list[SimulatedPod] = []
        self._dirty: dict[ObjectRef, None] = {}
        self.lost_of: Counter[ObjectRef] = Counter()
        self._order = 0
        self._queue = SchedulingQueue()
        self._new: list[SimulatedPod] = []
        self._terms = world.kinds.number_of_terms
        self._of_kind: dict[SchedulingKind, dict[SimulatedPod, None]] = {}
        self._on_node: dict[str, dict[SimulatedPod, None]] = {}
        self._disordered: set[object] = set()
        self._leaving: list[tuple[SchedulingKind, int]] = []
        self.nodes = world.nodes
        self.table, self.volumes = world.table(world.nodes)
        for pod in world.mirrors():
            self._keep(pod)
        for pod in world.pods():
            self._insert(pod)
        if world.placements is None:
            world.placements = Placements(self.table, world.kinds, world.weights)
            world.placements.add_all((*self._mirrors, *self.all_pods()))
        self._take(world.placements.copy(self.table))
        for pod in world.terminating() if now else ():
            self._keep(pod)
            self.state.add_all([pod])
        for pod in self.pending:
            if pod.owner is not None:
                self.touch(pod.owner)

    def reseed(self, random: Random) -> None:
        """Decide by other random numbers from now on."""
        self.random = random
        self._arrival = random.choice([*Arrival])
        self._ends_late = random.random() < _ENDS_LATE

    def _keep(self, pod: SimulatedPod) -> None:
        """Let a pod take room on its node that no controller replaces."""
        self._mirrors.append(pod)
        self.workloads_of.setdefault(pod.kind, {})[pod.workload] = None

    def _insert(self, pod: SimulatedPod) -> None:
        self.workloads_of.setdefault(pod.kind, {})[pod.workload] = None
        self._order += 1
        pod.order = self._order
        self._file(pod)
        if not pod.node:
            self._new.append(pod)
        self._note(PodStep.CREATED, pod)

    def _file(self, pod: SimulatedPod) -> None:
        """File a pod by its owner, its kind, and its node or the queue."""
        self.pods.setdefault(pod.owner, {})[pod.key] = pod
        self._of_kind.setdefault(pod.kind, {})[pod] = None
        self._file_place(pod)

    def _file_place(self, pod: SimulatedPod) -> None:
        if pod.node:
            self._on_node.setdefault(pod.node, {})[pod] = None
        else:
            self.pending[pod] = None
            self._enqueue(pod)

    def _unfile(self, pod: SimulatedPod) -> None:
        del self.pods[pod.owner][pod.key]
        del self._of_kind[pod.kind][pod]
        self._unfile_place(pod)

    def _unfile_place(self, pod: SimulatedPod) -> None:
        if pod.node:
            del self._on_node[pod.node][pod]
        else:
            del self.pending[pod]
            self._queue.discard(pod)

    def _enqueue(self, pod: SimulatedPod) -> None:
        if not pod.held:
            exclusive = self.world.snapshot.volumes.exclusive
            alone = any((pod.namespace, claim) in exclusive for claim in pod.record.claims if exclusive)
            self._queue.add(pod, alone=alone or self._binds_claims(pod))

    def set_nodes(self, nodes: Iterable[Node]) -> None:
        """Replace the nodes; the pods on nodes that are gone have to be removed before."""
        self._let_go()
        self.nodes, before = tuple(nodes), self.table
        self.table, self.volumes = self.world.table(self.nodes)
        if (before.names, before.allocatable) == (self.table.names, self.table.allocatable):
            self._take(self.state.copy(self.table))
            return
        state = Placements(self.table, self.world.kinds, self.world.weights)
        state.add_all((*self._mirrors, *self.terminating_pods(), *self.all_pods()))
        for number, amounts in self.state.taken.items():
            if (now := self.table.numbers.get(before.names[number])) is not None:
                state.take_room(now, amounts.items())
        self._take(state)

    def _take(self, state: Placements) -> None:
        """Take where pods are on the nodes, and let the scheduler try those that are pending."""
        self.state = state
        if self.nodes:
            self.state.start = self.random.randrange(len(self.nodes))
        self.unknown_room = self._find_unknown_room()
        self._queue = SchedulingQueue()
        for pod in self.pending:
            pod.refused = self._refused(pod)
            self._enqueue(pod)

    def _find_unknown_room(self) -> dict[int, str]:
        """Map the nodes of which it is unknown what pods may still request to the reason."""
        numbers = self.table.numbers
        reasons = {
            number: f"the room on node {name} ({next(resources.unreadable_amounts(node)).message})"
            for number, (name, node) in enumerate(zip(self.table.names, self.table.sets.nodes, strict=True))
            if self.table.allocatable[number] is None
        }
        background = self.world.background
        for pod in chain(self.all_pods(), background.unreadable if background else ()):
            if pod.node in numbers and pod.kind.pod_class.requests is None:
                reasons.setdefault(numbers[pod.node], _unreadable(pod))
        return reasons

    def _note_unknown(self, pod: SimulatedPod, unknown_volumes: str) -> None:
        """Note what is unknown, and may decide where a pod that waits can go."""
        unknown, pod_class = self.world.unknown, pod.kind.pod_class
        if pod_class.profile is None:
            pods = named(pod.workload.kind, pod.workload.name)
            unknown[f"the rules of scheduler {pod_class.scheduler_name}, which places the pods of {pods}"] = None
        if unknown_volumes in (UNBOUND, MADE) or (pod.simulated and self.world.makes_volumes_somewhere(pod.owner)):
            unknown["where new volumes can be"] = None
        elif unknown_volumes:
            unknown["volumes, which were not read"] = None
        unknown |= dict.fromkeys(self.unknown_needs(pod))
        if self.unknown_room:
            allowed = self.table.answers(pod.kind).allowed & ~pod.refused
            reasons = [text for number, text in self.unknown_room.items() if allowed >> number & 1]
            unknown |= dict.fromkeys(reasons)

    def unknown_needs(self, pod: SimulatedPod) -> Iterator[str]:
        """Yield the needs of a pod that are not known, or that no filter here compares with nodes."""
        pod_class = pod.kind.pod_class
        if isinstance(pod_class.spec, DetailedPodSpec) and pod_class.spec.resource_claims:
            yield f"devices (resourceClaims of {named(pod.workload.kind, pod.workload.name)})"
        if pod_class.requests is None:
            yield _unreadable(pod)

    def cordon(self, names: Collection[str]) -> None:
        """Cordon nodes."""
        chosen = set(names)
        self.set_nodes(self.world.cordoned(node) if node.metadata.name in chosen else node for node in self.nodes)

    def watch(self) -> None:
        """Note the fewest ready pods of each workload from now on."""
        self._ready = Counter(pod.workload for pod in self.all_pods() if pod.ready)
        self.least = dict(self._ready)

    def _count(self, workload: ObjectRef, pods: int) -> None:
        """Count pods that become ready, or, as a negative number, that no longer are."""
        self.changed[workload] = None
        if self._ready is not None:
            self._ready[workload] += pods
            if pods < 0 and self._ready[workload] < self.least.get(workload, 0):
                self.least[workload] = self._ready[workload]

    def find_outages(self) -> None:
        """Note the nodes that did not answer when the cluster was read, and keep their terminating pods."""
        silent = [node for node in self.nodes if not nodelifecycle.answers(node)]
        for node in silent:
            tainted = nodelifecycle.NO_EXECUTE in node.spec.taints
            self.unreachable[node.metadata.name] = Outage.TAINTED if tainted else Outage.QUEUED
        for pod in self.on(self.unreachable) if silent else ():
            pod.state = replace(pod.state, ready=False)
        snapshot = self.world.snapshot
        for record in self.world.records if silent else ():
            if record.terminating and record.node in self.unreachable:
                kind = self.world.kinds.of(record.pod_class)
                self._terminate(SimulatedPod(record, kind, snapshot.workload(record), owner_of(record)))

    @property
    def silent_zones(self) -> set[str]:
        """The zones none of whose nodes answers."""
        zones = {node.metadata.labels.get(ZONE, "") for node in self.nodes if node.metadata.name in self.unreachable}
        answering = (node for node in self.nodes if node.metadata.name not in self.unreachable)
        return zones - {node.metadata.labels.get(ZONE, "") for node in answering} - {""}

    def lose(self, names: Collection[str]) -> None:
        """Let nodes not answer any more: their pods are no longer ready, and no pod ends."""
        pods = [pod for pod in self.on(names) if pod.node not in self.unreachable]
        self.unreachable |= {name: Outage.QUEUED for name in names if name not in self.unreachable}
        for pod in pods:
            self.lost[pod.workload] += 1
            if pod.ready:
                pod.state = replace(pod.state, ready=False)
                self._count(pod.workload, -1)
            if pod.owner is not None:
                self.touch(pod.owner)
        self.set_nodes(self.world.unreachable(node) if node.metadata.name in names else node for node in self.nodes)
        self.move_background(names)

    def move_background(self, names: Collection[str]) -> None:
        """Let the pods of the background that were on some nodes take room on others."""
        if self.world.background is not None:
            for number, usage in self.world.background.room_taken(names).items():
                self.state.take_room(number, usage.items())

    def delete_nodes(self, names: Collection[str]) -> None:
        """Delete nodes with all of their pods.

        Source: kubernetes v1.37.1 pkg/controller/podgc/gc_controller.go, gcOrphaned.
        """
        silent = {name for name in names if self.unreachable.pop(name, None)}
        for pod in self.on(names):
            # The pods of a node that does not answer are counted already.
            self.lost[pod.workload] -= pod.node in silent
            self.remove(pod, lost=True)
        for owner, terminating in self._terminating.items():
            if gone := [key for key, pod in terminating.items() if pod.node in names]:
                for key in gone:
                    self.changed[terminating.pop(key).workload] = None
                if owner is not None:
                    self.touch(owner)
        self._mirrors = [pod for pod in self._mirrors if pod.node not in names]
        self.set_nodes(node for node in self.nodes if node.metadata.name not in names)
        for pod in [pod for pod in self.all_pods() if pod.lacks_volume and not self._is_attached_elsewhere(pod)]:
            pod.lacks_volume, pod.state = False, replace(pod.state, running=True, ready=True)
            self._count(pod.workload, 1)
            if pod.owner is not None:
                self.touch(pod.owner)

    def terminating_pods(self) -> Iterator[SimulatedPod]:
        """Yield the pods that were deleted, and whose nodes do not answer."""
        return (pod for of_owner in self._terminating.values() for pod in of_owner.values())

    def terminating_of(self, owner: ObjectRef) -> Collection[SimulatedPod]:
        """Return those pods of a direct owner."""
        return self._terminating.get(owner, {}).values()

    def _terminate(self, pod: SimulatedPod) -> None:
        """Keep a deleted pod whose node does not answer: it takes room and repels others, and no constraint counts it.

        Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/podtopologyspread/common.go, countPodsMatchSelector,
        and interpodaffinity/filtering.go, which does not look at deletion timestamps.
        """
        pod.terminating = True
        pod.state = replace(pod.state, ready=False)
        pod.kind = self.world.kinds.of(pod.kind.pod_class, terminating=True)
        self.workloads_of.setdefault(pod.kind, {})[pod.workload] = None
        self._terminating.setdefault(pod.owner, {})[pod.key] = pod
        self.state.add(pod.kind, self.table.numbers[pod.node])

    def all_pods(self) -> Iterator[SimulatedPod]:
        """Yield all pods, without mirror pods and those that are terminating."""
        return (pod for owner in self.pods for pod in self.of(owner))

    def first_pods(self) -> Iterator[SimulatedPod]:
        """Yield all pods as they were before any event."""
        return SimulatedCluster(self.world, Random(0)).all_pods()  # noqa: S311 - it decides nothing

    def of(self, owner: ObjectRef | None) -> Collection[SimulatedPod]:
        """Return the pods of a direct owner; None for those without one."""
        filed = self.pods.get(owner, {})
        if owner in self._disordered:
            self._reorder(owner, filed, sorted(filed.items(), key=lambda item: item[1].order))
        return filed.values()

    def on(self, nodes: Collection[str]) -> list[SimulatedPod]:
        """Return the pods on some nodes, without mirror pods."""
        return [pod for node in sorted(nodes) for pod in self._filed(node, self._on_node.get(node, {}))]

    def _filed(self, group: object, filed: dict[SimulatedPod, None]) -> Iterable[SimulatedPod]:
        """Return the pods of a kind or on a node."""
        if group in self._disordered:
            self._reorder(group, filed, sorted(filed.items(), key=lambda item: item[0].order))
        return filed

    def _reorder(self, group: object, filed: dict[K, V], items: Sequence[tuple[K, V]]) -> None:
        self._disordered.discard(group)
        filed.clear()
        filed.update(items)

    def belonging(self, node: str) -> list[SimulatedPod]:
        """Return the pods that belong to a node: those of DaemonSets, also without room there, and mirror pods."""
        pods = self.all_pods() if node in self.table.numbers else self.first_pods()
        daemons = (pod for pod in pods if node in (pod.node, pod.pin) and pod.is_daemon)
        return [*(pod for pod in self._mirrors if pod.node == node), *daemons]

    def add_nodes(self, added: Sequence[tuple[Node, str]]) -> None:
        """Add nodes, each with copies of the pods that belong to the node of the name next to it."""
        sources = {model: self.belonging(model) for _, model in added}
        self.set_nodes(sorted((*self.nodes, *(node for node, _ in added)), key=lambda node: node.metadata.name))
        for node, model in added:
            self.random.shuffle(sources[model])
            for pod in sorted(sources[model], key=lambda pod: -pod.kind.priority):
                self._copy_to(pod, node.metadata.name)

    def _copy_to(self, pod: SimulatedPod, node: str) -> None:
        """Start a pod of the same DaemonSet on a new node, before other pods may use it; mirror pods have no owner."""
        name = f"{pod.name}-{node}"
        if pod.owner is None:
            copy = SimulatedPod(pod.record, pod.kind, pod.workload, None)
            copy.name, copy.node, copy.pin, copy.simulated = name, node, node, True
            self._mirrors.append(copy)
            if node in self.table.numbers:
                self.state.add(copy.kind, self.table.numbers[node])
            return
        rolled = self.rolled.get(pod.owner)
        pod_class = rolled or self.world.created(pod.owner) or pod.record.pod_class
        record = self.world.record(pod.owner, pod_class, name, pod.record)
        created = self.create(record, pod.workload, pod.owner)
        created.revised = rolled is not None
        self.pin(created, node)
        number = None if created.held else self.state.choose(created.kind, created.refused, self.random)
        if number is not None:
            self.place(created, number)

    def create(self, like: PodRecord, workload: ObjectRef, owner: ObjectRef | None) -> SimulatedPod:
        """Create a pending pod; ``like`` has its name, class and claims."""
        pod = SimulatedPod(like, self.world.kind(like.pod_class, workload), workload, owner)
        pod.node, pod.simulated, pod.state = "", True, READY
        pod.held = pod.held or self.world.refusal(owner, like.pod_class)
        self._insert(pod)
        self.pin(pod, like.pod_class.spec.node_name)
        if pod.pin in self.table.numbers:
            self._start_unscheduled(pod)
        return pod

    def _start_unscheduled(self, pod: SimulatedPod) -> None:
        """Start a pod whose template names its node, which the kubelet does where it has room, whatever its taints."""
        number, fits = self.table.numbers[pod.pin], self.state.room(pod.kind).fits
        if (fits & self.table.answers(pod.kind).usable.fits) >> number & 1:
            self.place(pod, number)

    def place(self, pod: SimulatedPod, number: int) -> None:
        """Put a pending pod on the node with a number."""
        self._note(PodStep.PLACED, pod)
        self._unfile_place(pod)
        pod.node = self.table.names[number]
        self._file_place(pod)
        if self._binds_claims(pod):
            self.bindings = {**self.bindings, **self.volumes.bindings(pod.record, number, self.bindings)}
        pod.lacks_volume = pod.node not in self.unreachable and self._is_attached_elsewhere(pod)
        starts = not (pod.node in self.unreachable or pod.lacks_volume)
        pod.state = replace(pod.state, running=starts, ready=starts)
        self.state.add(pod.kind, number)
        self._count(pod.workload, int(starts))
        if pod.owner is not None:
            self.touch(pod.owner)

    def _is_attached_elsewhere(self, pod: SimulatedPod) -> bool:
        """Tell whether a volume that one node at a time may use stays attached to one that does not answer.

        Source: kubernetes v1.37.1 pkg/controller/volume/attachdetach/reconciler/reconciler.go,
        attachDesiredVolumes, and populator/desired_state_of_world_populator.go, findAndRemoveDeletedPods.
        """
        on_one_node = self.world.snapshot.volumes.on_one_node if self.unreachable else ()
        claims = [claim for claim in pod.record.claims if (pod.namespace, claim) in on_one_node]
        if not claims:
            return False
        return any(
            other.namespace == pod.namespace and not set(claims).isdisjoint(other.record.claims)
            for other in chain(self.terminating_pods(), self.on(self.unreachable))
        )

    def user_of_claim(self, pod: SimulatedPod) -> tuple[str, str] | None:
        """Return a claim that only one pod at a time may use, and the other pod on a node that uses it.

        Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go,
        satisfyReadWriteOncePod.
        """
        exclusive = self.world.snapshot.volumes.exclusive
        for claim in pod.record.claims if exclusive else ():
            if (pod.namespace, claim) in exclusive:
                for other in chain(self.all_pods(), self.terminating_pods()):
                    if other.node and claim in other.record.claims and other.namespace == pod.namespace:
                        return claim, other.name
        return None

    def remove(self, pod: SimulatedPod, *, lost: bool = False) -> None:
        """Remove a pod; its owner has to act if an event, and not the owner itself, removed it (``lost``).

        A pod stays terminating where its node does not answer.
        """
        self._note(PodStep.REMOVED, pod)
        self._unfile(pod)
        if pod.record.held and not pod.simulated and self._waits_for_end(pod):
            name = named(pod.workload.kind, pod.workload.name)
            self.world.unknown[f"when finalizers of pods of {name} are removed, which its new pods wait for"] = None
        stays = pod.node in self.unreachable
        if pod.node in self.table.numbers:
            self.state.add(pod.kind, self.table.numbers[pod.node], -1)
            replaced = pod.owner is not None and base_kind(pod.owner.kind) not in _REPLACED_WHEN_GONE
            if replaced and self._ends_late and not stays:
                self._leave(pod)
        if pod.ready:
            self._count(pod.workload, -1)
        if stays:
            self._terminate(pod)
        if lost:
            self.lost[pod.workload] += not stays
            if pod.owner is not None:
                self.lost_of[pod.owner] += 1
                self.touch(pod.owner)

    def _leave(self, pod: SimulatedPod) -> None:
        """Keep a deleted pod until the scheduler has tried its replacement: it takes room, and repels others."""
        kind, number = self.world.kinds.of(pod.kind.pod_class, terminating=True), self.table.numbers[pod.node]
        self.workloads_of.setdefault(kind, {})[pod.workload] = None
        self.state.add(kind, number)
        self._leaving.append((kind, number))

    def _let_go(self) -> None:
        for kind, number in self._leaving:
            self.state.add(kind, number, -1)
        self._leaving.clear()

    def _waits_for_end(self, pod: SimulatedPod) -> bool:
        """Tell whether the workload of a pod creates no other pod in its place before it is gone."""
        if pod.owner is not None and base_kind(pod.owner.kind) == "StatefulSet":
            return True
        workload = self.world.object(pod.workload)
        return isinstance(workload, Deployment) and not workload.rolls and pod.workload in self.replicas

    def take_changed(self) -> list[ObjectRef]:
        """Return the workloads in ``changed``, and forget them."""
        changed = [*self.changed]
        self.changed.clear()
        return changed

    def _note(self, step: PodStep, pod: SimulatedPod) -> None:
        self.changed[pod.workload] = None
        if self.journal is not None:
            self.journal.steps.append((step, pod, pod.state))

    def begin(self) -> Journal:
        """Note all changes of pods from now on, so that they can be undone; nodes must not change."""
        self.journal = Journal(self)
        return self.journal

    def keep(self) -> None:
        """Keep the changes since ``begin``."""
        self.journal = None

    def undo(self) -> None:
        """Undo the changes since ``begin``."""
        journal, self.journal = self.journal, None
        self._let_go()
        if journal is None:
            return
        for step, pod, state in reversed(journal.steps):
            if step is PodStep.CREATED:
                self._unfile(pod)
                continue
            if pod.node in self.table.numbers:
                self.state.add(pod.kind, self.table.numbers[pod.node], 1 if step is PodStep.REMOVED else -1)
            if step is PodStep.REMOVED:
                self._file(pod)
            else:
                self._unfile_place(pod)
                pod.node, pod.state = "", state
                self._file_place(pod)
        journal.restore(self)
        pods = [pod for _, pod, _ in journal.steps]
        # They are filed behind others now. Who reads a group brings it into its first order, so that no trial leaves a
        # trace, and one of many equal pods does not cost a look at all.
        for pod in pods:
            self._disordered |= {pod.owner, pod.kind, pod.node}
        if not self.pending.keys().isdisjoint(pods):
            self.pending = dict.fromkeys(sorted(self.pending, key=lambda pod: pod.order))

    @contextmanager
    def tried(self) -> Iterator[None]:
        """Undo all changes of pods that are made in this context."""
        self.begin()
        try:
            yield
        finally:
            self.undo()

    def next_number(self) -> int:
        """Return a number that no pod of this run has."""
        return self._order + 1

    def has(self, pod: SimulatedPod) -> bool:
        """Tell whether a pod is still there."""
        return self.pods[pod.owner].get(pod.key) is pod

    def selected_by(self, budget: PodDisruptionBudget) -> list[SimulatedPod]:
        """Return the pods that a budget selects."""
        kinds = self.world.kinds.selected(budget.metadata.namespace, budget.spec.selector)
        return [pod for kind in kinds for pod in self._filed(kind, self._of_kind.get(kind, {}))]

    def scale_of(self, pods: Iterable[SimulatedPod]) -> int | None:
        """Return the sum of the replicas of the controllers of pods; None where one of them is unknown."""
        numbers: dict[ObjectRef, int] = {}
        for pod in pods:
            if pod.kind.pod_class.owner is not None:
                root, replicas = pod.workload, self.replicas.get(pod.workload)
                if replicas is None:
                    scaled = domains.scaled_controller(pod.namespace, pod.kind.pod_class.owner, self.world.snapshot)
                    if scaled is None:
                        return None
                    root, replicas = scaled
                numbers[root] = replicas
        return sum(numbers.values())

    def pin(self, pod: SimulatedPod, node: str) -> None:
        """Let a pending pod use only one node."""
        pod.pin = node
        self._queue.discard(pod)
        pod.refused = self._refused(pod)
        self._enqueue(pod)

    def touch(self, owner: ObjectRef) -> None:
        """Let the controller of an owner act."""
        self._dirty[owner] = None

    def forget_touched(self) -> None:
        """Let no controller act but those of owners that are touched from now on."""
        self._dirty = {}

    @property
    def touched(self) -> list[ObjectRef]:
        """The owners whose controllers may have something to do, in random order."""
        owners = list(self._dirty)
        self.random.shuffle(owners)
        return owners

    def finished(self, owner: ObjectRef) -> None:
        """Note that the controller of an owner has nothing to do while none of its pods changes."""
        self._dirty.pop(owner, None)

    def queue(self) -> list[SimulatedPod]:
        """Return the pods that the scheduler tries to place, by priority and time."""
        waiting = (pod for pod in self.pending if not pod.held)
        return sorted(waiting, key=lambda pod: (-pod.kind.priority, pod.order))

    def hurries(self) -> bool:
        """Tell whether the scheduler tries waiting pods before controllers have replaced those that are gone now."""
        return self._arrival is Arrival.MIXED and self.random.random() < _HURRIES

    def settle(self) -> bool:
        """Place pending pods, until no more of them finds a node; tell whether any did."""
        placed = self._place_pending()
        if self._leaving:
            self._let_go()
            placed |= self._place_pending()
        return placed

    def _place_pending(self) -> bool:
        for pod in self._new:
            if not (pod.node or pod.held) and self.has(pod):
                self._note_unknown(pod, self.volumes_of(pod).unknown)
        self._new.clear()
        self._wake()
        turns = Turns(self._queue.take_awake(), self._arrival, self.random)
        placed, blocked = False, list[EqualPods]()
        for equal, pod in turns:
            if self.user_of_claim(pod):
                blocked.append(equal)
                continue
            if self.bindings and self._binds_claims(pod):
                # Another pod may have let a claim of this one be bound.
                pod.refused = self._refused(pod)
                self._note_unknown(pod, self.volumes_of(pod).unknown)
            number = self.state.choose(pod.kind, pod.refused, self.random)
            if number is None:
                self.state.wait(equal)
                continue
            self.place(pod, number)
            placed = True
            if equal.pods:
                turns.follow(equal)
            self._wake()
            for woken in self._queue.take_awake():
                turns.join(woken)
        self._queue.wake(blocked)
        return placed

    def _wake(self) -> None:
        """Let the pods be tried again that a change may help."""
        self._queue.wake(self.state.woken())
        if self._terms != self.world.kinds.number_of_terms:
            # What repels pods may go again, so each has to know of it.
            self._terms = self.world.kinds.number_of_terms
            self._queue.wake_all()

    def destinations(self, pod: SimulatedPod, key: str, *, scored: bool) -> set[str]:
        """Return the domains of a topology key to which a new pod that is on a node now may go.

        Args:
            pod: The pod.
            key: The topology key; nodes without it are left out.
            scored: Whether only the nodes with the best score count, and not all that filters allow.
        """
        state, number = self.state, self.table.numbers[pod.node]
        state.add(pod.kind, number, -1)
        candidates = [*labelselectors.ascending(state.feasible(pod.kind, pod.refused) | 1 << number)]
        if scored:
            candidates = [*state.best(pod.kind, candidates), number]
        state.add(pod.kind, number)
        values = self.table.values(key)
        return {value for each in candidates if (value := values[each]) is not None}

    def volumes_of(self, pod: SimulatedPod, volumes: Volumes | None = None) -> VolumeNodes:
        """Return the nodes that the volumes of a pod refuse, after the claims that were bound in this run.

        Args:
            pod: The pod.
            volumes: The answers for other nodes than those of now; None for these.
        """
        volumes = volumes or self.volumes
        return volumes.of(pod.record, self.bindings) if self._binds_claims(pod) else volumes.of(pod.record)

    def _binds_claims(self, pod: SimulatedPod) -> bool:
        """Tell whether claims of a pod are bound in this run, when it is placed the first time."""
        return bool(pod.record.claims) and self.volumes.binds(pod.record)

    def _refused(self, pod: SimulatedPod) -> int:
        refused = self.volumes_of(pod).refused
        if pod.pin:
            number = self.table.numbers.get(pod.pin)
            refused |= self.table.everything & ~(0 if number is None else 1 << number)
        return refused


def _unreadable(pod: SimulatedPod) -> str:
    errors = resources.unreadable_requests(pod.kind.pod_class.spec)
    return f"the requests of {named(pod.workload.kind, pod.workload.name)} ({next(errors).message})"
