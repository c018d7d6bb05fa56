"""Outlines: the ranges of the values of a document in its text, so that one of them can be changed alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from ruamel.yaml.nodes import MappingNode, Node, SequenceNode

_BETWEEN: Final = r"(?:\s|#[^\r\n]*+)*+"
_ALIAS: Final = re.compile(rf"{_BETWEEN},?{_BETWEEN}(\*[^\s,\[\]{{}}]+)")
_DASH: Final = re.compile(rf"{_BETWEEN}(-)")
_COLON: Final = re.compile(rf"{_BETWEEN}:")
_PROPERTIES: Final = re.compile(rf"(?:[&!][^\s,\[\]{{}}]*{_BETWEEN})*")
_TOKEN: Final = re.compile(r'[{}\[\]:,]|"(?:[^"\\]++|\\.)*+"|[^\s{}\[\],":]+')


class Kind(Enum):
    """The kind of a part."""

    MAPPING = auto()
    SEQUENCE = auto()
    SCALAR = auto()
    ALIAS = auto()
    MERGE = auto()
    """The value of ``<<``: ``entries`` are the mappings that it names."""


class OutlineNode(msgspec.Struct, eq=False):
    """The range of one value, and of the values in it.

    Attributes:
        kind: Its kind.
        start: Where it begins, its anchor and tag included.
        content: Where it begins without them.
        end: Where its last character ends; comments behind a block do not count.
        flow: Whether it is in brackets, or a scalar.
        identity: A number that an anchored value and its aliases share; 0 without an anchor.
        lead: The end of the colon or dash before it.
        entries: Its entries or items, in the order of the text.
    """

    kind: Kind
    start: int
    content: int
    end: int
    flow: bool = True
    identity: int = 0
    lead: int = 0
    entries: list[Entry] = msgspec.field(default_factory=list)


class Entry(msgspec.Struct, eq=False):
    """An entry of a mapping, or an item of a sequence.

    Attributes:
        start: Where its key begins, or the dash of a block sequence, or the item itself.
        lead: Where its value may begin: behind the colon or the dash.
        value: Its value.
        key: Its key, as JSON has it; "" for an item.
    """

    start: int
    lead: int
    value: OutlineNode
    key: str = ""

    @property
    def end(self) -> int:
        """Where its value ends."""
        return max(self.lead, self.value.end)


def of_yaml(root: Node, text: str) -> OutlineNode:
    """Return the outline of the document in ``text`` whose node is ``root``."""
    return _Yaml(text).part(root, 0)


class _Yaml:
    """Makes outlines of nodes in the order of the text, so that a node that was seen before is an alias."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._seen: set[int] = set()

    def part(self, node: Node, lead: int) -> OutlineNode:
        """Return the outline of a node behind ``lead``."""
        from ruamel.yaml.nodes import MappingNode, SequenceNode  # noqa: PLC0415 - JSON does not wait for it

        if id(node) in self._seen:
            match = _ALIAS.match(self._text, lead)
            start, end = match.span(1) if match else (lead, lead)
            return OutlineNode(Kind.ALIAS, start, start, end, identity=id(node), lead=lead)
        self._seen.add(id(node))
        identity = id(node) if node.anchor else 0
        start, end = node.start_mark.index, node.end_mark.index
        if start == end:
            # The mark of an empty value is that of the next token.
            return OutlineNode(Kind.SCALAR, lead, lead, lead, identity=identity, lead=lead)
        content = self._after(_PROPERTIES, start)
        if isinstance(node, MappingNode):
            part = OutlineNode(Kind.MAPPING, start, content, end, bool(node.flow_style), identity, lead)
            part.entries += self._entries(node, content + part.flow)
        elif isinstance(node, SequenceNode):
            part = OutlineNode(Kind.SEQUENCE, start, content, end, bool(node.flow_style), identity, lead)
            part.entries += self._items(node, content + part.flow)
        else:
            end = start + len(self._text[start:end].rstrip())
            return OutlineNode(Kind.SCALAR, start, min(content, end), end, identity=identity, lead=lead)
        if not part.flow and part.entries:
            part.content, part.end = part.entries[0].start, part.entries[-1].end
        return part

    def _entries(self, node: MappingNode, lead: int) -> Iterator[Entry]:
        from kubectl_spread.sources.decode.yaml_documents import is_merge_key, key_name  # noqa: PLC0415 - likewise

        for key_node, value_node in node.value:
            key = self.part(key_node, lead)
            lead = self._after(_COLON, key.end)
            value = self._merge(value_node, lead) if is_merge_key(key_node) else self.part(value_node, lead)
            yield Entry(key.start, lead, value, key_name(key_node))
            lead = max(lead, value.end)

    def _merge(self, node: Node, lead: int) -> OutlineNode:
        """Return the mappings that ``<<`` names; the first one wins."""
        value = self.part(node, lead)
        entries = value.entries if value.kind is Kind.SEQUENCE else [Entry(value.start, lead, value)]
        return OutlineNode(Kind.MERGE, value.start, value.content, value.end, value.flow, entries=entries)

    def _items(self, node: SequenceNode, lead: int) -> Iterator[Entry]:
        for item in node.value:
            if node.flow_style:
                value = self.part(item, lead)
                yield Entry(value.start, value.start, value)
            else:
                dash = _DASH.match(self._text, lead)
                start, behind = dash.span(1) if dash else (lead, lead)
                value = self.part(item, behind)
                yield Entry(start, behind, value)
            lead = max(lead, value.end)

    def _after(self, pattern: re.Pattern[str], start: int) -> int:
        match = pattern.match(self._text, start)
        return match.end() if match else start


def of_json(text: str, old: object, new: object) -> OutlineNode:
    """Return the outline of a JSON document as far as ``new`` changes its value ``old``."""
    return _Json(text).part(old, new)


class _Json:
    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.finditer(text)
        self._token = next(self._tokens)

    def part(self, old: object, new: object) -> OutlineNode:
        """Return the outline of the value at the current token; then its last token is the current one."""
        start = self._token.start()
        opening = self._token[0]
        if old is new or opening not in ("{", "["):
            return OutlineNode(Kind.SCALAR, start, start, self._skip())
        kind = Kind.MAPPING if opening == "{" else Kind.SEQUENCE
        part = OutlineNode(kind, start, start, start)
        while self._next() not in ("}", "]"):
            if self._token[0] != ",":
                part.entries.append(self._entry(old, new) if opening == "{" else self._item(old, new, part))
        part.end = self._token.end()
        return part

    def _entry(self, old: object, new: object) -> Entry:
        start, key = self._token.start(), msgspec.json.decode(self._token[0], type=str)
        self._next()
        lead = self._token.end()
        self._next()
        old_value = old.get(key) if isinstance(old, dict) else None
        new_value = new.get(key, old_value) if isinstance(new, dict) else old_value
        return Entry(start, lead, self.part(old_value, new_value), key)

    def _item(self, old: object, new: object, part: OutlineNode) -> Entry:
        index = len(part.entries)
        old_item = old[index] if isinstance(old, list) else None
        new_item = new[index] if isinstance(new, list) and index < len(new) else old_item
        value = self.part(old_item, new_item)
        return Entry(value.start, value.start, value)

    def _next(self) -> str:
        self._token = next(self._tokens)
        return self._token[0]

    def _skip(self) -> int:
        depth = 0
        while True:
            match self._token[0]:
                case "{" | "[":
                    depth += 1
                case "}" | "]":
                    depth -= 1
            if not depth:
                return self._token.end()
            self._next()
