"""The time of one request, and the body of its response, which is read within that time."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any, Final

import urllib3

from kubectl_spread.sources.failures import CONNECT_TIMEOUT

_CHUNK: Final = 64 << 10
"""The most bytes that are read at a time."""


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


def parts(response: Any, deadline: Deadline) -> Iterator[bytes]:
    """Yield the decompressed body of a response of urllib3 as it arrives, within the time of its request.

    Raises:
        TimeoutError: There is no time left.
    """
    while True:
        left, connection = deadline.left(), response.connection
        if connection is not None and connection.sock is not None:
            # The socket's own timeout starts again with each byte.
            connection.sock.settimeout(left)
        part: bytes = response.read1(_CHUNK)
        if not part:
            return
        yield part
