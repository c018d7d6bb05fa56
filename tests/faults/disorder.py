"""Random faults of all requests, from a seed."""

from __future__ import annotations

import threading
from random import Random
from typing import Final

from tests.faults import steps
from tests.faults.proxy import Exchange, Request, Step, passed
from tests.faults.streams import FaultyStream, expired_event, of_old_version

_OFTEN: Final = 0.12
_PAUSE: Final = 1.0
"""Seconds before the answer to a list."""
_STALLED: Final = 15.0
"""Seconds for which nothing comes, so that the client gives up."""


def refused(exchange: Exchange) -> None:
    """Close the connection without an answer."""
    exchange.hang_up()


def expired_page(exchange: Exchange) -> None:
    """Say that the revision of a continue token has expired; a first page is passed on."""
    (steps.expired if exchange.request.token else passed)(exchange)


PASSING: Final[tuple[Step, ...]] = (
    steps.status(429, "TooManyRequests", "please try again later", Retry_After="1"),
    steps.status(500, "InternalError", "etcdserver: leader changed"),
    steps.answer(502, b"<html>bad gateway</html>", "text/html"),
    steps.status(503, "ServiceUnavailable", "the server is currently unable to handle the request"),
    steps.status(504, "Timeout", "request did not complete within the allotted timeout"),
    refused,
)
"""Faults of any request."""
LISTS: Final[tuple[Step, ...]] = (
    *PASSING,
    steps.cut_off,
    steps.reset,
    steps.silent(_PAUSE),
    steps.silent(_STALLED),
    steps.slow(0.5),
    expired_page,
    expired_page,
)
WATCHES: Final[tuple[Step, ...]] = (*PASSING, expired_event, of_old_version, of_old_version)


class Disorder:
    """Chooses the answer to each request at random.

    Attributes:
        spares_lists: Whether only watches have faults.
    """

    def __init__(self, seed: int) -> None:
        """Choose by a seed; the order of requests decides as well."""
        self.spares_lists = threading.Event()
        self._random = Random(seed)
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Step:
        """Return the answer to a request."""
        with self._lock:
            if request.watches:
                return self._random.choice(WATCHES) if self._random.random() < _OFTEN else FaultyStream(self._random)
            if self.spares_lists.is_set():
                return passed
            faults = LISTS if "limit=" in request.target else PASSING
            return self._random.choice(faults) if self._random.random() < _OFTEN else passed
