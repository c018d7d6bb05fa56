"""The memory of pages, which are large, short-lived and many."""

from __future__ import annotations

import sys
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
