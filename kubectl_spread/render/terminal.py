"""Tables, paragraphs and colour for a terminal or a pipe."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from rich.cells import cell_len, set_cell_size
from rich.color import ColorSystem
from rich.style import Style

_GAP: Final = 3
_NARROWEST: Final = 8
_READABLE: Final = 20


@dataclass(frozen=True, slots=True)
class Terminal:
    """Where text goes.

    ``width`` is in columns, None for a pipe, whose lines are never cut; ``color`` adds to words, it never
    replaces them.
    """

    width: int | None = None
    color: bool = False

    def styled(self, text: str, style: str) -> str:
        """Return text in a style such as ``bold red``, where there is colour."""
        if not self.color or not style:
            return text
        return Style.parse(style).render(text, color_system=ColorSystem.STANDARD)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; one that may ``shrink`` is cut with an ellipsis where the terminal is narrow."""

    title: str
    justify: Literal["left", "right"] = "left"
    shrink: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """Text in a table, its style, and a ``short`` form for terminals where the row does not fit."""

    text: str
    style: str = ""
    short: str = ""


def table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[Cell | str]],
    terminal: Terminal,
    *,
    headers: bool = True,
) -> str:
    """Return rows in columns three spaces apart, without borders, as kubectl prints them."""
    cells = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
    if headers:
        cells.insert(0, [Cell(column.title) for column in columns])
    widths = _natural_widths(cells)
    if terminal.width is not None and _line_width(widths) > terminal.width:
        cells = [[Cell(cell.short or cell.text, cell.style) for cell in row] for row in cells]
        widths = _cut(columns, _natural_widths(cells), terminal.width)
    return "".join(_line(columns, widths, row, terminal) for row in cells)


def _natural_widths(rows: Sequence[Sequence[Cell]]) -> list[int]:
    return [max(cell_len(cell.text) for cell in cells) for cells in zip(*rows, strict=True)]


def _line_width(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _cut(columns: Sequence[Column], widths: list[int], available: int) -> list[int]:
    """Return widths that fit, or come near: columns that may shrink are cut, the right ones first."""
    excess = _line_width(widths) - available
    for index in reversed(range(len(columns))):
        if columns[index].shrink and excess > 0:
            cut = min(excess, max(widths[index] - _NARROWEST, 0))
            widths[index] -= cut
            excess -= cut
    return widths


def _line(columns: Sequence[Column], widths: Sequence[int], row: Sequence[Cell], terminal: Terminal) -> str:
    parts = []
    for column, width, cell in zip(columns, widths, row, strict=True):
        text = _fitted(cell.text, width)
        padding = " " * (width - cell_len(text))
        shown = terminal.styled(text, cell.style)
        parts.append(padding + shown if column.justify == "right" else shown + padding)
    return (" " * _GAP).join(parts).rstrip() + "\n"


def _fitted(text: str, width: int) -> str:
    return text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"


def paragraph(text: str, indent: str, terminal: Terminal) -> str:
    """Return text behind an indent, in lines that fit the terminal; in a pipe one line."""
    if terminal.width is None:
        return f"{indent}{text}\n"
    lines = textwrap.wrap(
        text,
        max(terminal.width, len(indent) + _READABLE),
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "".join(f"{line}\n" for line in lines)
