"""YAML that readers of YAML 1.1, such as Go's, and of YAML 1.2 parse alike: texts stay texts.

For example, a namespace may be called ``no``.
"""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

_NO_NUMBER: Final = re.compile(r"[A-Za-z]")
"""The beginning of a text that cannot be a number, date or time."""
_WORDS: Final = frozenset({"y", "yes", "n", "no", "on", "off", "true", "false", "null"})
"""Texts with such a beginning that some readers parse as a boolean or null."""
_TEXT: Final = "tag:yaml.org,2002:str"


class _Dumper(yaml.CSafeDumper):
    """Quotes texts that a reader could take for another type, and never writes anchors and aliases."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - for all data
        return True


def _represented(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    if "\n" in text:
        return dumper.represent_scalar(_TEXT, text, style="|")
    plain = _NO_NUMBER.match(text) and text.lower() not in _WORDS
    return dumper.represent_scalar(_TEXT, text, style=None if plain else "'")


_Dumper.add_representer(str, _represented)


def dump(document: object) -> str:
    """Return a document of dicts, lists and scalars as ASCII with long lines; keys keep their order."""
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=2**16, allow_unicode=False)
    return text
