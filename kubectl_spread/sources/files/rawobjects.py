"""The objects in a document, before they are decoded: those of a list, or the only one, or why there is none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import msgspec

from kubectl_spread.errors import SourceError
from kubectl_spread.kube.api.types import ListMeta
from kubectl_spread.sources import memory
from kubectl_spread.sources.decode import json_objects
from kubectl_spread.sources.decode.json_documents import JsonRecord
from kubectl_spread.sources.decode.json_objects import MalformedFieldError
from kubectl_spread.sources.decode.listing import ITEMS, LIST, NOTHING, Document, Header, Listing, Record, of_item
from kubectl_spread.sources.decode.places import Place
from kubectl_spread.sources.files import kinds
from kubectl_spread.sources.files.kinds import Object

FAULTS: Final = (MalformedFieldError, msgspec.DecodeError, UnicodeDecodeError)
"""What is raised for JSON that is not what it should be."""
NOTED: Final = 1 << 10
"""Bytes that an error, or an item that waits for the kind of its list, takes besides its text."""
_LONGEST_PATH: Final = 32
"""How many steps may lead to a list; each list around it is two."""
_INCOMPLETE: Final = (
    "the list is not complete: a continue token says that pages follow; save all of it, as kubectl get -o json does"
)


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
    with suppress(*FAULTS):
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
            claim.grow(len(memoryview(item.raw)) + NOTED)
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
    except FAULTS as error:
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
    except FAULTS as error:
        yield _faulty(record, error)
        return
    if items is None:
        yield RawObject(record, kind, type_)
        return
    for element in record.elements(items):
        yield from members(element, of_item(api_version, kind))


def _identity(header: Header, default: Header) -> tuple[str, str]:
    """Return the apiVersion and kind of an object.

    Raises:
        MalformedFieldError: There is none.
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
        MalformedFieldError: It is a List, but its items are not.
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
