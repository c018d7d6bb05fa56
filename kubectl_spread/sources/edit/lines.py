"""Lines: where the lines of a text begin and end, and which comments belong to the lines above them."""

from __future__ import annotations

import re
from typing import Final

_NEWLINE: Final = re.compile(r"\r\n|\r|\n")
_REST: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_COMMENT: Final = re.compile(r"([ \t]*)(#[^\r\n]*)?(?:\r\n|\r|\n|\Z)")
_SPACE: Final = re.compile(r"(?:\s|#[^\r\n]*+)*+")
_MARGIN: Final = re.compile(r"[ \t]*")


class Lines:
    """The lines of a text; an index is that of a character."""

    def __init__(self, text: str) -> None:
        """Hold a text; ``newline`` is the end of its first line."""
        self._text = text
        match = _NEWLINE.search(text)
        self.newline = match[0] if match else "\n"

    def several(self, part: str) -> bool:
        """Tell whether a part of the text goes over several lines."""
        return _NEWLINE.search(part) is not None

    def start(self, index: int) -> int:
        """Return where the line begins on which ``index`` is."""
        return max(self._text.rfind("\n", 0, index), self._text.rfind("\r", 0, index)) + 1

    def column(self, index: int) -> int:
        """Return how many characters are before ``index`` on its line."""
        return index - self.start(index)

    def begins_at(self, index: int) -> bool:
        """Tell whether nothing but blanks is before ``index`` on its line."""
        return not self._text[self.start(index) : index].strip()

    def ends_at(self, index: int) -> bool:
        """Tell whether a line ends before ``index``, or the text begins there."""
        return index == 0 or self._text[index - 1] in "\n\r"

    def margin(self, index: int) -> str:
        """Return the blanks with which the line of ``index`` begins."""
        match = _MARGIN.match(self._text, self.start(index))
        return match[0] if match else ""

    def indent(self, index: int) -> str:
        """Return blanks as wide as the text before ``index`` on its line."""
        return re.sub(r"\S", " ", self._text[self.start(index) : index])

    def below(self, start: int, end: int) -> int:
        """Return where a line may be added to a block: below it and the comments that are indented like it.

        Comments that are indented like the block belong to the next block if that is, too.
        """
        match = _SPACE.match(self._text, self._end(end))
        following = match.end() if match else len(self._text)
        column = self.column(start)
        goes_on = following < len(self._text) and self.column(following) >= column
        return self._below_comments(end, column + goes_on)

    def spanning(self, start: int, end: int) -> tuple[int, int]:
        """Return the range of the lines from ``start`` to ``end``, with the comments below that are further in."""
        first, behind = self.start(start), self._below_comments(end, self.column(start) + 1)
        if first and not self.ends_at(behind):
            # The last line has no end: neither has the one before it when this one is taken out.
            first -= 2 if self._text.endswith("\r\n", 0, first) else 1
        return first, behind

    def _end(self, index: int) -> int:
        match = _REST.match(self._text, index)
        return match.end() if match else len(self._text)

    def _below_comments(self, end: int, column: int) -> int:
        """Return where the line below ``end`` begins, or below the comments there from ``column`` on."""
        behind = position = self._end(end)
        while position < len(self._text) and (match := _COMMENT.match(self._text, position)):
            position = match.end()
            if match[2]:
                if len(match[1]) < column:
                    break
                behind = position
        return behind
