"""Positions: where the fields of manifests are written.

The files are read again for them, so that only output with positions takes the time.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from io import BytesIO
from pathlib import Path as File
from typing import Final, TypeAlias

import msgspec

from kubectl_spread.errors import STDIN, Position, SourceError
from kubectl_spread.kube.api.fieldpath import FieldPath
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import Object
from kubectl_spread.kube.custom.groups import kind_name
from kubectl_spread.sources.decode import documents, json_objects
from kubectl_spread.sources.decode.json_objects import MalformedFieldError
from kubectl_spread.sources.decode.listing import Record
from kubectl_spread.sources.decode.window import Window
from kubectl_spread.sources.files import customobjects, inputs, manifests, rawobjects
from kubectl_spread.sources.files.rawobjects import RawObject

Field: TypeAlias = tuple[ObjectRef, Position, FieldPath]
"""An object, where it is written, and a field path in it, such as ``spec.topologySpreadConstraints[0]``."""
_Beginning: TypeAlias = tuple[ObjectRef, int | None]
"""An object and the line where it begins."""

MOST_BYTES: Final = 64 << 20
"""The most bytes of a file that are read again."""


def fields(written: Iterable[Field]) -> dict[Field, Position]:
    """Return where fields of manifests begin; for a missing field, where the innermost field around it begins.

    For a file that cannot be read again (standard input, a pipe, a large or a changed file) this is the line where the
    object begins, without a column.

    Args:
        written: Objects with their file and line, as ``manifests.read`` returns them, and paths in them.
    """
    places: dict[Field, Position] = {}
    by_file: dict[str, dict[_Beginning, list[FieldPath]]] = {}
    for ref, position, path in written:
        places[ref, position, path] = position
        by_file.setdefault(position.source, {}).setdefault((ref, position.line), []).append(path)
    for source, paths in by_file.items():
        for (ref, line), record in _records(source, paths):
            for path in paths[ref, line]:
                place = record.place_of(path)
                places[ref, Position(source, line), path] = Position(source, place.line, place.column)
    return places


def _records(source: str, beginnings: Iterable[_Beginning]) -> Iterator[tuple[_Beginning, Record]]:
    """Yield the objects of a file that are on the same line as before, as far as it can be read."""
    remaining = set(beginnings)
    lines = frozenset(line for _, line in remaining)
    try:
        for member in _members(source):
            line = member.record.line_of()
            ref = _ref(member) if line in lines else None
            if ref is not None and (ref, line) in remaining:
                remaining.remove((ref, line))
                yield (ref, line), member.record
            if not remaining:
                return
    except SourceError:
        # The errors of the file were reported when it was read for the first time.
        return


def _members(source: str) -> Iterator[RawObject]:
    with closing(_blocks(source)) as blocks:
        for document in documents.read(Window(blocks, source), source):
            for member in rawobjects.contents(document):
                if isinstance(member, RawObject):
                    yield member


def _blocks(source: str) -> Generator[bytes, None, None]:
    """Yield the content of a file, up to ``MOST_BYTES``; nothing where it cannot be read a second time."""
    if source == STDIN or not File(source).is_file():
        return
    size = 0
    with closing(inputs.blocks(source, BytesIO())) as blocks:
        for block in blocks:
            size += len(block)
            if size > MOST_BYTES:
                return
            yield block


def _ref(member: RawObject) -> ObjectRef | None:
    """Return the reference to an object; None if its metadata cannot be read."""
    if member.type is None and not customobjects.may_be_read(member):
        return None
    try:
        metadata = json_objects.decode(bytes(member.record.raw), Object).metadata
    except (MalformedFieldError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    kind = kind_name(member.api_version, member.kind)
    return ObjectRef(metadata.namespace or manifests.NAMESPACE, kind, metadata.name)
