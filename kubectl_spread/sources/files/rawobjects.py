"""The objects in a document before they are decoded, and the faults of documents that have none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from kubectl_spread.errors import SourceError
from kubectl_spread.kube.api.types import ListMeta, TypeMeta
from kubectl_spread.kube.custom.groups import is_custom
from kubectl_spread.phrases import plural
from kubectl_spread.sources.decode import json_objects
from kubectl_spread.sources.decode.json_documents import JsonText
from kubectl_spread.sources.decode.json_objects import Content, MalformedFieldError
from kubectl_spread.sources.decode.listing import HEADER, ITEMS, LIST, METADATA, Document, Listing, Record
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


def contents(document: Document) -> Iterator[RawObject | SourceError]:
    """Yield the objects of a document: the members of a list, or the only object, or the fault of the document."""
    match document:
        case SourceError():
            yield document
        case Listing():
            yield from _listed(document)
        case _:
            yield from members(document)


def members(record: Record, default: TypeMeta = NO_HEADER, *, takes_pages: bool = False) -> Iterator[RawObject]:
    """Yield the object of a record, or the members of a list, also of lists inside it.

    Args:
        record: The record.
        default: The header that its object may leave out.
        takes_pages: Whether a list may be one page of a longer list, as of ``kubectl get --raw`` with a limit.
    """
    yield from _members(record, _header(record), default, takes_pages=takes_pages)


def _listed(listing: Listing) -> Iterator[RawObject | SourceError]:
    """Yield the members of a list while it is read; items without a kind wait until the kind of the list is read."""
    waiting: list[tuple[Record, TypeMeta | RawObject]] = []
    is_kubernetes = False
    for item in listing.items:
        if isinstance(item, SourceError):
            yield item
            continue
        header, default = _header(item), _list_header(listing)
        if default or (isinstance(header, TypeMeta) and header.kind and header.api_version):
            is_kubernetes = True
            yield from _members(item, header, default or NO_HEADER)
        else:
            waiting.append((item, header))
    record = Record({**listing.fields, ITEMS: []}, listing.text)
    is_kubernetes = is_kubernetes or kinds.is_meant_as_object(record.content)
    for item, header in waiting if is_kubernetes else ():
        yield from _members(item, header, _list_header(listing) or NO_HEADER)
    # Without its items a list has no members, so only faults are left.
    for member in members(record):
        fault = member.fault or MalformedFieldError(("kind",), "is not a list, but has items")
        yield msgspec.structs.replace(member, fault=fault, is_kubernetes=is_kubernetes)


def _list_header(listing: Listing) -> TypeMeta | None:
    """Return the header that the items of a list may leave out; None as long as it is not read."""
    match [listing.fields.get(name) for name in HEADER]:
        case [str(api_version), str(kind)] if api_version and kind:
            return _item_header(api_version, kind)
    return None


def _item_header(api_version: str, kind: str) -> TypeMeta:
    """Return the header that the items of a list may leave out; items of a ``List`` need their own headers."""
    item_kind = kind.removesuffix(LIST)
    return TypeMeta(api_version=api_version, kind=item_kind) if item_kind else NO_HEADER


def _header(record: Record) -> TypeMeta | RawObject:
    """Return the header of a record, or its fault."""
    try:
        if record.fields is not None:
            # Nothing else of a large list is read for it.
            written = {name: json_objects.values(record.fields.get(name)) for name in HEADER}
            return json_objects.decode(written, TypeMeta)
        return json_objects.decode(record.content, TypeMeta)
    except FAULTS as error:
        return _faulty(record, error)


def _faulty(record: Record, fault: Exception) -> RawObject:
    """Return a record that is not an object; an item of a list is always meant as an object."""
    is_kubernetes = bool(record.path) or kinds.is_meant_as_object(record.content)
    return RawObject(record, fault=fault, is_kubernetes=is_kubernetes)


def _members(
    record: Record, header: TypeMeta | RawObject, default: TypeMeta, *, takes_pages: bool = False
) -> Iterator[RawObject]:
    if isinstance(header, RawObject):
        yield header
        return
    content = record.content
    try:
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
        yield _faulty(record, error)
        return
    if items is None:
        yield RawObject(record, kind, type_, api_version=api_version)
    for element in record.elements(items) if items else ():
        yield from members(element, _item_header(api_version, kind), takes_pages=takes_pages)
    if kind.endswith(LIST) and not takes_pages and (fault := _missing_rest(fields.get(METADATA))):
        yield RawObject(record, kind, fault=fault)


def _missing_rest(metadata: Content) -> MalformedFieldError | None:
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
    """Return the apiVersion and kind of an object.

    Raises:
        MalformedFieldError: One of them is missing.
    """
    kind = header.kind or default.kind
    api_version = header.api_version or default.api_version
    for name, value in (("kind", kind), ("apiVersion", api_version)):
        if not value:
            raise MalformedFieldError((name,), "is missing")
    return api_version, kind


def _items(fields: Mapping[str, Content], api_version: str, kind: str) -> Sequence[Content] | None:
    """Return the items of a list with ``fields``; None: it is not a list. Go writes an empty list as null.

    Raises:
        MalformedFieldError: It is a list of Kubernetes whose items are missing, or are not an array.
    """
    if not kind.endswith(LIST):
        return None
    items = fields.get(ITEMS)
    if isinstance(items, list):
        return items
    if isinstance(items, msgspec.Raw) and bytes(memoryview(items)[:1]) == b"[":
        return msgspec.json.decode(items, type=list[msgspec.Raw])
    if ITEMS in fields and json_objects.is_null(items):
        return []
    if kind in _WITHOUT_ITEMS or (kind != LIST and is_custom(api_version)):
        # In a custom group it is a resource whose kind happens to end in List.
        return None
    raise MalformedFieldError((ITEMS,), "expected array" if ITEMS in fields else "is missing")
