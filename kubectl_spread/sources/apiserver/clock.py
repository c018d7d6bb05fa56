"""The API server's clock, as far as the Date headers of its responses tell."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from threading import Lock


class ServerClock:
    """Tells the time of the last Date header and the seconds since; may be used from several threads."""

    def __init__(self) -> None:
        """Know no time yet."""
        self._lock = Lock()
        self._date: datetime | None = None
        self._received = 0.0

    def hear(self, date: str | None) -> None:
        """Take the time from a Date header; None, or a header that is not a date, leaves the clock as it is."""
        found = _parsed(date)
        if found is not None:
            with self._lock:
                self._date, self._received = found, time.monotonic()

    def now(self) -> datetime | None:
        """Return the time in UTC, to the second; None where no response had a date."""
        with self._lock:
            if self._date is None:
                return None
            try:
                return self._date + timedelta(seconds=int(time.monotonic() - self._received))
            except OverflowError:
                return self._date


def _parsed(date: str | None) -> datetime | None:
    """Return the time in a header, in UTC; one without a zone cannot be placed."""
    try:
        found = parsedate_to_datetime(date or "")
        return found.astimezone(UTC) if found.tzinfo else None
    except (ValueError, OverflowError):
        return None
