"""The control sequences that redraw a screen in place, so that it does not flicker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

ENTER: Final = "\x1b[?1049h\x1b[?25l\x1b[?7l"
"""Saves the content of the screen, hides the cursor, and cuts long lines at the edge."""
LEAVE: Final = "\x1b[?7h\x1b[?25h\x1b[?1049l"
_HOME: Final = "\x1b[H"
_REST_OF_LINE: Final = "\x1b[K"
_REST_OF_SCREEN: Final = "\x1b[J"
_LEAST: Final = 4


def frame(lines: Sequence[str], height: int) -> str:
    """Return the text that redraws a screen of this height; the last line of the screen stays empty."""
    drawn = "".join(f"{line}{_REST_OF_LINE}\n" for line in fitted(lines, height - 1))
    return f"{_HOME}{drawn}{_REST_OF_SCREEN}"


def fitted(lines: Sequence[str], height: int) -> list[str]:
    """Return the lines that fit: of too many the first ones, a line with the number of missing ones, and the last."""
    room = max(height, _LEAST)
    if len(lines) <= room:
        return list(lines)
    return [*lines[: room - 2], f"... {len(lines) - room + 1} more lines", lines[-1]]
