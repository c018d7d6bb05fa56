"""Random faults of a watch, in each state of its stream of protobuf events."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from http import HTTPStatus
from random import Random
from typing import Any, Final

import urllib3

from tests.faults.proxy import Exchange, Reply
from tests.faults.steps import reset_connection

_LENGTH: Final = 4
_BOOKMARK: Final = b"\x0a\x08BOOKMARK"
"""The beginning of a bookmark: the field 1 of a WatchEvent."""
_PART: Final = 1 << 16
_MOST_EVENTS: Final = 25
"""The most events of a stream before its fault."""
_STALLED: Final = 3.0
"""Seconds for which a stalled connection stays open."""


class FaultyStream:
    """The faults of one watch, as a step of a proxy.

    The apiserver is requested to watch for seconds only: it sends a bookmark two seconds before the end.

    Attributes:
        events: The number of events before the fault.
        ending: The fault: the stream ends after an event (``end``), within one (``half``), or after a bookmark
            (``bookmark``), the connection is reset (``reset``), or nothing comes any more (``stall``).
        bookmarks: ``pass``, ``drop``, or ``delay``: later events overtake them.
        repeats: Whether some events are sent twice.
    """

    def __init__(self, random: Random) -> None:
        """Choose the faults."""
        self.events = random.choice((0, 1, 2, random.randint(1, _MOST_EVENTS)))
        self.ending = random.choice(("end", "half", "half", "bookmark", "reset", "stall"))
        self.bookmarks = random.choice(("pass", "pass", "drop", "delay"))
        self.repeats = random.random() < 0.1
        self._seconds = random.choice((5, 8, 13))
        self._random = Random(random.random())

    def __call__(self, exchange: Exchange) -> None:
        """Answer a watch."""
        with suppress(urllib3.exceptions.HTTPError), exchange.opened(timeoutSeconds=str(self._seconds)) as answer:
            if answer.status != HTTPStatus.OK:
                exchange.send(Reply(answer.status, answer.read(), answer.headers.get("Content-Type", "")))
                return
            exchange.send_endless_head(answer.headers["Content-Type"])
            self._send(exchange, _frames(_parts(answer)))
        exchange.hang_up()

    def _send(self, exchange: Exchange, frames: Iterable[bytes]) -> None:
        delayed: list[bytes] = []
        for number, frame in enumerate(frames):
            bookmark = frame.startswith(_BOOKMARK, _LENGTH)
            if bookmark and self.bookmarks == "delay":
                delayed.append(frame)
            if bookmark and self.bookmarks != "pass":
                continue
            if number >= self.events and (self.ending != "bookmark" or bookmark):
                self._end(exchange, frame)
                return
            exchange.send_part(frame)
            if self.repeats and self._random.random() < 0.3:
                exchange.send_part(frame)
            if delayed:
                exchange.send_part(delayed.pop())

    def _end(self, exchange: Exchange, frame: bytes) -> None:
        match self.ending:
            case "bookmark":
                exchange.send_part(frame)
            case "half":
                exchange.send_part(frame[: self._random.randrange(1, len(frame))])
            case "reset":
                reset_connection(exchange)
            case "stall":
                exchange.wait(_STALLED)


def expired_event(exchange: Exchange) -> None:
    """Answer a watch with the event, in JSON, that its version has expired."""
    status = {"kind": "Status", "apiVersion": "v1", "reason": "Expired", "message": "too old", "code": HTTPStatus.GONE}
    exchange.send_endless_head("application/json")
    exchange.send_part(json.dumps({"type": "ERROR", "object": status}).encode() + b"\n")
    exchange.hang_up()


def of_old_version(exchange: Exchange) -> None:
    """Ask for a watch from a version so old that the apiserver has forgotten it, and pass on what it says."""
    exchange.pass_on(exchange.request.with_query(resourceVersion="1"))


def _parts(answer: Any) -> Iterator[bytes]:
    while part := answer.read1(_PART):
        yield part


def _frames(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the events of a stream, each with its length in front."""
    buffer = bytearray()
    for part in parts:
        buffer += part
        while len(buffer) >= _LENGTH:
            end = _LENGTH + int.from_bytes(buffer[:_LENGTH], "big")
            if len(buffer) < end:
                break
            yield bytes(buffer[:end])
            del buffer[:end]
