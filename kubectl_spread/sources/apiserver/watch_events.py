"""The events of a watch, in protobuf or JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Annotated, Final, Generic, TypeVar

import msgspec

from kubectl_spread.errors import SourceError
from kubectl_spread.kube.api.types import Message, Object
from kubectl_spread.sources.apiserver import responses
from kubectl_spread.sources.apiserver.responses import ExpiredError
from kubectl_spread.sources.apiserver.transport import Response
from kubectl_spread.sources.decode import json_objects
from kubectl_spread.sources.decode.json_objects import MalformedFieldError
from kubectl_spread.sources.decode.protobuf.decoder import Decoder

T = TypeVar("T", bound=Object)

ACCEPT: Final = "application/vnd.kubernetes.protobuf;stream=watch,application/json"
DELETED: Final = "DELETED"
BOOKMARK: Final = "BOOKMARK"
_ABOUT_OBJECTS: Final = frozenset({"ADDED", "MODIFIED", DELETED})
_LENGTH: Final = 4
"""The number of bytes before each event in protobuf, which hold its length."""


class _Event(Message, frozen=True):
    """A WatchEvent; in protobuf its object is a RawExtension, which has the one field of ``msgspec.Raw``."""

    type: Annotated[str, 1] = ""
    object: Annotated[msgspec.Raw, 2] = msgspec.Raw(b"{}")


class _Revision(Message, frozen=True):
    resource_version: Annotated[str, 6] = ""


class _Revised(Message, frozen=True):
    metadata: Annotated[_Revision, 1] = _Revision()


class WatchEvent(msgspec.Struct, Generic[T], frozen=True):
    """One event.

    Attributes:
        type: ``ADDED``, ``MODIFIED``, ``DELETED`` or ``BOOKMARK``.
        object: The object in its current or last state; it has no meaning in a bookmark.
        version: The revision to watch from when the connection ends after this event.
    """

    type: str
    object: T
    version: str


class EventReader(Generic[T]):
    """Reads the events about objects of one type, and remembers the parts that the objects share."""

    def __init__(self, type_: type[T]) -> None:
        self._type = type_
        self._events = Decoder(_Event)
        self._revised = Decoder(_Revised)
        self._objects = Decoder(type_)

    def read(self, head: Response, parts: Iterable[bytes]) -> Iterator[WatchEvent[T]]:
        """Yield the events of a response, each as soon as it is complete.

        Raises:
            ExpiredError: The API server no longer has the revision of the watch, or reports another error.
            SourceError: The response is not a watch.
        """
        binary = "protobuf" in head.content_type
        decode = self._events.decode if binary else partial(json_objects.decode, type_=_Event)
        for body in (_frames if binary else _lines)(parts):
            yield self._event(head, body, decode)

    def _event(self, head: Response, body: bytes, decode: Callable[[bytes], _Event]) -> WatchEvent[T]:
        try:
            event = decode(body)
        except (*responses.MALFORMED, MalformedFieldError) as error:
            raise SourceError("Server returned an unexpected response: not an event of a watch") from error
        response = Response(head.status, head.content_type, bytes(event.object))
        if event.type == BOOKMARK or event.type in _ABOUT_OBJECTS:
            revised = responses.decode_object(response, _Revised, self._revised)
            return WatchEvent(
                event.type,
                responses.decode_object(response, self._type, self._objects),
                revised.metadata.resource_version,
            )
        raise ExpiredError(responses.decode_object(response, responses.Status).message or "the watch has failed")


def _frames(parts: Iterable[bytes]) -> Iterator[bytes]:
    buffer = bytearray()
    for part in parts:
        buffer += part
        while len(buffer) >= _LENGTH:
            end = _LENGTH + int.from_bytes(buffer[:_LENGTH], "big")
            if len(buffer) < end:
                break
            yield bytes(buffer[_LENGTH:end])
            del buffer[:end]


def _lines(parts: Iterable[bytes]) -> Iterator[bytes]:
    rest = bytearray()
    for part in parts:
        rest += part
        if b"\n" in part:
            *lines, last = rest.split(b"\n")
            yield from (bytes(line) for line in lines if line)
            rest = last
