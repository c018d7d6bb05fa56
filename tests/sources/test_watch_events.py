"""The events of a watch, however the network cuts them into parts; the real ones are in ``tests/e2e/test_watch.py``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import pytest

from kubectl_spread.errors import SourceError
from kubectl_spread.kube.api.types import Pod
from kubectl_spread.sources.apiserver.responses import ExpiredError
from kubectl_spread.sources.apiserver.transport import Response
from kubectl_spread.sources.apiserver.watch_events import EventReader
from tests.builders import Json

IN_JSON = Response(200, "application/json", b"")
IN_PROTOBUF = Response(200, "application/vnd.kubernetes.protobuf;stream=watch", b"")
TOO_OLD = {"kind": "Status", "code": 410, "message": "too old resource version: 1 (2)"}


def event(kind: str, name: str, version: str) -> Json:
    return {"type": kind, "object": {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": version}}}


def lines(*events: Json) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def field(number: int, content: bytes) -> bytes:
    """Return a field of protobuf with a length below 128."""
    return bytes([number << 3 | 2, len(content)]) + content


def frame(kind: str, name: str, version: str) -> bytes:
    """Return an event in protobuf: a WatchEvent with a RawExtension that holds an enveloped pod."""
    metadata = field(1, name.encode()) + field(5, f"uid-{name}".encode()) + field(6, version.encode())
    unknown = b"k8s\x00" + field(2, field(1, metadata))
    watch_event = field(1, kind.encode()) + field(2, field(1, unknown))
    return len(watch_event).to_bytes(4, "big") + watch_event


def parts(stream: bytes, size: int) -> Iterator[bytes]:
    return (stream[start : start + size] for start in range(0, len(stream), size))


def read(head: Response, stream: Iterable[bytes]) -> list[tuple[str, str, str]]:
    watch_events = EventReader(Pod).read(head, stream)
    return [(watch_event.type, watch_event.object.metadata.uid, watch_event.version) for watch_event in watch_events]


EXPECTED = [("ADDED", "uid-a", "7"), ("BOOKMARK", "uid-", "9"), ("DELETED", "uid-a", "12")]


@pytest.mark.parametrize("size", [1, 3, 7, 50, 10_000])
@pytest.mark.parametrize("head", [IN_JSON, IN_PROTOBUF], ids=["JSON", "protobuf"])
def test_events_cut_into_parts(head: Response, size: int) -> None:
    reported = [("ADDED", "a", "7"), ("BOOKMARK", "", "9"), ("DELETED", "a", "12")]
    stream = (
        lines(*(event(*reported_event) for reported_event in reported))
        if head is IN_JSON
        else b"".join(frame(*reported_event) for reported_event in reported)
    )
    assert read(head, parts(stream, size)) == EXPECTED


def test_what_is_not_whole_is_no_event() -> None:
    stream = lines(event("ADDED", "a", "7"), event("MODIFIED", "a", "8"))
    assert len(read(IN_JSON, [stream[:-1]])) == 1
    assert len(read(IN_PROTOBUF, [frame("ADDED", "a", "7"), frame("MODIFIED", "a", "8")[:-1]])) == 1


@pytest.mark.parametrize("kind", ["ERROR", "NEWER"])
def test_an_error_ends_it(kind: str) -> None:
    stream = [lines(event("ADDED", "a", "7"), {"type": kind, "object": TOO_OLD}, event("ADDED", "b", "8"))]
    reading = EventReader(Pod).read(IN_JSON, stream)
    assert next(reading).version == "7"
    with pytest.raises(ExpiredError, match=r"too old resource version: 1 \(2\)"):
        next(reading)


@pytest.mark.parametrize(
    ("head", "stream"),
    [
        (IN_JSON, b"<html>\n"),
        (IN_JSON, b'{"type": 1}\n'),
        (IN_JSON, b'{"type": "ADDED", "object": {"metadata": 1}}\n'),
        (IN_PROTOBUF, b"\x00\x00\x00\x02\xff\xff"),
        (IN_PROTOBUF, (8).to_bytes(4, "big") + field(1, b"ADDED") + b"\xff"),
    ],
    ids=["HTML", "wrong type", "wrong object", "no message", "half a message"],
)
def test_what_is_no_watch(head: Response, stream: bytes) -> None:
    with pytest.raises(SourceError, match="unexpected response"):
        read(head, [stream])
