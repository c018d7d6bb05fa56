"""Volumes: which nodes do the PersistentVolumes of a pod, and its claims that are not bound, refuse?

The claims of a pod are its own, and those of its template, which the pod that replaces it has. What could not be read
refuses no node, and the answer says that it is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, reduce
from itertools import count
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec

from kubectl_spread.audit.evaluation.obstacles import Obstacle, ObstacleKind
from kubectl_spread.audit.snapshot.records import PodClass, PodRecord, digest
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.storage import Claims, PersistentVolume, PersistentVolumeClaim
from kubectl_spread.kube.api.types import OwnerReference
from kubectl_spread.kube.scheduler import volumes as scheduler
from kubectl_spread.kube.scheduler.podtopologyspread.domains import NodeSets
from kubectl_spread.kube.scheduler.volumebinding import Bindable, UnboundClaim, VolumeBinder
from kubectl_spread.kube.scheduler.volumes import Unresolved
from kubectl_spread.memoization import memoized

_NODE_AFFINITY: Final = Obstacle(ObstacleKind.VOLUME, "the node affinity of a PersistentVolume does not match")
_ZONE: Final = Obstacle(ObstacleKind.VOLUME, "the zone of a PersistentVolume does not match")
_NO_VOLUME: Final = Obstacle(
    ObstacleKind.VOLUME,
    "a claim is bound to a PersistentVolume that does not exist",
    remedy="restore the PersistentVolume, or let the pod use another claim",
)
NONE_AVAILABLE: Final = Obstacle(
    ObstacleKind.VOLUME,
    "no PersistentVolume is available for a claim that is not bound, and none can be made",
    remedy="add PersistentVolumes of the StorageClass of the claim, or name another class in it",
)
Bindings: TypeAlias = Mapping[tuple[str, str], PersistentVolume | Unresolved]
"""Maps the namespaces and names of claims that were bound in a simulation to their volumes."""
_NO_BINDINGS: Final[Bindings] = MappingProxyType({})
UNKNOWN_CLAIMS: Final = "volumes: the claims of a further pod are not known, because its template was not read"
UNREAD: Final = "volumes: the pods' PersistentVolumeClaims and PersistentVolumes were not read"
MADE: Final = "volumes: which nodes reach a volume that is made in the simulation, as its StorageClass has no other"
UNBOUND: Final = "volumes: a PersistentVolumeClaim is not bound yet, so its StorageClass decides too"


class VolumeNodes(msgspec.Struct, frozen=True, eq=False):
    """The nodes that the volumes of a pod refuse; pods with equal answers share one.

    Attributes:
        refusals: The nodes that each obstacle is on, as a bitmap; the first obstacle on a node is the scheduler's.
        unknown: What is not known; "" if everything that decides was read.
        numbers: Maps the name of each node to its number in bitmaps.
    """

    refusals: tuple[tuple[int, Obstacle], ...]
    unknown: str
    numbers: Mapping[str, int]

    def obstacle(self, node: str) -> Obstacle | None:
        """Return the first obstacle on a node, or None."""
        number = self.numbers[node]
        return next((obstacle for nodes, obstacle in self.refusals if nodes >> number & 1), None)

    @property
    def refused(self) -> int:
        """The nodes that any obstacle is on, as a bitmap."""
        return reduce(int.__or__, (nodes for nodes, _ in self.refusals), 0)

    @property
    def allows_all(self) -> bool:
        """Whether the volumes are known to refuse no node."""
        return not self.refusals and not self.unknown


class Volumes:
    """The answers of the filters of volumes, computed once for each distinct set of nodes."""

    def __init__(self, snapshot: Snapshot, nodes: NodeSets) -> None:
        """Answer for pods of ``snapshot`` on ``nodes``."""
        self._snapshot = snapshot
        self._nodes = nodes
        self._answers: dict[object, VolumeNodes] = {}
        self._refused_by: dict[bytes, tuple[int, int]] = {}
        # Without it a check of 600 StatefulSets with volumes takes a tenth longer.
        self._class_answers: dict[tuple[PodClass, tuple[str, ...]], VolumeNodes] = {}

    @cached_property
    def _binder(self) -> VolumeBinder:
        return VolumeBinder(self._snapshot.volumes, self._nodes.index)

    def claims(self, pod: PodRecord) -> Sequence[str]:
        """Return the names of the claims of a pod and of the pod that replaces it."""
        names = self.claim_names(pod.pod_class)
        return pod.claims if names is None else tuple(dict.fromkeys((*pod.claims, *names.of(pod.name))))

    def uses_claims(self, pod: PodRecord) -> bool:
        """Tell whether a pod is known to use claims."""
        return bool(pod.claims or self.claim_names(pod.pod_class))

    def claim_names(self, pod_class: PodClass) -> Claims | None:
        """Return the claims in the template of a class; None if they are not known."""
        record = self._snapshot.ownership.record(_ref(pod_class.namespace, pod_class.owner))
        return None if record is None else record.claims

    def of(self, pod: PodRecord, bindings: Bindings = _NO_BINDINGS) -> VolumeNodes:
        """Return the nodes that the volumes of a pod refuse, to the pod and to the pod that replaces it.

        Args:
            pod: The pod.
            bindings: Maps claims that are bound since to their volumes.
        """
        if bindings:
            return self._of_claims(pod.namespace, self.claims(pod), self._created(pod), bindings)
        key = (pod.pod_class, pod.claims)
        answer = self._class_answers.get(key)
        if answer is not None:
            return answer
        created = self._created(pod)
        answer = self._of_claims(pod.namespace, self.claims(pod), created)
        if not created:
            self._class_answers[key] = answer
        return answer

    @memoized
    def binds(self, pod: PodRecord) -> bool:
        """Tell whether claims of a pod are bound when it is placed the first time."""
        return self._bindable(pod, _NO_BINDINGS).binds

    def bindings(self, pod: PodRecord, node: int, before: Bindings) -> Bindings:
        """Map the claims of a pod to the volumes that they are bound to on the node with a number.

        Args:
            pod: The pod.
            node: The number of the node.
            before: The claims that were bound before, with their volumes.
        """
        return self._binder.bound(self._bindable(pod, before), node)

    def _bindable(self, pod: PodRecord, bindings: Bindings) -> Bindable:
        resolved = self._resolved(pod.namespace, self.claims(pod), self._created(pod), bindings)
        unbound = [answer for _, answer in resolved if isinstance(answer, UnboundClaim)]
        return self._binder.bindable(unbound, _taken(bindings))

    def _resolved(
        self,
        namespace: str,
        claims: Iterable[str],
        created: Mapping[str, PersistentVolumeClaim],
        bindings: Bindings,
    ) -> Iterator[tuple[str, PersistentVolume | UnboundClaim | Unresolved]]:
        """Yield the name of each claim and its volume, or why there is none."""
        volumes = self._snapshot.volumes
        for claim in claims:
            name = (namespace, claim)
            answer = volumes.volume_of(namespace, claim, created=claim in created)
            if name in bindings:
                yield claim, bindings[name]
            elif answer is Unresolved.UNBOUND:
                claimed = volumes.unbound.get(name) or created[claim]
                yield claim, UnboundClaim(name, claimed, created=not claimed.metadata.uid)
            else:
                yield claim, answer

    def _created(self, pod: PodRecord) -> Mapping[str, PersistentVolumeClaim]:
        """Return the claims that a StatefulSet creates before a pod if they do not exist."""
        names = self.claim_names(pod.pod_class)
        return {} if names is None else names.created(pod.name)

    def of_any(self, pods: Iterable[PodRecord]) -> VolumeNodes:
        """Return the nodes that the volumes of each of some pods refuse.

        Volumes of some pods that are not known do not matter where a pod without such refuses no node more.
        """
        answers = list(dict.fromkeys(self.of(pod) for pod in pods))
        if len(answers) == 1:
            return answers[0]
        refused = [answer.refused for answer in answers]
        common = reduce(int.__and__, refused) if refused else 0
        obstacle = next((obstacle for answer in answers for _, obstacle in answer.refusals), None)
        refusals = ((common, obstacle),) if common and obstacle is not None else ()
        certain = any(not answer.unknown and bits == common for answer, bits in zip(answers, refused, strict=True))
        unknown = "" if certain else next((answer.unknown for answer in answers if answer.unknown), "")
        return self._shared(refusals, unknown)

    def of_next(self, pod: PodRecord) -> VolumeNodes:
        """Return the nodes that the volumes of one more pod like this one refuse.

        A StatefulSet's next pod has the lowest ordinal that no pod has.
        """
        names = self.claim_names(pod.pod_class)
        if names is None:
            return self._of_claims(pod.namespace, None if pod.claims else ())
        if not names.templates:
            return self._of_claims(pod.namespace, names.shared)
        name = self._next_name(_ref(pod.namespace, pod.pod_class.owner), names.start)
        return self._of_claims(pod.namespace, names.of(name), names.created(name))

    @memoized
    def _next_name(self, owner: ObjectRef, first: int) -> str:
        """Return the name of the next pod of a StatefulSet whose ordinals begin with ``first``."""
        siblings = (each for each in self._snapshot.pods if _ref(each.namespace, each.pod_class.owner) == owner)
        taken = {each.name for each in siblings}
        names = (f"{owner.name}-{ordinal}" for ordinal in count(first))
        return next(name for name in names if name not in taken)

    def _of_claims(
        self,
        namespace: str,
        claims: Sequence[str] | None,
        created: Mapping[str, PersistentVolumeClaim] = MappingProxyType({}),
        bindings: Bindings = _NO_BINDINGS,
    ) -> VolumeNodes:
        """Return the answer to the claims with some names.

        Args:
            namespace: Their namespace.
            claims: Their names; None if these are not known.
            created: Those that a StatefulSet creates before the pod if they do not exist.
            bindings: Maps claims that are bound since to their volumes.
        """
        if not claims:
            return self._shared((), UNKNOWN_CLAIMS if claims is None else "")
        affinity = zone = 0
        everywhere: list[Obstacle] = []
        unbound: list[UnboundClaim] = []
        unknown = ""
        for claim, answer in self._resolved(namespace, claims, created, bindings):
            match answer:
                case PersistentVolume() as volume:
                    by_affinity, by_zone = self._refused(volume)
                    affinity |= by_affinity
                    zone |= by_zone
                case Unresolved.UNREAD:
                    unknown = UNREAD
                case Unresolved.MADE:
                    unknown = MADE
                case Unresolved.NO_CLAIM:
                    everywhere.append(_no_claim(claim))
                case Unresolved.NO_VOLUME:
                    everywhere.append(_NO_VOLUME)
                case UnboundClaim():
                    unbound.append(answer)
        free = self._binder.bindable(unbound, _taken(bindings))
        if free.waiting:
            everywhere.append(_not_bound(namespace, free.waiting))
        missing = ((self._nodes.index.everything, obstacle) for obstacle in everywhere)
        none_available = self._nodes.index.everything & ~free.nodes
        refusals = (*missing, (affinity, _NODE_AFFINITY), (zone, _ZONE), (none_available, NONE_AVAILABLE))
        unknown = unknown or (UNBOUND if free.unknown else "")
        return self._shared(tuple(refusal for refusal in refusals if refusal[0]), unknown)

    def _refused(self, volume: PersistentVolume) -> tuple[int, int]:
        """Return the nodes that a volume's node affinity refuses, and those that its zone labels refuse."""
        selector, topology = scheduler.node_selector(volume), scheduler.topology(volume.metadata.labels)
        key = digest((selector, {key: sorted(values) for key, values in topology.items()}))
        if key not in self._refused_by:
            index = self._nodes.index
            self._refused_by[key] = (
                index.everything & ~scheduler.allowed_by_affinity(selector, index),
                index.everything & ~scheduler.allowed_by_zone(topology, index),
            )
        return self._refused_by[key]

    def _shared(self, refusals: tuple[tuple[int, Obstacle], ...], unknown: str) -> VolumeNodes:
        """Return the answer, which equal answers share."""
        key = (*refusals, unknown)
        if key not in self._answers:
            self._answers[key] = VolumeNodes(refusals, unknown, self._nodes.numbers)
        return self._answers[key]


def _taken(bindings: Bindings) -> frozenset[str]:
    """Return the names of the volumes that claims were bound to."""
    return frozenset(volume.metadata.name for volume in bindings.values() if isinstance(volume, PersistentVolume))


def _no_claim(claim: str) -> Obstacle:
    remedy = f"create the claim {claim}, or correct its name in the pod"
    return Obstacle(ObstacleKind.VOLUME, f'persistentvolumeclaim "{claim}" not found', remedy=remedy)


def _not_bound(namespace: str, claim: str) -> Obstacle:
    """Return the obstacle that a claim is not bound, in the words of the scheduler."""
    command = f"kubectl describe pvc {claim} -n {namespace}"
    remedy = f"see why the claim {claim} is not bound ({command}): the scheduler waits for that"
    return Obstacle(ObstacleKind.VOLUME, "pod has unbound immediate PersistentVolumeClaims", remedy=remedy)


def _ref(namespace: str, owner: OwnerReference | None) -> ObjectRef:
    """Return the reference to an owner; a pod without one has that of no object."""
    return ObjectRef(namespace, owner.kind, owner.name) if owner else ObjectRef(namespace, "", "")
