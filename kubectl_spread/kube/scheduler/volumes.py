"""Volumes: which ones are the claims of a pod bound to, and which nodes can reach these, by affinity and by zone?

Claims that are bound to a volume are what decides for running pods; ``volumebinding`` answers for others. Like the
scheduler, this takes a claim that names a volume for bound; the scheduler also waits until the claim has the annotation
``pv.kubernetes.io/bind-completed``, which takes a moment.

Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/volumebinding/binder.go, checkBoundClaims, and
staging/src/k8s.io/component-helpers/storage/volume/helpers.go, CheckNodeAffinity; for zones
pkg/scheduler/framework/plugins/volumezone/volume_zone.go, Filter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import Final

from msgspec.structs import replace

from kubectl_spread.kube.api.labels import BETA_REGION, BETA_ZONE, REGION, ZONE, Labels
from kubectl_spread.kube.api.storage import (
    CSIDriver,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    StorageClass,
    VolumeNodeAffinity,
)
from kubectl_spread.kube.api.types import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, ObjectMeta
from kubectl_spread.kube.scheduler.podtopologyspread.domains import NodeLabels

_STABLE: Final = {BETA_ZONE: ZONE, BETA_REGION: REGION}
_KEYS: Final = (BETA_ZONE, BETA_REGION, ZONE, REGION)
_EXCLUSIVE: Final = "ReadWriteOncePod"
_AVAILABLE: Final = "Available"
_ONE_NODE: Final = "ReadWriteOnce"
_MANY_NODES: Final = frozenset({"ReadWriteMany", "ReadOnlyMany"})
_BETWEEN: Final = "__"
"""What separates the zones of a volume that is in several.

Source: kubernetes v1.37.1 staging/src/k8s.io/cloud-provider/volume/constants.go, LabelMultiZoneDelimiter.
"""


class Unresolved(Enum):
    """Why a claim leads to no volume that is known.

    It is not bound, something was not read, the API server does not have it, or it was made in a simulation, where no
    other volume of its class tells which nodes reach it.
    """

    MADE = auto()
    UNBOUND = auto()
    UNREAD = auto()
    NO_CLAIM = auto()
    NO_VOLUME = auto()


class ClaimedVolumes:
    """The claims and volumes that were read.

    Attributes:
        complete: Whether all claims of the pods' namespaces, and all volumes, were read.
        exclusive: The namespaces and names of claims that only one pod at a time may use (ReadWriteOncePod).
        on_one_node: Those of claims whose volume only one node at a time may use (ReadWriteOnce).
        classes_complete: Whether all StorageClasses were read.
        drivers_complete: Whether all CSIDrivers were read, as they are where any was.
        unbound: Maps the namespace and name of each claim that is not bound to the claim.
    """

    def __init__(self) -> None:
        self.complete = False
        self.exclusive: set[tuple[str, str]] = set()
        self.on_one_node: set[tuple[str, str]] = set()
        self.classes_complete = self.drivers_complete = False
        self.unbound: dict[tuple[str, str], PersistentVolumeClaim] = {}
        self._claims: dict[tuple[str, str], str] = {}
        self._namespaces: set[str] = set()
        self._volumes: dict[str, PersistentVolume] = {}
        self._reserved: dict[tuple[str, str], list[PersistentVolume]] = {}
        self._free: dict[str, list[PersistentVolume]] = {}
        self._reached_by: dict[str, set[str]] = {}
        self._classes: dict[str, StorageClass] = {}
        self._with_capacity: set[str] = set()

    @property
    def any(self) -> bool:
        """Whether any volume was read."""
        return bool(self._volumes)

    def add(self, read: PersistentVolumeClaim | PersistentVolume | StorageClass | CSIDriver) -> None:
        """Store an object."""
        match read:
            case PersistentVolumeClaim():
                self._add_claim(read)
            case PersistentVolume():
                self._add_volume(read)
            case StorageClass():
                self._add_class(read)
            case CSIDriver():
                self._add_driver(read)

    def _add_claim(self, claim: PersistentVolumeClaim) -> None:
        """Store the name of the volume that a claim is bound to, and whether only one pod or node may use the claim."""
        modes = claim.spec.access_modes
        if _EXCLUSIVE in modes:
            self.exclusive.add((claim.metadata.namespace, claim.metadata.name))
        elif _ONE_NODE in modes and not _MANY_NODES.intersection(modes):
            self.on_one_node.add((claim.metadata.namespace, claim.metadata.name))
        name = (claim.metadata.namespace, claim.metadata.name)
        self._claims[name] = claim.spec.volume_name
        if not claim.spec.volume_name:
            self.unbound[name] = claim
        self._namespaces.add(claim.metadata.namespace)

    def _add_volume(self, volume: PersistentVolume) -> None:
        """Store a volume, with only the metadata that decides."""
        metadata = volume.metadata
        deciding = ObjectMeta(
            name=metadata.name, labels=metadata.labels, deletion_timestamp=metadata.deletion_timestamp
        )
        spec = replace(volume.spec, storage_class_name=volume.storage_class)
        stored = self._volumes[metadata.name] = replace(volume, metadata=deciding, spec=spec)
        self._reached_by.setdefault(spec.storage_class_name, set()).update(_keys_of(node_selector(stored)))
        reference = spec.claim_ref
        if reference is not None:
            self._reserved.setdefault((reference.namespace, reference.name), []).append(stored)
        elif volume.status.phase == _AVAILABLE:
            self._free.setdefault(spec.storage_class_name, []).append(stored)

    def _add_class(self, storage_class: StorageClass) -> None:
        """Store a StorageClass."""
        self._classes[storage_class.metadata.name] = storage_class

    def _add_driver(self, driver: CSIDriver) -> None:
        """Store whether a driver tells the scheduler where it has room."""
        self.drivers_complete = True
        if driver.spec.storage_capacity:
            self._with_capacity.add(driver.metadata.name)

    def reserved(self, claim: tuple[str, str]) -> Sequence[PersistentVolume]:
        """Return the volumes that are reserved for the claim with a namespace and name."""
        return self._reserved.get(claim, ())

    def free(self, storage_class: str) -> Sequence[PersistentVolume]:
        """Return the available volumes of a StorageClass that are reserved for no claim."""
        return self._free.get(storage_class, ())

    def named(self, name: str) -> PersistentVolume | Unresolved:
        """Return the volume with a name."""
        return self._volumes.get(name) or (Unresolved.NO_VOLUME if self.complete else Unresolved.UNREAD)

    def made(self, storage_class: str, labels: Labels) -> PersistentVolume | Unresolved:
        """Return a volume that a StorageClass makes for a node with some labels.

        Which nodes reach it is the decision of a driver; those that it made for the class tell by which labels.
        """
        keys = self._reached_by.get(storage_class)
        if keys is None or not labels.keys() >= keys:
            return Unresolved.MADE
        requirements = tuple(NodeSelectorRequirement(key, "In", (labels[key],)) for key in sorted(keys))
        selector = NodeSelector((NodeSelectorTerm(requirements),)) if requirements else None
        affinity = VolumeNodeAffinity(selector) if selector else None
        return PersistentVolume(spec=PersistentVolumeSpec(storage_class_name=storage_class, node_affinity=affinity))

    def class_of(self, claim: PersistentVolumeClaim, *, created: bool) -> StorageClass | Unresolved | None:
        """Return the StorageClass of a claim that is not bound; None if it has none, or none of the name exists.

        Args:
            claim: The claim.
            created: Whether it does not exist yet, so that it gets the default class where it names none.

        Source: kubernetes v1.37.1 plugin/pkg/admission/storage/storageclass/setdefault/admission.go, Admit, and
        pkg/volume/util/storageclass.go, GetDefaultClass.
        """
        name = claim.storage_class
        if name is None and created:
            defaults = sorted((each for each in self._classes.values() if each.is_default), key=_by_age)
            return defaults[0] if defaults else None if self.classes_complete else Unresolved.UNREAD
        if name:
            return self._classes.get(name, None if self.classes_complete else Unresolved.UNREAD)
        return None

    def knows_room_for(self, storage_class: StorageClass) -> bool:
        """Tell whether a class is known to make volumes wherever its topologies allow it.

        The objects with which other drivers tell where they have room are not read.

        Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/volumebinding/binder.go, hasEnoughCapacity.
        """
        return self.drivers_complete and storage_class.provisioner not in self._with_capacity

    @property
    def made_anywhere(self) -> bool:
        """Whether each StorageClass makes volumes on whichever node the scheduler has chosen."""
        return bool(self._classes) and all(
            each.waits_for_pod and each.makes_volumes and not each.allowed_topologies and self.knows_room_for(each)
            for each in self._classes.values()
        )

    def volume_of(self, namespace: str, claim: str, *, created: bool = False) -> PersistentVolume | Unresolved:
        """Return the volume that a claim is bound to, or why there is none.

        Args:
            namespace: The namespace of the claim.
            claim: Its name.
            created: Whether a StatefulSet creates the claim if it does not exist.
        """
        name = self._claims.get((namespace, claim))
        if name is None and created:
            return Unresolved.UNBOUND if self.complete or namespace in self._namespaces else Unresolved.UNREAD
        if name is None:
            return Unresolved.NO_CLAIM if self.complete else Unresolved.UNREAD
        return self.named(name) if name else Unresolved.UNBOUND


def _by_age(storage_class: StorageClass) -> tuple[float, str]:
    """Order StorageClasses as the API server does to find the default: the newest first."""
    created = storage_class.metadata.creation_timestamp
    return (-created.timestamp() if created else 0.0, storage_class.metadata.name)


def _keys_of(selector: NodeSelector | None) -> Iterator[str]:
    for term in () if selector is None else selector.node_selector_terms:
        for requirement in term.match_expressions:
            yield requirement.key


def node_selector(volume: PersistentVolume) -> NodeSelector | None:
    """Return the selector of the nodes that can reach a volume; None: all can."""
    affinity = volume.spec.node_affinity
    return None if affinity is None else affinity.required


def allowed_by_affinity(selector: NodeSelector | None, nodes: NodeLabels) -> int:
    """Return the nodes that a volume's selector matches; it sees their labels, but not their names."""
    return nodes.everything if selector is None else nodes.matching(selector, unnamed=True)


def topology(labels: Labels) -> Mapping[str, frozenset[str]]:
    """Return the values of the zone and region labels of a volume; a label with an empty value among them is ignored.

    Source: kubernetes v1.37.1 staging/src/k8s.io/cloud-provider/volume/helpers/zones.go, LabelZonesToSet.
    """
    values = {key: frozenset(value.strip() for value in labels[key].split(_BETWEEN)) for key in _KEYS if key in labels}
    return {key: named for key, named in values.items() if "" not in named}


def allowed_by_zone(topology: Mapping[str, frozenset[str]], nodes: NodeLabels) -> int:
    """Return the nodes that have one of the values of each label; nodes without any such label are allowed too."""
    bits = nodes.everything
    for key, values in topology.items():
        matching = nodes.with_value(key, values)
        if key in _STABLE:
            matching |= nodes.with_value(_STABLE[key], values) & ~nodes.carrying([key])
        bits &= matching
    labelled = 0
    for key in _KEYS:
        labelled |= nodes.carrying([key])
    return bits | (nodes.everything & ~labelled)
