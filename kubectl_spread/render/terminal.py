"""Tables, paragraphs and colour, for a terminal or a pipe."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from itertools import zip_longest
from typing import Final, Literal

import msgspec

_GAP: Final = 2
_LEAST_GAP: Final = 1
_READABLE: Final = 20
_NO_BREAK: Final = "\N{NO-BREAK SPACE}"
_PHRASE_END: Final = re.compile(r"(, |  )")
_SGR: Final = {"bold": "1", "red": "31", "yellow": "33", "cyan": "36"}
"""Maps the words of styles to the parameters of the control sequence (ECMA-48, SGR)."""


class Terminal(msgspec.Struct, frozen=True):
    """The properties of a terminal, a pipe or a file.

    ``width`` is in columns and ``height`` in lines; both are None for a pipe, whose lines are never cut. ``color`` adds
    to words and never replaces them. ``ascii`` limits characters to those that all terminals have.
    """

    width: int | None = None
    height: int | None = None
    color: bool = False
    ascii: bool = False

    @property
    def ellipsis(self) -> str:
        """The sign for text that was cut."""
        return "~" if self.ascii else "…"

    def styled(self, text: str, style: str) -> str:
        """Return text in a style such as ``bold red``, if colour is on."""
        if not self.color or not style:
            return text
        return f"\x1b[{';'.join(_SGR[word] for word in style.split())}m{text}\x1b[0m"


def _columns(text: str) -> int:
    """Return the number of columns of text without control characters."""
    if text.isascii():
        return len(text)
    import wcwidth  # noqa: PLC0415 - ASCII does not wait for its tables

    return wcwidth.width(text)


def _beginning(text: str, width: int) -> str:
    """Return the longest beginning of text that is no wider than ``width`` columns, and no space at its end."""
    if text.isascii():
        return text[:width].rstrip()
    import wcwidth  # noqa: PLC0415 - likewise

    return wcwidth.clip(text, 0, width).rstrip()


class Column(msgspec.Struct, frozen=True):
    """A column of a table.

    On a narrow terminal, a column with a ``fit`` gets narrower than its text, down to ``least``: ``end`` and ``middle``
    put an ellipsis there, and ``wrap`` continues in the next line. Columns with ``middle`` are cut after all others.
    ``short`` is a shorter title, for tables that do not fit.
    """

    title: str
    justify: Literal["left", "right"] = "left"
    fit: Literal["", "end", "middle", "wrap"] = ""
    least: int = 8
    short: str = ""


class Cell(msgspec.Struct, frozen=True):
    """Text in a table, its style, and ``shorter`` forms, each shorter than the last, for rows that do not fit.

    ``share`` is the length of the bar that a page draws for a number, in percent of the largest; None for no bar.
    """

    text: str
    style: str = ""
    shorter: tuple[str, ...] = ()
    share: int | None = None

    def form(self, number: int) -> Cell:
        """Return the cell with its text in one of the forms: 0 is the whole text."""
        forms = (self.text, *self.shorter)
        return Cell(forms[min(number, len(self.shorter))], self.style)


Cells = list[list[Cell]]


class _Fitted(msgspec.Struct, frozen=True):
    """Cells in one of their forms each, the widths of their columns, and the gap between these."""

    cells: Cells
    widths: list[int]
    gap: int

    @property
    def line_width(self) -> int:
        return sum(self.widths) + self.gap * (len(self.widths) - 1)


def table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[Cell | str]],
    terminal: Terminal,
    *,
    headers: bool = True,
) -> str:
    """Return rows in columns without borders, two spaces apart, or one if they must fit."""
    cells = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
    if headers:
        cells.insert(0, [Cell(column.title, shorter=(column.short or column.title,)) for column in columns])
    if not cells:
        return ""
    fitted = _fitted(columns, cells, terminal.width)
    return "".join(_row(columns, fitted, row, terminal) for row in fitted.cells)


def _fitted(columns: Sequence[Column], cells: Cells, available: int | None) -> _Fitted:
    """Return the table with the longest forms and the widest gap that fit; if none fit, its columns are cut.

    Forms get shorter in steps: none, short titles and cells, the shortest cells, and these with a smaller gap.
    """
    whole = _shaped(cells, [0] * len(columns), _GAP)
    if available is None:
        return whole
    forms = [max(len(row[index].shorter) for row in cells) for index in range(len(columns))]
    short, shortest = _shaped(cells, [min(number, 1) for number in forms], _GAP), _shaped(cells, forms, _GAP)
    tables = [whole, short, shortest, _Fitted(shortest.cells, shortest.widths, _LEAST_GAP)]
    if fitting := next((table for table in tables if table.line_width <= available), None):
        return fitting
    # A column that wraps loses nothing by being narrower, so that the gaps stay where that is enough.
    cut = [_cut(columns, table, available) for table in tables[-2:]]
    wraps = any(column.fit == "wrap" for column in columns) and cut[0].line_width <= available
    return cut[0] if wraps else cut[1]


def _shaped(cells: Cells, forms: Sequence[int], gap: int) -> _Fitted:
    shortened = [[cell.form(form) for cell, form in zip(row, forms, strict=True)] for row in cells]
    widths = [max(_columns(cell.text) for cell in column) for column in zip(*shortened, strict=True)]
    return _Fitted(shortened, widths, gap)


def _cut(columns: Sequence[Column], fitted: _Fitted, available: int) -> _Fitted:
    """Return the table with widths that fit, or nearly: columns are cut from the right, those with ``middle`` last."""
    widths = list(fitted.widths)
    excess = fitted.line_width - available
    order = [index for index in reversed(range(len(columns))) if columns[index].fit]
    for index in sorted(order, key=lambda index: columns[index].fit == "middle"):
        cut = max(min(excess, widths[index] - columns[index].least), 0)
        widths[index] -= cut
        excess -= cut
    return _Fitted(fitted.cells, widths, fitted.gap)


def _row(columns: Sequence[Column], fitted: _Fitted, row: Sequence[Cell], terminal: Terminal) -> str:
    """Return a row: one line, or several if a column wraps."""
    fitting = zip(columns, fitted.widths, row, strict=True)
    lines = [_lines(column, width, cell.text, terminal) for column, width, cell in fitting]
    text = ""
    for parts in zip_longest(*lines, fillvalue=""):
        columns_here = zip(columns, fitted.widths, parts, row, strict=True)
        cells = [_padded(column, width, part, cell.style, terminal) for column, width, part, cell in columns_here]
        text += (" " * fitted.gap).join(cells).rstrip() + "\n"
    return text


def _padded(column: Column, width: int, text: str, style: str, terminal: Terminal) -> str:
    padding = " " * (width - _columns(text))
    styled = terminal.styled(text, style)
    return padding + styled if column.justify == "right" else styled + padding


def _lines(column: Column, width: int, text: str, terminal: Terminal) -> list[str]:
    """Return the text as the column shows it: in one line, unless the column wraps."""
    if _columns(text) <= width:
        return [text]
    match column.fit:
        case "wrap":
            return textwrap.wrap(text, width, break_on_hyphens=False)
        case "middle":
            tail = _tail(text, (width - 1) // 3)
            return [_beginning(text, width - 1 - _columns(tail)) + terminal.ellipsis + tail]
        case _:
            return [_beginning(text, width - 1) + terminal.ellipsis]


def _tail(text: str, width: int) -> str:
    """Return the longest end of a text that is no wider than ``width``."""
    return next((text[start:] for start in range(len(text)) if _columns(text[start:]) <= width), "")


def paragraph(text: str, indent: str, terminal: Terminal, *, first: str | None = None) -> str:
    """Return text in indented lines that fit the terminal, in a pipe one; the first may have an indent of its own."""
    lines = _wrapped(text, indent if first is None else first, indent, terminal)
    return "".join(f"{line}\n" for line in lines)


def between_phrases(text: str, indent: str, terminal: Terminal, first: str = "") -> str:
    """Return text in lines that fit the terminal and break only between phrases, after commas or two spaces.

    All lines but the first have the ``indent``; that one has its own. A phrase that is longer than a line is wrapped.
    """
    room = None if terminal.width is None else terminal.width - len(indent)
    parts = (
        part if room is None or _PHRASE_END.fullmatch(part) or _columns(part) > room else part.replace(" ", _NO_BREAK)
        for part in _PHRASE_END.split(text)
    )
    lines = _wrapped("".join(parts), first, indent, terminal)
    return "".join(f"{line.replace(_NO_BREAK, ' ')}\n" for line in lines)


def _wrapped(text: str, first: str, indent: str, terminal: Terminal) -> list[str]:
    if terminal.width is None:
        return [f"{first}{text}"]
    return textwrap.wrap(
        text,
        max(terminal.width, len(indent) + _READABLE),
        initial_indent=first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
