"""The objects in a document before they are decoded: their kinds, and whether they are objects that are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any, Final

import msgspec

from kubectl_spread.kube.api.types import ListMeta, Object, TypeMeta
from kubectl_spread.kube.custom import group_of, is_custom
from kubectl_spread.phrases import plural
from kubectl_spread.sources.decode import json_objects
from kubectl_spread.sources.decode.json_documents import HEADER, ITEMS, LIST, METADATA, JsonRecord, Record
from kubectl_spread.sources.decode.json_objects import Json, MalformedFieldError
from kubectl_spread.sources.decode.resources import OBJECTS, OF_NODE_AUTOSCALERS

_NOT_KUBERNETES: Final = "not a Kubernetes object, which has apiVersion and kind"
_TYPES: Final[Mapping[tuple[str, str], type[Object]]] = {
    (resource.group, resource.kind): resource.type for resource in OBJECTS
}
_AUTOSCALERS: Final[Mapping[tuple[str, str], type[Object]]] = {
    (resource.api_version, resource.kind): resource.type for resource in OF_NODE_AUTOSCALERS
}
"""Maps (apiVersion, kind) to the types of which only stored objects are read; no misspelt kind is one of these."""
_GROUP_OF: Final[Mapping[str, str]] = {**{kind: group for group, kind in _TYPES}, LIST: ""}
_KIND_OF: Final[Mapping[str, str]] = {kind.lower(): kind for kind in _GROUP_OF}
_STATUS: Final = "Status"
_META_GROUP: Final = "meta.k8s.io"
_STATUS_GROUPS: Final = ("", _META_GROUP)
_WITHOUT_SPECS: Final = frozenset({"Table", "PartialObjectMetadata"})
"""Kinds that the API server sends to clients that request only metadata or columns."""
_NAMESAKES: Final = frozenset({("events.k8s.io", "Event")})
"""Kinds of Kubernetes that have the name of a kind of another group that is read."""
_OTHER_KINDS: Final[Mapping[str, frozenset[str]]] = {
    "apps": frozenset({"ControllerRevision", "Scale", "DeploymentRollback"}),
    "batch": frozenset({"JobTemplate"}),
}
"""Maps the groups that have only kinds with pod templates to their few other kinds.

Source: kubernetes v1.37.1 staging/src/k8s.io/api/{apps,batch}/*/register.go; no other kind was added since 1.27.
"""
_ALIKE: Final = 0.85
"""The similarity, by difflib, from which a word counts as a misspelt kind."""
FAULTS: Final = (MalformedFieldError, msgspec.DecodeError, UnicodeDecodeError)
"""The exceptions for JSON that is malformed, or has a field of another type than declared."""
_LONGEST_PATH: Final = 32
"""How many steps may lead to a list; each list around it is two."""
_INCOMPLETE: Final = "the list is not complete: {}; save all of it, as kubectl get -o json does"
_WITHOUT_ITEMS: Final = frozenset({"APIGroupList", "APIResourceList"})
"""Lists of what an API server has, which hold no objects."""
_NO_HEADER: Final = TypeMeta()


class RawObject(msgspec.Struct, frozen=True):
    """One object of a file, before it is decoded.

    Attributes:
        record: Its content and its place in the file.
        kind: Its kind; "" where ``fault`` is the reason why the kind is unknown.
        type: The type that it is decoded to; None for a kind that is not read.
        fault: The reason why it is not an object.
        is_kubernetes: Whether it is meant as a Kubernetes object.
        api_version: Its apiVersion; "" where ``fault`` is the reason why it is unknown.
    """

    record: Record
    kind: str = ""
    type: type[Object] | None = None
    fault: Exception | None = None
    is_kubernetes: bool = True
    api_version: str = ""


def members(record: Record, default: TypeMeta = _NO_HEADER, *, takes_pages: bool = False) -> Iterator[RawObject]:
    """Yield the object of a record, or the members of a list, also of lists inside it.

    Args:
        record: The record.
        default: The header that its object may leave out.
        takes_pages: Whether a list may be one page of a longer list, as of ``kubectl get --raw`` with a limit.
    """
    content = record.content
    try:
        # Nothing but the header of a large list is decoded here.
        top = {name: record.fields[name] for name in HEADER if name in record.fields} if record.fields else None
        header = json_objects.decode(content if top is None else msgspec.json.encode(top), TypeMeta)
        kind, api_version = header.kind or default.kind, header.api_version or default.api_version
        for name, value in (("kind", kind), ("apiVersion", api_version)):
            if not value:
                raise MalformedFieldError((name,), "is missing")
        fields = record.fields or (json_objects.fields_of(content) if kind.endswith(LIST) else {})
        if isinstance(record, JsonRecord) and ITEMS in fields:
            record.confirm_keys(fields[ITEMS])
        items = _items(fields, api_version, kind)
        if items and len(record.path) > _LONGEST_PATH:
            raise MalformedFieldError((), "nested too deeply")
        confirm_object(api_version, kind, content)
        type_ = None if items is not None else type_of(api_version, kind)
    except FAULTS as error:
        # An item of a list is always meant as an object.
        is_kubernetes = bool(record.path) or is_meant_as_object(content)
        fault = error if is_kubernetes else MalformedFieldError((), _NOT_KUBERNETES)
        yield RawObject(record, fault=fault, is_kubernetes=is_kubernetes)
        return
    if items is None:
        yield RawObject(record, kind, type_, api_version=api_version)
    # Only the items of a list of one kind may leave out their headers.
    item_kind = kind.removesuffix(LIST)
    item_header = TypeMeta(api_version=api_version, kind=item_kind) if item_kind else _NO_HEADER
    for element in record.elements(items) if items else ():
        yield from members(element, item_header, takes_pages=takes_pages)
    if kind.endswith(LIST) and not takes_pages and (missing := _missing_rest(fields.get(METADATA))):
        yield RawObject(record, kind, fault=missing)


def _missing_rest(metadata: Json | None) -> MalformedFieldError | None:
    """Return the fault of a list with ``metadata`` that is one page of a longer list; None where nothing says so."""
    try:
        decoded = json_objects.decode(metadata or b"{}", ListMeta)
    except FAULTS:
        return None
    if decoded.continue_:
        rest = "a continue token says that pages follow"
        return MalformedFieldError((METADATA, "continue"), _INCOMPLETE.format(rest))
    if decoded.remaining_item_count > 0:
        rest = f"it lacks {plural(decoded.remaining_item_count, 'item')}"
        return MalformedFieldError((METADATA, "remainingItemCount"), _INCOMPLETE.format(rest))
    return None


def _items(fields: Mapping[str, Json], api_version: str, kind: str) -> Sequence[Json] | None:
    """Return the items of a list with ``fields``; None: it is not a list. Go writes an empty list as null."""
    if not kind.endswith(LIST):
        return None
    items = fields.get(ITEMS)
    if items is not None and bytes(memoryview(items)[:1]) == b"[":
        return msgspec.json.decode(items, type=list[msgspec.Raw])
    if ITEMS in fields and json_objects.is_null(items):
        return []
    if kind in _WITHOUT_ITEMS or (kind != LIST and is_custom(api_version)):
        # In a custom group it is a resource whose kind happens to end in List.
        return None
    raise MalformedFieldError((ITEMS,), "expected array" if ITEMS in fields else "is missing")


def type_of(api_version: str, kind: str) -> type[Object] | None:
    """Return the type of an object; None for a kind that is not read.

    Raises:
        MalformedFieldError: The group has no such kind, and the name is like that of a kind that is read.
    """
    type_ = _TYPES.get((group_of(api_version), kind)) or _AUTOSCALERS.get((api_version, kind))
    if type_ is None and (fault := _misnamed(api_version, kind)):
        raise fault
    return type_


def confirm_object(api_version: str, kind: str, content: Json) -> None:
    """Raise for an answer of the API server that is not an object that it stores.

    Raises:
        MalformedFieldError: It is a Status, mostly an error, or has objects without their specs.
    """
    if kind == _STATUS and group_of(api_version) in _STATUS_GROUPS:
        raise MalformedFieldError((), _status_text(json_objects.values(content)))
    if kind.removesuffix(LIST) in _WITHOUT_SPECS and group_of(api_version) == _META_GROUP:
        raise MalformedFieldError(
            (), "this holds no specs, so there is nothing to check; save the objects with -o json"
        )


def is_meant_as_object(content: Json) -> bool:
    """Tell whether a document is meant as a Kubernetes object, unlike a workflow of a CI or the values of a chart.

    Such a document has apiVersion and kind, or one of them and metadata, or a kind that is read.
    """
    try:
        fields = json_objects.fields_of(content)
        header = [name for name in HEADER if json_objects.values(fields.get(name)) not in (None, "")]
    except MalformedFieldError:
        return False
    except (msgspec.DecodeError, UnicodeDecodeError):
        return True
    if not header:
        return False
    if len(header) == len(HEADER) or METADATA in fields:
        return True
    kind = json_objects.values(fields.get("kind"))
    return isinstance(kind, str) and kind.removesuffix(LIST) in ("", *_GROUP_OF)


@cache
def _misnamed(api_version: str, kind: str) -> MalformedFieldError | None:
    """Return the fault of a kind that Kubernetes does not have; None where it may exist."""
    group = group_of(api_version)
    if is_custom(api_version) or (group, kind) in _NAMESAKES:
        return None
    if (group, kind.removesuffix(LIST)) in _TYPES:
        return None
    problem = f'"{kind}" is not a kind of {api_version}'
    near = get_close_matches(kind.lower(), _KIND_OF, 1, _ALIKE)
    if not near:
        kinds = _OTHER_KINDS.get(group)
        exists = kinds is None or kind.removesuffix(LIST) in kinds
        return None if exists else MalformedFieldError(("kind",), problem)
    nearest = _KIND_OF[near[0]]
    nearest_version = f"{_GROUP_OF[nearest]}/v1".removeprefix("/")
    if nearest == kind:
        return MalformedFieldError(("apiVersion",), f'{problem}; did you mean "apiVersion: {nearest_version}"?')
    of_version = "" if _GROUP_OF[nearest] == group else f" of {nearest_version}"
    return MalformedFieldError(("kind",), f'{problem}; did you mean "kind: {nearest}"{of_version}?')


def _status_text(status: Any) -> str:
    code, reason, message = (status.get(name) for name in ("code", "reason", "message"))
    if status.get("status") == "Success":
        return "this is an answer of the API server, not an object"
    error = " ".join(str(part) for part in (code, reason) if part)
    return f"this is an API error, not an object: {error or 'no code'}: {message or 'no message'}"
