"""Give a YAML document another value by ruamel.yaml's round trip, which keeps comments, order, quotes and anchors.

Nodes are edited, not values: the text of a scalar is not interpreted, so ``010``, ``1e3`` and ``yes`` stay as they are.
"""

from __future__ import annotations

import io
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET
from ruamel.yaml import YAML
from ruamel.yaml.anchor import Anchor
from ruamel.yaml.error import CommentMark, YAMLError
from ruamel.yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.resolver import VersionedResolver
from ruamel.yaml.tag import Tag
from ruamel.yaml.tokens import CommentToken

from kubectl_spread.sources.decode import yaml_scalars

Pair: TypeAlias = tuple[Node, Node]

_PLAIN: Final = Tag(suffix="plain")
_STRING: Final = Tag(suffix="tag:yaml.org,2002:str")
_MAPPING: Final = Tag(suffix="tag:yaml.org,2002:map")
_SEQUENCE: Final = Tag(suffix="tag:yaml.org,2002:seq")
_HEAD: Final = re.compile(
    r"(?:[ \t]*+(?:[#%][^\n]*+)?\n)*+"
    r"(?:---(?=\s)(?:[ \t]++(?:#[^\n]*+)?)?(?:\n(?:[ \t]*+(?:#[^\n]*+)?\n)*+)?)?"
)
"""Blank lines, comments, directives and the marker before the content of a document."""
_END: Final = re.compile(r"^\.\.\.(?=\s|\Z)", re.MULTILINE)
_FOLD: Final = re.compile(r"(?<!\S)\a|\a(?! \S)")
"""Marks of line breaks in a folded scalar, except those of a single blank: only such a break can be written again."""
_COMMENT: Final = re.compile(r"(?<!\S)#")
_SAFE: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?")
_NUMBER: Final = re.compile(r"[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?")
"""Matches numbers, also too large ones, which Kubernetes reads as a string and other readers as infinity."""
_TIMESTAMP: Final = re.compile(r"\d{4}-\d{1,2}-\d{1,2}")


def edited(text: str, old: object, new: object) -> tuple[str, int] | None:
    """Return a text with one document whose value is ``new`` instead of ``old``; UNSET items of lists are removed.

    The caller must check the value, because some YAML does not survive.

    Returns:
        The text, and the number of comments that are missing in it, besides those of removed fields; None if
        ruamel.yaml cannot read the document.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    head = _HEAD.match(text)
    begin = head.end() if head else 0
    marker = _END.search(text, begin)
    end = marker.start() if marker else len(text)
    body = text[begin:end]
    editor = _Editor()
    try:
        written = _round_trip(body, editor, old, new)
    except (YAMLError, RecursionError):
        return None
    if not body.endswith("\n"):
        written = written.rstrip("\n")
    lost = len(_COMMENT.findall(body)) - editor.removed_comments - len(_COMMENT.findall(written))
    return f"{text[:begin]}{written}{text[end:]}".replace("\n", newline), max(lost, 0)


def _round_trip(text: str, editor: _Editor, old: object, new: object) -> str:
    yaml = YAML()
    yaml.Resolver = _AnyPlain
    yaml.composer.warn_double_anchors = False
    yaml.width = sys.maxsize
    root = yaml.compose(text)
    yaml.map_indent, yaml.sequence_indent, yaml.sequence_dash_offset = _indentation(root, text)
    output = io.StringIO()
    yaml.serialize(_Sharing().placed(editor.node(root, old, new)), output)
    return output.getvalue()


class _AnyPlain(VersionedResolver):
    """Gives all plain scalars one tag, because their meaning is not needed."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        if kind is ScalarNode and implicit[0]:
            return _PLAIN
        return super().resolve(kind, value, (False, True))


def _indentation(root: Node, text: str) -> tuple[int, int, int]:
    """Return the most frequent indentation: of mappings, of items of sequences, and of their dashes."""
    mappings: Counter[int] = Counter()
    sequences: Counter[tuple[int, int]] = Counter()
    for node in _nodes(root):
        for key, value in node.value if isinstance(node, MappingNode) else ():
            if not _is_block(value) or _is_alias(value, key):
                continue
            first = _children(value)[0].start_mark
            if isinstance(value, MappingNode):
                mappings[first.column - key.start_mark.column] += 1
                continue
            gap = first.index - text.rfind("-", 0, first.index)
            sequences[first.column - key.start_mark.column, first.column - gap - key.start_mark.column] += 1
    mapping = max(mappings, key=mappings.__getitem__, default=2)
    return max(mapping, 1), *max(sequences, key=sequences.__getitem__, default=(2, 0))


def _nodes(root: Node) -> Iterator[Node]:
    seen = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            stack += _children(node)


def _children(node: Node) -> list[Node]:
    match node:
        case MappingNode():
            return [child for pair in node.value for child in pair]
        case SequenceNode():
            return list(node.value)
    return []


def _is_block(node: Node) -> bool:
    return isinstance(node, CollectionNode) and not node.flow_style and bool(node.value)


def _is_alias(node: Node, before: Node) -> bool:
    """Tell whether a node was written before the node that precedes or contains it."""
    return bool(node.start_mark and before.start_mark and node.start_mark.index < before.start_mark.index)


class _Editor:
    """Makes nodes with other values; an anchored node whose aliases change in the same way stays one node.

    Attributes:
        removed_comments: The number of comments in what was removed.
    """

    def __init__(self) -> None:
        self.removed_comments = 0
        self._anchored: dict[tuple[int, str], Node] = {}

    def node(self, node: Node, old: Any, new: Any) -> Node:
        """Return a node with the value ``new`` for one with the value ``old``."""
        if old == new:
            return node
        key = (id(node), repr(new))
        made = self._anchored.get(key)
        if made is None:
            made = copy(node)
            match made, new:
                case MappingNode(), dict():
                    made.value = self._pairs(made, old, new)
                case SequenceNode(), list():
                    made.value = self._items(made, old, new)
                case _:
                    made = _fresh(new, flow=True)
                    made.comment = node.comment
            if isinstance(made, CollectionNode) and (made.flow_style or not made.value):
                made.flow_style = True
                _pull_comment(made)
            if node.anchor:
                self._anchored[key] = made
        return made

    def _pairs(self, node: MappingNode, old: dict[str, Any], new: dict[str, Any]) -> list[Pair]:
        removes = not old.keys() <= new.keys()
        pairs: list[Pair] = []
        names = set()
        for key, value in node.value:
            name = _key_name(key)
            if name is None and not removes:
                pairs.append((key, value))
                names |= {name for name in new if name in old and old[name] == new[name]}
            elif name in new:
                pairs.append((key, self.node(value, old[name], new[name])))
                names.add(name)
            elif name:
                self._remove(node, (key, value), [child for pair in pairs for child in pair])
        quoted = _is_quoted(node)
        added = [(_scalar(name, quoted=quoted), _fresh(new[name], quoted=quoted)) for name in new if name not in names]
        if added:
            _insert(node, [child for pair in pairs for child in pair], added[-1][1])
        return pairs + added

    def _items(self, node: SequenceNode, old: list[Any], new: list[Any]) -> list[Node]:
        items: list[Node] = []
        for item, value, changed in zip(node.value, old, _aligned(old, new), strict=True):
            if changed is UNSET:
                self._remove(node, (item,), items)
            else:
                items.append(self.node(item, value, changed))
        model = node.value[-1] if node.value else None
        added = [_fresh(value, model) for value in new[len(old) :]]
        if added:
            _insert(node, items, added[-1])
        return items + added

    def _remove(self, parent: CollectionNode, removed: tuple[Node, ...], before: list[Node]) -> None:
        """Keep the comments behind ``removed`` that are not about it, behind the nodes before it in ``parent``."""
        outer = _taken(parent, removed, _column(parent) + isinstance(parent, MappingNode))
        for behind, before_node, below in (_comments(node) for part in removed for node in _nodes(part)):
            text = "\n".join(token.value for token in (behind, *before_node, *below) if token)
            self.removed_comments += len(_COMMENT.findall(text))
        if outer and _is_block(parent):
            _add_comment(_last(parent, before)[0] if before else parent, outer)


def _aligned(old: list[Any], new: list[Any]) -> list[Any]:
    """Return the new value of each old item; UNSET for an item that is removed."""
    if len(old) <= len(new):
        return new[: len(old)]
    rest = [*new, UNSET]
    return [rest.pop(0) if value == rest[0] else UNSET for value in old]


def _insert(parent: CollectionNode, before: list[Node], added: Node) -> None:
    """Move comments that are not about a block collection from behind its last node to behind ``added``."""
    if before and _is_block(parent) and (outer := _taken(parent, before, _column(parent))):
        _add_comment(_last(parent, [added])[0], outer)


def _last(parent: Node, nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes that may have the comments behind the last of some nodes: the last in it, and those around that.

    An alias has no comments.
    """
    before = nodes[-2] if len(nodes) > 1 and isinstance(parent, MappingNode) else parent
    node = nodes[-1]
    last = [node]
    while _is_block(node) and not _is_alias(node, before):
        children = _children(node)
        before, node = (children[-2] if isinstance(node, MappingNode) else node), children[-1]
        last.insert(0, node)
    return last[1:] if len(last) > 1 and _is_alias(node, before) else last


def _column(parent: Node) -> int:
    return int(_children(parent)[0].start_mark.column)


def _comments(node: Node) -> tuple[Any, list[Any], list[Any]]:
    """Return the comment tokens of a node: behind it, or behind the first line of a block; before it; below it."""
    comments: list[Any] = node.comment or []
    behind, before, below, *_ = [*comments, None, None, None]
    return behind, before or [], below or []


def _taken(parent: Node, nodes: Sequence[Node], column: int) -> str:
    """Return the lines behind the last of some nodes from the first comment left of ``column``, and remove them."""
    outer = ""
    for node in _last(parent, nodes):
        behind, before, below = _comments(node)
        if behind and not _is_block(node):
            inner, outer = _split(behind.value, column, first=int(not _is_block_scalar(node)))
            behind = CommentToken(inner, CommentMark(behind.column)) if inner.strip() else None
        inside = [token for token in below if not outer and token.column >= column]
        outer += "".join(" " * token.column + token.value for token in below[len(inside) :])
        node.comment = [behind, before or None, *([inside] if inside else [])]
    return outer


def _split(lines: str, column: int, *, first: int) -> tuple[str, str]:
    """Divide lines before the blank lines and the comment that is left of ``column``; the first lines are not asked."""
    parts = lines.splitlines(keepends=True)
    end = first
    for number, line in enumerate(parts[first:], first):
        if line.strip():
            if len(line) - len(line.lstrip(" ")) < column:
                break
            end = number + 1
    return "".join(parts[:end]), "".join(parts[end:])


def _add_comment(node: Node, lines: str) -> None:
    """Add whole lines behind a node, or behind the first line of a block collection."""
    token = node.comment[0] if node.comment else None
    before = token.value if token else "" if _is_block_scalar(node) else "\n"
    column = token.column if token else 0
    node.comment = [CommentToken(before + lines, CommentMark(column)), *(node.comment[1:] if node.comment else [None])]


def _pull_comment(node: Node) -> None:
    """Let the comment behind a node begin there, whatever its column was before the node changed."""
    if node.comment and node.comment[0]:
        node.comment = [CommentToken(node.comment[0].value, CommentMark(0)), *node.comment[1:]]


def _is_block_scalar(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.style in ("|", ">")


def _key_name(key: Node) -> str | None:
    """Return the name of a key in JSON; None for ``<<``."""
    if key.ctag == _PLAIN:
        return None if key.value == "<<" else yaml_scalars.as_key(yaml_scalars.plain(key.value))
    return yaml_scalars.as_key(yaml_scalars.tagged(key.value, str(key.tag)))


def _fresh(value: object, model: Node | None = None, *, flow: bool = False, quoted: bool = False) -> Node:
    """Return a new node with a value, in the style of ``model``, which stands next to it."""
    fields: dict[str | None, Node] = {}
    if isinstance(model, CollectionNode):
        flow = bool(model.flow_style)
    if isinstance(model, MappingNode):
        fields = {_key_name(key): field for key, field in model.value}
        quoted = quoted or _is_quoted(model)
    match value:
        case dict():
            pairs = [
                (_scalar(name, quoted=quoted), _fresh(field, fields.get(name), flow=flow, quoted=quoted))
                for name, field in value.items()
            ]
            return MappingNode(_MAPPING, pairs, flow_style=flow)
        case list():
            items = [_fresh(item, flow=flow, quoted=quoted) for item in value]
            return SequenceNode(_SEQUENCE, items, flow_style=flow)
    return _scalar(value, quoted=quoted)


def _is_quoted(node: MappingNode) -> bool:
    """Tell whether a mapping is written like JSON."""
    return bool(node.flow_style and node.value and node.value[0][0].style)


def _scalar(value: object, *, quoted: bool = False) -> ScalarNode:
    """Return a new scalar; a string that a reader of YAML might not read as a string is quoted."""
    if not isinstance(value, str):
        return ScalarNode(_PLAIN, msgspec.json.encode(value).decode())
    if quoted or not is_plain(value):
        return ScalarNode(_STRING, value, style='"')
    return ScalarNode(_PLAIN, value)


def is_plain(text: str) -> bool:
    """Tell whether every reader of YAML reads ``text`` without quotes as the same string."""
    if not _SAFE.fullmatch(text) or _TIMESTAMP.match(text) or _NUMBER.fullmatch(text):
        return False
    return isinstance(yaml_scalars.plain(text), str)


class _Sharing:
    """Makes a graph of nodes one in which only anchored nodes occur again, and each anchor is of one node."""

    def __init__(self) -> None:
        self._placed: dict[int, tuple[Node, Node]] = {}
        self._names: dict[str, int] = {}

    def placed(self, node: Node) -> Node:
        """Return what is written in the place of a node: itself, or a copy without comments."""
        if id(node) in self._placed:
            _, again = self._placed[id(node)]
            return again if again.anchor else _bare(node)
        made = node
        if isinstance(node.anchor, str):
            anchor: Any = Anchor()
            if node.anchor not in self._names:
                self._names[node.anchor] = node.start_mark.index
                anchor.value, anchor.always_dump = node.anchor, True
            elif self._names[node.anchor] == node.start_mark.index:
                made = _bare(node)
            made.anchor = anchor
        self._placed[id(node)] = (node, made)
        match made:
            case ScalarNode(style=">"):
                made.value = _FOLD.sub("", made.value)
            case MappingNode():
                made.value = [(self.placed(key), self.placed(value)) for key, value in made.value]
            case SequenceNode():
                made.value = [self.placed(item) for item in made.value]
        return made


def _bare(node: Node) -> Node:
    """Return a copy of a node and of all nodes in it, without anchors and comments."""
    made = copy(node)
    made.comment = None
    made.anchor = None
    match made:
        case MappingNode():
            made.value = [(_bare(key), _bare(value)) for key, value in made.value]
        case SequenceNode():
            made.value = [_bare(item) for item in made.value]
    return made
