"""Pods, nodes and workloads from manifests and from captured output of kubectl."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from kubectl_spread.errors import DecodeError, Position, SourceError
from kubectl_spread.kube.api.field import POD_SPEC
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import Node, Object, Pod
from kubectl_spread.kube.api.unknownfields import UnknownField, unknown_fields, unknown_in_pod_spec
from kubectl_spread.kube.api.workloads import WorkloadObject, template_path
from kubectl_spread.kube.custom import CustomObject, group_of, is_custom, kind_name
from kubectl_spread.kube.nodeautoscaling import STATUS_NAME, AutoscalerObject, ConfigMap
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import Service
from kubectl_spread.phrases import did_you_mean
from kubectl_spread.sources.decode import config_maps, json_objects
from kubectl_spread.sources.decode.json_documents import Record
from kubectl_spread.sources.decode.json_objects import Json, MalformedFieldError, Path
from kubectl_spread.sources.decode.resources import CLUSTER_WIDE
from kubectl_spread.sources.files import chosen, inputs, rawobjects
from kubectl_spread.sources.files.chosen import ChosenFiles, File
from kubectl_spread.sources.files.heldtemplates import confirm_rendered, held_templates
from kubectl_spread.sources.files.rawobjects import FAULTS, RawObject

NAMESPACE: Final = "default"
"""The namespace of objects that name none, by default."""
UNKNOWN_KIND: Final = "unknownKind"
NOT_KUBERNETES: Final = "notKubernetes"
KUSTOMIZE_PATCH: Final = "kustomizePatch"
MALFORMED: Final = "malformed"
UNREADABLE: Final = "unreadable"

MOST_ERRORS: Final = 1_000
"""The most errors of one file that are reported."""
_LARGEST: Final = 3 << 20
"""The bytes of the largest object, as JSON without white space: more than that no API server accepts.

Source: kubernetes v1.37.1 staging/src/k8s.io/apiserver/pkg/server/config.go, MaxRequestBodyBytes. That is twice the
--max-request-bytes of etcd, since JSON is longer than the form that is stored.
"""
_SIGNS: Final = (b'"containers"', b'"topologySpreadConstraints"', b'"domain"', b"kubevirt.io/", b"\\u")
"""Text of which an object with a template has some; a key may be written with escapes."""
_OLD_TEMPLATES: Final = frozenset({"ControllerRevision"})
"""The kind of Kubernetes that holds templates of which no pods are made any more."""


class Loaded(msgspec.Struct, frozen=True):
    """An object and where it was read.

    Attributes:
        kind: Its kind, such as ``Pod``.
        object: The object; a namespace that it leaves out is filled in.
        position: Its file and line.
        position_of: Returns the position of a field in it, or of the innermost field around a missing one.
        digest: A hash that equal objects share: of a whole manifest, or of the decoded fields of a stored object.
        unknown_fields: The fields about spread in its manifest that the API does not have.
        names_namespace: Whether its namespace was read, and not filled in.
    """

    kind: str
    object: Object | CustomObject
    position: Position
    position_of: Callable[[Path], Position]
    digest: int
    unknown_fields: tuple[UnknownField, ...] = ()
    names_namespace: bool = True

    def with_namespace(self, namespace: str) -> Loaded:
        """Return it in another namespace than the one that was filled in; as it is if it names its own."""
        if self.names_namespace or isinstance(self.object, CustomObject):
            return self
        return msgspec.structs.replace(self, object=_moved(self.object, namespace))

    @property
    def is_manifest(self) -> bool:
        """Whether it is a pod or workload that is not stored yet."""
        return _is_manifest(self.object)


class ManifestReading:
    """The objects and errors in files, read one file at a time; it is complete when ``objects`` is exhausted.

    Attributes:
        objects: The objects in the order of the files, to be iterated over once.
        files: The number of files.
        notes: The warnings of kubectl, if it rendered them.
        kinds: Counts the objects by their kind.
        patches: The files that are patches of a kustomization, which are not read.
        skipped: Maps a reason to the number of objects (``unknownKind``, ``malformed``) or of files
            and documents (``unreadable``, ``notKubernetes``, ``kustomizePatch``) that were left out.
        errors: The errors of malformed or unreadable ones, in the order of reading.
        other_kinds: Counts the objects of kinds that are not read.
        held_templates: Counts the held templates of custom objects by the kind of the object.
        namespaces: The namespaces of the objects, and those whose Namespace was read.
    """

    def __init__(self, files: ChosenFiles, *, namespace: str = NAMESPACE, services: bool = False) -> None:
        """Prepare to read all JSON and YAML documents of files.

        Args:
            files: The files. A document in a directory that is not a Kubernetes object is counted; in a file that is
                named, it is an error.
            namespace: The namespace of objects that name none.
            services: Whether Services are read; else they are of an unknown kind.

        Raises:
            SourceError: A path does not exist, or a directory has no manifests. Errors inside files are in ``errors``.
        """
        expanded = files.expand()
        self.patches = chosen.patches(files.paths, expanded)
        read = [file for file in expanded if file not in self.patches]
        self.objects = self._objects(read)
        self.files = len(read)
        self.notes = files.notes
        self.kinds = Counter[str]()
        self.skipped = Counter[str]({KUSTOMIZE_PATCH: len(self.patches)} if self.patches else {})
        self.other_kinds = Counter[str]()
        self.errors: list[DecodeError | SourceError] = []
        self.held_templates = Counter[str]()
        self.namespaces = set[str]()
        self._files = files
        self._namespace = namespace
        self._services = services

    def unknown_namespace(self, namespace: str) -> str:
        """Return the error that a namespace is not in the files, though another one is; "" for none."""
        others = self.namespaces - {""}
        if not namespace or not others or namespace in others:
            return ""
        return f'namespace "{namespace}" not found in the files{did_you_mean(namespace, others)}'

    def _objects(self, expanded: Sequence[File]) -> Iterator[Loaded]:
        number = 0
        for file in expanded:
            most = len(self.errors) + MOST_ERRORS
            try:
                for document in inputs.documents(self._files.content(file), file.source):
                    number += 1
                    if isinstance(document, SourceError):
                        self._note(UNREADABLE, document)
                    else:
                        yield from self._members(document, file, most)
                    self._confirm_errors(most, file)
            except SourceError as error:
                self._note(UNREADABLE, error)
        if number == self.skipped[NOT_KUBERNETES] and not self.errors:
            self._note(UNREADABLE, without_objects(self._files.paths))

    def _members(self, document: Record, file: File, most: int) -> Iterator[Loaded]:
        for member in rawobjects.members(document):
            if not (member.is_kubernetes or file.named):
                self.skipped[NOT_KUBERNETES] += 1
                continue
            try:
                loaded = self._decoded(member, file)
            except DecodeError as error:
                self._note(MALFORMED, error)
                self._confirm_errors(most, file)
                continue
            if loaded is None:
                self.skipped[UNKNOWN_KIND] += 1
                self.other_kinds[member.kind] += 1
                continue
            self.kinds[loaded.kind] += 1
            metadata = loaded.object.metadata
            self.namespaces.add(metadata.name if loaded.kind == "Namespace" else metadata.namespace)
            if isinstance(loaded.object, CustomObject):
                self.held_templates[loaded.kind] += len(loaded.object.templates)
            yield loaded

    def _confirm_errors(self, most: int, file: File) -> None:
        if len(self.errors) > most:
            raise SourceError(f"{file.source}: more than {MOST_ERRORS:,} errors, rest not read")

    def _decoded(self, member: RawObject, file: File) -> Loaded | None:
        if member.type is Service and not self._services:
            return None
        return load(member, file.source, self._namespace)

    def _note(self, reason: str, error: DecodeError | SourceError) -> None:
        """Keep an error without its traceback, whose frames hold the object with the error."""
        error.__traceback__ = error.__cause__ = error.__context__ = None
        self.skipped[reason] += 1
        self.errors.append(error)


def without_objects(paths: Sequence[str]) -> SourceError:
    """Return the error for paths without any Kubernetes object."""
    return SourceError(f"error reading [{' '.join(paths)}]: there are no Kubernetes objects in any file")


def load(member: RawObject, source: str, namespace: str = NAMESPACE) -> Loaded | None:
    """Decode a member of a file; None for an object of a kind that is not read and describes no pods.

    Args:
        member: The member.
        source: The name of the file.
        namespace: The namespace of an object that names none.

    Raises:
        DecodeError: It is not an object, or a field has an invalid value.
    """
    record, kind = member.record, member.kind
    try:
        if member.fault:
            raise member.fault
        if member.type is not None and issubclass(member.type, AutoscalerObject):
            decoded: Object | CustomObject | None = _of_autoscaler(member, member.type)
        else:
            decoded = _custom(member, namespace) if member.type is None else _typed(member, member.type)
        if decoded is None:
            return None
        names_namespace = isinstance(decoded, CustomObject) or bool(decoded.metadata.namespace)
        if not (isinstance(decoded, CustomObject) or names_namespace or member.kind in CLUSTER_WIDE):
            decoded = _moved(decoded, namespace)
        _confirm_size(record.content)
        if isinstance(decoded, CustomObject):
            kind = kind_name(member.api_version, kind)
        digest, fields = _text(record.content, kind, decoded)
    except (*FAULTS, RecursionError) as error:
        raise _malformed(record, source, namespace, error) from error
    position = Position(source, record.place.line)
    return Loaded(kind, decoded, position, partial(record.position_of, source), digest, fields, names_namespace)


def _moved(loaded: Object, namespace: str) -> Object:
    return msgspec.structs.replace(loaded, metadata=msgspec.structs.replace(loaded.metadata, namespace=namespace))


def _typed(member: RawObject, type_: type[Object]) -> Object:
    decode = json_objects.decode_item if member.record.path else json_objects.decode
    decoded = decode(member.record.content, type_)
    if isinstance(decoded, Node) and not decoded.metadata.name:
        # A pod on such a node could not be told from one that waits.
        raise MalformedFieldError(("metadata", "name"), "a Node needs a name")
    return decoded


def _of_autoscaler(member: RawObject, type_: type[AutoscalerObject]) -> AutoscalerObject | None:
    """Return a stored object of a node autoscaler; None for a manifest, which has no state, and other ConfigMaps."""
    content = bytes(member.record.content)
    # Other objects, which may be malformed, are not decoded.
    if b'"uid"' not in content or (type_ is ConfigMap and STATUS_NAME.encode() not in content):
        return None
    metadata = json_objects.decode(content, Object).metadata
    if not metadata.uid or (type_ is ConfigMap and not ConfigMap(metadata=metadata).is_status):
        return None
    decoded = json_objects.decode(content, type_)
    if isinstance(decoded, ConfigMap):
        if not decoded.is_status:
            return None
        return config_maps.with_status(decoded)
    return decoded


def _custom(member: RawObject, namespace: str) -> CustomObject | None:
    """Return an object of a kind that Kubernetes does not define; None if it describes no pods."""
    content, api_version, kind = bytes(member.record.content), member.api_version, member.kind
    if kind in _OLD_TEMPLATES or not any(sign in content for sign in _SIGNS):
        return None
    group = group_of(api_version)
    held = tuple(held_templates(json_objects.values(content), group, kind))
    if not held:
        return None
    if not is_custom(api_version):
        problem = f'"{kind}" is not a known kind of {api_version}, so its pod template ({held[0].path})'
        raise MalformedFieldError(("kind",), f"{problem} is not evaluated")
    metadata = json_objects.decode(content, Object).metadata
    return CustomObject(group, msgspec.structs.replace(metadata, namespace=metadata.namespace or namespace), held)


def _is_manifest(decoded: Object | CustomObject) -> bool:
    return isinstance(decoded, Pod | WorkloadObject | CustomObject) and not decoded.metadata.uid


def _text(content: Json, kind: str, decoded: Object | CustomObject) -> tuple[int, tuple[UnknownField, ...]]:
    """Return the digest of an object, and the fields of a manifest that the API does not have.

    Raises:
        MalformedFieldError: A manifest has placeholders.

    The digest of a stored object does not depend on whether the capture has managedFields; that of a custom object does
    not depend on its labels, status and versions.
    """
    value = json_objects.values(content) if _is_manifest(decoded) else None
    if isinstance(decoded, CustomObject):
        parts = [(str(held.path), msgspec.json.encode(held.template), held.replicas) for held in decoded.templates]
        return hash((decoded.group, decoded.metadata.uid, *parts)), _misspelt(value, decoded) if value else ()
    if value is not None:
        pod_spec = POD_SPEC if isinstance(decoded, Pod) else template_path(kind)
        confirm_rendered(value, pod_spec)
        return hash(json.dumps(value, sort_keys=True)), unknown_fields(value, pod_spec)
    if decoded.metadata.managed_fields:
        metadata = msgspec.structs.replace(decoded.metadata, managed_fields=())
        decoded = msgspec.structs.replace(decoded, metadata=metadata)
    return hash(msgspec.json.encode(decoded)), ()


def _misspelt(value: Any, custom: CustomObject) -> tuple[UnknownField, ...]:
    """Return the misspelt fields in the pod specs of an object.

    Only fields with a right name nearby are reported: a kind may have fields that pods do not have.
    """
    fields: list[UnknownField] = []
    for held in custom.templates:
        pod_spec = value
        for step in held.path:
            pod_spec = pod_spec[step]
        fields += unknown_in_pod_spec(pod_spec, held.path) if held.complete else ()
    return tuple(fields)


def _confirm_size(content: Json) -> None:
    """Raise for an object that is larger than any that an API server could hold."""
    raw = memoryview(content)
    if len(raw) > _LARGEST and (size := len(msgspec.json.format(bytes(raw), indent=-1))) > _LARGEST:
        problem = f"{size:,} bytes as JSON: the API server takes objects of {_LARGEST:,} bytes at most"
        raise MalformedFieldError((), problem)


def _malformed(record: Record, source: str, namespace: str, error: Exception) -> DecodeError:
    path: Path = ()
    problem = str(error)
    match error:
        case MalformedFieldError():
            path, problem = error.path, error.problem
        case RecursionError():
            problem = "nested too deeply"
        case UnicodeDecodeError():
            problem = "invalid JSON: a string is not UTF-8"
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
    if kind in CLUSTER_WIDE:
        return ObjectRef("", kind, name)
    own_namespace = metadata.get("namespace")
    return ObjectRef(own_namespace if own_namespace and isinstance(own_namespace, str) else namespace, kind, name)


class _Seen(NamedTuple):
    digest: int
    position: Position
    only: bool
    """Whether no other object can have its name."""
    group: str
    """The API group of an object of a kind that Kubernetes does not define."""


class Repeats:
    """The objects that were read so far, to recognize others of the same kind, namespace and name.

    Manifests of one name may differ, as two overlays are for two clusters. Stored objects and nodes may not, because a
    cluster has only one object of a name.
    """

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
        self._seen[ref] = (*namesakes, _Seen(loaded.digest, loaded.position, only, group))
        for namesake in namesakes:
            if only and namesake.only and namesake.group == group:
                subject = f"{loaded.kind} {metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
                problem = f"another object of this name is in {namesake.position}, and a cluster has only one"
                raise SourceError(
                    f"{loaded.position}: {subject}: {problem}: check captures of one moment and of one cluster"
                )
        return 0 if only else len(namesakes)
