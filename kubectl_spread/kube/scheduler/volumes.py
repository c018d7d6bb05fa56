"""Volumes: which ones are the claims of a pod bound to, and which nodes can reach these, by affinity and by zone?

Claims that are bound to a volume are what decides for running pods. For a claim that is not bound, a StorageClass and
its provisioner decide, and neither is read. Like the scheduler, this takes a claim that names a volume for bound; the
scheduler also waits until the claim has the annotation ``pv.kubernetes.io/bind-completed``, which takes a moment.

Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/volumebinding/binder.go, checkBoundClaims, and
staging/src/k8s.io/component-helpers/storage/volume/helpers.go, CheckNodeAffinity; for zones
pkg/scheduler/framework/plugins/volumezone/volume_zone.go, Filter.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Annotated, Final

import msgspec

from kubectl_spread.kube.api.labels import REGION, ZONE, Labels
from kubectl_spread.kube.api.types import Message, NodeSelector, Object, ObjectMeta
from kubectl_spread.kube.scheduler.podtopologyspread.domains import NodeLabels

_BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
_BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"
_STABLE: Final = {_BETA_ZONE: ZONE, _BETA_REGION: REGION}
_KEYS: Final = (_BETA_ZONE, _BETA_REGION, ZONE, REGION)
_EXCLUSIVE: Final = "ReadWriteOncePod"
_ONE_NODE: Final = "ReadWriteOnce"
_MANY_NODES: Final = frozenset({"ReadWriteMany", "ReadOnlyMany"})
_BETWEEN: Final = "__"
"""What separates the zones of a volume that is in several.

Source: kubernetes v1.37.1 staging/src/k8s.io/cloud-provider/volume/constants.go, LabelMultiZoneDelimiter.
"""


class PersistentVolumeClaimSpec(Message, frozen=True):
    """The volume that a claim is bound to, "" while it is not bound, and the ways in which pods may use it."""

    access_modes: Annotated[tuple[str, ...], 1] = ()
    volume_name: Annotated[str, 3] = ""


class PersistentVolumeClaim(Object, frozen=True):
    """A claim to a volume."""

    spec: Annotated[PersistentVolumeClaimSpec, 2] = PersistentVolumeClaimSpec()


class VolumeNodeAffinity(Message, frozen=True):
    """The nodes that can reach a volume; without ``required`` all nodes can."""

    required: Annotated[NodeSelector | None, 1] = None


class PersistentVolumeSpec(Message, frozen=True):
    """The part of a volume's spec that filters nodes."""

    node_affinity: Annotated[VolumeNodeAffinity | None, 9] = None


class PersistentVolume(Object, frozen=True):
    """A volume."""

    spec: Annotated[PersistentVolumeSpec, 2] = PersistentVolumeSpec()


class Unresolved(Enum):
    """Why a claim leads to no volume: it is not bound, something was not read, or the API server does not have it."""

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
    """

    def __init__(self) -> None:
        self.complete = False
        self.exclusive: set[tuple[str, str]] = set()
        self.on_one_node: set[tuple[str, str]] = set()
        self._claims: dict[tuple[str, str], str] = {}
        self._namespaces: set[str] = set()
        self._volumes: dict[str, PersistentVolume] = {}

    @property
    def any(self) -> bool:
        """Whether any volume was read."""
        return bool(self._volumes)

    def add_claim(self, claim: PersistentVolumeClaim) -> None:
        """Store the name of the volume that a claim is bound to, and whether only one pod or node may use the claim."""
        modes = claim.spec.access_modes
        if _EXCLUSIVE in modes:
            self.exclusive.add((claim.metadata.namespace, claim.metadata.name))
        elif _ONE_NODE in modes and not _MANY_NODES.intersection(modes):
            self.on_one_node.add((claim.metadata.namespace, claim.metadata.name))
        self._claims[claim.metadata.namespace, claim.metadata.name] = claim.spec.volume_name
        self._namespaces.add(claim.metadata.namespace)

    def add_volume(self, volume: PersistentVolume) -> None:
        """Store a volume, with only its labels."""
        self._volumes[volume.metadata.name] = msgspec.structs.replace(
            volume, metadata=ObjectMeta(name=volume.metadata.name, labels=volume.metadata.labels)
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
        if not name:
            return Unresolved.UNBOUND
        return self._volumes.get(name) or (Unresolved.NO_VOLUME if self.complete else Unresolved.UNREAD)


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
