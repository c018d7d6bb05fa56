"""Edits: the changes to a text that give its document another value and keep every other byte."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from kubectl_spread.sources.edit.layout import Style
from kubectl_spread.sources.edit.lines import Lines, has_line_end
from kubectl_spread.sources.edit.outline import Entry, Kind, OutlineNode


class _Gone:
    """The type of GONE."""


GONE: Final = _Gone()
"""Takes the place of an item that is removed from a list."""


class Edit(NamedTuple):
    """A range of a text, and its replacement."""

    start: int
    end: int
    text: str


def splice(text: str, edits: Iterable[Edit]) -> str | None:
    """Return ``text`` with edits applied; None where two of them overlap."""
    pieces = []
    position = 0
    for edit in sorted(edits, key=lambda edit: edit.start):
        if edit.start < position:
            return None
        pieces += [text[position : edit.start], edit.text]
        position = edit.end
    return "".join([*pieces, text[position:]])


class Editor:
    """Collects the edits that give one document another value."""

    def __init__(self, text: str, *, json: bool) -> None:
        """Prepare to edit a document of the file ``text``."""
        self.edits: list[Edit] = []
        self._text = text
        self._anchors = not json and "&" in text
        self._final: dict[int, object] = {}
        self._lines = Lines(text)
        self._style = Style(quoted=json, newline=self._lines.newline)

    def sync(self, part: OutlineNode, old: object, new: object, style: Style | None = None) -> None:
        """Change the value of ``part`` from ``old`` to ``new``, in which GONE marks removed items of lists."""
        style = style or self._style
        if part.kind is Kind.ALIAS:
            if part.identity not in self._final or self._final[part.identity] != new:
                self._replace(part, new, style)
            return
        if part.identity:
            self._final[part.identity] = new
        if old is new and not self._anchors:
            return
        if part.kind is Kind.MAPPING and isinstance(old, dict) and isinstance(new, dict):
            self._mapping(part, old, new, style)
        elif part.kind is Kind.SEQUENCE and isinstance(old, list) and isinstance(new, list):
            self._sequence(part, old, new, style)
        elif old != new:
            self._replace(part, new, style)

    def _mapping(self, part: OutlineNode, old: dict[str, object], new: dict[str, object], style: Style) -> None:
        own = {entry.key: entry for entry in part.entries if entry.value.kind is not Kind.MERGE}
        inherited = self._inherited(part, old)
        if inherited is None or inherited.keys() - own.keys() - new.keys():
            self._replace(part, new, style)
            return
        inner = self._flow_style(part, style)
        for entry in own.values():
            if entry.key in new:
                self.sync(entry.value, old[entry.key], new[entry.key], self._entry_style(entry, inner))
        removed = {index for index, entry in enumerate(part.entries) if own.get(entry.key) and entry.key not in new}
        added = {
            key: value
            for key, value in new.items()
            if key not in own and not (key in inherited and inherited[key] == value)
        }
        if added and (removed or not part.entries):
            self._replace(part, new, style)
            return
        if removed:
            self._remove(part, removed)
        if added and part.flow:
            indent = self._lines.margin(part.entries[-1].start)
            members = [f"{inner.scalar(key)}{inner.colon}{inner.flow(value, indent)}" for key, value in added.items()]
            self._extend_flow(part, members, inner)
        elif added:
            indent = self._lines.indent(part.entries[0].start)
            self._extend_block(part, [inner.entry(key, value, indent) for key, value in added.items()])

    def _sequence(self, part: OutlineNode, old: list[object], new: list[object], style: Style) -> None:
        aligned = new if any(item is GONE for item in new) else _aligned(old, new)
        if aligned is None or (not part.entries and new):
            self._replace(part, new, style)
            return
        inner = self._flow_style(part, style)
        for entry, old_item, new_item in zip(part.entries, old, aligned, strict=False):
            if new_item is not GONE:
                self.sync(entry.value, old_item, new_item, inner)
        removed = {index for index, item in enumerate(aligned) if item is GONE}
        if removed:
            self._remove(part, removed)
        added = aligned[len(old) :]
        if added and part.flow:
            last = part.entries[-1]
            last_style, indent = self._flow_style(last.value, inner), self._lines.margin(last.start)
            self._extend_flow(part, [last_style.flow(item, indent) for item in added], inner)
        elif added:
            item_style, indent = self._item_style(part, style), self._lines.indent(part.entries[-1].start)
            self._extend_block(part, [item_style.item(item, indent) for item in added])

    def _inherited(self, part: OutlineNode, old: dict[str, object]) -> dict[str, object] | None:
        """Return the entries that ``<<`` will merge into a mapping; None where they are unknown."""
        merged: dict[str, object] = {}
        for merge in (entry.value for entry in part.entries if entry.value.kind is Kind.MERGE):
            for source in reversed(merge.entries):
                if source.value.kind is Kind.MAPPING:
                    merged |= {entry.key: old[entry.key] for entry in source.value.entries if entry.key in old}
                    continue
                value = self._final.get(source.value.identity)
                if not isinstance(value, dict):
                    return None
                merged |= value
        return merged

    def _replace(self, part: OutlineNode, value: object, style: Style) -> None:
        """Write a value in brackets in the place of a part, and keep its anchor and tag."""
        text = style.flow(without_gone(value), self._lines.margin(part.start))
        # A block may begin in the column of its parent's keys, and brackets may not.
        apart = not part.flow or part.content == part.end
        self._edit(part.content, part.end, f" {text}" if apart else text)

    def _remove(self, part: OutlineNode, indices: set[int]) -> None:
        """Remove some entries, with the lines or the commas that belong to them."""
        entries = part.entries
        if len(indices) == len(entries):
            self._empty(part)
            return
        for first, last in _runs(indices):
            start, end = entries[first].start, entries[last].end
            if not part.flow and self._lines.begins_at(start):
                self._edit(*self._lines.spanning(start, end), "")
            elif part.flow and first:
                self._edit(entries[first - 1].end, end, "")
            else:
                self._edit(start, entries[last + 1].start, "")

    def _empty(self, part: OutlineNode) -> None:
        """Leave empty brackets of a mapping or sequence, and keep a comment behind its key."""
        brackets = "{}" if part.kind is Kind.MAPPING else "[]"
        lead = part.lead
        if self._text[part.start : part.start + 1] in ("&", "!"):
            properties = self._text[part.start : part.content].splitlines()[0].partition(" #")[0]
            lead = part.start + len(properties.rstrip())
        if part.flow or not self._lines.begins_at(part.content) or self._lines.start(part.content) <= lead:
            self._edit(part.content, part.end, brackets)
            return
        self._edit(lead, lead, f" {brackets}")
        self._edit(*self._lines.spanning(part.content, part.end), "")

    def _extend_flow(self, part: OutlineNode, members: Sequence[str], style: Style) -> None:
        last = part.entries[-1]
        separator = style.comma
        if style.unit is not None:
            separator = f",{self._lines.newline}{self._lines.margin(last.start)}"
        self._edit(last.end, last.end, "".join(f"{separator}{member}" for member in members))

    def _extend_block(self, part: OutlineNode, lines: Sequence[str]) -> None:
        """Add lines below a block and the comments that belong to it."""
        text = self._lines.newline.join(lines)
        position = self._lines.below(part.content, part.end)
        ends = self._lines.ends_at(position)
        self._edit(position, position, f"{text}{self._lines.newline}" if ends else f"{self._lines.newline}{text}")

    def _flow_style(self, part: OutlineNode, style: Style) -> Style:
        """Return the style inside a part: the style of its own entries, if it has any in brackets."""
        if not part.flow or not part.entries:
            return style
        first, *rest = part.entries
        unit = None
        if has_line_end(self._text[part.content + 1 : first.start]):
            unit = self._lines.margin(first.start).removeprefix(self._lines.margin(part.content)) or "  "
        quoted, colon = style.quoted, style.colon
        if part.kind is Kind.MAPPING:
            quoted = self._text[first.start] == '"'
            space = self._text[first.lead : first.value.start]
            colon = f":{space}" if not space.strip() and not has_line_end(space) else colon
        comma = self._text[first.end : rest[0].start] if rest and unit is None else ""
        if comma.strip() != "," or has_line_end(comma):
            comma = ", " if colon != ":" else ","
        return msgspec.structs.replace(style, quoted=quoted, colon=colon, comma=comma, unit=unit)

    def _entry_style(self, entry: Entry, style: Style) -> Style:
        """Return the style inside an entry: if it is a block sequence, new sequences are indented like it."""
        value = entry.value
        if value.kind is not Kind.SEQUENCE or value.flow:
            return style
        return msgspec.structs.replace(style, step=self._step(entry))

    def _item_style(self, part: OutlineNode, style: Style) -> Style:
        """Return the style of an item that is added to a sequence: the style of the items before it."""
        last = part.entries[-1]
        gap = self._text[last.lead : last.value.start]
        lists = [
            entry
            for item in part.entries
            for entry in item.value.entries
            if entry.value.kind is Kind.SEQUENCE and entry.value.entries
        ]
        steps = [self._step(entry) for entry in lists if not entry.value.flow]
        return msgspec.structs.replace(
            style,
            gap=gap if gap and not gap.strip(" ") else " ",
            flow_items=all(item.value.flow and item.value.kind is Kind.MAPPING for item in part.entries),
            flow_values=any(entry.value.flow for entry in lists),
            step=steps[-1] if steps else style.step,
        )

    def _step(self, entry: Entry) -> str:
        return " " * (self._lines.column(entry.value.content) - self._lines.column(entry.start))

    def _edit(self, start: int, end: int, text: str) -> None:
        self.edits.append(Edit(start, end, text))


def _aligned(old: list[object], new: list[object]) -> list[object] | None:
    """Return ``new`` with GONE for each item of ``old`` that it lacks; None where it has items that ``old`` lacks."""
    if len(new) >= len(old):
        return new
    remaining = list(new)
    aligned = [remaining.pop(0) if remaining and item == remaining[0] else GONE for item in old]
    return None if remaining else aligned


def _runs(indices: set[int]) -> Iterable[tuple[int, int]]:
    """Return the first and the last number of each run of consecutive numbers."""
    firsts = sorted(index for index in indices if index - 1 not in indices)
    lasts = sorted(index for index in indices if index + 1 not in indices)
    return zip(firsts, lasts, strict=True)


def without_gone(value: object) -> object:
    """Return a value without its GONE items."""
    match value:
        case dict():
            return {key: without_gone(field) for key, field in value.items()}
        case list():
            return [without_gone(item) for item in value if item is not GONE]
    return value
