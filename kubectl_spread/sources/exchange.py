"""An exchange with an HTTP server that ends in time, however slowly the server sends.

The timeout of a socket starts again with each byte, so a response that arrives in small parts would never time out.
Here every read of a response gets the time that is left of the whole request.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
from http.client import HTTPException, HTTPResponse, parse_headers
from io import BufferedReader, RawIOBase
from socket import SHUT_RDWR, fromfd, socket
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

import urllib3
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.util.ssltransport import SSLTransport

from kubectl_spread.sources import memory

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_CHUNK: Final = 16 << 10
"""The most bytes that are read at a time, so that the beginning of a body is passed on early."""
_LARGE: Final = 64 << 10
"""The size of large parts of a body.

Each larger part would get new memory (``apiserver.buffers``), which the system has to clear.
"""
_MOST_INFORMATIONAL: Final = 5
"""The most informational responses before a response. Source: go 1.24 net/http/transport.go, max1xxResponses."""
_INFORMATIONAL: Final = range(100, 200)
_SWITCHING: Final = 101


class Sockets:
    """The sockets of one client, which another thread may shut down all at once."""

    def __init__(self) -> None:
        """Start without any."""
        self._open: WeakSet[socket] = WeakSet()
        self._lock = Lock()
        self._ended = False

    def add(self, connection: socket) -> None:
        """Remember a socket while it is in use; shut it down at once if the others have been shut down.

        Raises:
            ConnectionAbortedError: The others have been shut down.
        """
        with self._lock:
            self._open.add(connection)
            if self._ended:
                _shut_down(connection)
                raise ConnectionAbortedError

    def shut_down(self) -> None:
        """Wake all threads that wait for a server: their requests fail, and they close the sockets."""
        with self._lock:
            self._ended = True
            for connection in self._open:
                _shut_down(connection)


def _shut_down(connection: socket) -> None:
    with suppress(OSError):
        # A close would not wake the thread that reads. The method of SSLSocket would have it read on without TLS.
        socket.shutdown(connection, SHUT_RDWR)


class Deadline:
    """The time until which a request must be complete.

    Attributes:
        sockets: The sockets of the client that sends the request.
    """

    def __init__(self, seconds: float | None, silence: float | None = None, sockets: Sockets | None = None) -> None:
        """Start now.

        Args:
            seconds: The time for the whole request; None for no limit.
            silence: The longest time without any byte; None for no limit.
            sockets: The sockets of the client; None if no other thread shuts them down.
        """
        self.sockets = sockets or Sockets()
        self._silence = silence
        self._end: float | None = None
        self.restart(seconds)

    def restart(self, seconds: float | None) -> None:
        """Allow so many seconds from now on; None for no limit."""
        self._end = None if seconds is None else time.monotonic() + seconds

    def wait(self) -> float | None:
        """Return the seconds for the next read; None for no limit.

        Raises:
            TimeoutError: There is no time left.
        """
        if self._end is None:
            return self._silence
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left if self._silence is None else min(left, self._silence)


_CURRENT: ContextVar[Deadline] = ContextVar("_CURRENT", default=Deadline(None))  # noqa: B039 - without an end


@contextmanager
def until(deadline: Deadline) -> Iterator[None]:
    """Apply a deadline to the requests that are sent inside the block, and to the reading of their responses."""
    token = _CURRENT.set(deadline)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def left() -> float | None:
    """Return the seconds that are left; None for no limit.

    Raises:
        TimeoutError: There is no time left.
    """
    return _CURRENT.get().wait()


def respect_deadlines(manager: urllib3.PoolManager) -> None:
    """Make all connections of ``manager`` respect the deadline of ``until``."""
    pools = manager.pool_classes_by_scheme
    manager.pool_classes_by_scheme = {scheme: _timed_pool(pool) for scheme, pool in pools.items()}


def parts(response: Any, what: str, advice: str, *, large: bool = False) -> Iterator[bytes]:
    """Yield the decompressed body of a response as it arrives, unless it is a compression bomb.

    Args:
        response: A response of urllib3.
        what: The requested object, as errors name it.
        advice: The advice to users whose body is really so large.
        large: Whether to wait for large parts after the first part, because the cost of a part hardly depends on size.

    Raises:
        TooLargeError: The decompressed body is unreasonably large.
    """
    size = 0
    # A small compressed part may become a large one.
    waits = large and "Content-Encoding" not in response.headers
    while part := response.read(_LARGE, decode_content=False) if waits and size else response.read1(_CHUNK):
        size += len(part)
        memory.check_ratio(what, response.tell(), size, advice)
        yield part


class _TimedSocket(RawIOBase):
    """A socket whose reads respect a deadline."""

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
    """A response whose reads respect a deadline, with strict chunk sizes."""

    def __init__(self, sock: socket, *arguments: Any, **named: Any) -> None:
        super().__init__(sock, *arguments, **named)
        raw = self.fp.detach()
        self.fp = BufferedReader(_TimedSocket(raw, sock, _CURRENT.get()), _LARGE)

    def _read_status(self) -> tuple[str, int, str]:
        for _ in range(_MOST_INFORMATIONAL + 1):
            status: tuple[str, int, str] = super()._read_status()  # type: ignore[misc]
            if status[1] not in _INFORMATIONAL or status[1] == _SWITCHING:
                return status
            parse_headers(self.fp)
        raise HTTPException("too many 1xx informational responses")

    def _read_next_chunk_size(self) -> int:
        size: int = super()._read_next_chunk_size()  # type: ignore[misc]
        if size < 0:
            raise ValueError("the size of a chunk is below zero")
        return size


class _TimedConnection:
    """A connection whose next operation respects the deadline, and which another thread may shut down."""

    response_class = _Response
    sock: Any

    def connect(self) -> None:
        with ExitStack() as self._until_connected:
            super().connect()  # type: ignore[misc]
            # TLS inside the TLS of a proxy has no socket of its own.
            _CURRENT.get().sockets.add(self.sock.socket if isinstance(self.sock, SSLTransport) else self.sock)

    def _new_conn(self) -> socket:
        connection: socket = super()._new_conn()  # type: ignore[misc]
        try:
            # The proxy and TLS have only the time that connecting has left.
            connection.settimeout(left() or connection.gettimeout())
            # The handshake of TLS takes the descriptor out of this socket, so that only a duplicate can be shut down.
            duplicate = fromfd(connection.fileno(), connection.family, connection.type)
            _CURRENT.get().sockets.add(self._until_connected.enter_context(duplicate))
            # CPython leaves a socket open that is no longer connected when TLS begins (SSLSocket._create).
            connection.getpeername()
        except OSError:
            connection.close()
            raise
        return connection


@lru_cache
def _timed_pool(pool: type[HTTPConnectionPool]) -> type[HTTPConnectionPool]:
    connection = type(pool.ConnectionCls.__name__, (_TimedConnection, pool.ConnectionCls), {})
    return type(pool.__name__, (pool,), {"ConnectionCls": connection})
