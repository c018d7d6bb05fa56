"""Sparse pods from the protobuf wire: of each pod only the fields are decoded that its siblings do not share.

The bytes of the parts that decide how a pod is evaluated are the key under which a pod with these parts is remembered.
The parts are decoded once for each distinct key.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Final

from msgspec.structs import replace

from kubectl_spread.kube.api.sparse import DetailedPod, SparsePod, alone, claims_of
from kubectl_spread.kube.api.types import Message, ObjectMeta, Pod, PodSpec, PodStatus, Volume
from kubectl_spread.kube.scheduler import nodeaffinity
from kubectl_spread.sources.decode.protobuf import decoder, descriptors
from kubectl_spread.sources.decode.protobuf.decoder import Decoder
from kubectl_spread.sources.decode.resources import Page

READ_ANNOTATIONS: Final = ("kubectl-spread/ignore", "kubernetes.io/config.mirror")
"""The annotations that decide how a pod is evaluated; a pod that has one of them is decoded in full."""
_REMEMBERED: Final = 2_000
"""How many distinct pods are remembered. API servers list by name, so that the pods of one template come together."""
_OWN: Final = {
    "ObjectMeta": (
        "name",
        "uid",
        "generation",
        "creation_timestamp",
        "deletion_timestamp",
        "annotations",
        "managed_fields",
    ),
    "PodSpec": ("volumes", "service_account_name", "node_name"),
    "PodStatus": ("pod_ip", "nominated_node_name"),
}
"""The fields of each message that alike pods need not share. Some of them are read only by field selectors."""
_PIECES: Final = 2


class SpecVolumes(Message, frozen=True):
    """The volumes of a pod's spec."""

    volumes: Annotated[tuple[Volume, ...], 1] = ()


class PodVolumes(Message, frozen=True):
    """The volumes of a pod, without its other fields."""

    spec: Annotated[SpecVolumes, 2] = SpecVolumes()


class SparsePods:
    """Decodes pages of pods, and remembers the distinct ones."""

    def __init__(self) -> None:
        self._pods = Decoder(Pod)
        self._pending = Decoder(DetailedPod)
        self._volumes = Decoder(PodVolumes)
        self._remembered: dict[object, Pod] = {}
        self._parse = descriptors.shallow_classes(Pod)[Pod.__name__].FromString
        self._parse_shared = descriptors.partial_classes(Pod, _OWN)[Pod.__name__].FromString
        self._metadata = self._pods.part(ObjectMeta)
        self._spec = self._pods.part(PodSpec)

    def page(self, body: bytes | bytearray) -> Page[SparsePod]:
        """Return one page of a list; its pods are decoded when they are reached.

        Raises:
            ValueError: The response is not a list in protobuf.
        """
        return decoder.page(body, self._decode)

    def _decode(self, item: memoryview) -> SparsePod:
        record = bytes(item)
        pod = self._parse(record)
        metadata, spec = pod.metadata, pod.spec
        if not spec.node_name:
            # Their conditions say why they wait.
            return alone(self._pending.decode(record))
        like = self._like(record, metadata, spec.node_name)
        return SparsePod(
            like,
            metadata.name,
            spec.node_name,
            metadata.generation,
            decoder.time(metadata.creation_timestamp),
            metadata.HasField("deletion_timestamp") and metadata.deletion_timestamp.HasField("seconds"),
            metadata.HasField("managed_fields"),
            self._claims(record, metadata.name, spec),
            partial(self._pods.decode, record),
        )

    def _claims(self, record: bytes, name: str, spec: Any) -> tuple[str, ...]:
        """Return the names of the claims of a pod; the parser has merged all its volumes into one."""
        source = spec.volumes.volume_source
        if not (source.HasField("persistent_volume_claim") or source.HasField("ephemeral")):
            return ()
        return claims_of(name, spec.node_name, self._volumes.decode(record).spec.volumes)

    def _like(self, record: bytes, own: Any, node: str) -> Pod:
        shared = self._parse_shared(record)
        shared.DiscardUnknownFields()
        metadata, spec = shared.metadata.SerializeToString(), shared.spec.SerializeToString()
        # Pods of a DaemonSet name their node in their affinity.
        pieces = spec.split(node.encode()) if node else [spec]
        annotations = own.annotations
        read = [annotations.get(name) for name in READ_ANNOTATIONS]
        key = (not own.uid, not node, shared.status.phase, metadata, *read, *pieces)
        pod = self._remembered.get(key)
        if pod is None or (len(pieces) > 1 and not _is_pinned(pod, pieces)):
            annotated = {name: text for name, text in zip(READ_ANNOTATIONS, read, strict=True) if text is not None}
            pod = Pod(
                metadata=replace(self._metadata(metadata), name=own.name, uid=own.uid, annotations=annotated),
                spec=replace(self._spec(spec), node_name=node),
                status=PodStatus(phase=shared.status.phase),
            )
            if len(self._remembered) >= _REMEMBERED:
                self._remembered.clear()
            self._remembered[key] = pod
        return pod


def _is_pinned(pod: Pod, pieces: list[bytes]) -> bool:
    """Tell whether ``pieces`` are split at the node affinity of a pod that can only run on its node."""
    return len(pieces) == _PIECES and nodeaffinity.pinned_node(pod.spec.affinity) == pod.spec.node_name
