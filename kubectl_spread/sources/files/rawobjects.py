"""The objects in a document before they are decoded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from kubectl_spread.kube.api.types import ListMeta, TypeMeta
from kubectl_spread.kube.custom.objects import is_custom
from kubectl_spread.phrases import plural
from kubectl_spread.sources.decode import json_objects
from kubectl_spread.sources.decode.json_documents import JsonText
from kubectl_spread.sources.decode.json_objects import Json, MalformedFieldError
from kubectl_spread.sources.decode.listing import HEADER, ITEMS, LIST, METADATA, Record
from kubectl_spread.sources.files import kinds
from kubectl_spread.sources.files.kinds import Object

FAULTS: Final = (MalformedFieldError, msgspec.DecodeError, UnicodeDecodeError)
"""The exceptions for JSON that is malformed, or has a field of another type than declared."""
_LONGEST_PATH: Final = 32
"""How many steps may lead to a list; each list around it is two."""
_INCOMPLETE: Final = "the list is not complete: {}; save all of it, as kubectl get -o json does"

_WITHOUT_ITEMS: Final = frozenset({"APIGroupList", "APIResourceList"})
"""Lists of what an API server has, which hold no objects."""


NO_HEADER: Final = TypeMeta()


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


def members(record: Record, default: TypeMeta = NO_HEADER, *, takes_pages: bool = False) -> Iterator[RawObject]:
    """Yield the object of a record, or the members of a list, also of lists inside it.

    Args:
        record: The record.
        default: The header that its object may leave out.
        takes_pages: Whether a list may be one page of a longer list, as of ``kubectl get --raw`` with a limit.
    """
    content = record.content
    try:
        header = json_objects.decode(content if record.fields is None else _header(record.fields), TypeMeta)
        api_version, kind = _identity(header, default)
        fields = record.fields or (json_objects.fields_of(content) if kind.endswith(LIST) else {})
        if isinstance(record.text, JsonText) and ITEMS in fields:
            record.text.confirm_keys(fields[ITEMS])
        items = _items(fields, api_version, kind)
        if items and len(record.path) > _LONGEST_PATH:
            raise MalformedFieldError((), "nested too deeply")
        kinds.confirm_object(api_version, kind, content)
        type_ = None if items is not None else kinds.type_of(api_version, kind)
    except FAULTS as error:
        # An item of a list is always meant as an object.
        yield RawObject(record, fault=error, is_kubernetes=bool(record.path) or kinds.is_meant_as_object(content))
        return
    if items is None:
        yield RawObject(record, kind, type_, api_version=api_version)
    for element in record.elements(items) if items else ():
        yield from members(element, _item_header(api_version, kind), takes_pages=takes_pages)
    if kind.endswith(LIST) and not takes_pages and (fault := _missing_rest(fields.get(METADATA))):
        yield RawObject(record, kind, fault=fault)


def _item_header(api_version: str, kind: str) -> TypeMeta:
    """Return the header that the items of a list may leave out; items of a ``List`` need their own headers."""
    item_kind = kind.removesuffix(LIST)
    return TypeMeta(api_version=api_version, kind=item_kind) if item_kind else NO_HEADER


def _header(fields: Mapping[str, Json]) -> bytes:
    """Return the header of a document with ``fields``; nothing else of a large list is read for it."""
    return msgspec.json.encode({name: fields[name] for name in HEADER if name in fields})


def _missing_rest(metadata: Json | None) -> MalformedFieldError | None:
    """Return the fault of a list with ``metadata`` that is one page of a longer list; None where nothing says so."""
    if metadata is None:
        return None
    try:
        decoded = json_objects.decode(metadata, ListMeta)
    except FAULTS:
        return None
    if decoded.continue_:
        return MalformedFieldError(
            ("metadata", "continue"), _INCOMPLETE.format("a continue token says that pages follow")
        )
    if decoded.remaining_item_count > 0:
        rest = f"it lacks {plural(decoded.remaining_item_count, 'item')}"
        return MalformedFieldError(("metadata", "remainingItemCount"), _INCOMPLETE.format(rest))
    return None


def _identity(header: TypeMeta, default: TypeMeta) -> tuple[str, str]:
    """Return the apiVersion and kind of an object."""
    kind = header.kind or default.kind
    api_version = header.api_version or default.api_version
    for name, value in (("kind", kind), ("apiVersion", api_version)):
        if not value:
            raise MalformedFieldError((name,), "is missing")
    return api_version, kind


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
