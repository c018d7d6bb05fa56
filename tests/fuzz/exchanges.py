"""HTTP answers of a malicious server: heads, framing, and bodies in several encodings."""

from __future__ import annotations

import gzip
import random
import socket
import threading
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import Final
from unittest.mock import patch

from kubectl_spread.errors import SourceError
from kubectl_spread.kube.api.types import Pod
from kubectl_spread.render.words import safe
from kubectl_spread.sources.apiserver import responses, transport
from kubectl_spread.sources.apiserver.cluster import LiveCluster
from kubectl_spread.sources.apiserver.watch_events import ACCEPT, EventReader
from kubectl_spread.sources.auth.connection import ConnectionFlags
from kubectl_spread.sources.decode.resources import PODS
from tests.fuzz import corpus, mutation
from tests.fuzz.hostile import ESCAPES, TEXTS
from tests.fuzz.outcome import Outcome

_VERSION: Final = b'{"major": "1", "minor": "37"}'
_LIST: Final = b'{"metadata": {"resourceVersion": "7"}, "items": []}'
_METRICS: Final = b'kubernetes_feature_enabled{name="A",stage=""} 1\n'
_STATUS: Final = b'{"kind": "Status", "apiVersion": "v1", "reason": "Expired", "message": "no", "code": 410}'
_NUMBERS: Final = (
    *("0", "-1", "-5", "+3", "1", "7", "1e3", "0x10", "1_0", " 8 ", "", "zz", "ffffffff", "7fffffffffffffff"),
    *("9" * 30, "9" * 5000, "f" * 70_000, "٣", "3, 3", "3, 4", "NaN", "8;a=b", "8;" + "a" * 70_000),
)
_STARTS: Final = (
    *("HTTP/1.1 200 OK", "HTTP/1.0 200 OK", "HTTP/1.1 200", "HTTP/1.1 200 \x00", "HTTP/2 200 OK", "HTTP/0.9 200 OK"),
    *("HTTP/1.1 0 OK", "HTTP/1.1 -200 OK", "HTTP/1.1 99999 OK", "HTTP/1.1  OK", "HTTP/1.1 2e2 OK", "ICY 200 OK", ""),
    *("HTTP/1.1 204 No Content", "HTTP/1.1 304 Not Modified", "HTTP/1.1 206 Partial Content", "HTTP/1.1 999 x"),
    *("HTTP/1.1 301 Moved", "HTTP/1.1 307 Moved", "HTTP/1.1 401 No", "HTTP/1.1 403 No", "HTTP/1.1 404 No"),
    *("HTTP/1.1 410 Gone", "HTTP/1.1 418 Teapot", "HTTP/1.1 400 Bad", "HTTP/1.1 101 Switching Protocols"),
    *("HTTP/1.1 200 " + "x" * 70_000, "HTTP/1.1 200 \xff", *(f"HTTP/1.1 200 {text}" for text in ESCAPES[:4])),
)
_TYPES: Final = (
    "application/json",
    "application/vnd.kubernetes.protobuf",
    "text/html",
    "text/plain",
    "a;b",
    "json/" * 99,
)
_ENCODINGS: Final = (
    "gzip",
    "x-gzip",
    "deflate",
    "GZIP",
    "identity",
    "br",
    "zstd",
    "gzip, gzip",
    "deflate,gzip",
    "a, gzip",
)
_INFORMATIONAL: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_BOMB: Final = gzip.compress(bytes(1 << 20))


def answer(chance: random.Random) -> bytes:
    """Return the bytes that a server sends on one connection: one answer or several, sometimes damaged."""
    text = b"".join(_answer(chance) for _ in range(chance.choice((1, 1, 1, 2, 4))))
    return mutation.damaged(text, chance) if chance.random() < 0.3 else text


def stream(chance: random.Random) -> bytes:
    """Return a gzipped file of several members, sometimes with bombs, and mostly damaged."""
    parts = [_member(chance) for _ in range(chance.choice((1, 1, 2, 5)))]
    if chance.random() < 0.05:
        parts.insert(chance.randrange(len(parts) + 1), _BOMB * chance.choice((1, 100)))
    text = b"".join(parts)
    return mutation.damaged(text, chance) if chance.random() < 0.6 else text


def _answer(chance: random.Random) -> bytes:
    informational = _INFORMATIONAL * chance.choice((0, 0, 0, 1, 5, 6, 1000))
    start = chance.choice(_STARTS) if chance.random() < 0.4 else _STARTS[0]
    body, headers = _encoded(_body(chance), chance)
    body, framing = _framed(body, chance)
    headers = [f"Content-Type: {chance.choice(_TYPES)}", *headers, *framing]
    while chance.random() < 0.4:
        headers.insert(chance.randrange(len(headers) + 1), _odd_header(chance))
    if chance.random() < 0.3:
        chance.shuffle(headers)
    end = chance.choice(("\r\n",) * 9 + ("\n", "\r"))
    head = end.join([start, *headers, "", ""]).encode("latin-1", "replace")
    return informational + head + body


def _body(chance: random.Random) -> bytes:
    bodies = (_VERSION, _LIST, _METRICS, _STATUS, b"", b" " * 100_000, *corpus.pages().values())
    body = chance.choice(bodies)
    return mutation.damaged(body, chance) if body and chance.random() < 0.2 else body


def _encoded(body: bytes, chance: random.Random) -> tuple[bytes, list[str]]:
    if chance.random() < 0.5:
        return body, []
    encoding = chance.choice(_ENCODINGS)
    packed = chance.choice((gzip.compress, gzip.compress, zlib.compress, bytes))(body)
    if encoding.count(",") and chance.random() < 0.5:
        packed = gzip.compress(packed)
    if chance.random() < 0.1:
        packed += _BOMB * chance.choice((1, 30, 100))
    if chance.random() < 0.3:
        packed = mutation.damaged(packed, chance)
    return packed, [f"Content-Encoding: {encoding}"] * chance.choice((1, 1, 1, 2, 50))


def _framed(body: bytes, chance: random.Random) -> tuple[bytes, list[str]]:
    match chance.randrange(5):
        case 0:
            return body, []
        case 1:
            return body, [f"Content-Length: {len(body)}"]
        case 2:
            return body, [f"Content-Length: {chance.choice((str(len(body) + 1), *_NUMBERS))}"] * chance.choice(
                (1, 1, 2)
            )
    headers = [f"Transfer-Encoding: {chance.choice(('chunked', 'chunked', 'Chunked', 'gzip, chunked', 'chunked, x'))}"]
    if chance.random() < 0.1:
        headers.append(f"Content-Length: {chance.choice(_NUMBERS)}")
    return b"".join(_chunks(body, chance)), headers


def _chunks(body: bytes, chance: random.Random) -> Iterator[bytes]:
    size = chance.choice((1, 7, 1000, 1 << 20)) if len(body) < 5000 else 1 << 14
    for start in range(0, len(body), size):
        part = body[start : start + size]
        written = chance.choice(_NUMBERS).encode() if chance.random() < 0.02 else b"%x" % len(part)
        yield written + b"\r\n" + part + chance.choice((b"\r\n",) * 50 + (b"", b"\n", b"\r\n\r\n"))
    yield chance.choice((b"0\r\n", b"0\r\n", b"0\r\n", b"0;x\r\n", b"00000\r\n", b"-0\r\n", b"", b"\r\n"))
    yield b"".join(
        _odd_header(chance).encode("latin-1", "replace") + b"\r\n" for _ in range(chance.choice((0, 0, 1, 30)))
    )
    yield chance.choice((b"\r\n", b"\r\n", b"\n", b""))


def _odd_header(chance: random.Random) -> str:
    name = chance.choice(
        ("Retry-After", "Location", "Connection", "Content-Type", "Trailer", "X", "", " ", "Set-Cookie")
    )
    texts = (*_NUMBERS, *TEXTS, "close", "keep-alive", "Sun, 06 Nov 1994 08:49:37 GMT", "http://[", "//x\x00")
    line = name + chance.choice((": ", ":", " : ", "", "\t")) + chance.choice(texts)
    return "\r\n".join([line] * chance.choice((1, 1, 1, 1, 1, 120)))


def _member(chance: random.Random) -> bytes:
    text = chance.choice((*corpus.texts(), b"", b"\x00", b"\xff\xfea\x00", b" " * 100_000))
    level = chance.choice((0, 1, 9))
    match chance.randrange(4):
        case 0:
            return zlib.compress(text, level)
        case 1:
            flags = chance.randrange(256)
            return b"\x1f\x8b\x08" + bytes([flags]) + chance.randbytes(6) + zlib.compress(text, level)[2:-4]
    return gzip.compress(text, level)


class Server:
    """Sends the same bytes to each client, and closes the connection.

    Attributes:
        url: Its address.
        body: The bytes to send.
    """

    def __init__(self) -> None:
        """Begin to listen."""
        self.body = b""
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            with suppress(OSError):
                client, _ = self._socket.accept()
                threading.Thread(target=self._talk, args=(client,), daemon=True).start()

    def _talk(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            client.settimeout(5)
            client.recv(65536)
            client.sendall(self.body)


@cache
def server() -> Server:
    """Return the server of this process."""
    return Server()


def exchange(body: bytes, chance: random.Random) -> Outcome:
    """Send a request of the program to a server that sends ``body`` and closes the connection."""
    asks = chance.choice(_READS)
    server().body = body
    flags = ConnectionFlags(server=server().url, request_timeout="2s")
    with warnings.catch_warnings(), patch.object(transport, "backoff", lambda *_: 0.0):
        warnings.simplefilter("error")
        try:
            asks(LiveCluster.connect(flags))
        except SourceError as error:
            return Outcome(2, stderr=safe(str(error)).encode())
        except Exception as error:  # noqa: BLE001 - an escaping error is a finding
            return Outcome(1, error=error)
    return Outcome(0)


def _watched(cluster: LiveCluster) -> None:
    path, query = PODS.path(), {"watch": "true"}
    with cluster._transport.stream(path, query, ACCEPT, 1, 2) as (head, parts):
        responses.check(head, verb="watch", resource=PODS.plural)
        for _event in EventReader(Pod).read(head, parts):
            pass


_READS: Final[tuple[Callable[[LiveCluster], object], ...]] = (
    LiveCluster.version,
    LiveCluster.feature_gates,
    lambda cluster: cluster.names(PODS, "", 5),
    lambda cluster: cluster.get(PODS, "a", "b"),
    lambda cluster: cluster.fold(PODS, list[Pod], lambda pods, page: pods.extend(page)),
    _watched,
)
