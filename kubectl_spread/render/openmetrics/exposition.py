"""The exposition: the lines of many parts of a report, ready for any number of scrapes while parts change.

A scrape only joins bytes. The parts are in blocks, and each block has one fragment for each family: its lines, and
these lines as a piece of a deflate stream that refers to no other piece. A piece is compressed again only if its lines
changed. So the body in gzip is a header, the pieces, an empty last block, and the checksum and length of the lines.

Source: RFC 1951 (3.2.4, stored blocks), RFC 1952 (2.3, members).
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

import msgspec

from kubectl_spread.diagnosis.running_pods import RunningPods
from kubectl_spread.render.openmetrics import series
from kubectl_spread.render.openmetrics.families import FAMILIES, Family
from kubectl_spread.render.openmetrics.series import Lines
from kubectl_spread.report.model import Cluster, Report, Summary

BLOCK_PARTS: Final = 16
"""The most parts in a block: more of them compress better, and fewer leave more of a page as it was."""
_END: Final = b"# EOF\n"
_GZIP_HEADER: Final = bytes([0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255])
_LAST_BLOCK: Final = bytes([3, 0])
_PARTS: Final = tuple(family for family in FAMILIES if not family.totals)
_INDICES: Final = {family: index for index, family in enumerate(_PARTS)}


def text(report: Report, running: Iterable[RunningPods]) -> str:
    """Return a report as gauges without timestamps, which all readers of both text formats accept."""
    lines = {**series.of_totals(report.cluster, report.summary), **series.of_report(report, running)}
    body = (f"{family.header}{lines[family].decode()}" for family in FAMILIES if family in lines)
    return "".join((*body, _END.decode()))


class Fragment(msgspec.Struct, frozen=True, eq=False, gc=False):
    """Whole lines, and the same as a piece of a deflate stream."""

    lines: bytes
    deflated: bytes

    @staticmethod
    def of(lines: bytes) -> Fragment:
        """Return the fragment of some lines."""
        compressor = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS)
        return Fragment(lines, compressor.compress(lines) + compressor.flush(zlib.Z_FULL_FLUSH))


_EMPTY: Final = Fragment(b"", b"")
_WITHOUT_LINES: Final = (_EMPTY,) * len(_PARTS)
_HEADERS: Final[Mapping[Family, Fragment]] = {family: Fragment.of(family.header.encode()) for family in FAMILIES}
_END_FRAGMENT: Final = Fragment.of(_END)


class MetricsPage(msgspec.Struct, frozen=True, eq=False):
    """A page of metrics, which never changes.

    Attributes:
        fragments: The page in pieces, in order.
        checksum: The CRC-32 of all lines.
        length: The length of all lines in bytes.
    """

    fragments: tuple[Fragment, ...]
    checksum: int
    length: int

    def plain(self, *, openmetrics: bool) -> Iterator[bytes]:
        """Yield the body; ``openmetrics`` is its format, instead of the text format 0.0.4."""
        end = (_END_FRAGMENT,) if openmetrics else ()
        return (fragment.lines for fragment in chain(self.fragments, end))

    def compressed(self, *, openmetrics: bool) -> Iterator[bytes]:
        """Yield the body in gzip."""
        checksum, length = self.checksum, self.length
        yield _GZIP_HEADER
        yield from (fragment.deflated for fragment in self.fragments)
        if openmetrics:
            yield _END_FRAGMENT.deflated
            checksum, length = zlib.crc32(_END, checksum), length + len(_END)
        yield _LAST_BLOCK
        yield checksum.to_bytes(4, "little")
        yield (length & 0xFFFFFFFF).to_bytes(4, "little")


class Exposition:
    """The metrics of parts of a report, which come, change and go. One thread changes it; any may read its pages."""

    def __init__(self) -> None:
        """Start without parts."""
        self._blocks: dict[_Block, None] = {}
        self._block_of: dict[Hashable, _Block] = {}
        self._open: dict[_Block, None] = {}
        self._changed: dict[_Block, None] = {}

    def put(self, key: Hashable, part: Report | None, running: Iterable[RunningPods]) -> None:
        """Store a part in its present state; None has no metrics."""
        if part is None:
            self.remove(key)
            return
        lines = series.of_report(part, running)
        block = self._block_of.get(key)
        if block is None:
            block = self._block_of[key] = self._with_room()
        block.put(key, lines)
        if block.full:
            self._open.pop(block, None)
        self._changed[block] = None

    def remove(self, key: Hashable) -> None:
        """Remove a part, if it is there."""
        block = self._block_of.pop(key, None)
        if block is not None:
            block.remove(key)
            self._open[block] = self._changed[block] = None

    def publish(self, cluster: Cluster, summary: Summary) -> MetricsPage:
        """Return the page of all parts, with the cluster and the totals that are given."""
        for block in self._changed:
            block.settle()
            if block.empty:
                del self._blocks[block], self._open[block]
        self._changed.clear()
        totals = series.of_totals(cluster, summary)
        fragments = tuple(chain(*(self._of_family(family, totals) for family in FAMILIES)))
        checksum, length = 0, 0
        for fragment in fragments:
            checksum = zlib.crc32(fragment.lines, checksum)
            length += len(fragment.lines)
        return MetricsPage(fragments, checksum, length)

    def _with_room(self) -> _Block:
        """Return a block that takes one more part."""
        if not self._open:
            block = _Block()
            self._blocks[block] = self._open[block] = None
        return next(iter(self._open))

    def _of_family(self, family: Family, totals: Lines) -> Sequence[Fragment]:
        """Return the fragments of a family with its header; none if it has no samples."""
        if family.totals:
            fragments = [Fragment.of(totals[family])] if family in totals else []
        else:
            index = _INDICES[family]
            fragments = [fragment for block in self._blocks if (fragment := block.fragments[index]) is not _EMPTY]
        return [_HEADERS[family], *fragments] if fragments else []


class _Block:
    """Some parts, with one fragment for each family that is not a total.

    A part is stored only as its place in the fragments: the lengths of its lines in each of them.
    """

    def __init__(self) -> None:
        self.fragments: Sequence[Fragment] = _WITHOUT_LINES
        self._lengths: dict[Hashable, Sequence[int]] = {}
        self._changes: dict[Hashable, Lines | None] = {}
        self._keys: set[Hashable] = set()

    @property
    def full(self) -> bool:
        return len(self._keys) >= BLOCK_PARTS

    @property
    def empty(self) -> bool:
        return not self._keys

    def put(self, key: Hashable, lines: Lines) -> None:
        self._keys.add(key)
        self._changes[key] = lines

    def remove(self, key: Hashable) -> None:
        self._keys.remove(key)
        self._changes[key] = None

    def settle(self) -> None:
        """Apply the changes to the fragments; a part that changed keeps its place."""
        parts = self._unchanged()
        for key, lines in self._changes.items():
            parts[key] = () if lines is None else [lines.get(family, b"") for family in _PARTS]
        self._changes.clear()
        present = {key: lines for key, lines in parts.items() if lines}
        self._lengths = {key: array("I", map(len, lines)) for key, lines in present.items()}
        joined = [b"".join(lines) for lines in zip(*present.values(), strict=True)] or [b""] * len(_PARTS)
        self.fragments = [_updated(*pair) for pair in zip(self.fragments, joined, strict=True)]

    def _unchanged(self) -> dict[Hashable, Sequence[bytes]]:
        """Return the lines of each stored part by family; nothing for those that changed, which keep their place."""
        parts: dict[Hashable, Sequence[bytes]] = {}
        starts = [0] * len(_PARTS)
        for key, lengths in self._lengths.items():
            ends = [start + length for start, length in zip(starts, lengths, strict=True)]
            places = zip(self.fragments, starts, ends, strict=True)
            changed = key in self._changes
            parts[key] = () if changed else [fragment.lines[start:end] for fragment, start, end in places]
            starts = ends
        return parts


def _updated(fragment: Fragment, lines: bytes) -> Fragment:
    """Return the fragment of some lines: the present one if it has them."""
    if lines == fragment.lines:
        return fragment
    return Fragment.of(lines) if lines else _EMPTY
