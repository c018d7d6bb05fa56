"""Where the lines of a text begin and end, and which comments belong to the lines above them."""

from __future__ import annotations

import re
from typing import Final

_NEWLINE: Final = re.compile(r"\r\n|\r|\n")
_REST: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_COMMENT: Final = re.compile(r"([ \t]*)(#[^\r\n]*)?(?:\r\n|\r|\n|\Z)")
_SPACE: Final = re.compile(r"(?:\s|#[^\r\n]*+)*+")
_MARGIN: Final = re.compile(r"[ \t]*")


def has_line_end(text: str) -> bool:
    """Tell whether a text reaches beyond its first line."""
    return _NEWLINE.search(text) is not None


class Lines:
    """The lines of a text; indices count characters."""

    def __init__(self, text: str) -> None:
        """Hold a text; ``newline`` is its first line break, which new lines get too."""
        self._text = text
        match = _NEWLINE.search(text)
        self.newline = match[0] if match else "\n"

    def start(self, index: int) -> int:
        """Return where the line of ``index`` begins."""
        return max(self._text.rfind("\n", 0, index), self._text.rfind("\r", 0, index)) + 1

    def column(self, index: int) -> int:
        """Return how many characters are before ``index`` on its line."""
        return index - self.start(index)

    def begins_at(self, index: int) -> bool:
        """Tell whether only blanks are before ``index`` on its line."""
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

        If the next block is indented like this block, comments with that indentation belong to the next block.
        """
        match = _SPACE.match(self._text, self._end(end))
        following = match.end() if match else len(self._text)
        column = self.column(start)
        continues = following < len(self._text) and self.column(following) >= column
        return self._below_comments(end, column + continues)

    def spanning(self, start: int, end: int) -> tuple[int, int]:
        """Return the range of the lines from ``start`` to ``end`` and of the comments below with more indentation."""
        first, behind = self.start(start), self._below_comments(end, self.column(start) + 1)
        if first and not self.ends_at(behind):
            # The last line of the text has no line break, so the line before it loses its line break.
            first -= 2 if self._text.endswith("\r\n", 0, first) else 1
        return first, behind

    def _end(self, index: int) -> int:
        match = _REST.match(self._text, index)
        return match.end() if match else len(self._text)

    def _below_comments(self, end: int, column: int) -> int:
        """Return where the line below ``end`` begins, or the line below the comments there from ``column`` on."""
        behind = position = self._end(end)
        while position < len(self._text) and (match := _COMMENT.match(self._text, position)):
            position = match.end()
            if match[2]:
                if len(match[1]) < column:
                    break
                behind = position
        return behind
