"""Pods, nodes and workloads from manifests and from captured output of kubectl."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from typing import Any, BinaryIO, Final

import msgspec

from kubectl_spread.errors import DecodeError, Position, SourceError
from kubectl_spread.kube.api.detail import DetailedPod
from kubectl_spread.kube.api.fieldpath import POD_SPEC
from kubectl_spread.kube.api.types import ListMeta, Namespace, Node, Pod
from kubectl_spread.kube.api.unknownfields import UnknownField, unknown_fields
from kubectl_spread.kube.api.workloads import WorkloadObject, template_path
from kubectl_spread.kube.scheduler.defaultconstraints import MapSelecting
from kubectl_spread.sources import memory
from kubectl_spread.sources.decode import documents, json_documents, json_objects
from kubectl_spread.sources.decode.json_documents import JsonRecord
from kubectl_spread.sources.decode.json_objects import Json, MalformedFieldError, Path
from kubectl_spread.sources.decode.listing import ITEMS, LIST, NOTHING, Document, Header, Listing, Record, of_item
from kubectl_spread.sources.decode.places import Place
from kubectl_spread.sources.decode.window import Window
from kubectl_spread.sources.files import inputs, kinds
from kubectl_spread.sources.files.inputs import File
from kubectl_spread.sources.files.kinds import Object
from kubectl_spread.sources.memory import Claim, TooLargeError

NAMESPACE: Final = "default"
"""That of objects that name none, unless another one is named."""
UNKNOWN_KIND: Final = "unknownKind"
NOT_KUBERNETES: Final = "notKubernetes"
MALFORMED: Final = "malformed"
UNREADABLE: Final = "unreadable"

_FAULTS: Final = (MalformedFieldError, msgspec.DecodeError, UnicodeDecodeError)
_LONGEST_PATH: Final = 32
"""How many steps may lead to a list; each list around it is two."""
_DECODED: Final = 20
"""How many times its size an object may take in memory: an empty constraint, three bytes, takes 64."""
_NOTED: Final = 1 << 10
"""Bytes that an error, or an item that waits for the kind of its list, takes besides its text."""
_LOOSE: Final = json.JSONDecoder(parse_int=float)
_INCOMPLETE: Final = (
    "the list is not complete: a continue token says that pages follow; save all of it, as kubectl get -o json does"
)


class Loaded(msgspec.Struct, frozen=True):
    """An object and where it was read.

    Attributes:
        kind: Its kind, such as ``Pod``.
        object: The object; a namespace that it leaves out is filled in.
        position: Its file and line.
        digest: A hash that equal objects share: of all of a manifest, or of the fields read of a stored object.
        unknown_fields: The fields about spread in its manifest that the API does not have.
    """

    kind: str
    object: Object
    position: Position
    digest: int
    unknown_fields: tuple[UnknownField, ...] = ()

    @property
    def is_manifest(self) -> bool:
        """Whether it is yet to be stored, and says something about pods."""
        return isinstance(self.object, Pod | WorkloadObject) and not self.object.metadata.uid


class ManifestReading(msgspec.Struct, frozen=True):
    """The objects and errors of a run over manifests; it is complete when ``objects`` is exhausted.

    Attributes:
        objects: The objects in the order in which they are written, to be iterated over once.
        files: How many files there are.
        kinds: Counts the objects by their kind.
        skipped: Maps a reason to the number of objects (``unknownKind``, ``malformed``) or of files
            and documents (``unreadable``, ``notKubernetes``) that were left out.
        errors: The errors of malformed or unreadable ones, in the order of reading.
    """

    objects: Iterator[Loaded]
    files: int
    kinds: Counter[str]
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
) -> ManifestReading:
    """Read JSON and YAML, as many documents in as many files as there are, one file at a time.

    Args:
        paths: Files, directories and ``-``. A document in a directory that is not a Kubernetes object is counted;
            in a file that is named, it is an error.
        recursive: Whether directories inside directories are read.
        stdin: The stream that ``-`` names.
        namespace: The namespace of objects that name none.
        detailed: Whether pods are read in detail.
        services: Whether Services are read; else they are of an unknown kind.

    Raises:
        SourceError: A path does not exist, or a directory holds no manifests. What is wrong inside a
            file is in ``Reading.errors``.
    """
    reader = _Reader(stdin, namespace, DetailedPod if detailed else Pod, services=services)
    expanded = inputs.expand(paths, recursive=recursive)
    return ManifestReading(reader.objects(expanded, paths), len(expanded), reader.kinds, reader.skipped, reader.errors)


class RawObject(msgspec.Struct, frozen=True):
    """One object of a file, before it is decoded.

    Attributes:
        record: Its JSON and where it is.
        kind: Its kind; "" where ``fault`` says why that is not known.
        type: The type it is decoded to; None for a kind that is not read.
        fault: Why it is not an object at all.
        is_kubernetes: Whether it is meant as an object of Kubernetes.
    """

    record: Record
    kind: str = ""
    type: type[Object] | None = None
    fault: Exception | None = None
    is_kubernetes: bool = True


class _Reader(msgspec.Struct, frozen=True):
    stdin: BinaryIO
    namespace: str
    pod: type[Pod]
    services: bool
    kinds: Counter[str] = msgspec.field(default_factory=Counter)
    skipped: Counter[str] = msgspec.field(default_factory=Counter)
    errors: list[DecodeError | SourceError] = msgspec.field(default_factory=list)
    claim: Claim = msgspec.field(default_factory=lambda: memory.RUN.claim("the list of errors in the input"))

    def objects(self, expanded: Sequence[File], paths: Sequence[str]) -> Iterator[Loaded]:
        number = 0
        for file in expanded:
            try:
                with closing(inputs.blocks(file.path, self.stdin)) as blocks:
                    window = Window(blocks, file.source)
                    if file.named and json_documents.is_blank(window):
                        raise empty(file)
                    for document in documents.read(window, file.source):
                        number += 1
                        for member in contents(document):
                            yield from self._loaded(member, file)
            except SourceError as error:
                self._unreadable(error)
        if number == self.skipped[NOT_KUBERNETES] and not self.errors:
            self._unreadable(without_objects(paths))

    def _loaded(self, member: RawObject | SourceError, file: File) -> Iterator[Loaded]:
        if isinstance(member, SourceError):
            self._unreadable(member)
            return
        if not (member.is_kubernetes or file.named):
            self.skipped[NOT_KUBERNETES] += 1
            return
        passed_over = member.type is MapSelecting and not self.services
        if passed_over or (member.type is None and member.fault is None):
            self.skipped[UNKNOWN_KIND] += 1
            return
        if member.type is Pod:
            member = msgspec.structs.replace(member, type=self.pod)
        try:
            loaded = load(member, file.source, self.namespace)
        except DecodeError as error:
            self._note(MALFORMED, error)
            return
        except TooLargeError as error:
            self._unreadable(error)
            return
        self.kinds[loaded.kind] += 1
        yield loaded

    def _unreadable(self, error: SourceError) -> None:
        self._note(UNREADABLE, error)

    def _note(self, reason: str, error: DecodeError | SourceError) -> None:
        """Keep an error without the frames that raised it, which hold the object that it is about.

        Raises:
            TooLargeError: There are more errors than fit into memory.
        """
        error.__traceback__ = error.__cause__ = error.__context__ = None
        self.skipped[reason] += 1
        self.errors.append(error)
        self.claim.grow(_NOTED)


def empty(file: File) -> SourceError:
    """Return the error of a file that is named and blank."""
    return SourceError(f"{file.source}: empty, so there is nothing to check (did the command that wrote it fail?)")


def without_objects(paths: Sequence[str]) -> SourceError:
    """Return the error of directories that hold no object of Kubernetes."""
    return SourceError(f"error reading [{' '.join(paths)}]: there are no Kubernetes objects in any file")


def contents(document: Document) -> Iterator[RawObject | SourceError]:
    """Yield the objects of a document: those of a list, or the only one, or the fault of the document."""
    match document:
        case SourceError():
            yield document
        case Listing():
            yield from _listed(document)
        case _:
            header = _header(document)
            yield from _of(document, header, NOTHING)
            yield from _missing_pages(document, header)


def _missing_pages(record: Record, header: Header | RawObject) -> Iterator[RawObject]:
    """Yield the fault of a list that is only one page of it, as of ``kubectl get --raw`` with a limit."""
    if isinstance(header, RawObject) or not header.kind.endswith(LIST):
        return
    with suppress(*_FAULTS):
        if (msgspec.json.decode(header.metadata, type=ListMeta | None) or ListMeta()).continue_:
            yield RawObject(record, header.kind, fault=MalformedFieldError(("metadata", "continue"), _INCOMPLETE))


def _listed(listing: Listing) -> Iterator[RawObject | SourceError]:
    """Yield the members of a list while it is read; items without a kind wait until that of the list is read."""
    waiting: list[tuple[Record, Header | RawObject]] = []
    is_kubernetes = False
    claim = memory.RUN.claim("a list whose kind follows its items")
    for item in listing.items:
        if isinstance(item, SourceError):
            yield item
            continue
        header = _header(item)
        if listing.complete or (isinstance(header, Header) and header.kind and header.api_version):
            is_kubernetes = True
            yield from _of(item, header, listing.of_item)
        else:
            claim.grow(len(memoryview(item.raw)) + _NOTED)
            waiting.append((item, header))
    record = JsonRecord(msgspec.json.encode({**listing.fields, ITEMS: []}), Place(listing.line, 1))
    is_kubernetes = is_kubernetes or kinds.is_meant_as_object(record.raw)
    for item, header in waiting if is_kubernetes else ():
        yield from _of(item, header, listing.of_item)
    yield from _no_list(record, is_kubernetes=is_kubernetes)
    yield from _missing_pages(record, _header(record))


def _no_list(record: Record, *, is_kubernetes: bool) -> Iterator[RawObject]:
    """Yield the fault of a document with items that is not a list; ``record`` is the document without its items."""
    for member in members(record):
        fault = member.fault or MalformedFieldError(("kind",), "is not a list, but has items")
        yield msgspec.structs.replace(member, fault=fault, is_kubernetes=is_kubernetes)


def members(record: Record, default: Header = NOTHING) -> Iterator[RawObject]:
    """Yield the object of a record, or those of a list, whose items may leave out the header ``default``."""
    yield from _of(record, _header(record), default)


def _header(record: Record) -> Header | RawObject:
    """Return the header of a record, or its fault."""
    try:
        return json_objects.decode(record.raw, Header)
    except _FAULTS as error:
        return _faulty(record, error)


def _faulty(record: Record, fault: Exception) -> RawObject:
    """Return a record that is not an object; an item of a list is always meant as one."""
    is_kubernetes = bool(record.path) or kinds.is_meant_as_object(record.raw)
    return RawObject(record, fault=fault, is_kubernetes=is_kubernetes)


def _of(record: Record, header: Header | RawObject, default: Header) -> Iterator[RawObject]:
    if isinstance(header, RawObject):
        yield header
        return
    try:
        api_version, kind = _identity(header, default)
        items = _items(header, kind)
        if items and len(record.path) > _LONGEST_PATH:
            raise MalformedFieldError((), "nested too deeply")
        kinds.confirm_object(api_version, kind, record.raw)
        type_ = None if items is not None else kinds.type_of(api_version, kind)
    except _FAULTS as error:
        yield _faulty(record, error)
        return
    if items is None:
        yield RawObject(record, kind, type_)
        return
    for element in record.elements(items):
        yield from members(element, of_item(api_version, kind))


def load(member: RawObject, source: str, namespace: str) -> Loaded:
    """Decode a member whose type is known, or raise its fault.

    Args:
        member: The member of a file.
        source: The name of the file.
        namespace: The namespace of an object that names none.

    Raises:
        DecodeError: It is not what it says it is.
        TooLargeError: It may not fit into memory.
    """
    record = member.record
    try:
        if not member.is_kubernetes:
            raise MalformedFieldError((), kinds.NOT_KUBERNETES)
        if member.type is None:
            raise member.fault or MalformedFieldError(("kind",), "is not read")
        # A copy, so that an object that is kept does not keep the whole file.
        raw = bytes(record.raw)
        position = Position(source, record.line)
        with memory.RUN.claim(position) as claim:
            claim.grow(len(raw) * _DECODED)
            decoded = json_objects.decode(raw, member.type)
            loaded = Loaded(member.kind, _with_namespace(decoded, namespace), position, 0)
            if not loaded.is_manifest:
                return _with_digest(loaded)
            claim.grow(len(raw) * _DECODED)
            return _with_text(loaded, raw)
    except _FAULTS as error:
        raise _malformed(record, source, namespace, error) from error


def _with_text(loaded: Loaded, raw: bytes) -> Loaded:
    """Add to a manifest its digest and the fields that the API does not have."""
    try:
        written = _loosely(raw)
        digest = hash(json.dumps(written, sort_keys=True))
    except RecursionError as error:
        raise MalformedFieldError((), "nested too deeply") from error
    except UnicodeDecodeError as error:
        raise MalformedFieldError((), "invalid JSON: a string is not UTF-8") from error
    pod_spec = POD_SPEC if isinstance(loaded.object, Pod) else template_path(loaded.kind)
    fields = unknown_fields(written, pod_spec)
    return msgspec.structs.replace(loaded, digest=digest, unknown_fields=fields)


def _loosely(raw: bytes) -> Any:
    """Return JSON values; unlike msgspec it takes numbers that no field can hold, in fields that are not read."""
    return _LOOSE.decode(raw.decode(errors="surrogatepass"))


def _with_digest(loaded: Loaded) -> Loaded:
    """Add to a stored object its digest, which two captures share, with managedFields or without."""
    stored = loaded.object
    if stored.metadata.managed_fields:
        stored = msgspec.structs.replace(stored, metadata=msgspec.structs.replace(stored.metadata, managed_fields=()))
    return msgspec.structs.replace(loaded, digest=hash(msgspec.json.encode(stored)))


def _with_namespace(decoded: Object, namespace: str) -> Object:
    if isinstance(decoded, Node | Namespace) or decoded.metadata.namespace:
        return decoded
    metadata = msgspec.structs.replace(decoded.metadata, namespace=namespace)
    return msgspec.structs.replace(decoded, metadata=metadata)


def _malformed(record: Record, source: str, namespace: str, error: Exception) -> DecodeError:
    path: Path = ()
    problem = str(error)
    if isinstance(error, MalformedFieldError):
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
            raise MalformedFieldError((name,), "is missing")
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
    raise MalformedFieldError(("items",), "expected array")


def _subject(raw: Json, namespace: str) -> str:
    """Name an object that cannot be decoded by its readable fields, or return ""."""
    try:
        manifest = _loosely(bytes(raw))
    except (ValueError, RecursionError):
        return ""
    kind = manifest.get("kind") if isinstance(manifest, dict) else None
    if not isinstance(kind, str):
        return ""
    metadata = manifest.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str):
        return kind
    if kind in ("Node", "Namespace"):
        return f"{kind} {name}"
    found_namespace = metadata.get("namespace") or namespace
    return f"{kind} {found_namespace}/{name}"
