"""The text of new values, in the style of the values next to them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from kubectl_spread.sources.decode import yaml_scalars

_PLAIN: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?")
_NUMBER: Final = re.compile(r"[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?")
"""Matches numbers, also too large ones, which Kubernetes reads as a string and other readers as infinity."""
_TIMESTAMP: Final = re.compile(r"\d{4}-\d{1,2}-\d{1,2}")
_LAST_OF_FOUR_DIGITS: Final = 0xFFFF


class Style(msgspec.Struct, frozen=True):
    """The style in which values are written.

    Attributes:
        quoted: Whether all strings are quoted, as in JSON.
        colon: The text between a key and its value in brackets.
        comma: The text between items in brackets on one line.
        unit: One step of indentation in brackets; None where everything is on one line.
        step: The indentation of a block sequence relative to its key.
        gap: The blanks between a dash and its item.
        flow_items: Whether the items of a new block sequence are in brackets.
        flow_values: Whether lists of scalars are in brackets.
        newline: The line break.
    """

    quoted: bool = False
    colon: str = ": "
    comma: str = ", "
    unit: str | None = None
    step: str = ""
    gap: str = " "
    flow_items: bool = False
    flow_values: bool = False
    newline: str = "\n"

    def flow(self, value: object, indent: str = "") -> str:
        """Return a value in brackets, or a scalar; all lines but the first begin with ``indent``."""
        inner = indent + (self.unit or "")
        match value:
            case dict() if value:
                members = (f"{self.scalar(key)}{self.colon}{self.flow(field, inner)}" for key, field in value.items())
                return self._between("{", members, "}", indent)
            case list() | tuple() if value:
                return self._between("[", (self.flow(item, inner) for item in value), "]", indent)
            case dict():
                return "{}"
            case list() | tuple():
                return "[]"
        return self.scalar(value)

    def scalar(self, value: object) -> str:
        """Return a scalar; a string that a reader of YAML 1.1 might not read as a string is quoted."""
        if isinstance(value, str) and not self.quoted and is_plain(value):
            return value
        text = msgspec.json.encode(value).decode()
        return "".join(char if char.isprintable() else _escaped(char) for char in text)

    def entry(self, key: str, value: object, indent: str) -> str:
        """Return an entry of a block mapping whose keys are indented by ``indent``, without the last line break."""
        return self.newline.join(f"{indent}{line}" for line in self._entry(key, value))

    def item(self, value: object, indent: str) -> str:
        """Return an item of a block sequence whose dashes are indented by ``indent``, without the last line break."""
        return self.newline.join(f"{indent}{line}" for line in self._item(value))

    def _between(self, opening: str, members: Iterable[str], closing: str, indent: str) -> str:
        if self.unit is None:
            return f"{opening}{self.comma.join(members)}{closing}"
        start = f"{self.newline}{indent}{self.unit}"
        return f"{opening}{start}{f',{start}'.join(members)}{self.newline}{indent}{closing}"

    def _entry(self, key: str, value: object) -> list[str]:
        name = self.scalar(key)
        if isinstance(value, dict) and value:
            return [f"{name}:", *(f"  {line}" for line in self._mapping(value))]
        if isinstance(value, list) and value and not (self.flow_values and not isinstance(value[0], dict)):
            below = msgspec.structs.replace(self, gap=" ")
            return [f"{name}:", *(line for item in value for line in below.item(item, self.step).split(self.newline))]
        return [f"{name}: {self.flow(value)}"]

    def _mapping(self, value: Mapping[str, object]) -> list[str]:
        return [line for key, field in value.items() for line in self._entry(key, field)]

    def _item(self, value: object) -> list[str]:
        if isinstance(value, dict) and value and not self.flow_items:
            first, *rest = self._mapping(value)
            return [f"-{self.gap}{first}", *(f" {' ' * len(self.gap)}{line}" for line in rest)]
        return [f"-{self.gap}{self.flow(value)}"]


def is_plain(text: str) -> bool:
    """Tell whether every reader of YAML reads ``text`` without quotes as the same string."""
    if not _PLAIN.fullmatch(text) or _TIMESTAMP.match(text) or _NUMBER.fullmatch(text):
        return False
    return isinstance(yaml_scalars.plain(text), str)


def _escaped(char: str) -> str:
    code = ord(char)
    return f"\\u{code:04x}" if code <= _LAST_OF_FOUR_DIGITS else f"\\U{code:08x}"
