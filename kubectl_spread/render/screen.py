"""A document on a terminal, in a pipe or in a file of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from kubectl_spread.phrases import plural
from kubectl_spread.render import words
from kubectl_spread.render.document import ALL, OBJECTS, Card, Details, Document, Instruction, Table, objects
from kubectl_spread.render.terminal import Cell, Terminal, between_phrases, hanging, paragraph, table
from kubectl_spread.report.model import Severity

STYLES: Final = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
_INDENT: Final = "  "
_DETAIL: Final = "    "
"""The indentation of the objects and the commands of a card."""


def text(
    document: Document, terminal: Terminal, *, headers: bool = True, titles: bool = True, everything: bool = False
) -> str:
    """Return a document as text.

    Args:
        document: The document.
        terminal: Where it is printed.
        headers: Whether more is printed than the rows of the tables.
        titles: Whether the columns have titles.
        everything: Whether all objects are named.
    """
    if not headers:
        return "".join(_table(each, terminal, headers=False, everything=True) for each in document.tables)
    return "\n".join(filter(None, _blocks(document, terminal, titles=titles, everything=everything)))


def _blocks(document: Document, terminal: Terminal, *, titles: bool, everything: bool) -> Iterator[str]:
    """Yield the parts that an empty line separates; "" where one is missing."""
    header = _INDENT.join(map(words.safe, document.header))
    yield between_phrases(header, _INDENT, terminal) if header else ""
    tables = [_table(each, terminal, everything=everything, headers=titles) for each in document.tables]
    if document.conclusion_last:
        yield from tables
    else:
        yield _conclusion(document, terminal)
    yield cards(document.cards, terminal, everything=everything)
    if not document.conclusion_last:
        yield from tables
    for details in document.details:
        yield _details(details, terminal)
    cut = any(len(card.objects) > OBJECTS for card in document.cards) or any(map(_left, document.tables))
    notes = [*document.notes, *([ALL] if (cut or document.shortened) and not everything else [])]
    text = "".join(hanging(words.safe(note), _INDENT, terminal) for note in notes)
    text += "".join(_instruction(each, "", terminal) for each in document.next_steps)
    yield (_conclusion(document, terminal) if document.conclusion_last else "") + text


def _conclusion(document: Document, terminal: Terminal) -> str:
    """Return the facts and the conclusion, aligned behind their labels."""
    lines = [*document.facts, *([(document.label, document.headline)] if document.headline else [])]
    width = max((len(label) for label, _ in lines), default=0)
    prefixed = (f"{label:{width}}{_INDENT}{text}" if width else text for label, text in lines)
    text = "".join(hanging(words.safe(line), _INDENT, terminal) for line in prefixed)
    return text + "".join(_instruction(each, _INDENT, terminal) for each in document.instructions)


def cards(cards: Sequence[Card], terminal: Terminal, *, everything: bool = False) -> str:
    """Return the causes; an empty line is above a title, except between titles alone."""
    text = ""
    for card, before in zip(cards, [None, *cards], strict=False):
        text += "\n" * (before is not None and bool(card.title) and bool(card.sentence or before.sentence))
        text += _card(card, terminal, everything=everything)
    return text


def _card(card: Card, terminal: Terminal, *, everything: bool) -> str:
    title, sentence = words.safe(card.title), words.safe(card.sentence)
    severity = "" if card.severity is None else card.severity.value
    text = hanging(f"{severity} {title or sentence}".lstrip(), _INDENT, terminal).removeprefix(severity)
    if card.title:
        text = "".join(f"{terminal.styled(line, 'bold')}\n" for line in text.splitlines())
        text += paragraph(sentence, _INDENT, terminal) if sentence else ""
    if card.severity is not None:
        text = terminal.styled(severity, STYLES[card.severity]) + text
    elif not card.title:
        text = paragraph(sentence, _INDENT, terminal)
    if everything:
        text += "".join(paragraph(words.safe(name), _DETAIL, terminal) for name in card.objects)
    elif card.objects:
        text += between_phrases(words.safe(objects(card)), _DETAIL, terminal, _DETAIL)
    return text + "".join(_instruction(each, _INDENT, terminal) for each in card.instructions)


def _instruction(instruction: Instruction, indent: str, terminal: Terminal) -> str:
    """Return a sentence, and commands and lines of any length, so that they can be copied."""
    text, sentence = "", words.safe(instruction.text)
    if sentence and instruction.lines:
        text = hanging(f"{indent}{sentence}", f"{indent}{_INDENT}", terminal)
    elif sentence:
        text = paragraph(sentence, indent, terminal)
    text += "".join(f"{_DETAIL}$ {words.safe(command)}\n" for command in instruction.commands)
    return text + "".join(f"{indent}{_DETAIL}{words.safe(line)}\n" for line in instruction.lines)


def _left(numbers: Table) -> int:
    """Return the number of rows that the screen leaves out, unless all are asked for."""
    return len(numbers.rows) - numbers.first if 0 < numbers.first < len(numbers.rows) else 0


def _table(numbers: Table, terminal: Terminal, *, everything: bool, headers: bool = True) -> str:
    if not numbers.rows:
        return hanging(words.safe(numbers.empty), _INDENT, terminal) if numbers.empty else ""
    columns = [
        replace(each, title=words.safe(each.title).upper(), short=words.safe(each.short).upper())
        for each in numbers.columns
    ]
    left = 0 if everything else _left(numbers)
    rows = [[*map(_safe, row)] for row in numbers.rows[: len(numbers.rows) - left]]
    more = f"and {plural(left, 'more row')}\n" if left else ""
    note = hanging(words.safe(numbers.note), _INDENT, terminal) if numbers.note else ""
    return table(columns, rows, terminal, headers=headers) + more + note


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
