"""The envelope in which an API server sends protobuf: its type, and the metadata and undecoded objects of a list."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any, Final

from google.protobuf.message import DecodeError as ProtobufError
from google.protobuf.proto import parse_length_prefixed

from kubectl_spread.kube.api.types import ListMeta, TypeMeta
from kubectl_spread.sources.decode.protobuf import descriptors

MAGIC: Final = b"k8s\x00"
"""The first bytes of a response in protobuf; a runtime.Unknown that holds the object follows."""
MALFORMED: Final = "malformed or truncated protobuf"

_FIRST: Final = b"\x0a"
_SECOND: Final = b"\x12"
"""The tags of fields 1 and 2 with a length: type and object of an envelope, metadata and objects of a list."""
_METADATA, _OBJECT = _FIRST[0], _SECOND[0]
_VARINT_GOES_ON: Final = 0x80
_LONGEST_TYPE_META: Final = 1024


def type_meta(body: bytes | bytearray) -> TypeMeta:
    """Return the type of a response; an empty one if the response does not begin as every API server writes it."""
    try:
        message = _type_meta_in(io.BytesIO(body[:_LONGEST_TYPE_META]))
    except (ProtobufError, ValueError):
        message = None
    return TypeMeta() if message is None else TypeMeta(api_version=message.api_version, kind=message.kind)


def unwrapped(body: bytes | bytearray) -> bytes | bytearray:
    """Return the runtime.Unknown of a response; a bytearray is consumed.

    Raises:
        ValueError: The response is not in protobuf.
    """
    if not body.startswith(MAGIC):
        msg = "not Kubernetes protobuf"
        raise ValueError(msg)
    if isinstance(body, bytearray):
        # In place, because a page has megabytes and copying it into new memory takes as long as parsing it.
        del body[: len(MAGIC)]
        return body
    return body[len(MAGIC) :]


def parsed_list(body: bytes | bytearray) -> Any:
    """Return the parsed UnknownList of a response without its magic bytes; the objects in it are bytes.

    Raises:
        ValueError: The response is not a list.
    """
    try:
        return _class(descriptors.LIST_ENVELOPE).FromString(body)
    except ProtobufError as error:
        raise ValueError(MALFORMED) from error


class Records(Sequence[bytes]):
    """The undecoded objects of a list, each copied out of the response when it is reached."""

    def __init__(self, body: memoryview, places: Sequence[tuple[int, int]]) -> None:
        """Take a response, and the first and last offset of each object in it."""
        self._body = body
        self._places = places

    def __len__(self) -> int:
        """Return the number of objects."""
        return len(self._places)

    def __getitem__(self, index: Any) -> Any:
        """Return one object."""
        begin, end = self._places[index]
        return bytes(self._body[begin:end])

    def __iter__(self) -> Iterator[bytes]:
        """Yield one object after the other."""
        body = self._body
        return (bytes(body[begin:end]) for begin, end in self._places)


def split_list(body: bytes | bytearray) -> tuple[Any, Records] | None:
    """Return the parsed metadata and the undecoded objects of a list; None: the list has an unusual form.

    The list is not parsed, because a parser would copy all objects at once, into memory that the system has to clear.
    """
    view = memoryview(body)
    try:
        fields = list(_fields(view, len(MAGIC), len(view), b"\x0a\x12\x1a\x22"))
        ((begin, end),) = [place for tag, *place in fields if tag == _OBJECT]
        metadata, *objects = _fields(view, begin, end, b"\x0a\x12")
        if metadata[0] != _METADATA or any(tag != _OBJECT for tag, *_ in objects):
            return None
        message = _class("ListMeta").FromString(bytes(view[metadata[1] : metadata[2]]))
    except (ProtobufError, ValueError, IndexError):
        return None
    return message, Records(view, [(begin, end) for _, begin, end in objects])


def _fields(body: memoryview, at: int, end: int, tags: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield the tag of each field of a message, and where its value begins and ends."""
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
        if tag not in tags or at + length > end:
            raise ValueError(MALFORMED)
        yield tag, at, at + length
        at += length


def list_meta(message: Any) -> ListMeta:
    """Return the parsed metadata of a list."""
    return ListMeta(
        resource_version=message.resource_version,
        continue_=message.continue_,
        remaining_item_count=message.remaining_item_count,
    )


def _type_meta_in(stream: io.BytesIO) -> Any:
    """Read the beginning of a response up to the object; None: it has an unusual form."""
    if stream.read(len(MAGIC) + 1) != MAGIC + _FIRST:
        return None
    return parse_length_prefixed(_class("TypeMeta"), stream)


def _class(name: str) -> Any:
    return descriptors.classes(ListMeta)[name]
