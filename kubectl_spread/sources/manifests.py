"""Pods, nodes and workloads from manifests and from captured output of kubectl."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, Final, Protocol, TypeAlias

import msgspec

from kubectl_spread.errors import DecodeError, Position, SourceError
from kubectl_spread.kube.model import Message, Node, Pod
from kubectl_spread.kube.workloads import KINDS, Workload
from kubectl_spread.sources import files, json_documents, json_objects
from kubectl_spread.sources.json_objects import FieldError, Json, Path

Object: TypeAlias = Pod | Node | Workload

UNKNOWN_KIND: Final = "unknownKind"
MALFORMED: Final = "malformed"
UNREADABLE: Final = "unreadable"

_TYPES: Final[dict[tuple[str, str], type[Object]]] = {
    ("", "Pod"): Pod,
    ("", "Node"): Node,
    **KINDS,
}
_JSON_START: Final = re.compile(rb"[ \t\r\n]*\{")
_LIST: Final = "List"


@dataclass(frozen=True, slots=True)
class Loaded:
    """An object and where it was read.

    Attributes:
        kind: Its kind, such as ``Pod``.
        object: The object; a namespace that it leaves out is filled in.
        position: Its file and line.
    """

    kind: str
    object: Object
    position: Position


@dataclass(frozen=True, slots=True)
class Reading:
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


def read(paths: Sequence[str], *, recursive: bool, stdin: BinaryIO, namespace: str = "default") -> Reading:
    """Read JSON and YAML, as many documents in as many files as there are, one file at a time.

    Args:
        paths: Files, folders and ``-``.
        recursive: Whether folders inside folders are read.
        stdin: What ``-`` stands for.
        namespace: The namespace of objects that name none.

    Raises:
        SourceError: A path does not exist, or a folder holds no manifests. What is wrong inside a
            file is in ``Reading.errors``.
    """
    reader = _Reader(stdin, namespace)
    expanded = files.expand(paths, recursive=recursive)
    return Reading(reader.objects(expanded), reader.skipped, reader.errors)


class _Record(Protocol):
    """One value of a file: its JSON, and where it and its fields are."""

    @property
    def raw(self) -> Json: ...

    @property
    def line(self) -> int: ...

    def line_of(self, path: Path) -> int: ...

    def elements(self, items: Sequence[msgspec.Raw]) -> Iterator[_Record]: ...


class _Header(Message, frozen=True):
    """What tells what an object is; ``items`` stays undecoded."""

    api_version: str = ""
    kind: str = ""
    items: msgspec.Raw = msgspec.Raw(b"null")


@dataclass(frozen=True, slots=True)
class _Reader:
    stdin: BinaryIO
    namespace: str
    skipped: Counter[str] = field(default_factory=Counter)
    errors: list[DecodeError | SourceError] = field(default_factory=list)

    def objects(self, paths: Sequence[str]) -> Iterator[Loaded]:
        for path in paths:
            source = "STDIN" if path == files.STDIN else path
            try:
                for record in self._records(files.content(path, self.stdin), source):
                    yield from self._objects(record, source, _Header())
            except SourceError as error:
                self._unreadable(error)

    def _records(self, body: bytes, source: str) -> Iterator[_Record]:
        # By content, as kubectl does: extensions lie, and standard input has none.
        if _JSON_START.match(body):
            body = yield from json_documents.records(body, source)
        if body:
            yield from self._yaml_records(body, source)

    def _yaml_records(self, body: bytes, source: str) -> Iterator[_Record]:
        from kubectl_spread.sources import yaml_documents  # noqa: PLC0415 - JSON does not wait for it

        for document in yaml_documents.documents(body, source):
            try:
                yield yaml_documents.record(document)
            except SourceError as error:
                self._unreadable(error)

    def _objects(self, record: _Record, source: str, default: _Header) -> Iterator[Loaded]:
        """Yield the objects of a record; ``default`` is what the items of a typed list leave out."""
        try:
            header = json_objects.decode(record.raw, _Header)
            api_version, kind = _identity(header, default)
            items = _items(header, kind)
            if items is None:
                yield from self._object(record, source, api_version, kind)
                return
        except (FieldError, msgspec.DecodeError, UnicodeDecodeError) as error:
            self._malformed(record, source, error)
            return
        member = _Header(api_version=api_version, kind=kind.removesuffix(_LIST))
        for element in record.elements(items):
            yield from self._objects(element, source, member if member.kind else _Header())

    def _object(self, record: _Record, source: str, api_version: str, kind: str) -> Iterator[Loaded]:
        type_ = _TYPES.get((api_version.rpartition("/")[0], kind))
        if type_ is None:
            self.skipped[UNKNOWN_KIND] += 1
            return
        # A copy, so that an object that is kept does not keep the whole file.
        decoded = json_objects.decode(bytes(record.raw), type_)
        yield Loaded(kind, self._with_namespace(decoded), Position(source, record.line))

    def _with_namespace(self, decoded: Object) -> Object:
        if isinstance(decoded, Node) or decoded.metadata.namespace:
            return decoded
        metadata = msgspec.structs.replace(decoded.metadata, namespace=self.namespace)
        return msgspec.structs.replace(decoded, metadata=metadata)

    def _unreadable(self, error: SourceError) -> None:
        self.skipped[UNREADABLE] += 1
        self.errors.append(error)

    def _malformed(self, record: _Record, source: str, error: Exception) -> None:
        path: Path = ()
        problem = str(error)
        if isinstance(error, FieldError):
            path, problem = error.path, error.problem
        line = record.line_of(path) if path else record.line
        self.skipped[MALFORMED] += 1
        self.errors.append(
            DecodeError(
                Position(source, line),
                _subject(record.raw, self.namespace),
                json_objects.format_path(path),
                problem,
            )
        )


def _identity(header: _Header, default: _Header) -> tuple[str, str]:
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


def _items(header: _Header, kind: str) -> list[msgspec.Raw] | None:
    """Return the items of a list; None: it is not a list.

    Raises:
        FieldError: It is a List, but its items are not.
    """
    if not kind.endswith(_LIST):
        return None
    is_array = bytes(memoryview(header.items)[:1]) == b"["
    if is_array:
        return msgspec.json.decode(header.items, type=list[msgspec.Raw])
    if kind != _LIST:
        # A kind of its own that happens to be called so.
        return None
    if bytes(header.items) == b"null":
        return []
    raise FieldError(("items",), "expected array")


def _subject(raw: Json, namespace: str) -> str:
    """Name an object that cannot be decoded by what can be read of it, or return ""."""
    try:
        found = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
    kind = found.get("kind") if isinstance(found, dict) else None
    if not isinstance(kind, str):
        return ""
    metadata = found.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str):
        return kind
    if kind == "Node":
        return f"{kind} {name}"
    found_namespace = metadata.get("namespace") or namespace
    return f"{kind} {found_namespace}/{name}"
