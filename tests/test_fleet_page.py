"""The queries of docs/fleet.md give the right answers about 1,000 reports."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from kubectl_spread.render.openmetrics import FAMILIES
from tests.builders import Json
from tests.generated import CHECK, ROOT, run
from tests.test_pages import BLOCK

PAGE = (ROOT / "docs" / "fleet.md").read_text(encoding="utf-8")
VIEW, RULES, SKEWS, OLD, FLEET = (body for kind, body in BLOCK.findall(PAGE) if kind == "sql")
CLUSTERS = 1000
PLACE = re.compile(r"'(?=reports/|fleet\.json)")
NOW = datetime.now(UTC)


def reports() -> Iterator[Json]:
    """Yield the report of the sample for each cluster: every tenth has no finding, and two are special."""
    sample = json.loads(run(*CHECK, "-A", "-o", "json"))
    for number in range(CLUSTERS):
        report = deepcopy(sample)
        age = timedelta(days=3) if number == 7 else timedelta(hours=1)
        identity = {"name": f"cluster-{number}", "uid": f"uid-{number}", "readAt": (NOW - age).isoformat()}
        report["cluster"] |= {**identity, "serverVersion": "1.37.1"}
        if number % 10 == 0:
            report["findings"] = []
        yield report
    yield {**report, "cluster": {**report["cluster"], "name": "another-name"}}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with the reports, and with a fleet of which one cluster failed."""
    directory = tmp_path_factory.mktemp("fleet")
    (directory / "reports").mkdir()
    for number, report in enumerate(reports()):
        (directory / "reports" / f"{number}.json").write_text(json.dumps(report), encoding="utf-8")
    clusters = [{"context": "eu", "status": "complete", "errors": []}]
    clusters += [{"context": "us", "status": "failed", "errors": ["no answer"]}]
    (directory / "fleet.json").write_text(json.dumps({"clusters": clusters}), encoding="utf-8")
    return directory


def ask(files: Path, *queries: str) -> list[tuple[Any, ...]]:
    """Return the rows of the last query; the page names files in the current directory."""
    connection = duckdb.connect()
    for query in queries:
        connection.execute(PLACE.sub(f"'{files}/", query))
    return connection.fetchall()


def test_the_number_of_clusters_with_findings_of_each_rule(files: Path) -> None:
    rows = ask(files, VIEW, RULES)
    assert {code for code, _, _ in rows} == {"SPR101", "SPR103", "SPR107", "SPR301"}
    # The last cluster has two reports.
    assert {clusters for _, clusters, _ in rows} == {900}
    assert {findings for _, _, findings in rows} == {901}


def test_the_constraints_furthest_above_their_max_skew(files: Path) -> None:
    rows = ask(files, VIEW, SKEWS)
    assert len(rows) == 20
    assert {row[1:] for row in rows} == {("shop", "api", 1)}


def test_clusters_without_a_report_of_today_or_with_two_names(files: Path) -> None:
    rows = {uid: sorted(names) for uid, names, _ in ask(files, VIEW, OLD)}
    assert rows == {"uid-7": ["cluster-7"], "uid-999": ["another-name", "cluster-999"]}


def test_the_clusters_of_a_fleet_that_failed(files: Path) -> None:
    assert ask(files, FLEET) == [("us", '["no answer"]')]


def test_the_metrics_of_the_queries_exist() -> None:
    names = {family.name for family in FAMILIES}
    used = set(re.findall(r"kube_spread_\w+", PAGE))
    assert used
    assert used <= names
