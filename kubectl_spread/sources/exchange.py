"""The time of one request, and the body of its response, which is read within that time."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any, Final

import urllib3

from kubectl_spread.sources.failures import CONNECT_TIMEOUT

_CHUNK: Final = 16 << 10
"""The most bytes that are read at a time, so that the beginning of a body is passed on early."""
_LARGE: Final = 64 << 10
"""The size of large parts of a body."""


class Deadline:
    """The time until which a request must be complete; it is checked before each read, not within one."""

    def __init__(self, seconds: float | None, silence: float | None = None) -> None:
        """Start now.

        Args:
            seconds: The time for the whole request; None for no limit.
            silence: The longest time without any byte; None for no limit.
        """
        self._end = math.inf if seconds is None else time.monotonic() + seconds
        self._silence = math.inf if silence is None else silence

    @property
    def has_end(self) -> bool:
        """Whether the time for the whole request is limited."""
        return self._end < math.inf

    def left(self) -> float | None:
        """Return the seconds for the next read; None for no limit.

        Raises:
            TimeoutError: There is no time left.
        """
        seconds = min(self._end - time.monotonic(), self._silence)
        if seconds <= 0:
            raise TimeoutError
        return seconds if seconds < math.inf else None

    def timeout(self) -> urllib3.Timeout:
        """Return the timeout until the headers of the response; without a limit only connecting has one.

        Raises:
            TimeoutError: There is no time left.
        """
        left = self.left()
        return urllib3.Timeout(total=left, connect=CONNECT_TIMEOUT if left is None else left)


def parts(response: Any, deadline: Deadline, *, large: bool = False) -> Iterator[bytes]:
    """Yield the decompressed body of a response as it arrives.

    Args:
        response: A response of urllib3.
        deadline: The time of its request.
        large: Whether to wait for large parts after the first part, because the cost of a part hardly depends on size.

    Raises:
        TimeoutError: There is no time left.
    """
    # A small compressed part may become a large one, and no deadline is checked while a large part arrives.
    waits = large and not deadline.has_end and "Content-Encoding" not in response.headers
    part = _next(response, deadline)
    while part:
        yield part
        part = response.read(_LARGE, decode_content=False) if waits else _next(response, deadline)


def _next(response: Any, deadline: Deadline) -> bytes:
    left, connection = deadline.left(), response.connection
    if connection is not None and connection.sock is not None:
        # The socket's own timeout starts again with each byte.
        connection.sock.settimeout(left)
    part: bytes = response.read1(_CHUNK)
    return part
