"""Objects of the same kind, namespace and name that are read more than once.

Manifests of one name may differ, as two overlays are for two clusters. Stored objects and nodes may not, because a
cluster has only one object of a name.
"""

from __future__ import annotations

from typing import NamedTuple

from kubectl_spread.errors import Position, SourceError
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.custom.objects import CustomObject
from kubectl_spread.sources.files.manifests import Loaded


class _Seen(NamedTuple):
    digest: int
    source: str
    line: int | None
    only: bool
    """Whether no other object can have its name."""
    group: str
    """The API group of an object of a kind that Kubernetes does not define."""


class Repeats:
    """The objects that were read so far."""

    def __init__(self) -> None:
        self._seen: dict[ObjectRef, tuple[_Seen, ...]] = {}

    def copy_of(self, loaded: Loaded) -> int | None:
        """Return how many objects of its name were read before a manifest; 0 for a stored object.

        Returns:
            The number; None where an equal object was read.

        Raises:
            SourceError: Another object of its name was read, and there can be only one.
        """
        metadata = loaded.object.metadata
        ref = ObjectRef(metadata.namespace, loaded.kind, metadata.name)
        namesakes = self._seen.get(ref, ())
        if metadata.name and any(namesake.digest == loaded.digest for namesake in namesakes):
            return None
        only = not loaded.is_manifest
        group = loaded.object.group if isinstance(loaded.object, CustomObject) else ""
        self._seen[ref] = (*namesakes, _Seen(loaded.digest, loaded.position.source, loaded.position.line, only, group))
        for namesake in namesakes:
            if only and namesake.only and namesake.group == group:
                raise _conflict(loaded, Position(namesake.source, namesake.line))
        return 0 if only else len(namesakes)


def _conflict(loaded: Loaded, position: Position) -> SourceError:
    metadata = loaded.object.metadata
    subject = f"{loaded.kind} {metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
    return SourceError(
        f"{loaded.position}: {subject}: another object of this name is in {position}, and a cluster has only one: "
        "check captures of one moment and of one cluster"
    )
