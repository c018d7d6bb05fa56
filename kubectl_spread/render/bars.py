"""Bars of domains: the pods of each, compared with the minimum and with maxSkew above it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from kubectl_spread.report.model import Row

WIDTH: Final = 24
"""The most characters of a bar."""
_ASCII_HEIGHTS: Final = "_.:-=+*oO"
_BLOCK_HEIGHTS: Final = "·▁▂▃▄▅▆▇█"


class _Shades(NamedTuple):
    """Characters for pods up to the minimum, up to maxSkew above it, beyond that, and for further allowed pods."""

    common: str
    allowed: str
    excess: str
    free: str


_BLOCKS: Final = _Shades("▒", "▓", "█", "·")
_ASCII: Final = _Shades("=", "+", "#", ".")


def lengthwise(count: int, row: Row, most: int, *, ascii_only: bool) -> str:
    """Return the bar of one domain: one character for each pod, or fewer if ``most``, the largest count, is wider."""
    shades = _ASCII if ascii_only else _BLOCKS
    limit = _limit(row, most)
    scale = min(WIDTH / max(most, limit or 0, 1), 1)
    length = _length(count, scale)
    if limit is None or not isinstance(row.min_match_num, int):
        return shades.excess * length
    common = min(_length(row.min_match_num, scale), length)
    allowed = min(_length(limit, scale), length) - common
    free = max(_length(limit, scale) - length, 0)
    return (
        shades.common * common
        + shades.allowed * allowed
        + shades.excess * (length - common - allowed)
        + shades.free * free
    )


def legend(rows: Iterable[Row], *, ascii_only: bool) -> str:
    """Return the meaning of the characters in the ``lengthwise`` bars of rows; "" if all domains of each are alike."""
    shades = _ASCII if ascii_only else _BLOCKS
    meanings = _Shades("up to the global minimum", "up to maxSkew above it", "more", "free")
    drawn = ""
    for row in rows:
        counts = {domain.match_num for domain in row.domains} if isinstance(row.domains, list) else set()
        if isinstance(row.min_match_num, int) and max(counts, default=0) > row.min_match_num:
            drawn += "".join(lengthwise(count, row, max(counts), ascii_only=ascii_only) for count in counts)
    texts = [f"{shade} {meaning}" for shade, meaning in zip(shades, meanings, strict=True) if shade in drawn]
    return f"Bars: {', '.join(texts)}." if texts else ""


def side_by_side(row: Row, *, ascii_only: bool) -> str:
    """Return one character for each domain, and after ``|`` one for the limit by maxSkew; "" for too many domains."""
    if not isinstance(row.domains, list) or isinstance(row.empty_domains, int) or len(row.domains) > WIDTH:
        return ""
    counts = [domain.match_num for domain in row.domains]
    most = max(counts, default=0)
    limit = _limit(row, most)
    if limit is None or not counts:
        return _heights(counts, most, ascii_only=ascii_only)
    bars = _heights([*counts, limit], max(most, limit), ascii_only=ascii_only)
    return f"{bars[:-1]}|{bars[-1]}"


def _heights(counts: Sequence[int], most: int, *, ascii_only: bool) -> str:
    heights = _ASCII_HEIGHTS if ascii_only else _BLOCK_HEIGHTS
    return "".join(heights[math.ceil(count * (len(heights) - 1) / max(most, 1))] for count in counts)


def _limit(row: Row, most: int) -> int | None:
    """Return how many pods a domain may have by maxSkew, at most twice ``most``; None where that is unknown."""
    if isinstance(row.min_match_num, int) and isinstance(row.max_skew, int):
        return min(row.min_match_num + row.max_skew, 2 * max(most, 1))
    return None


def _length(count: int, scale: float) -> int:
    """Return the length of a bar: at least 1 for a domain with pods."""
    return max(round(count * scale), 1) if count else 0
