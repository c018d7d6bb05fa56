"""One exchange with an HTTP server: it ends in time, whatever the server sends and however slowly.

The timeouts of sockets begin again with each byte, so that headers, informational answers, a body or trailers that come
bit by bit would never run out of time. Here every read of an answer is given what is left of the whole request.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from http.client import HTTPException, HTTPResponse, parse_headers
from io import BufferedReader, RawIOBase
from socket import socket
from typing import TYPE_CHECKING, Any, Final

import urllib3
from urllib3.connectionpool import HTTPConnectionPool

from kubectl_spread.sources import memory

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_CHUNK: Final = 16 << 10
"""Bytes that are read at a time, at most: how a body begins is known as soon as so many are there."""
_MOST_INFORMATIONAL: Final = 5
"""How many informational answers may precede an answer. Source: go 1.24 net/http/transport.go, max1xxResponses."""
_INFORMATIONAL: Final = range(100, 200)
_SWITCHING: Final = 101


class Deadline:
    """When a request must be done."""

    def __init__(self, seconds: float | None, silence: float | None = None) -> None:
        """Begin now.

        Args:
            seconds: How long the whole request may take; None: as long as it wants.
            silence: How long the server may send nothing; None: as long as it wants.
        """
        self._silence = silence
        self._end: float | None = None
        self.restart(seconds)

    def restart(self, seconds: float | None) -> None:
        """Give it so many seconds from now on; None: as many as it wants."""
        self._end = None if seconds is None else time.monotonic() + seconds

    def wait(self) -> float | None:
        """Return how many seconds the next read may take; None: as many as it wants.

        Raises:
            TimeoutError: The time is over.
        """
        if self._end is None:
            return self._silence
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left if self._silence is None else min(left, self._silence)


_CURRENT: ContextVar[Deadline] = ContextVar("_CURRENT", default=Deadline(None))  # noqa: B039 - it never ends


@contextmanager
def until(deadline: Deadline) -> Iterator[None]:
    """Hold the requests that are sent inside the block to a deadline, and the reading of their answers."""
    token = _CURRENT.set(deadline)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def left() -> float | None:
    """Return the seconds that are left; None: there is no end.

    Raises:
        TimeoutError: None are.
    """
    return _CURRENT.get().wait()


def keep(manager: urllib3.PoolManager) -> None:
    """Have all connections of ``manager`` keep to the deadline of ``until``."""
    pools = manager.pool_classes_by_scheme
    manager.pool_classes_by_scheme = {scheme: _keeping(pool) for scheme, pool in pools.items()}


def parts(response: Any, what: str, advice: str) -> Iterator[bytes]:
    """Yield the body of an answer as it comes, unpacked, as long as it is not a bomb.

    Args:
        response: An answer of urllib3.
        what: What was asked for, as errors name it.
        advice: What the user may do if the body is meant to be so.

    Raises:
        TooLargeError: It unpacks to what nobody packed.
    """
    size = 0
    for part in iter(lambda: response.read1(_CHUNK), b""):
        size += len(part)
        memory.check_ratio(what, response.tell(), size, advice)
        yield part


class _Timed(RawIOBase):
    """What is read from a socket, each time within what is left of a deadline."""

    def __init__(self, raw: RawIOBase, connection: socket, deadline: Deadline) -> None:
        self._raw = raw
        self._connection = connection
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int | None:
        self._connection.settimeout(self._deadline.wait())
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(HTTPResponse):
    """An answer that is read in time, and whose framing is taken at its word."""

    def __init__(self, sock: socket, *arguments: Any, **named: Any) -> None:
        super().__init__(sock, *arguments, **named)
        raw = self.fp.detach()
        self.fp = BufferedReader(_Timed(raw, sock, _CURRENT.get()))

    def _read_status(self) -> tuple[str, int, str]:
        for _ in range(_MOST_INFORMATIONAL + 1):
            found: tuple[str, int, str] = super()._read_status()  # type: ignore[misc]
            if found[1] not in _INFORMATIONAL or found[1] == _SWITCHING:
                return found
            parse_headers(self.fp)
        raise HTTPException("too many 1xx informational responses")

    def _read_next_chunk_size(self) -> int:
        size: int = super()._read_next_chunk_size()  # type: ignore[misc]
        if size < 0:
            raise ValueError("the size of a chunk is below zero")
        return size


class _Keeping:
    """A connection that gives what its socket does next no more than what is left of the deadline."""

    response_class = _Response

    def _new_conn(self) -> socket:
        connection: socket = super()._new_conn()  # type: ignore[misc]
        # For the proxy and for TLS, which have only what the way to the server has left.
        connection.settimeout(left() or connection.gettimeout())
        return connection


@lru_cache
def _keeping(pool: type[HTTPConnectionPool]) -> type[HTTPConnectionPool]:
    connection = type(pool.ConnectionCls.__name__, (_Keeping, pool.ConnectionCls), {})
    return type(pool.__name__, (pool,), {"ConnectionCls": connection})
