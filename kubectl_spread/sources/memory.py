"""Sizes of input: the limit for compressed input, and units for errors."""

from __future__ import annotations

from typing import Final

from kubectl_spread.errors import SourceError
from kubectl_spread.phrases import plural

FREE: Final = 64 << 20
"""The bytes that compressed input may become at any ratio."""
RATIO: Final = 200
"""The largest ratio of larger input. Equal pods compress to a fortieth."""
_UNITS: Final = ((30, "GiB"), (20, "MiB"), (10, "KiB"))


def check_ratio(what: str, packed: int, unpacked: int, advice: str) -> None:
    """Check that compressed input is not a bomb, as far as it is decompressed.

    Args:
        what: The input.
        packed: The bytes that were read.
        unpacked: The bytes that they became.
        advice: Advice to users whose input is really so large.

    Raises:
        SourceError: Its ratio is unreasonable.
    """
    if unpacked > FREE and unpacked > packed * RATIO:
        growth = f"{in_units(packed)} became {in_units(unpacked)} when unpacked, more than {RATIO} times as much"
        raise SourceError(f"{what}: {growth} ({advice})")


def in_units(size: int) -> str:
    """Return a size for an error, in the largest unit of which it has at least one."""
    for shift, unit in _UNITS:
        if size >> shift:
            return f"{size >> shift:,} {unit}"
    return plural(size, "byte")
