"""The answers that are being sent, which an evaluation lets pass.

Python runs one thread at a time. While a report is evaluated, each piece of an answer waits for its turn, and a scrape
of 25 MB takes twice as long.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Answers:
    """The answers of a server; ``sending`` is for its thread alone."""

    def __init__(self) -> None:
        """Start without answers."""
        self._number = 0
        self._none = threading.Event()
        self._none.set()

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Send one answer inside a ``with`` block."""
        self._number += 1
        self._none.clear()
        try:
            yield
        finally:
            self._number -= 1
            if not self._number:
                self._none.set()

    def let_pass(self, most: float) -> Callable[[], None]:
        """Return a function that waits while answers are being sent.

        All its calls together wait for ``most`` seconds at most, so that slow readers do not stop an evaluation.
        """
        left = most

        def wait() -> None:
            nonlocal left
            if left > 0 and not self._none.is_set():
                began = time.monotonic()
                self._none.wait(left)
                left -= time.monotonic() - began

        return wait
