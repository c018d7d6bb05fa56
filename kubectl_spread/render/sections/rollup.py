"""The owners of the pods, and the count of each row by revision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import UnsetType

from kubectl_spread.explain.explanation import Explanation
from kubectl_spread.explain.rollup import Owner, RowRollup, Share
from kubectl_spread.phrases import plural
from kubectl_spread.render import words
from kubectl_spread.render.terminal import Column, Terminal, heading, paragraph, table

_COLUMNS: Final = 6
"""The most domains that get a column each."""
_INDENT: Final = "  "


def rollup(explanation: Explanation, terminal: Terminal) -> str:
    """Return the owners of the pods if there are several, and a table for each row with pods of several of them.

    Pods of other workloads and terminating pods have a table, too.
    """
    owners = explanation.rollup.owners
    lines = _owners(owners) if len(owners) > 1 else []
    text = "".join(paragraph(line, _INDENT, terminal) for line in lines)
    for row in explanation.rollup.rows:
        if _worth_a_table(row):
            text += paragraph(_title(row, explanation), _INDENT, terminal) + _table(row, terminal)
    return f"{heading('Owners', terminal)}{text}" if text else ""


def _owners(owners: Sequence[Owner]) -> list[str]:
    """Return a line for each chain of owners; the last owners of a chain share the line."""
    chains: dict[tuple[str, ...], list[Owner]] = {}
    for owner in owners:
        above = tuple(f"{higher.kind} {higher.name}" for higher in owner.above)
        chains.setdefault((*above, owner.kind), []).append(owner)
    return [
        " > ".join([*(words.safe(higher) for higher in above), f"{words.safe(kind)} {_links(links)}"])
        for (*above, kind), links in chains.items()
        if kind != "Pod"
    ]


def _links(links: Sequence[Owner]) -> str:
    return ", ".join(f"{words.safe(owner.name)} ({_revision(owner)}{plural(owner.pods, 'pod')})" for owner in links)


def _revision(owner: Owner) -> str:
    return f"revision {owner.revision}, " if isinstance(owner.revision, int) else ""


def _worth_a_table(row: RowRollup) -> bool:
    """Tell whether a row has more than the pods of one revision, whose counts its domains show already."""
    extra = not isinstance(row.other_pods, UnsetType) or not isinstance(row.terminating, UnsetType)
    return len(row.revisions) > 1 or extra


def _title(row: RowRollup, explanation: Explanation) -> str:
    constraint = explanation.constraints[row.row]
    return f"{words.short_path(row.path)}: {words.topology(constraint.topology_key)} {words.policy(constraint)}"


def _table(row: RowRollup, terminal: Terminal) -> str:
    lines: list[tuple[str, Mapping[str, int], int | None]] = [
        (_share(share), share.counts, share.skew) for share in row.revisions
    ]
    if not isinstance(row.other_pods, UnsetType):
        lines.append(("pods of other workloads", row.other_pods, None))
    lines.append(("counted", row.counted, row.skew))
    if isinstance(row.terminating, dict) and isinstance(row.skew_with_terminating, int):
        with_terminating = {value: row.counted.get(value, 0) + row.terminating.get(value, 0) for value in row.counted}
        lines.append(("terminating", row.terminating, None))
        lines.append(("counted + terminating", with_terminating, row.skew_with_terminating))
    values = list(row.counted)
    has_columns = len(values) <= _COLUMNS
    columns = [
        Column("", fit="middle", least=12),
        *([Column(words.value(value), "right") for value in values] if has_columns else [Column("DOMAINS")]),
        Column("SKEW", "right"),
    ]
    cells = [
        [
            f"{_INDENT * 2}{name}",
            *([str(counts.get(value, 0)) for value in values] if has_columns else [_range(counts, values)]),
            "" if skew is None else str(skew),
        ]
        for name, counts, skew in lines
    ]
    return table(columns, cells, terminal)


def _share(share: Share) -> str:
    name = share.revision
    if isinstance(name, UnsetType):
        name = "pods" if isinstance(share.owner, UnsetType) else f"{share.owner.kind} {share.owner.name}"
    number = f"revision {share.number} " if isinstance(share.number, int) else ""
    return words.safe(f"{number}{name}")


def _range(counts: Mapping[str, int], values: Sequence[str]) -> str:
    numbers = [counts.get(value, 0) for value in values]
    return f"{len(values)} ({min(numbers)}..{max(numbers)})"
