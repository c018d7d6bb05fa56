"""Tables and colour for a terminal or a pipe, by rich."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text


@dataclass(frozen=True, slots=True)
class Terminal:
    """Where text goes: ``width`` in columns, None for a pipe, which is never cut.

    ``color`` adds to words, never replaces them.
    """

    width: int | None = None
    color: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; one that may ``shrink`` is cut with an ellipsis where the terminal is narrow."""

    title: str
    justify: Literal["left", "right"] = "left"
    shrink: bool = False


PIPE_WIDTH = 2**16


def table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[Text | str]],
    terminal: Terminal,
    *,
    headers: bool = True,
) -> str:
    """Return rows in columns three spaces apart, without borders, as kubectl prints them."""
    grid = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), show_header=headers, header_style="")
    for column in columns:
        grid.add_column(
            column.title,
            justify=column.justify,
            no_wrap=True,
            overflow="ellipsis",
            min_width=min(len(column.title), 8) if column.shrink else _widest(column, columns, rows),
        )
    for row in rows:
        grid.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    return render(grid, terminal)


def render(content: Table | Text, terminal: Terminal) -> str:
    """Return what a terminal of this kind shows, without spaces at line ends."""
    stream = io.StringIO()
    console = Console(
        file=stream,
        width=terminal.width or PIPE_WIDTH,
        force_terminal=terminal.color,
        color_system="standard" if terminal.color else None,
        highlight=False,
        emoji=False,
        markup=False,
        legacy_windows=False,
    )
    console.print(content, soft_wrap=isinstance(content, Text))
    return "".join(f"{line.rstrip()}\n" for line in stream.getvalue().splitlines())


def paragraph(text: str, indent: str, terminal: Terminal) -> str:
    """Return text behind an indent, in lines that fit the terminal; in a pipe one line."""
    if terminal.width is None:
        return f"{indent}{text}\n"
    width = max(terminal.width, len(indent) + 20)
    lines = textwrap.wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "".join(f"{line}\n" for line in lines)


def _widest(column: Column, columns: Sequence[Column], rows: Sequence[Sequence[Text | str]]) -> int:
    index = columns.index(column)
    cells = [Text(str(row[index])).cell_len for row in rows]
    return max([len(column.title), *cells])
