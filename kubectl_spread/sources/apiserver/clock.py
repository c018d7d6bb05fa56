"""Clocks: that of the API server, by the Date headers of its responses, and one that sleep does not stop."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from threading import Lock
from typing import Final

_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", None)
"""Linux stops ``time.monotonic`` while the machine sleeps. macOS and Windows do not need another clock."""


def elapsed() -> float:
    """Return seconds since some moment; they continue while the machine sleeps."""
    return time.monotonic() if _CLOCK is None else time.clock_gettime(_CLOCK)


class ServerClock:
    """The time of the last Date header plus the seconds since; may be used from several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._date: datetime | None = None
        self._received = 0.0

    def hear(self, date: str | None) -> None:
        """Take the time from a Date header; None, or a header that is not a date, leaves the clock as it is."""
        moment = _parsed(date)
        if moment is not None:
            with self._lock:
                self._date, self._received = moment, elapsed()

    def now(self) -> datetime | None:
        """Return the time in UTC, to the second; None where no response had a date."""
        with self._lock:
            if self._date is None:
                return None
            try:
                return self._date + timedelta(seconds=int(elapsed() - self._received))
            except OverflowError:
                return self._date


def _parsed(date: str | None) -> datetime | None:
    """Return the time in a header, in UTC; None without a zone."""
    try:
        moment = parsedate_to_datetime(date or "")
        return moment.astimezone(UTC) if moment.tzinfo else None
    except (ValueError, OverflowError):
        return None
