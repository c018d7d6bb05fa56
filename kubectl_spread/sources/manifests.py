"""Pods, nodes and workloads from manifests and from captured output of kubectl."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import BinaryIO, Final, TypeAlias

import msgspec

from kubectl_spread.errors import STDIN, DecodeError, Position, SourceError
from kubectl_spread.kube.defaultconstraints import MapSelecting
from kubectl_spread.kube.detail import DetailedPod
from kubectl_spread.kube.model import Event, Namespace, Node, Pod
from kubectl_spread.kube.workloads import KINDS, Workload
from kubectl_spread.sources import files, json_documents, json_objects, json_stream
from kubectl_spread.sources.json_objects import FieldError, Json, Path
from kubectl_spread.sources.listing import ITEMS, LIST, NOTHING, Header, Listing, Record, of_item
from kubectl_spread.sources.window import Window

Object: TypeAlias = Pod | Node | Namespace | Event | MapSelecting | Workload

NAMESPACE: Final = "default"
"""That of objects that name none, unless somebody says otherwise."""
UNKNOWN_KIND: Final = "unknownKind"
MALFORMED: Final = "malformed"
UNREADABLE: Final = "unreadable"

_TYPES: Final[dict[tuple[str, str], type[Object]]] = {
    ("", "Pod"): Pod,
    ("", "Node"): Node,
    ("", "Namespace"): Namespace,
    ("", "Event"): Event,
    ("", "Service"): MapSelecting,
    **KINDS,
}
_FAULTS: Final = (FieldError, msgspec.DecodeError, UnicodeDecodeError)
_LONGEST_PATH: Final = 32
"""How many steps may lead to a list; each list around it is two."""
_JSON_START: Final = re.compile(rb"[ \t\r\n]*\{")


class Loaded(msgspec.Struct, frozen=True):
    """An object and where it was read.

    Attributes:
        kind: Its kind, such as ``Pod``.
        object: The object; a namespace that it leaves out is filled in.
        position: Its file and line.
    """

    kind: str
    object: Object
    position: Position


class Reading(msgspec.Struct, frozen=True):
    """What a run over manifests finds; all of it is known when ``objects`` is exhausted.

    Attributes:
        objects: The objects in the order in which they are written, to be iterated over once.
        skipped: Maps a reason to the number of objects (``unknownKind``, ``malformed``) or of files
            and documents (``unreadable``) that were left out.
        errors: What is wrong with those that are malformed or unreadable, in the order of reading.
    """

    objects: Iterator[Loaded]
    skipped: Counter[str]
    errors: list[DecodeError | SourceError]


def read(
    paths: Sequence[str],
    *,
    recursive: bool,
    stdin: BinaryIO,
    namespace: str = NAMESPACE,
    detailed: bool = False,
    services: bool = False,
) -> Reading:
    """Read JSON and YAML, as many documents in as many files as there are, one file at a time.

    Args:
        paths: Files, folders and ``-``.
        recursive: Whether folders inside folders are read.
        stdin: What ``-`` stands for.
        namespace: The namespace of objects that name none.
        detailed: Whether pods are read in detail.
        services: Whether Services are read; else they are of an unknown kind.

    Raises:
        SourceError: A path does not exist, or a folder holds no manifests. What is wrong inside a
            file is in ``Reading.errors``.
    """
    reader = _Reader(stdin, namespace, DetailedPod if detailed else Pod, services=services)
    expanded = files.expand(paths, recursive=recursive)
    return Reading(reader.objects(expanded), reader.skipped, reader.errors)


class Member(msgspec.Struct, frozen=True):
    """One object of a file, before it is decoded.

    Attributes:
        record: Its JSON and where it is.
        kind: Its kind; "" where ``fault`` says why that is not known.
        type: What it is decoded as; None for a kind that is not read.
        fault: Why it is no object at all.
    """

    record: Record
    kind: str = ""
    type: type[Object] | None = None
    fault: Exception | None = None


class _Reader(msgspec.Struct, frozen=True):
    stdin: BinaryIO
    namespace: str
    pod: type[Pod]
    services: bool
    skipped: Counter[str] = msgspec.field(default_factory=Counter)
    errors: list[DecodeError | SourceError] = msgspec.field(default_factory=list)

    def objects(self, paths: Sequence[str]) -> Iterator[Loaded]:
        for path in paths:
            source = source_name(path)
            try:
                with closing(files.blocks(path, self.stdin)) as blocks:
                    for found in _documents(Window(blocks), source):
                        for member in contents(found):
                            yield from self._loaded(member, source)
            except SourceError as error:
                self._unreadable(error)

    def _loaded(self, member: Member | SourceError, source: str) -> Iterator[Loaded]:
        if isinstance(member, SourceError):
            self._unreadable(member)
            return
        passed_over = member.type is MapSelecting and not self.services
        if passed_over or (member.type is None and member.fault is None):
            self.skipped[UNKNOWN_KIND] += 1
            return
        if member.type is Pod:
            member = msgspec.structs.replace(member, type=self.pod)
        try:
            yield load(member, source, self.namespace)
        except DecodeError as error:
            self.skipped[MALFORMED] += 1
            self.errors.append(error)

    def _unreadable(self, error: SourceError) -> None:
        self.skipped[UNREADABLE] += 1
        self.errors.append(error)


def source_name(path: str) -> str:
    """Return what a file is called in messages."""
    return STDIN if path == files.STDIN else path


def is_json(body: bytes) -> bool:
    """Tell whether a file begins as JSON."""
    return _JSON_START.match(body) is not None


def _documents(window: Window, source: str) -> Iterator[Record | Listing | SourceError]:
    # By content, as kubectl does: extensions lie, and standard input has none.
    if json_stream.begins(window):
        yield from json_stream.documents(window, source)
    if window.position < len(window.body):
        from kubectl_spread.sources import yaml_stream  # noqa: PLC0415 - JSON does not wait for it

        yield from yaml_stream.documents(window, source)


def contents(found: Record | Listing | SourceError) -> Iterator[Member | SourceError]:
    """Yield the objects of what a reader found: those of a list, or the only one, or what is wrong."""
    match found:
        case SourceError():
            yield found
        case Listing():
            yield from _listed(found)
        case _:
            yield from members(found)


def _listed(listing: Listing) -> Iterator[Member | SourceError]:
    """Yield the members of a list while it is read; items that do not say what they are wait for what the list is."""
    waiting: list[tuple[Record, Header]] = []
    for item in listing.items:
        if isinstance(item, SourceError):
            yield item
            continue
        header = _header(item)
        if isinstance(header, Member):
            yield header
        elif listing.complete or (header.kind and header.api_version):
            yield from _of(item, header, listing.of_item)
        else:
            waiting.append((item, header))
    for item, header in waiting:
        yield from _of(item, header, listing.of_item)
    yield from _no_list(listing)


def _no_list(listing: Listing) -> Iterator[Member]:
    """Yield what is wrong with what passed for a list."""
    record = json_documents.record(msgspec.json.encode({**listing.fields, ITEMS: []}), listing.line)
    for member in members(record):
        yield msgspec.structs.replace(member, fault=member.fault or FieldError(("kind",), "is no list, but has items"))


def members(record: Record, default: Header = NOTHING) -> Iterator[Member]:
    """Yield the object of a record, or those of a list, whose items may leave out what ``default`` says."""
    header = _header(record)
    if isinstance(header, Member):
        yield header
    else:
        yield from _of(record, header, default)


def _header(record: Record) -> Header | Member:
    """Return what tells what a record is, or why it is nothing."""
    try:
        return json_objects.decode(record.raw, Header)
    except _FAULTS as error:
        return Member(record, fault=error)


def _of(record: Record, header: Header, default: Header) -> Iterator[Member]:
    try:
        api_version, kind = _identity(header, default)
        items = _items(header, kind)
        if items and len(record.path) > _LONGEST_PATH:
            raise FieldError((), "nested too deeply")
    except _FAULTS as error:
        yield Member(record, fault=error)
        return
    if items is None:
        yield Member(record, kind, _TYPES.get((api_version.rpartition("/")[0], kind)))
        return
    for element in record.elements(items):
        yield from members(element, of_item(api_version, kind))


def load(member: Member, source: str, namespace: str) -> Loaded:
    """Decode a member whose type is known, or say why it is none.

    Args:
        member: The member of a file.
        source: The name of the file.
        namespace: The namespace of an object that names none.

    Raises:
        DecodeError: It is not what it says it is.
    """
    record = member.record
    try:
        if member.type is None:
            raise member.fault or FieldError(("kind",), "is not read")
        # A copy, so that an object that is kept does not keep the whole file.
        decoded = json_objects.decode(bytes(record.raw), member.type)
    except _FAULTS as error:
        raise _malformed(record, source, namespace, error) from error
    return Loaded(member.kind, _with_namespace(decoded, namespace), Position(source, record.line))


def _with_namespace(decoded: Object, namespace: str) -> Object:
    if isinstance(decoded, Node | Namespace) or decoded.metadata.namespace:
        return decoded
    metadata = msgspec.structs.replace(decoded.metadata, namespace=namespace)
    return msgspec.structs.replace(decoded, metadata=metadata)


def _malformed(record: Record, source: str, namespace: str, error: Exception) -> DecodeError:
    path: Path = ()
    problem = str(error)
    if isinstance(error, FieldError):
        path, problem = error.path, error.problem
    line = record.line_of(path) if path else record.line
    where = json_objects.format_path((*record.path, *path))
    return DecodeError(Position(source, line), _subject(record.raw, namespace), where, problem)


def _identity(header: Header, default: Header) -> tuple[str, str]:
    """Return the apiVersion and kind of an object.

    Raises:
        FieldError: There is none.
    """
    kind = header.kind or default.kind
    api_version = header.api_version or default.api_version
    for name, value in (("kind", kind), ("apiVersion", api_version)):
        if not value:
            raise FieldError((name,), "is missing")
    return api_version, kind


def _items(header: Header, kind: str) -> list[msgspec.Raw] | None:
    """Return the items of a list; None: it is not a list.

    Raises:
        FieldError: It is a List, but its items are not.
    """
    if not kind.endswith(LIST):
        return None
    is_array = bytes(memoryview(header.items)[:1]) == b"["
    if is_array:
        return msgspec.json.decode(header.items, type=list[msgspec.Raw])
    if kind != LIST:
        # A kind of its own that happens to be called so.
        return None
    if bytes(header.items) == b"null":
        return []
    raise FieldError(("items",), "expected array")


def _subject(raw: Json, namespace: str) -> str:
    """Name an object that cannot be decoded by what can be read of it, or return ""."""
    try:
        # Unlike msgspec it takes numbers that nothing can hold.
        found = json.loads(bytes(raw), parse_int=float)
    except (ValueError, RecursionError):
        return ""
    kind = found.get("kind") if isinstance(found, dict) else None
    if not isinstance(kind, str):
        return ""
    metadata = found.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str):
        return kind
    if kind in ("Node", "Namespace"):
        return f"{kind} {name}"
    found_namespace = metadata.get("namespace") or namespace
    return f"{kind} {found_namespace}/{name}"
