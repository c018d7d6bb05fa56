"""The pods of each domain in one cell: common beginnings and ends of the domains' names are written once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Final

from kubectl_spread.render import words
from kubectl_spread.render.terminal import Cell

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


_LISTED: Final = 5


def counts_cell(counts: Mapping[str, int], *, empty: int = 0) -> Cell:
    """Return the count of each domain; for many, and on narrow terminals, their number and the range of counts.

    ``empty`` is the number of further domains without pods.
    """
    number = len(counts) + empty
    if not number:
        return Cell("<none>")
    numbers = [*counts.values(), *([0] if empty else [])]
    summary = f"{number} ({min(numbers)}..{max(numbers)})"
    if number > _LISTED:
        return Cell(summary)
    text = folded([*map(words.value, counts)], [*counts.values()])
    return Cell(text, shorter=(text, summary) if len(summary) < len(text) else ())
