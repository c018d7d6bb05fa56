"""Folding: write the common prefix and suffix of values once, as in a shell: ``eu-central-1{a=2 b=1 c=0}``."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Final

_LEAST: Final = 4
"""The least number of common characters to fold."""
_RESERVED: Final = frozenset('{}=\\" ')


def folded(values: Sequence[str], counts: Sequence[int]) -> str:
    """Return values with their counts, on one line.

    The common prefix ends before the last part of each value, and the suffix begins after the first: a part is letters
    alone, or digits alone.
    """
    prefix = _common(values)
    remainders = [value.removeprefix(prefix) for value in values]
    suffix = _common([value[::-1] for value in remainders])[::-1]
    parts = [value.removesuffix(suffix) for value in remainders]
    text = " ".join(f"{part}={count}" for part, count in zip(parts, counts, strict=True))
    return f"{prefix}{{{text}}}{suffix}" if prefix or suffix else text


def _common(values: Sequence[str]) -> str:
    """Return the common prefix of values, if it is long enough; it is shorter than each value."""
    if len(values) < 2 or any(not _RESERVED.isdisjoint(value) for value in values):  # noqa: PLR2004 - several
        return ""
    length = sum(1 for _ in takewhile(lambda chars: len(set(chars)) == 1, zip(*values, strict=False)))
    while length and not all(_ends_part(value, length) for value in values):
        length -= 1
    return values[0][:length] if length >= _LEAST else ""


def _ends_part(value: str, length: int) -> bool:
    """Tell whether a part ends before ``length``, and another part follows."""
    if length >= len(value):
        return False
    before, after = value[length - 1], value[length]
    return not ((before.isalpha() and after.isalpha()) or (before.isdigit() and after.isdigit()))
