"""YAML in which no reader, of YAML 1.1 as Go's or of 1.2, takes a text for anything else.

A namespace may be called ``no``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import yaml

_NO_NUMBER: Final = re.compile(r"[A-Za-z]")
"""How a text begins that is not a number, date or time."""
_WORDS: Final = frozenset({"y", "yes", "n", "no", "on", "off", "true", "false", "null"})
"""Texts that begin so and are none to one reader or another."""
_TEXT: Final = "tag:yaml.org,2002:str"


class _Dumper(yaml.CSafeDumper):
    """Quotes texts that could be anything else, and writes what occurs twice twice."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - whatever it is
        return True


def _represented(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    plain = _NO_NUMBER.match(text) and text.lower() not in _WORDS
    return dumper.represent_scalar(_TEXT, text, style=None if plain else "'")


_Dumper.add_representer(str, _represented)


def dump(documents: Iterable[object], *, explicit_start: bool = False) -> str:
    """Return documents of dicts, lists and scalars, keys in their order, in ASCII and in long lines."""
    text: str = yaml.dump_all(
        documents, Dumper=_Dumper, explicit_start=explicit_start, sort_keys=False, width=2**16, allow_unicode=False
    )
    return text
