"""Places: where the fields of a YAML document begin, by its nodes; those of ruamel.yaml and of libyaml are alike."""

from __future__ import annotations

from typing import Any

from kubectl_spread.sources.decode.json_objects import Path
from kubectl_spread.sources.decode.listing import Place


def place_of(root: Any, path: Path, first: int) -> Place:
    """Return where the field at ``path``, or the deepest that is there, begins: its key, or the item.

    Args:
        root: The node of the document.
        path: Keys and indices.
        first: The line of the file with which the document's text begins.
    """
    begin = node = root
    for part in path:
        child = _child(node, part)
        if child is None:
            break
        begin, node = child
    return Place(begin.start_mark.line + first, begin.start_mark.column + 1)


def _child(node: Any, part: str | int) -> tuple[Any, Any] | None:
    """Return the node with which an entry or item begins, and that of its value; None: there is no such part."""
    match node.id, part:
        case "sequence", int():
            return (node.value[part], node.value[part]) if part < len(node.value) else None
        case "mapping", str():
            return next(((key, value) for key, value in node.value if key.value == part), None)
    return None
