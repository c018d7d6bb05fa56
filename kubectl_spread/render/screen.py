"""A document on a terminal, in a pipe or in a file of text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from kubectl_spread.phrases import plural
from kubectl_spread.render import words
from kubectl_spread.render.document import ALL, OBJECTS, AnswerSection, Card, Document, Instruction, Table, objects
from kubectl_spread.render.terminal import Cell, Terminal, between_phrases, paragraph, table
from kubectl_spread.report.model import Severity

STYLES: Final = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
_ASCII: Final = str.maketrans("·█▒▓", ".#=+")
"""The characters of bars on terminals that have only those of ASCII."""
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
    text = "\n".join(filter(None, _blocks(document, terminal, titles=titles, everything=everything)))
    return text.translate(_ASCII) if terminal.ascii else text


def _blocks(document: Document, terminal: Terminal, *, titles: bool, everything: bool) -> Iterator[str]:
    """Yield the parts that an empty line separates; "" where one is missing."""
    header = between_phrases(_INDENT.join(map(words.safe, document.header)), _INDENT, terminal)
    yield "" if document.header_last or not document.header else header
    tables = [_table(each, terminal, everything=everything, headers=titles) for each in document.tables]
    if document.conclusion_last:
        yield from tables
    else:
        yield _conclusion(document, terminal)
    yield cards(document.cards, terminal, everything=everything)
    if not document.conclusion_last:
        yield from tables
    for each in document.sections:
        yield section(each, terminal)
    cut = any(len(card.objects) > OBJECTS for card in document.cards) or any(map(_left, document.tables))
    notes = [*document.notes, *([ALL] if (cut or document.shortened) and not everything else [])]
    text = "".join(paragraph(words.safe(note), _INDENT, terminal, first="") for note in notes)
    text += "".join(_instruction(each, "", terminal) for each in document.next_steps)
    first = header if document.header_last else _conclusion(document, terminal) if document.conclusion_last else ""
    yield first + text


def _conclusion(document: Document, terminal: Terminal) -> str:
    """Return the conclusion and the facts; those with labels come first, aligned behind these."""
    headline = [(document.label, document.headline)] if document.headline else []
    lines = [*document.facts, *headline] if document.label else [*headline, *document.facts]
    width = max((len(label) for label, _ in lines), default=0)
    prefixed = (f"{label:{width}}{_INDENT}{text}" if width else text for label, text in lines)
    text = "".join(paragraph(words.safe(line), _INDENT, terminal, first="") for line in prefixed)
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
    text = paragraph(f"{severity} {title or sentence}".lstrip(), _INDENT, terminal, first="").removeprefix(severity)
    if card.title:
        text = _bold(text, terminal)
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


def _bold(text: str, terminal: Terminal) -> str:
    return "".join(f"{terminal.styled(line, 'bold')}\n" for line in text.splitlines())


def _instruction(instruction: Instruction, indent: str, terminal: Terminal) -> str:
    """Return a sentence, and commands and lines of any length, so that they can be copied."""
    text, sentence = "", words.safe(instruction.text)
    if sentence and instruction.lines:
        text = paragraph(sentence, f"{indent}{_INDENT}", terminal, first=indent)
    elif sentence:
        text = paragraph(sentence, indent, terminal)
    text += "".join(f"{_DETAIL}$ {words.safe(command)}\n" for command in instruction.commands)
    indent += _DETAIL if sentence else ""
    return text + "".join(f"{indent}{words.safe(line)}".rstrip() + "\n" for line in instruction.lines)


def _left(numbers: Table) -> int:
    """Return the number of rows that the screen leaves out, unless all are asked for."""
    return len(numbers.rows) - numbers.first if 0 < numbers.first < len(numbers.rows) else 0


def _table(numbers: Table, terminal: Terminal, *, everything: bool, headers: bool = True) -> str:
    if not numbers.rows:
        return paragraph(words.safe(numbers.empty), _INDENT, terminal, first="") if numbers.empty else ""
    columns = [
        replace(each, title=words.safe(each.title).upper(), short=words.safe(each.short).upper())
        for each in numbers.columns
    ]
    left = 0 if everything else _left(numbers)
    rows = [[*map(_safe, row)] for row in numbers.rows[: len(numbers.rows) - left]]
    more = f"and {plural(left, 'more row')}\n" if left else ""
    note = paragraph(words.safe(numbers.note), _INDENT, terminal, first="") if numbers.note else ""
    return table(columns, rows, terminal, headers=headers) + more + note


def _safe(cell: Cell) -> Cell:
    return replace(cell, text=words.safe(cell.text), shorter=tuple(map(words.safe, cell.shorter)))


def section(evidence: AnswerSection, terminal: Terminal) -> str:
    """Return a title and the parts below it."""
    width = None if terminal.width is None else terminal.width - len(_INDENT)
    text = _bold(paragraph(words.safe(evidence.title), _INDENT, terminal, first=""), terminal)
    for part in evidence.parts:
        match part:
            case str():
                text += paragraph(words.safe(part), _DETAIL if evidence.is_list else _INDENT, terminal, first=_INDENT)
            case Instruction():
                text += _instruction(part, _INDENT, terminal)
            case _:
                text += textwrap.indent(_table(part, replace(terminal, width=width), everything=True), _INDENT)
    return text
