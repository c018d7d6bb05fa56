"""Pods, nodes and workloads from manifests and from captured output of kubectl."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import BinaryIO, Final

import msgspec

from kubectl_spread import errors
from kubectl_spread.errors import DecodeError, Position, SourceError
from kubectl_spread.kube.api.field import POD_SPEC
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.sparse import DetailedPod
from kubectl_spread.kube.api.types import Namespace, Node, Pod
from kubectl_spread.kube.api.unknownfields import UnknownField, unknown_fields
from kubectl_spread.kube.api.workloads import WorkloadObject, template_path
from kubectl_spread.kube.custom.objects import CustomObject, kind_name
from kubectl_spread.kube.scheduler.defaultconstraints import Service
from kubectl_spread.kube.scheduler.volumes import PersistentVolume
from kubectl_spread.sources.decode import documents, json_documents, json_objects
from kubectl_spread.sources.decode.json_objects import Json, MalformedFieldError, Path
from kubectl_spread.sources.decode.listing import Record
from kubectl_spread.sources.files import customobjects, inputs, kinds, rawobjects
from kubectl_spread.sources.files.inputs import File
from kubectl_spread.sources.files.kinds import Object
from kubectl_spread.sources.files.rawobjects import FAULTS, RawObject

NAMESPACE: Final = "default"
"""The namespace of objects that name none, by default."""
UNKNOWN_KIND: Final = "unknownKind"
NOT_KUBERNETES: Final = "notKubernetes"
MALFORMED: Final = "malformed"
UNREADABLE: Final = "unreadable"

MOST_ERRORS: Final = 1_000
"""The most errors of one file that are reported."""
_LARGEST: Final = 3 << 20
"""The bytes of the largest object, as JSON without white space: more than that no API server accepts.

Source: kubernetes v1.37.1 staging/src/k8s.io/apiserver/pkg/server/config.go, MaxRequestBodyBytes. That is twice the
--max-request-bytes of etcd, since JSON is longer than the form that is stored.
"""


class Loaded(msgspec.Struct, frozen=True):
    """An object and where it was read.

    Attributes:
        kind: Its kind, such as ``Pod``.
        object: The object; a namespace that it leaves out is filled in.
        position: Its file and line.
        position_of: Returns the position of a field in it, or of the innermost field around a missing one.
        digest: A hash that equal objects share: of a whole manifest, or of the decoded fields of a stored object.
        unknown_fields: The fields about spread in its manifest that the API does not have.
    """

    kind: str
    object: Object | CustomObject
    position: Position
    position_of: Callable[[Path], Position]
    digest: int
    unknown_fields: tuple[UnknownField, ...] = ()

    @property
    def is_manifest(self) -> bool:
        """Whether it is a pod or workload that is not stored yet."""
        return isinstance(self.object, Pod | WorkloadObject | CustomObject) and not self.object.metadata.uid


class ManifestReading(msgspec.Struct, frozen=True):
    """The objects and errors in files; it is complete when ``objects`` is exhausted.

    Attributes:
        objects: The objects in the order of the files, to be iterated over once.
        files: The number of files.
        kinds: Counts the objects by their kind.
        skipped: Maps a reason to the number of objects (``unknownKind``, ``malformed``) or of files
            and documents (``unreadable``, ``notKubernetes``) that were left out.
        errors: The errors of malformed or unreadable ones, in the order of reading.
        held_templates: Counts the held templates of custom objects by the kind of the object.
    """

    objects: Iterator[Loaded]
    files: int
    kinds: Counter[str]
    skipped: Counter[str]
    errors: list[DecodeError | SourceError]
    held_templates: Counter[str]


def read(
    paths: Sequence[str],
    *,
    recursive: bool,
    stdin: BinaryIO,
    stdin_name: str = errors.STDIN,
    namespace: str = NAMESPACE,
    detailed: bool = False,
    services: bool = False,
) -> ManifestReading:
    """Read all JSON and YAML documents of files, one file at a time.

    Args:
        paths: Files, directories and ``-``. A document in a directory that is not a Kubernetes object is counted;
            in a file that is named, it is an error.
        recursive: Whether directories inside directories are read.
        stdin: The stream that ``-`` names.
        stdin_name: The name of that stream in messages.
        namespace: The namespace of objects that name none.
        detailed: Whether pods are read in detail.
        services: Whether Services are read; else they are of an unknown kind.

    Raises:
        SourceError: A path does not exist, or a directory has no manifests. Errors inside files are in
            ``ManifestReading.errors``.
    """
    ignored = () if services else (Service,)
    reader = _Reader(stdin, namespace, DetailedPod if detailed else Pod, ignored)
    expanded = inputs.expand(paths, recursive=recursive, stdin_name=stdin_name)
    return ManifestReading(
        reader.objects(expanded, paths),
        len(expanded),
        reader.kinds,
        reader.skipped,
        reader.errors,
        reader.held_templates,
    )


class _Reader(msgspec.Struct, frozen=True):
    stdin: BinaryIO
    namespace: str
    pod: type[Pod]
    ignored: tuple[type[Object], ...]
    kinds: Counter[str] = msgspec.field(default_factory=Counter)
    skipped: Counter[str] = msgspec.field(default_factory=Counter)
    errors: list[DecodeError | SourceError] = msgspec.field(default_factory=list)
    held_templates: Counter[str] = msgspec.field(default_factory=Counter)

    def objects(self, expanded: Sequence[File], paths: Sequence[str]) -> Iterator[Loaded]:
        number = 0
        for file in expanded:
            try:
                most = len(self.errors) + MOST_ERRORS
                body = inputs.content(file.path, self.stdin)
                if file.named and json_documents.is_blank(body):
                    raise empty(file)
                for document in documents.read(body, file.source):
                    number += 1
                    if isinstance(document, SourceError):
                        self._unreadable(document)
                        self._confirm_errors(most, file)
                        continue
                    for member in rawobjects.members(document):
                        yield from self._loaded(member, file)
                        self._confirm_errors(most, file)
            except SourceError as error:
                self._unreadable(error)
        if number == self.skipped[NOT_KUBERNETES] and not self.errors:
            self._unreadable(without_objects(paths))

    def _confirm_errors(self, most: int, file: File) -> None:
        if len(self.errors) > most:
            raise SourceError(f"{file.source}: more than {MOST_ERRORS:,} errors, rest not read")

    def _loaded(self, member: RawObject, file: File) -> Iterator[Loaded]:
        if not (member.is_kubernetes or file.named):
            self.skipped[NOT_KUBERNETES] += 1
            return
        try:
            loaded = self._decoded(member, file)
        except DecodeError as error:
            self._note(MALFORMED, error)
            return
        if loaded is None:
            self.skipped[UNKNOWN_KIND] += 1
            return
        self.kinds[loaded.kind] += 1
        if isinstance(loaded.object, CustomObject):
            self.held_templates[loaded.kind] += len(loaded.object.templates)
        yield loaded

    def _decoded(self, member: RawObject, file: File) -> Loaded | None:
        """Return an object; None for one that is not read."""
        if member.type in self.ignored:
            return None
        if member.type is None and member.fault is None:
            return _load_custom(member, file.source, self.namespace)
        if member.type is Pod:
            member = msgspec.structs.replace(member, type=self.pod)
        return load(member, file.source, self.namespace)

    def _unreadable(self, error: SourceError) -> None:
        self._note(UNREADABLE, error)

    def _note(self, reason: str, error: DecodeError | SourceError) -> None:
        """Keep an error without its traceback, whose frames hold the object with the error."""
        error.__traceback__ = error.__cause__ = error.__context__ = None
        self.skipped[reason] += 1
        self.errors.append(error)


def empty(file: File) -> SourceError:
    """Return the error for a blank file that the user named."""
    return SourceError(f"{file.source}: empty, so there is nothing to check (did the command that wrote it fail?)")


def without_objects(paths: Sequence[str]) -> SourceError:
    """Return the error for paths without any Kubernetes object."""
    return SourceError(f"error reading [{' '.join(paths)}]: there are no Kubernetes objects in any file")


def load(member: RawObject, source: str, namespace: str) -> Loaded:
    """Decode a member whose type is known, or raise its fault.

    Args:
        member: The member of a file.
        source: The name of the file.
        namespace: The namespace of an object that names none.

    Raises:
        DecodeError: A field has an invalid value, or the kind is not read.
    """
    record = member.record
    try:
        if not member.is_kubernetes:
            raise MalformedFieldError((), kinds.NOT_KUBERNETES)
        if member.type is None:
            raise member.fault or MalformedFieldError(("kind",), "is not read")
        decode = json_objects.decode_item if record.path else json_objects.decode
        decoded = decode(record.content, member.type)
        _confirm_size(record.content)
        decoded = _with_namespace(decoded, namespace)
        loaded = _loaded(record, source, member.kind, decoded)
        if not loaded.is_manifest:
            return msgspec.structs.replace(loaded, digest=_digest(decoded))
        return _with_text(loaded, record.content)
    except FAULTS as error:
        raise _malformed(record, source, namespace, error) from error


def _load_custom(member: RawObject, source: str, namespace: str) -> Loaded | None:
    """Return an object of a kind that Kubernetes does not define; None if it describes no pods."""
    if not customobjects.may_be_read(member):
        return None
    record = member.record
    try:
        custom = customobjects.decode(record.content, member.api_version, member.kind, namespace)
        if custom is None:
            return None
        _confirm_size(record.content)
        loaded = _loaded(record, source, kind_name(member.api_version, member.kind), custom)
        loaded = msgspec.structs.replace(loaded, digest=customobjects.digest(custom))
        if not loaded.is_manifest:
            return loaded
        return msgspec.structs.replace(loaded, unknown_fields=customobjects.unknown_fields(record.content, custom))
    except FAULTS as error:
        raise _malformed(record, source, namespace, error) from error


def _loaded(record: Record, source: str, kind: str, decoded: Object | CustomObject) -> Loaded:
    """Return a decoded object, whose positions need the text of its record but not the content."""
    place = msgspec.structs.replace(record, content=b"")
    return Loaded(kind, decoded, Position(source, record.line_of()), partial(place.position_of, source), 0)


def _confirm_size(content: Json) -> None:
    """Raise for an object that is larger than any that an API server could hold."""
    raw = memoryview(content)
    if len(raw) > _LARGEST and (size := len(msgspec.json.format(bytes(raw), indent=-1))) > _LARGEST:
        problem = f"{size:,} bytes as JSON: the API server takes objects of {_LARGEST:,} bytes at most"
        raise MalformedFieldError((), problem)


def _with_text(loaded: Loaded, content: Json) -> Loaded:
    """Add to a manifest its digest and the fields that the API does not have."""
    try:
        value = json_objects.values(content)
        digest = hash(json.dumps(value, sort_keys=True))
    except RecursionError as error:
        raise MalformedFieldError((), "nested too deeply") from error
    except UnicodeDecodeError as error:
        raise MalformedFieldError((), "invalid JSON: a string is not UTF-8") from error
    pod_spec = POD_SPEC if isinstance(loaded.object, Pod) else template_path(loaded.kind)
    fields = unknown_fields(value, pod_spec)
    return msgspec.structs.replace(loaded, digest=digest, unknown_fields=fields)


def _digest(stored: Object) -> int:
    """Return the digest of a stored object, which does not depend on whether the capture has managedFields."""
    if stored.metadata.managed_fields:
        stored = msgspec.structs.replace(stored, metadata=msgspec.structs.replace(stored.metadata, managed_fields=()))
    return hash(msgspec.json.encode(stored))


def _with_namespace(decoded: Object, namespace: str) -> Object:
    if isinstance(decoded, Node | Namespace | PersistentVolume) or decoded.metadata.namespace:
        return decoded
    metadata = msgspec.structs.replace(decoded.metadata, namespace=namespace)
    return msgspec.structs.replace(decoded, metadata=metadata)


def _malformed(record: Record, source: str, namespace: str, error: Exception) -> DecodeError:
    path: Path = ()
    problem = str(error)
    if isinstance(error, MalformedFieldError):
        path, problem = error.path, error.problem
    where = json_objects.format_path((*record.path, *path))
    position, ref = Position(source, record.line_of(path)), _ref(record.content, namespace)
    if ref is None or not ref.name:
        return DecodeError(position, ref.kind if ref else "", where, problem)
    subject = f"{ref.kind} {ref.namespace}/{ref.name}" if ref.namespace else f"{ref.kind} {ref.name}"
    return DecodeError(position, subject, where, problem, ref=ref)


def _ref(content: Json, namespace: str) -> ObjectRef | None:
    """Return an object that cannot be decoded by its readable fields; None where even its kind is not readable."""
    try:
        manifest = json_objects.values(content)
    except (ValueError, MalformedFieldError):
        return None
    kind = manifest.get("kind") if isinstance(manifest, dict) else None
    if not isinstance(kind, str):
        return None
    metadata = manifest.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str):
        return ObjectRef("", kind, "")
    if kind in ("Node", "Namespace", "PersistentVolume"):
        return ObjectRef("", kind, name)
    own_namespace = metadata.get("namespace")
    return ObjectRef(own_namespace if own_namespace and isinstance(own_namespace, str) else namespace, kind, name)
