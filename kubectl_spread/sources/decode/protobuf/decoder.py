"""Typed objects from protobuf, by message classes that have only the declared fields.

The parser skips all other fields. Parts that pods of one template share stay bytes, and each distinct byte string is
decoded once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from typing import Any, Final, Generic, TypeAlias, TypeVar

import msgspec

from kubectl_spread.kube.api.types import IntOrString, ListMeta, Message, TypeMeta
from kubectl_spread.sources.decode.protobuf import descriptors
from kubectl_spread.sources.decode.protobuf.declaration import Cardinality, DeclaredField
from kubectl_spread.sources.decode.protobuf.descriptors import SCALARS, Classes, class_name, protobuf_fields
from kubectl_spread.sources.decode.resources import Page

MAGIC: Final = b"k8s\x00"
"""The first bytes of a response in protobuf; a runtime.Unknown that holds the object follows."""

_FIRST: Final = 0x0A
_SECOND: Final = 0x12
"""The tags of fields 1 and 2 with a length: type and object of an envelope, metadata and objects of a list."""
_VARINT_GOES_ON: Final = 0x80


def type_meta(body: bytes | bytearray) -> TypeMeta:
    """Return the type of a response; an empty one if the response does not begin as every API server writes it."""
    try:
        _, value = next(_fields(memoryview(body)[len(MAGIC) :]))
        fields = {tag: str(text, "utf-8") for tag, text in _fields(value)}
    except (StopIteration, ValueError, IndexError):
        return TypeMeta()
    return TypeMeta(api_version=fields.get(_FIRST, ""), kind=fields.get(_SECOND, ""))


def unwrapped(body: bytes | bytearray) -> memoryview:
    """Return the object in a response in protobuf.

    Raises:
        LookupError: It has none, or is truncated.
        ValueError: It is truncated.
    """
    return dict(_fields(memoryview(body)[len(MAGIC) :]))[_SECOND]


def split_list(body: bytes | bytearray) -> tuple[memoryview, list[memoryview]]:
    """Return the undecoded metadata and objects of a list.

    The list is not parsed, because a parser would copy all objects at once, into memory that the system has to clear.

    Raises:
        LookupError: The response has none, or is truncated.
        ValueError: The response is not a list, or is truncated.
    """
    (_, metadata), *objects = _fields(unwrapped(body))
    return metadata, [value for tag, value in objects if tag == _SECOND]


def _fields(body: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Yield the tag and the value of each field of a message whose fields all have a length."""
    at, end = 0, len(body)
    while at < end:
        tag, length, shift = body[at], body[at + 1], 7
        at += 2
        if length & _VARINT_GOES_ON:
            length &= ~_VARINT_GOES_ON
            while body[at] & _VARINT_GOES_ON:
                length |= (body[at] & ~_VARINT_GOES_ON) << shift
                shift += 7
                at += 1
            length |= body[at] << shift
            at += 1
        if at + length > end:
            raise ValueError("truncated protobuf")
        yield tag, body[at : at + length]
        at += length


T = TypeVar("T", bound=Message)
M = TypeVar("M", bound=Message)
_Convert: TypeAlias = Callable[[Any], Any]

_LONGEST_LABEL: Final = 63
_REMEMBERED: Final = 2_000
"""The number of distinct values of a shared field that are remembered. In a list, pods of one template are together."""


class Decoder(Generic[T]):
    """Decodes objects of one type and remembers the parts that they share.

    The message classes of a type take milliseconds to make. They are made for the first object, because many lists are
    empty.
    """

    def __init__(self, type_: type[T]) -> None:
        self._type = type_

    @cached_property
    def decode(self) -> Callable[[bytes], T]:
        """The function that decodes a message without an envelope.

        It raises a google.protobuf.message.DecodeError if the bytes are not such a message.
        """
        return _parser(self._type, descriptors.classes(self._type))

    def page(self, body: bytes | bytearray) -> Page[T]:
        """Return one page of a list, as the function does."""
        return page(body, lambda record: self.decode(bytes(record)))

    def decode_response(self, body: bytes | bytearray) -> T:
        """Decode the only object of a response, with the errors of ``decode`` and ``unwrapped``."""
        return self.decode(bytes(unwrapped(body)))

    def part(self, type_: type[M]) -> Callable[[bytes], M]:
        """Return a function that decodes parts of an object, messages of one type, and remembers each distinct one."""
        return _remembering(_parser(type_, descriptors.classes(self._type)), bytes)


_LIST_META: Final = Decoder(ListMeta)


def page(body: bytes | bytearray, decode: Callable[[memoryview], M]) -> Page[M]:
    """Return one page of a list, whose objects ``decode`` decodes when they are reached.

    Raises:
        DecodeError: Its metadata are malformed; or as ``split_list`` does.
    """
    metadata, records = split_list(body)
    return Page(_LIST_META.decode(bytes(metadata)), records, decode)


def _parser(type_: type[M], classes: Classes, *, shared: bool = False) -> Callable[[bytes], M]:
    parse, convert = classes[class_name(type_)].FromString, _value_converter(type_, classes, shared=shared)
    return lambda body: convert(parse(body))


def _converter(type_: type[Message], classes: Classes, *, shared: bool = False) -> _Convert:
    by_number = classes[type_.__name__].DESCRIPTOR.fields_by_number
    table = {
        by_number[field.number]: (field.name, _field_converter(field, classes, shared=shared))
        for field in protobuf_fields(type_)
    }

    def convert(message: Any) -> Any:
        values = {}
        for descriptor, value in message.ListFields():
            name, convert_value = table[descriptor]
            if convert_value is not None:
                values[name] = convert_value(value)
            elif value:
                values[name] = value
        return type_(**values)

    return convert


def _field_converter(field: DeclaredField, classes: Classes, *, shared: bool) -> _Convert | None:
    """Return the converter of the field's parsed value.

    None means that the value stays as it is and counts as absent if it is zero, which Go writes in protobuf but not in
    JSON.
    """
    if field.shape is Cardinality.MAP:
        return _remembering(_map_converter(classes, quantities=field.quantities), tuple)
    if field.shared:
        parse: _Convert = _parser(field.type, classes, shared=True)
        if field.shape is Cardinality.ONE:
            return _remembering(parse, bytes)
        return _remembering(lambda parts: tuple(map(parse, parts)), tuple)
    convert_value = _value_converter(field.type, classes, shared=shared)
    if field.shape is Cardinality.MANY:
        return lambda values: tuple(map(convert_value, values))
    if field.type in SCALARS and not field.optional:
        return sys.intern if shared and field.type is str else None
    return convert_value


def _value_converter(type_: type, classes: Classes, *, shared: bool) -> _Convert:
    if type_ in SCALARS:
        return sys.intern if shared and type_ is str else lambda value: value
    if type_ is datetime:
        return time
    if type_ is IntOrString:
        return lambda message: message.text if message.type else message.number
    if type_ is msgspec.Raw:
        return lambda message: msgspec.Raw(message.raw)
    return _converter(type_, classes, shared=shared)


def time(message: Any) -> datetime | None:
    """Convert a Time to whole seconds, as in JSON; Go writes the zero time without seconds."""
    return _moment(message.seconds) if message.HasField("seconds") else None


@lru_cache(maxsize=1024)
def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _map_converter(classes: Classes, *, quantities: bool) -> _Convert:
    parse = classes["QuantityEntry" if quantities else "Entry"].FromString

    def read_value(value: Any) -> str:
        if quantities:
            return sys.intern(value.string) or "0"
        return sys.intern(value) if len(value) <= _LONGEST_LABEL else value

    def convert(parts: tuple[bytes, ...]) -> dict[str, str]:
        return {sys.intern(entry.key): read_value(entry.value) for entry in map(parse, parts)}

    return convert


def _remembering(convert: _Convert, key: _Convert) -> _Convert:
    """Return ``convert`` with a memory of bounded size; values with an equal ``key`` become one object."""
    memory: dict[Any, Any] = {}

    def remembered(value: Any) -> Any:
        part = key(value)
        converted = memory.get(part)
        if converted is None:
            if len(memory) >= _REMEMBERED:
                memory.clear()
            converted = memory[part] = convert(part)
        return converted

    return remembered
