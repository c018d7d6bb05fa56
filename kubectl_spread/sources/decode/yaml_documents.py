"""YAML documents as JSON values, with the place of every field."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import yaml
from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import CollectionEndEvent, CollectionStartEvent
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.resolver import VersionedResolver
from ruamel.yaml.tag import Tag

from kubectl_spread.errors import Position, SourceError
from kubectl_spread.sources import memory
from kubectl_spread.sources.decode import places, yaml_scalars
from kubectl_spread.sources.decode.json_objects import MOST_LEVELS, Path
from kubectl_spread.sources.decode.places import Place
from kubectl_spread.sources.decode.yaml_records import YamlRecord

_PLAIN: Final = Tag(suffix="plain")
_MERGE: Final = "<<"
_ACTION: Final = "{{"
"""The brackets around actions of Go templates."""
_TEMPLATE_HINT: Final = " (if this is a Helm template, render it with helm template first)"
_OPEN_QUOTE: Final = ("while scanning a quoted scalar", "found unexpected end of stream")
_DOCUMENT: Final = "\n---"
_NODE: Final = 1 << 10
"""Bytes of memory for a node, with its text, its marks and its value."""
_VALUE: Final = re.compile(r"(found undefined alias|found undefined tag handle|could not determine .*? tag) .*")
_BUDGET: Final = 1_000_000
"""The most that aliases may add to a document: nodes, and characters of scalars divided by 64."""


class Document:
    """One YAML document."""

    def __init__(self, root: Node, source: str, first: int = 1) -> None:
        """Hold the nodes of a document of the file ``source``, whose line ``first`` is the first of its text."""
        self.root = root
        self._source = source
        self._first = first

    @property
    def position(self) -> Position:
        """The file, and the line of its first key or item."""
        return Position(self._source, self.line_of())

    @property
    def is_empty(self) -> bool:
        """Whether it contains nothing, or only null."""
        return self.root.tag == _PLAIN.suffix and yaml_scalars.plain(self.root.value) is None

    def value(self) -> object:
        """Return the document as JSON values.

        Raises:
            SourceError: JSON has no such value, a key is duplicated, or aliases make the document too large.
        """
        return _Builder(self._source, self._first).build(self.root)

    def line_of(self, path: Path = ()) -> int:
        """Return the line where the field at ``path``, or the innermost field around it, begins."""
        return self.place_of(path).line

    def place_of(self, path: Path) -> Place:
        """Return where the field at ``path``, or the innermost field around it, begins: at its key, or at the item."""
        return places.of_field(self.root, path, self._first)


class _PlainOrString(VersionedResolver):
    """Marks plain scalars, and leaves their meaning to ``yaml_scalars``."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        if kind is ScalarNode and implicit[0]:
            return _PLAIN
        return super().resolve(kind, value, (False, True))


class _Metered(Composer):
    """Claims the memory of each node before it is made."""

    claim: memory.Claim

    def compose_node(self, parent: Any, index: Any) -> Any:
        self.claim.grow(_NODE)
        return super().compose_node(parent, index)


def record(document: Document) -> YamlRecord:
    """Return the whole document as one record.

    Raises:
        SourceError: The document has no value; see ``Document.value``.
    """
    value = document.value()
    try:
        return YamlRecord(msgspec.json.encode(value), document)
    except UnicodeEncodeError as error:
        msg = f"{document.position}: invalid Unicode character escape code"
        raise SourceError(msg) from error


def documents(body: bytes, source: str, first: int = 1) -> Iterator[Document]:
    """Yield the documents of ``body`` that are not empty.

    Args:
        body: The file, or whole documents of it.
        source: The name of the file.
        first: The line of the file with which ``body`` begins.

    Raises:
        SourceError: The file is not YAML, or is nested too deeply.
    """
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + first
        msg = f"{Position(source, line)}: byte 0x{body[error.start]:02x} is not UTF-8 text"
        raise SourceError(msg) from error
    quote = _open_quote(text)
    if quote is None:
        yield from _compose(text, source, first)
        return
    # The documents before that of the quote are complete.
    yield from _compose(text[: text.rfind(_DOCUMENT, 0, quote.index) + 1], source, first)
    hint = _TEMPLATE_HINT if _ACTION in text else ""
    raise SourceError(f"{Position(source, quote.line + first)}: the quote that opens here is never closed{hint}")


def _open_quote(text: str) -> Any:
    """Return the mark of a quote that is never closed, if there is one.

    libyaml finds it at once. ruamel.yaml first makes nodes of all that comes before, in seconds for each megabyte.
    """
    if not yaml.__with_libyaml__:
        return None
    try:
        for _ in yaml.parse(text, Loader=yaml.CBaseLoader):
            pass
    except yaml.MarkedYAMLError as error:
        if (error.context, error.problem) == _OPEN_QUOTE:
            return error.context_mark
    except (yaml.YAMLError, UnicodeEncodeError):
        # ruamel.yaml finds it too.
        return None
    return None


def _compose(text: str, source: str, first: int) -> Iterator[Document]:
    reader = YAML(typ="safe", pure=True)
    reader.Resolver = _PlainOrString
    reader.Composer = _Metered
    reader.composer.warn_double_anchors = False
    try:
        with memory.RUN.claim(source) as reader.composer.claim:
            for root in reader.compose_all(text):
                document = Document(root, source, first)
                if not document.is_empty:
                    yield document
                reader.composer.claim.resize(0)
    except RecursionError as error:
        msg = f"{Position(source, _too_deep(text) + first)}: nested too deeply"
        raise SourceError(msg) from error
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + first
        problem = _without_values(" ".join(str(error.problem or error.context).split()))
        msg = f"{Position(source, line)}: {problem}{_TEMPLATE_HINT if _ACTION in text else ''}"
        raise SourceError(msg) from error
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + first
        msg = f"{Position(source, line)}: character U+{error.character:04X} is not allowed"
        raise SourceError(msg) from error
    except (YAMLError, ValueError, OverflowError) as error:
        msg = f"{source}: {_without_values(' '.join(str(error).split()))}"
        raise SourceError(msg) from error


def _without_values(problem: str) -> str:
    """Return the problem without the text of a value, which may be a password that should have been quoted.

    ``*secret`` is an alias and ``!secret`` a tag; single characters and YAML's own words say nothing about a value.
    """
    return _VALUE.sub(r"\1 (quote a value that begins with * or !)", problem)


def _too_deep(text: str) -> int:
    """Return the line, from 0, where a text is first nested more deeply than is allowed."""
    depth, line = 0, 0
    for event in YAML(typ="safe", pure=True).parse(text):
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        line = event.start_mark.line
        if depth > MOST_LEVELS:
            break
    return line


class _Builder:
    """Makes JSON values of nodes, and copies the values of aliases within a budget."""

    def __init__(self, source: str, first: int) -> None:
        self._source = source
        self._first = first
        self._open: set[int] = set()
        self._seen: set[int] = set()
        self._budget = _BUDGET

    def build(self, node: Node) -> object:
        """Return the value of a node."""
        match node:
            case ScalarNode():
                self._spend(node)
                return self._scalar(node)
            case MappingNode():
                return self._mapping(node)
        self._enter(node)
        value = [self.build(child) for child in node.value]
        self._open.remove(id(node))
        return value

    def _mapping(self, node: MappingNode) -> dict[str, object]:
        self._enter(node)
        own: dict[str, object] = {}
        merged: dict[str, object] = {}
        for key_node, value_node in node.value:
            if is_merge_key(key_node):
                merged = self._merge(value_node) | merged
                continue
            key = self._key(key_node)
            if key in own:
                raise self._error(key_node, f"key {key!r} is duplicated")
            own[key] = self.build(value_node)
        self._open.remove(id(node))
        return merged | own if merged else own

    def _merge(self, node: Node) -> dict[str, object]:
        """Return the entries that ``<<`` merges; among several mappings the first has priority."""
        sources = node.value if isinstance(node, SequenceNode) else [node]
        merged: dict[str, object] = {}
        for source in sources:
            if not isinstance(source, MappingNode):
                raise self._error(source, "map merge requires map or sequence of maps as the value")
            merged = self._mapping(source) | merged
        return merged

    def _key(self, node: Node) -> str:
        self._spend(node)
        value = self._scalar(node) if isinstance(node, ScalarNode) else None
        if value is None:
            # The first brace of {{ .Values.name }} opens a mapping, and the second brace opens a key.
            is_action = isinstance(node, MappingNode) and node.flow_style
            raise self._error(node, f"a key must be a string{_TEMPLATE_HINT if is_action else ''}")
        return yaml_scalars.as_key(value)

    def _scalar(self, node: ScalarNode) -> yaml_scalars.Scalar:
        try:
            value = _scalar(node)
        except ValueError as error:
            raise self._error(node, str(error)) from error
        if isinstance(value, float) and not math.isfinite(value):
            raise self._error(node, f"JSON has no number {node.value}")
        return value

    def _enter(self, node: Node) -> None:
        self._spend(node)
        if id(node) in self._open:
            raise self._error(node, "an anchor's value contains itself")
        if len(self._open) == MOST_LEVELS:
            raise self._error(node, "nested too deeply")
        self._open.add(id(node))

    def _spend(self, node: Node) -> None:
        """Charge the budget for a node that was seen before, which an alias repeats."""
        if id(node) not in self._seen:
            self._seen.add(id(node))
            return
        self._budget -= 1 + (len(node.value) // 64 if isinstance(node, ScalarNode) else 0)
        if self._budget < 0:
            raise self._error(node, "document contains excessive aliasing")

    def _error(self, node: Node, problem: str) -> SourceError:
        return SourceError(f"{Position(self._source, node.start_mark.line + self._first)}: {problem}")


def is_merge_key(node: Node) -> bool:
    """Tell whether a key is ``<<``."""
    return bool(node.value == _MERGE and node.tag == _PLAIN.suffix)


def key_name(node: Node) -> str:
    """Return the name of a key in JSON; its document must have a value."""
    return yaml_scalars.as_key(_scalar(node)) if isinstance(node, ScalarNode) else ""


def _scalar(node: ScalarNode) -> yaml_scalars.Scalar:
    if node.tag == _PLAIN.suffix:
        return yaml_scalars.plain(node.value)
    return yaml_scalars.tagged(node.value, str(node.tag))
