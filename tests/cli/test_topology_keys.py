"""Topology keys that nodes lack: findings next to nodes of a capture, and the rows of the other constraints."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.audits import deployment
from tests.builders import Json, constraint, node_json, pod_json
from tests.cli.test_check import check, report, run
from tests.generated import ROOT

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
NODES = [node_json(name) for name in ("a1", "a2", "b1")]


def soft(*keys: str) -> list[Json]:
    return [constraint(key=key, hard=False) for key in keys]


def pods(constraints: Sequence[Json]) -> list[Json]:
    return [pod_json(f"web-{number}", node="a1", constraints=constraints) for number in range(3)]


@pytest.mark.parametrize(("hard", "severity", "status"), [(True, "error", 1), (False, "warning", 0)])
def test_a_misspelt_key_of_a_manifest_is_named_with_the_nearest_label_of_the_nodes(
    hard: bool, severity: str, status: int, tmp_path: Path
) -> None:
    manifest = tmp_path / "pay.yaml"
    manifest.write_text(json.dumps(deployment("pay", constraints=[constraint(key=f"{ZONE}s", hard=hard)])))
    files = ("-f", str(manifest), "-f", str(ROOT / "examples" / "cluster.json"))
    outcome = run("check", *files, "deploy/pay", "--show", "all")
    assert outcome.exit_code == status
    assert f"{severity} SPR218 wrong-topology-key: deploy/pay" in outcome.stdout
    assert f"No node has the label {ZONE}s; did you mean {ZONE}?" in outcome.stdout
    assert f"Use {ZONE}" in outcome.stdout


@pytest.mark.parametrize("wrong", ["kubernetes.io/zone", "example.com/rack", f"{ZONE}s"])
def test_no_soft_row_is_ok_next_to_a_soft_key_that_no_node_has(wrong: str) -> None:
    objects = [*NODES, *pods(soft(HOSTNAME, wrong, ZONE))]
    table = check(*objects, arguments=("-o", "wide")).stdout
    rows = [line.split() for line in table.splitlines() if "ScheduleAnyway" in line and line.startswith("po/")]
    assert len(rows) == 9
    assert all("<none>" in row and "ok" not in row and "0" not in row[5:6] for row in rows), table
    (finding,) = [each for each in report(*objects)["findings"] if each["object"]["name"] == "web-0"]
    assert (finding["code"], finding["severity"]) == ("SPR218", "warning")
    assert f"the constraints on {HOSTNAME} and {ZONE} have no effect either" in finding["message"]


def test_hard_constraints_keep_their_domains_next_to_a_soft_key_that_no_node_has() -> None:
    constraints = [constraint(key=HOSTNAME), *soft("example.com/rack")]
    rows = report(*NODES, *pods(constraints))["constraints"]
    assert {row["topologyKey"]: len(row["domains"]) for row in rows} == {HOSTNAME: 3, "example.com/rack": 0}


def test_the_default_constraints_of_the_system_do_not_need_all_keys() -> None:
    nodes = [node_json(name, without=[ZONE]) for name in ("n1", "n2")]
    findings = report(*nodes, *pods([]), arguments=("--defaults",))["findings"]
    assert "SPR218" not in {finding["code"] for finding in findings}
