"""The objects that decide where the data of pods can be: claims, volumes, and what makes volumes."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from kubectl_spread.kube.api.quantity import Quantity
from kubectl_spread.kube.api.types import SHARED, LabelSelector, Message, NodeSelector, Object, ResourceRequirements

_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_DEFAULTS: Final = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
_SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
_FILESYSTEM: Final = "Filesystem"
_WAITS: Final = "WaitForFirstConsumer"
_NO_PROVISIONER: Final = ("", "kubernetes.io/no-provisioner")


class PersistentVolumeClaimSpec(Message, frozen=True):
    """The volume that a claim is bound to, "" while it is not bound, and what it asks for."""

    access_modes: Annotated[tuple[str, ...], 1] = ()
    resources: Annotated[ResourceRequirements, 2, SHARED] = ResourceRequirements()
    volume_name: Annotated[str, 3] = ""
    selector: Annotated[LabelSelector | None, 4, SHARED] = None
    storage_class_name: Annotated[str | None, 5] = None
    volume_mode: Annotated[str, 6] = _FILESYSTEM


class PersistentVolumeClaim(Object, frozen=True):
    """A claim to a volume."""

    spec: Annotated[PersistentVolumeClaimSpec, 2] = PersistentVolumeClaimSpec()

    @property
    def storage_class(self) -> str | None:
        """The name of its StorageClass; None where it names none.

        Source: kubernetes v1.37.1 staging/src/k8s.io/component-helpers/storage/volume/helpers.go,
        GetPersistentVolumeClaimClass.
        """
        return self.metadata.annotations.get(_CLASS, self.spec.storage_class_name)

    @property
    def size(self) -> Quantity:
        """The storage that it asks for."""
        return self.spec.resources.requests.get("storage", Quantity("0"))

    @property
    def selected_node(self) -> str:
        """The name of the node for which its volume is being made; "" for none."""
        return self.metadata.annotations.get(_SELECTED_NODE, "")


class Claims(msgspec.Struct, frozen=True):
    """The claims that the pods of a template use.

    Attributes:
        templates: The claim templates of a StatefulSet: each pod has claims of its own, created before it.
        shared: The names of the claims that all pods use.
        start: The ordinal of a StatefulSet's first pod.
    """

    templates: tuple[PersistentVolumeClaim, ...] = ()
    shared: tuple[str, ...] = ()
    start: int = 0

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.templates or self.shared)

    def of(self, pod: str) -> tuple[str, ...]:
        """Return the names of the claims of the pod with a name."""
        return (*self.created(pod), *self.shared)

    def created(self, pod: str) -> dict[str, PersistentVolumeClaim]:
        """Map the names of the claims that are created before the pod with a name to their templates.

        Source: kubernetes v1.37.1 pkg/controller/statefulset/stateful_set_utils.go, getPersistentVolumeClaimName.
        """
        return {f"{template.metadata.name}-{pod}": template for template in self.templates}


class VolumeNodeAffinity(Message, frozen=True):
    """The nodes that can reach a volume; without ``required`` all nodes can."""

    required: Annotated[NodeSelector | None, 1] = None


class _ClaimReference(Message, frozen=True):
    namespace: Annotated[str, 2] = ""
    name: Annotated[str, 3] = ""


class PersistentVolumeSpec(Message, frozen=True):
    """The part of a volume's spec that filters nodes, and that claims are compared with."""

    capacity: Annotated[dict[str, Quantity], 1, SHARED] = msgspec.field(default_factory=dict)
    access_modes: Annotated[tuple[str, ...], 3] = ()
    claim_ref: Annotated[_ClaimReference | None, 4] = None
    storage_class_name: Annotated[str, 6] = ""
    volume_mode: Annotated[str, 8] = _FILESYSTEM
    node_affinity: Annotated[VolumeNodeAffinity | None, 9] = None


class _VolumeStatus(Message, frozen=True):
    phase: Annotated[str, 1] = ""


class PersistentVolume(Object, frozen=True):
    """A volume."""

    spec: Annotated[PersistentVolumeSpec, 2] = PersistentVolumeSpec()
    status: Annotated[_VolumeStatus, 3] = _VolumeStatus()

    @property
    def storage_class(self) -> str:
        """The name of its StorageClass; "" for none."""
        return self.metadata.annotations.get(_CLASS, self.spec.storage_class_name)


class _TopologyRequirement(Message, frozen=True):
    key: Annotated[str, 1] = ""
    values: Annotated[tuple[str, ...], 2] = ()


class TopologySelectorTerm(Message, frozen=True):
    """Labels that a node has to have, each with one of some values."""

    match_label_expressions: Annotated[tuple[_TopologyRequirement, ...], 1] = ()


class StorageClass(Object, frozen=True):
    """What makes the volumes of claims that name it, for which nodes, and when."""

    provisioner: Annotated[str, 2] = ""
    volume_binding_mode: Annotated[str, 7] = "Immediate"
    allowed_topologies: Annotated[tuple[TopologySelectorTerm, ...], 8] = ()

    @property
    def waits_for_pod(self) -> bool:
        """Whether a claim is bound only when the scheduler has chosen a node."""
        return self.volume_binding_mode == _WAITS

    @property
    def makes_volumes(self) -> bool:
        """Whether it makes volumes, and does not only bind claims to those that exist."""
        return self.provisioner not in _NO_PROVISIONER

    @property
    def is_default(self) -> bool:
        """Whether it is for claims that name none.

        Source: kubernetes v1.37.1 pkg/volume/util/storageclass.go, IsDefaultAnnotation.
        """
        return any(self.metadata.annotations.get(each) == "true" for each in _DEFAULTS)


class _DriverSpec(Message, frozen=True):
    storage_capacity: Annotated[bool, 4] = False


class CSIDriver(Object, frozen=True):
    """A driver of volumes, which may tell the scheduler on which nodes it has room for them."""

    spec: Annotated[_DriverSpec, 2] = _DriverSpec()
