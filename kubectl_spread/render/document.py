"""A document: what an answer says, in the order of reading, for the screen, Markdown and HTML.

Printers escape its texts, which may have names of objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import UnsetType

from kubectl_spread.render.terminal import Cell, Column
from kubectl_spread.report.model import ManifestLines, Severity

OBJECTS: Final = 3
"""The most objects of a card that are named, unless all are asked for."""
ALL: Final = "-o wide lists all."


class Instruction(msgspec.Struct, frozen=True):
    """Something to do: a sentence, commands, and lines of a manifest."""

    text: str = ""
    commands: Sequence[str] = ()
    lines: Sequence[str] = ()


class Card(msgspec.Struct, frozen=True):
    """A cause: a sentence about the objects that have it, and what to do, the best first.

    Below a ``title``, such as the name of a rule, are also the cards that follow, up to the next title or severity.
    """

    sentence: str
    severity: Severity | None = None
    objects: Sequence[str] = ()
    instructions: Sequence[Instruction] = ()
    title: str = ""


class Table(msgspec.Struct, frozen=True):
    """Rows of cells below their titles; ``empty`` is the text without any, and ``note`` a text below them.

    The screen has the ``first`` rows only, unless all are asked for; 0 stands for all.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    first: int = 0
    empty: str = ""
    note: str = ""


class AnswerSection(msgspec.Struct, frozen=True):
    """Sentences, instructions and tables below a title, with all their rows; several sentences are a list."""

    title: str
    parts: Sequence[str | Instruction | Table]

    @property
    def is_list(self) -> bool:
        """Whether its sentences are the items of a list."""
        return sum(isinstance(part, str) for part in self.parts) > 1


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """An answer in the order of reading, from the cluster and the conclusion to the next step.

    Attributes:
        command: The command whose answer it is.
        title: What it is, for the titles of pages.
        cluster: The name of the cluster; "" where it has none.
        header: The parts of the line about the cluster and the subject.
        headline: The conclusion.
        facts: Other sentences as important as the conclusion, each with a label for the screen.
        label: The label of the conclusion on the screen; "" for none.
        instructions: What to type, or to write, for the conclusion.
        cards: What the conclusion consists of, the worst first.
        picture: The zones, with bars on pages; the screen leaves it out.
        tables: The numbers.
        sections: The evidence.
        notes: What limits the answer.
        next_steps: What to type next.
        conclusion_last: Whether the screen has the tables first, and the conclusion where a long answer leaves the
            terminal.
        header_last: Whether the screen has the header above the notes, because the conclusion names the subject.
        shortened: Whether more is left out than the objects of cards and rows of tables.
    """

    command: str
    title: str
    cluster: str
    header: Sequence[str]
    headline: str = ""
    facts: Sequence[tuple[str, str]] = ()
    label: str = ""
    instructions: Sequence[Instruction] = ()
    cards: Sequence[Card] = ()
    picture: Table | None = None
    tables: Sequence[Table] = ()
    sections: Sequence[AnswerSection] = ()
    notes: Sequence[str] = ()
    next_steps: Sequence[Instruction] = ()
    conclusion_last: bool = False
    header_last: bool = False
    shortened: bool = False


def written(lines: Sequence[ManifestLines] | UnsetType) -> list[Instruction]:
    """Return the lines to write in a manifest, each with its place."""
    return [
        Instruction(f"{each.file}:{each.line}: {each.action}", lines=each.yaml.splitlines()) for each in lines or ()
    ]


def bar(number: int, most: int, text: str = "", *, above: bool = False) -> Cell:
    """Return a number with its bar, next to others of which ``most`` is the largest; any pods have a bar."""
    share = max(round(100 * number / most), 1) if number else 0
    return Cell(text or f"{number:,}", "yellow" if above else "", share=share)


def objects(card: Card, most: int = OBJECTS) -> str:
    """Return the objects of a card, of many the first ones and the number of the others."""
    more = len(card.objects) - most
    return ", ".join(card.objects[:most]) + (f" and {more} more" if more > 0 else "")
