"""Markdown for job summaries and merge requests: documents, short enough for GitHub."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kubectl_spread.phrases import plural
from kubectl_spread.render import table, words
from kubectl_spread.render.document import Card, Document, Instruction, Table, objects
from kubectl_spread.report.model import Report

MOST_BYTES: Final = 1_000_000
"""GitHub shows a summary of up to 1 MiB, for all steps together."""
_ROOM: Final = 1000
"""Bytes for the heads of tables, and for the lines with the numbers of what was left out."""
_LISTED_WORKLOADS: Final = 50
"""The most objects of a cause that are named."""
_SPECIAL: Final = re.compile(r"[\\`*_\[\]~$&<>|\u200b]")
_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;", "\u200b": "&#8203;"}
_BLOCK: Final = re.compile(r"^(\d*)([-+#=.)])")
"""The beginning of a text that would be a heading or a list."""
_LINKED: Final = re.compile(r"[@#!%~$&](?=\w)|:(?=//|[a-z+-][\w+-]*:)|\bwww(?=\.)", re.IGNORECASE)
"""Text that GitHub or GitLab would replace by a link to a person, an issue, a label or an address, or by an emoji."""


def markdown(report: Report) -> str:
    """Return a report as GitHub's Markdown: totals, causes, and rows with findings."""
    return document(table.page(report))


def document(answer: Document) -> str:
    """Return a document as GitHub's Markdown; causes and rows beyond ``MOST_BYTES`` bytes are left out and counted."""
    parts, ending = [*_beginning(answer)], [*_ending(answer)]
    cards, left = _fitting(map(_card, answer.cards), "cause", [*parts, *ending])
    parts += [*cards, left]
    for each in filter(None, (answer.picture, *answer.tables)):
        columns, rule, *all_rows = _table(each)
        rows, left = _fitting(all_rows, "row", [*parts, *ending])
        head = f"#### {escaped(each.title)}\n\n{columns}\n{rule}"
        parts += ["\n".join([head, *rows]), left] if rows else [_paragraph(each.empty)]
    return _joined([*parts, *ending]) + "\n"


def _joined(parts: Iterable[str]) -> str:
    """Return parts with empty lines between them, without those that are missing."""
    return "\n\n".join(filter(None, parts))


def _fitting(texts: Iterable[str], noun: str, others: Iterable[str]) -> tuple[list[str], str]:
    """Return the texts for which the others leave room, and a sentence about the number of those that are left out."""
    all_texts, size = [*texts], len(_joined(others).encode()) + _ROOM
    for index, text in enumerate(all_texts):
        size += len(text.encode()) + len("\n\n")
        if size > MOST_BYTES:
            return all_texts[:index], f"{plural(len(all_texts) - index, f'more {noun}')} left out; `-o json` has all."
    return all_texts, ""


def _beginning(answer: Document) -> Iterator[str]:
    """Yield the conclusion and the cluster."""
    yield f"### kubectl spread {answer.command}"
    yield f"**{escaped(answer.headline)}**" if answer.headline else ""
    yield from (_paragraph(text) for _, text in answer.facts)
    yield _paragraph(" · ".join(answer.header))
    yield from map(_instruction, answer.instructions)


def _card(card: Card) -> str:
    severity = "" if card.severity is None else f"**{card.severity}** "
    first, *others = filter(None, (card.title, card.sentence))
    lines = [f"{severity}{_paragraph(first)}", *map(_paragraph, others)]
    named = _paragraph(objects(card, _LISTED_WORKLOADS))
    return _joined([*lines, named, *map(_instruction, card.instructions)])


def _table(table: Table) -> Iterator[str]:
    """Yield the lines of a table: its columns, and its rows."""
    titles = [column.title for column in table.columns]
    yield from (_line(titles), _line(["---"] * len(titles)))
    yield from (_line([cell.text for cell in row]) for row in table.rows)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(escaped, cells))} |"


def _ending(answer: Document) -> Iterator[str]:
    """Yield what is below the tables."""
    for section in answer.sections:
        yield f"#### {escaped(section.title)}"
        yield from (_part(part, "- " * section.is_list) for part in section.parts)
    yield from map(_paragraph, answer.notes)
    yield from map(_instruction, answer.next_steps)


def _part(part: str | Instruction | Table, item: str) -> str:
    match part:
        case str():
            return f"{item}{_paragraph(part)}"
        case Instruction():
            return _instruction(part)
        case _:
            return "\n".join(_table(part))


def _instruction(instruction: Instruction) -> str:
    lines = [*(f"$ {command}" for command in instruction.commands), *instruction.lines]
    return _joined((_paragraph(instruction.text), _fenced(lines, "console" * bool(instruction.commands))))


def _fenced(lines: Sequence[str], language: str = "") -> str:
    """Return a block of code, whose fence is longer than any in it; "" without lines."""
    texts = [words.safe(line) for line in lines]
    longest = max((len(run) for text in texts for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join((f"{fence}{language}", *texts, fence)) if texts else ""


def _paragraph(text: str) -> str:
    return _BLOCK.sub(r"\1\\\2", escaped(words.safe(text).strip()))


def escaped(text: str) -> str:
    """Return text as Markdown without markup, HTML, links, mentions or emoji.

    A space of no width breaks text that GitHub would link after it has rendered the Markdown.
    """
    apart = _LINKED.sub(lambda match: f"{match[0]}\u200b", words.safe(text))
    return _SPECIAL.sub(lambda match: _ENTITIES.get(match[0], f"\\{match[0]}"), apart)
