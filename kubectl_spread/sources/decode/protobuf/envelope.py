"""The envelope in which an API server sends protobuf: its type, and the metadata and undecoded objects of a list."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_spread.kube.api.types import TypeMeta

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
