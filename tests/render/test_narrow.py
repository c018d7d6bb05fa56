"""Tables and headings on narrow terminals: first shorter words and gaps, and only then cut text."""

from __future__ import annotations

import pytest

from kubectl_spread.render import catalogue, explanation, screen, table
from kubectl_spread.render.table import Layout
from kubectl_spread.render.terminal import Cell, Column, Terminal
from kubectl_spread.render.terminal import table as rendered
from kubectl_spread.rules import RULES
from tests.audits import audit, reported
from tests.builders import HOSTNAME, Json, constraint, node_json, pod_json
from tests.render.uneven import uneven

COLUMNS = [Column("NAME", fit="middle", least=12), Column("WHAT", fit="end"), Column("N", "right")]
ROWS: list[list[Cell | str]] = [["deploy/a-very-long-name", Cell("zone DoNotSchedule", shorter=("zone hard",)), "12"]]


@pytest.mark.parametrize(
    ("width", "row"),
    [
        (None, "deploy/a-very-long-name  zone DoNotSchedule  12"),
        (47, "deploy/a-very-long-name  zone DoNotSchedule  12"),
        (46, "deploy/a-very-long-name  zone hard  12"),
        (39, "deploy/a-very-long-name  zone hard  12"),
        (36, "deploy/a-very-long-name zone hard 12"),
        (35, "deploy/a-very-long-name zone ha… 12"),
        (34, "deploy/a-very-…ng-name zone ha… 12"),
        (24, "deploy/a…ame zone ha… 12"),
        (9, "deploy/a…ame zone ha… 12"),
    ],
)
def test_short_forms_and_gaps_are_tried_before_text_is_cut(width: int | None, row: str) -> None:
    assert rendered(COLUMNS, ROWS, Terminal(width=width), headers=False).splitlines() == [row]


def zonal(name: str, zones: str, prefix: str = "") -> list[Json]:
    constraints = [constraint(), constraint(key=HOSTNAME, hard=False)]
    nodes = [node_json(f"{zone}1", zone=f"{prefix}{zone}") for zone in "abc"]
    pods = [
        pod_json(f"{name}-{index}", node=f"{zone}1", constraints=constraints, owner=f"Deployment/{name}")
        for index, zone in enumerate(zones)
    ]
    return [*nodes, *pods]


def rows(name: str, width: int | None, prefix: str = "") -> list[str]:
    text = table.check(reported(audit(*zonal(name, "aab", prefix))), Layout(), Terminal(width=width))
    return text[text.index("WORKLOAD") :].split("\n\n")[0].splitlines()


@pytest.mark.parametrize("width", [60, 80, 100])
def test_rows_fit_and_keep_their_numbers(width: int) -> None:
    table_rows = rows("search", width, "eu-central-1")
    assert max(map(len, table_rows)) <= width
    first = table_rows[1].split()
    assert (first[0], first[-3:]) == ("deploy/search", ["2", "1", "hard-skew"])
    assert "0)" in table_rows[1].replace("0..2)", "0)") or "c=0}" in table_rows[1]
    assert not any("…" in line for line in table_rows)


def test_a_domain_without_pods_is_not_cut_away() -> None:
    assert "a=2 b=1 c=0" in rows("search", 80)[1]
    assert "3 (0..2)" in rows("search", 60)[1]
    assert rows("search", 60)[1].split()[1:3] == ["zone", "hard"]
    assert rows("search", 60)[2].split()[1:3] == ["host", "soft"]


@pytest.mark.parametrize("width", [None, 200])
def test_zones_of_a_region_are_folded(width: int | None) -> None:
    assert "eu-central-1{a=2 b=1 c=0}" in rows("search", width, "eu-central-1")[1]


def test_a_long_name_is_cut_last_and_in_the_middle() -> None:
    line = rows("a-service-with-a-long-name", 60)[1]
    name = line.split()[0]
    assert len(line) <= 60
    assert name.startswith("deploy/a")
    assert len(name) >= 12
    assert line.split()[-3:-1] == ["2", "1"]


@pytest.mark.parametrize("width", [60, 80])
def test_the_catalogue_wraps(width: int) -> None:
    text = catalogue.rules(RULES, Terminal(width=width))
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    assert all(word in text for rule in RULES for word in rule.summary.split())


@pytest.mark.parametrize("width", [60, 80])
def test_headings_wrap(width: int) -> None:
    text = screen.text(explanation.document(uneven()), Terminal(width=width))
    titles = [line for line in text.splitlines() if not line.startswith(" ")]
    assert max(map(len, titles)) <= width


def test_findings_and_totals_wrap() -> None:
    text = table.check(reported(audit(*zonal("search", "aab"))), Layout(), Terminal(width=60))
    assert max(map(len, text.splitlines())) <= 60
    assert "\n  Fix: " in text
    assert "\n    $ kubectl delete pod -n default search-0\n" in text
