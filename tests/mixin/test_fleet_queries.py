"""Prometheus answers the queries of docs/fleet.md about several clusters."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

import pytest

from tests.builders import Json
from tests.e2e import consumers
from tests.generated import ROOT

pytestmark = pytest.mark.e2e

SECTION: Final = (ROOT / "docs" / "fleet.md").read_text(encoding="utf-8").partition("## Metrics of many clusters")[2]
QUERIES: Final = re.findall(r"^\| .+ \| `(.+)` \|$", SECTION, re.MULTILINE)
OWNER: Final = 'namespace="shop", workload="web", workload_type="deployment"'
SERIES: Final = {
    f'kube_spread_finding{{cluster="east", {OWNER}, code="SPR202", severity="error"}}': 1,
    f'kube_spread_finding{{cluster="east", {OWNER}, code="SPR303", severity="error"}}': 1,
    f'kube_spread_finding{{cluster="west", {OWNER}, code="SPR301", severity="warning"}}': 1,
    f'kube_spread_constraint_skew{{cluster="east", {OWNER}, path="a"}}': 3,
    f'kube_spread_constraint_max_skew{{cluster="east", {OWNER}, path="a"}}': 1,
    f'kube_spread_constraint_skew{{cluster="west", {OWNER}, path="a"}}': 1,
    f'kube_spread_constraint_max_skew{{cluster="west", {OWNER}, path="a"}}': 1,
    'kube_spread_read_timestamp_seconds{cluster="east"}': 0,
    'kube_spread_read_timestamp_seconds{cluster="west"}': 7000,
    'kube_spread_info{cluster="east", cluster_uid="1"}': 1,
    'kube_spread_info{cluster="also-east", cluster_uid="1"}': 1,
    'kube_spread_info{cluster="west", cluster_uid="2"}': 1,
}
ANSWERS: Final = (
    {"labels": '{cluster="east"}', "value": 2},
    {"labels": '{cluster="east"}', "value": 1},
    {"labels": '{cluster="east"}', "value": 7200},
    {"labels": '{cluster_uid="1"}', "value": 2},
)


def test_the_queries_tell_clusters_apart(tmp_path: Path) -> None:
    asked: list[Json] = [
        {"expr": query, "eval_time": "2h", "exp_samples": [answer]}
        for query, answer in zip(QUERIES, ANSWERS, strict=True)
    ]
    series = [{"series": name, "values": f"{value}x120"} for name, value in SERIES.items()]
    test: Json = {"interval": "1m", "input_series": series, "promql_expr_test": asked}
    path = tmp_path / "fleet.json"
    path.write_text(json.dumps({"rule_files": [], "tests": [test]}), encoding="utf-8")
    assert "SUCCESS" in consumers.promtool("test", "rules", str(path))
