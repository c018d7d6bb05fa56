"""The retries of failed requests, and the pauses before them. urllib3 repeats a request until its headers arrive.

A page may also be lost in its body, and all attempts together must respect ``--request-timeout``, so retries are
decided here, for whole responses.
"""

from __future__ import annotations

import random
import time
from typing import Final

from urllib3.exceptions import InvalidHeader
from urllib3.util import Retry

from kubectl_spread.sources.exchange import Deadline

JITTER: Final = random.Random()  # noqa: S311 - not a secret
"""Spreads requests over time; it has a state of its own, because threads draw from it."""
RETRIES: Final = 10
"""The number of retries of one request. Source: kubernetes v1.37.1 client-go/rest/request.go, maxRetries."""
RETRIES_BEFORE_CONTACT: Final = 2
"""The number of retries before the server has answered at all: its address may be wrong."""
PATIENCE: Final = 120.0
"""Seconds after the first failure of a request in which it is repeated."""
LONGEST_BACKOFF: Final = 8.0
_FIRST_BACKOFF: Final = 0.5
_PASSING: Final = frozenset({429, 500, 502, 503, 504})
"""Statuses that may pass soon."""
_MAY_ASK_FOR_A_PAUSE: Final = 500
_HEADER: Final = Retry(retry_after_max=24 * 3600)


def is_passing(status: int, pause: float | None) -> bool:
    """Tell whether a retry may get another response.

    Args:
        status: The HTTP status.
        pause: The seconds of its Retry-After header, or None.

    Source: kubernetes v1.37.1 client-go/rest/with_retry.go, checkWait.
    Differs: the statuses of an overload are repeated without Retry-After too; proxies do not send it.
    """
    return status in _PASSING or (status >= _MAY_ASK_FOR_A_PAUSE and pause is not None)


def retry_after(header: str | None) -> float | None:
    """Return the seconds in a Retry-After header, which is a number or a date; None if there are none."""
    try:
        return None if header is None else float(_HEADER.parse_retry_after(header))
    except (InvalidHeader, ValueError, OverflowError):
        return None


def backoff(retries: int, share: float) -> float:
    """Return the pause in seconds before the retry after ``retries`` others; ``share``, 0 to 1, spreads clients."""
    longest = min(_FIRST_BACKOFF * 2.0**retries, LONGEST_BACKOFF)
    return longest * (0.5 + share / 2)


class Patience(Deadline):
    """The time of one request, its retries included, and the pauses before these."""

    def __init__(self, timeout: float, silence: float | None = None) -> None:
        """Start now; the response must have been read in ``timeout`` seconds, 0 for no limit; see ``Deadline``."""
        super().__init__(timeout or None, silence)
        self._last_start: float | None = None
        self._retries = 0

    @property
    def is_over(self) -> bool:
        """Whether the time of ``--request-timeout`` has passed."""
        return time.monotonic() >= self._end

    def pause(self, retry_after: float | None, limit: int = RETRIES) -> float | None:
        """Return the pause before the next retry, in seconds; None for no more retries.

        Args:
            retry_after: The pause that the server asks for, or None.
            limit: The number of allowed retries.
        """
        now = time.monotonic()
        if self._last_start is None:
            self._last_start = now + PATIENCE
        # Never shorter than the server asks for, because an overloaded server needs the pause.
        pause = max(backoff(self._retries, JITTER.random()), retry_after or 0)
        self._retries += 1
        return pause if self._retries <= limit and now + pause < min(self._last_start, self._end) else None
