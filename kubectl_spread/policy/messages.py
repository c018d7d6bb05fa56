"""The texts of messages, as CEL expressions."""

from __future__ import annotations

from collections.abc import Mapping
from string import Formatter
from typing import Final

from kubectl_spread.policy.roots import is_text, text

_POSITIONS: Final = text(list(range(10)))
"""The positions of the texts that a message names; a longer list is cut."""


def distinct(texts: str) -> str:
    """Return the expression of a list with each text once."""
    first = f"position < {texts}.size() && {texts}.indexOf({texts}[position]) == position"
    return f"{_POSITIONS}.filter(position, {first}).map(position, string({texts}[position]))"


def single(texts: str) -> str:
    """Return the condition that all texts of a list are the same."""
    return f"{texts}.all(each, each == {texts}[0])"


def listed(texts: str) -> str:
    """Return the expression that joins texts as a sentence does: ``a``, ``a and b``, ``a, b and c``."""
    last = "names[names.size() - 1]"
    several = f'names.filter(name, name != {last}).join(", ") + " and " + {last}'
    return f"[{distinct(texts)}].map(names, names.size() == 1 ? names[0] : {several})[0]"


def value(label: str) -> str:
    """Return the expression of a label's value, or of ``""`` for the empty value."""
    empty = text('""')
    return f'({label} == "" ? {empty} : {label})'


def message(template: str, values: Mapping[str, str]) -> str:
    """Return the expression of a message.

    Args:
        template: The message, with the names of values in braces.
        values: The expressions of these values.
    """
    parts: list[str] = []
    for literal, name, _, _ in Formatter().parse(template):
        for part in (text(literal), values[name] if name else text("")):
            if is_text(part) and parts and is_text(parts[-1]):
                parts[-1] = f"{parts[-1][:-1]}{part[1:]}"
            else:
                parts.append(part if is_text(part) else f"({part})")
    return " +\n".join(part for part in parts if part != text(""))
