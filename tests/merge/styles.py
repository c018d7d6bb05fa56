"""Ways in which people write the same manifest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kubectl_spread.sources.decode import yaml_scalars


@dataclass(slots=True)
class Style:
    """One way of writing YAML.

    Attributes:
        step: The indentation of lists relative to their keys.
        gap: The blanks behind a dash.
        quote: The quotes of all strings; "" to quote only strings that need it.
        flow: The depth from which values are written in brackets.
        comments: Whether there is a comment on every line and under every item.
        anchors: Whether a selector that is written twice is an alias the second time.
        newline: The line break.
    """

    step: str = ""
    gap: str = " "
    quote: str = ""
    flow: int = 99
    comments: bool = False
    anchors: bool = False
    newline: str = "\n"
    _seen: dict[str, str] = field(default_factory=dict)
    _count: int = 0

    def write(self, value: Any) -> str:
        """Return a manifest as text."""
        self._seen, self._count = {}, 0
        lines = [self._commented(line) for line in self._mapping(value, 0)]
        return "".join(f"{line}{self.newline}" for line in lines)

    def _mapping(self, value: dict[str, Any], depth: int) -> Iterator[str]:
        for key, entry in value.items():
            yield from self._entry(self._scalar(key), key, entry, depth)

    def _entry(self, name: str, key: str, value: Any, depth: int) -> Iterator[str]:
        anchor = ""
        if self.anchors and key in ("labelSelector", "matchExpressions") and value:
            text = json.dumps(value)
            if text in self._seen:
                yield f"{name}: *{self._seen[text]}"
                return
            self._seen[text] = f"a{len(self._seen)}"
            anchor = f" &{self._seen[text]}"
        if not isinstance(value, dict | list) or not value or depth >= self.flow:
            yield f"{name}:{anchor} {self._flow(value)}"
            return
        yield f"{name}:{anchor}"
        if isinstance(value, dict):
            yield from (f"  {line}" for line in self._mapping(value, depth + 1))
        else:
            yield from (f"{self.step}{line}" for line in self._items(value, depth + 1))

    def _items(self, value: list[Any], depth: int) -> Iterator[str]:
        for item in value:
            if isinstance(item, dict) and item and depth < self.flow:
                first, *rest = self._mapping(item, depth)
                yield f"-{self.gap}{first}"
                yield from (f" {' ' * len(self.gap)}{line}" for line in rest)
            else:
                yield f"-{self.gap}{self._flow(item)}"
            if self.comments:
                self._count += 1
                yield f"   # under {self._count}"

    def _flow(self, value: Any) -> str:
        match value:
            case dict():
                return (
                    "{" + ", ".join(f"{self._scalar(key)}: {self._flow(entry)}" for key, entry in value.items()) + "}"
                )
            case list():
                return "[" + ", ".join(map(self._flow, value)) + "]"
        return self._scalar(value)

    def _scalar(self, value: Any) -> str:
        if isinstance(value, str) and (self.quote or not _is_plain(value)):
            return f"'{value}'" if self.quote == "'" else json.dumps(value)
        return value if isinstance(value, str) else json.dumps(value)

    def _commented(self, line: str) -> str:
        if not self.comments or "#" in line:
            return line
        self._count += 1
        return f"{line}  # on {self._count}"


def _is_plain(text: str) -> bool:
    """Tell whether every reader of YAML reads ``text`` without quotes as the same string."""
    return text.isalnum() and text[0].isalpha() and isinstance(yaml_scalars.plain(text), str)
