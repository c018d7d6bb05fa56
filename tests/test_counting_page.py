"""The code computes the numbers of the example in docs/counting.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from kubectl_spread.report.model import Next
from tests.audits import audit, reported
from tests.builders import Json, constraint, node_json, pod_json
from tests.generated import ROOT

PAGE = (ROOT / "docs" / "counting.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| ([a-z]) \| (\d) \| (\d) \| (\d) \| (.+) \| (allowed|blocked) \|$", re.MULTILINE)
SKEW = re.compile(r"skew of the constraint is (\d) - (\d) = (\d)|The skew is now (\d) - (\d) = (\d)")
DELETED = {"deletionTimestamp": "2026-09-01T12:00:00Z"}


class Zone(NamedTuple):
    """A row of the table."""

    name: str
    running: int
    terminating: int
    match_num: int
    formula: str
    one_more: str


def tables() -> list[list[Zone]]:
    """Return the tables of the example, without minDomains and with minDomains 4."""
    zones = [Zone(row[0], int(row[1]), int(row[2]), int(row[3]), row[4], row[5]) for row in ROW.findall(PAGE)]
    return [zones[: len(zones) // 2], zones[len(zones) // 2 :]]


def pods(zones: list[Zone], constraints: list[Json]) -> Iterator[Json]:
    for zone in zones:
        for index in range(zone.running + zone.terminating):
            metadata = DELETED if index >= zone.running else {}
            name = f"{zone.name}-{index}"
            yield pod_json(
                name, node=f"{zone.name}1", constraints=constraints, owner="Deployment/web", metadata=metadata
            )


@pytest.mark.parametrize(("place", "minimum"), [(0, None), (1, 4)], ids=["plain", "minDomains"])
def test_the_worked_example(place: int, minimum: int | None) -> None:
    zones = tables()[place]
    assert [zone.name for zone in zones] == ["a", "b", "c"]
    nodes = [node_json(f"{zone.name}1") for zone in zones]
    (row,) = reported(audit(*nodes, *pods(zones, [constraint(minDomains=minimum)]))).constraints
    assert isinstance(row.domains, list)
    assert isinstance(row.max_skew, int)
    assert [(domain.value, domain.match_num) for domain in row.domains] == [
        (zone.name, zone.match_num) for zone in zones
    ]
    for zone in zones:
        total = zone.match_num + 1 - int(str(row.min_match_num))
        holds = f"{total} {'<=' if total <= row.max_skew else '>'} {row.max_skew}"
        assert zone.formula == f"{zone.match_num} + {row.self_match_num} - {row.min_match_num} = {holds}"
        assert isinstance(row.next, Next)
        assert zone.name in getattr(row.next, zone.one_more)
    most, least, skew = (int(number) for number in SKEW.findall(PAGE)[place] if number)
    assert (most, least, skew) == (max(zone.match_num for zone in zones), row.min_match_num, row.skew)
    assert skew == most - least
