"""What becomes of the memory of pages: they are large, short-lived, and as many as the cluster has pods."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from typing import Final

_MMAP_THRESHOLD: Final = -3
"""M_MMAP_THRESHOLD of glibc's mallopt(3)."""
_LARGE: Final = 1 << 17


def keep_apart() -> None:
    """Have large buffers returned to the system when they are freed, as glibc does until the first one is.

    From then on it takes buffers as large as that one from its heap, where small objects that live on settle between
    them and the rest is lost. Other libraries have no such habit.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, _LARGE)
