"""Repeats: objects of the same kind, namespace and name that are read more than once.

Manifests of one name may differ: those of two overlays are for two clusters. Stored objects and nodes may not, as a
cluster has one of a name.
"""

from __future__ import annotations

from typing import NamedTuple

from kubectl_spread.errors import Position, SourceError
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.sources.files.manifests import Loaded


class _Seen(NamedTuple):
    digest: int
    source: str
    line: int | None
    only: bool
    """Whether there can be no other object of its name."""


class Repeats:
    """The objects that were read so far."""

    def __init__(self) -> None:
        """Start without any."""
        self._seen: dict[ObjectRef, tuple[_Seen, ...]] = {}

    def copy_of(self, loaded: Loaded) -> int | None:
        """Return how many objects of its name were read before a manifest; 0: it is stored; None: an equal one was.

        Raises:
            SourceError: Another object of its name was read, and there can be only one.
        """
        metadata = loaded.object.metadata
        ref = ObjectRef(metadata.namespace, loaded.kind, metadata.name)
        before = self._seen.get(ref, ())
        if metadata.name and any(earlier.digest == loaded.digest for earlier in before):
            return None
        only = not loaded.is_manifest
        self._seen[ref] = (*before, _Seen(loaded.digest, loaded.position.source, loaded.position.line, only))
        other = next((earlier for earlier in before if only and earlier.only), None)
        if other is not None:
            raise _conflict(loaded, Position(other.source, other.line))
        return 0 if only else len(before)


def _conflict(loaded: Loaded, other: Position) -> SourceError:
    metadata = loaded.object.metadata
    subject = f"{loaded.kind} {metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
    return SourceError(
        f"{loaded.position}: {subject}: another object of this name is in {other}, and a cluster has only one: "
        "check captures of one moment and of one cluster"
    )
