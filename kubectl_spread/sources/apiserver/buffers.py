"""The memory of pages, which are large, short-lived and many."""

from __future__ import annotations

import sys
from collections import deque
from contextlib import suppress
from typing import Final

_MMAP_THRESHOLD: Final = -3
"""M_MMAP_THRESHOLD of glibc's mallopt(3)."""
_LARGE: Final = 1 << 17


def keep_apart() -> None:
    """Have large buffers returned to the system when they are freed, as glibc does only with the first one.

    After that, glibc takes buffers of this size from its heap, where small objects that stay alive fragment the rest.
    Other C libraries do not.
    """
    import ctypes  # noqa: PLC0415 - only lists of several pages need it

    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, _LARGE)


class Bodies:
    """The memory of the pages of one list, used again after a page was processed; may be used from several threads.

    Used again because the system clears new memory, which takes longer than to receive a page into it.
    """

    def __init__(self) -> None:
        """Start without any."""
        self._free: deque[bytearray] = deque()

    def take(self) -> bytearray:
        """Return memory for a page, with any content."""
        with suppress(IndexError):
            return self._free.popleft()
        return bytearray()

    def give(self, body: bytes | bytearray) -> None:
        """Take the memory of a processed page, unless there is still a view of it."""
        if isinstance(body, bytearray):
            with suppress(BufferError):
                # A bytearray cannot be resized while there are views of it.
                body.append(0)
                self._free.append(body)
