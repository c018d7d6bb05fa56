"""A document on a terminal, in a pipe or in a file of text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from kubectl_spread.phrases import plural
from kubectl_spread.render import words
from kubectl_spread.render.document import ALL, OBJECTS, Card, Details, Document, Instruction, Table, objects
from kubectl_spread.render.findings import STYLES
from kubectl_spread.render.terminal import Cell, Terminal, between_phrases, hanging, table

_INDENT: Final = "  "
_DETAIL: Final = "    "
"""The indentation of the objects and the commands of a card."""


def text(document: Document, terminal: Terminal, *, headers: bool = True, everything: bool = False) -> str:
    """Return a document as text.

    Args:
        document: The document.
        terminal: Where it is printed.
        headers: Whether more is printed than the rows of the tables.
        everything: Whether all objects are named.
    """
    if not headers:
        return "".join(_table(each, terminal, headers=False, everything=True) for each in document.tables)
    return "\n".join(filter(None, _blocks(document, terminal, everything=everything)))


def _blocks(document: Document, terminal: Terminal, *, everything: bool) -> Iterator[str]:
    """Yield the parts that an empty line separates; "" where one is missing."""
    yield between_phrases(_INDENT.join(map(words.safe, document.header)), _INDENT, terminal)
    yield _conclusion(document, terminal)
    yield "".join(_card(card, terminal, everything=everything) for card in document.cards)
    for each in document.tables:
        yield _table(each, terminal, everything=everything)
    for details in document.details:
        yield _details(details, terminal)
    cut = any(len(card.objects) > OBJECTS for card in document.cards) or any(map(_left, document.tables))
    notes = [*document.notes, *([ALL] if cut and not everything else [])]
    text = "".join(hanging(words.safe(note), _INDENT, terminal) for note in notes)
    yield text + ("" if document.next_step is None else _instruction(document.next_step, "", terminal))


def _conclusion(document: Document, terminal: Terminal) -> str:
    """Return the facts and the conclusion, aligned behind their labels."""
    lines = [*document.facts, *([(document.label, document.headline)] if document.headline else [])]
    width = max((len(label) for label, _ in lines), default=0)
    prefixed = (f"{label:{width}}{_INDENT}{text}" if width else text for label, text in lines)
    text = "".join(hanging(words.safe(line), _INDENT, terminal) for line in prefixed)
    return text + "".join(_instruction(each, _INDENT, terminal) for each in document.instructions)


def _card(card: Card, terminal: Terminal, *, everything: bool) -> str:
    sentence = words.safe(card.sentence)
    if card.severity is not None:
        sentence = f"{terminal.styled(card.severity.value, STYLES[card.severity])} {sentence}"
    text = hanging(sentence, _INDENT, terminal)
    if card.objects:
        most = len(card.objects) if everything else OBJECTS
        text += between_phrases(words.safe(objects(card, most)), _DETAIL, terminal, _DETAIL)
    return text + "".join(_instruction(each, _INDENT, terminal) for each in card.instructions)


def _instruction(instruction: Instruction, indent: str, terminal: Terminal) -> str:
    """Return a sentence, and commands and lines of any length, so that they can be copied."""
    text = (
        hanging(f"{indent}{words.safe(instruction.text)}", f"{indent}{_INDENT}", terminal) if instruction.text else ""
    )
    text += "".join(f"{indent}$ {words.safe(command)}\n" for command in instruction.commands)
    return text + "".join(f"{indent}{_DETAIL}{words.safe(line)}\n" for line in instruction.lines)


def _left(numbers: Table) -> int:
    """Return the number of rows that the screen leaves out, unless all are asked for."""
    return len(numbers.rows) - numbers.first if 0 < numbers.first < len(numbers.rows) else 0


def _table(numbers: Table, terminal: Terminal, *, everything: bool, headers: bool = True) -> str:
    if not numbers.rows:
        return f"{words.safe(numbers.empty)}\n" if numbers.empty else ""
    columns = [
        replace(each, title=words.safe(each.title).upper(), short=words.safe(each.short).upper())
        for each in numbers.columns
    ]
    left = 0 if everything else _left(numbers)
    rows = [[*map(_safe, row)] for row in numbers.rows[: len(numbers.rows) - left]]
    more = f"and {plural(left, 'more row')}\n" if left else ""
    return table(columns, rows, terminal, headers=headers) + more


def _safe(cell: Cell) -> Cell:
    return replace(cell, text=words.safe(cell.text), shorter=tuple(map(words.safe, cell.shorter)))


def _details(details: Details, terminal: Terminal) -> str:
    lines = (
        f"{_INDENT}{words.safe(line)}\n"
        if details.preformatted
        else hanging(f"{_INDENT}{words.safe(line)}", _DETAIL, terminal)
        for line in details.lines
    )
    return hanging(f"{words.safe(details.title)}:", _INDENT, terminal) + "".join(lines)
