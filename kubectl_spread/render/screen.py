"""A terminal whose screen is drawn over in place, so that it does not flicker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

ENTER: Final = "\x1b[?1049h\x1b[?25l\x1b[?7l"
"""Keeps what is on the screen for later, hides the cursor, and lets long lines end at the edge."""
LEAVE: Final = "\x1b[?7h\x1b[?25h\x1b[?1049l"
_HOME: Final = "\x1b[H"
_REST_OF_LINE: Final = "\x1b[K"
_REST_OF_SCREEN: Final = "\x1b[J"
_LEAST: Final = 4


def frame(lines: Sequence[str], height: int) -> str:
    """Return what draws lines over those on a screen that has so many; the last line of the screen stays empty."""
    drawn = "".join(f"{line}{_REST_OF_LINE}\n" for line in fitted(lines, height - 1))
    return f"{_HOME}{drawn}{_REST_OF_SCREEN}"


def fitted(lines: Sequence[str], height: int) -> list[str]:
    """Return as many lines as there is room for: of more than that the first ones, how many are missing, the last."""
    room = max(height, _LEAST)
    if len(lines) <= room:
        return list(lines)
    return [*lines[: room - 2], f"... {len(lines) - room + 1} more lines", lines[-1]]
