"""Clocks: that of the API server, by the Date headers of its responses, and one that sleep does not stop."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", None)
"""Linux stops ``time.monotonic`` while the machine sleeps. macOS and Windows do not need another clock."""


def elapsed() -> float:
    """Return seconds since some moment; they continue while the machine sleeps."""
    return time.monotonic() if _CLOCK is None else time.clock_gettime(_CLOCK)


class ServerClock:
    """The time of the last Date header plus the seconds since; may be used from several threads."""

    def __init__(self) -> None:
        self._heard: tuple[datetime, float] | None = None

    def hear(self, date: str | None) -> None:
        """Take the time from a Date header; None, or a header that is not a date, leaves the clock as it is."""
        with suppress(ValueError, OverflowError):
            moment = parsedate_to_datetime(date or "")
            if moment.tzinfo:
                self._heard = moment.astimezone(UTC), elapsed()

    def now(self) -> datetime | None:
        """Return the time in UTC, to the second; None where no response had a date."""
        if self._heard is None:
            return None
        date, received = self._heard
        return date + timedelta(seconds=int(elapsed() - received))
