"""Which rows ``check`` shows: ``--show``, large clusters, and DaemonSets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.builders import HOSTNAME, ZONE, Json, affinity, constraint, node_json, pod_json, requirement, selector, term
from tests.cli.test_check import healthy, run, stale

NODES = [f"{zone}{index:03}" for index in range(100) for zone in "ab"]
LOG = {"app": "log", "controller-revision-hash": "h1"}


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory that commands run in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def text(objects: Sequence[Json], *arguments: str) -> str:
    """Return the text of ``check`` about objects in a file."""
    Path("now.json").write_text("\n".join(json.dumps(manifest) for manifest in objects))
    return run("check", "-f", "now.json", "--server-version", "1.37", *arguments).stdout


FEW = [healthy("fine"), stale("bad", node="")]
MANY = [*(healthy(f"fine-{index}") for index in range(50)), stale("bad", node="")]


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize("form", [(), ("-o", "wide")])
@pytest.mark.parametrize(
    ("objects", "arguments", "hidden"),
    [
        pytest.param(FEW, (), 0, id="few are all shown"),
        pytest.param(FEW, ("--show", "all"), 0, id="all"),
        pytest.param(FEW, ("--show", "problems"), 1, id="problems"),
        pytest.param(FEW, ("--show", "problems", "--ignore", "SPR1"), 2, id="what is silenced is not a problem"),
        pytest.param(
            [healthy("fine"), stale("bad")],
            ("--show", "problems", "--severity", "warning"),
            2,
            id="nor is what is less than asked for",
        ),
        pytest.param(MANY, (), 0, id="a pipe gets all"),
        pytest.param(MANY, ("--show", "problems"), 50, id="problems of many"),
    ],
)
def test_show_selects_rows(objects: list[Json], arguments: tuple[str, ...], hidden: int, form: tuple[str, ...]) -> None:
    hidden = 0 if form and not arguments else hidden
    table = text(objects, *arguments, *form)
    rows = [line for line in table.splitlines() if line.startswith("po/")]
    assert len(rows) == len(objects) - hidden
    if rows:
        assert rows[0].startswith("po/bad ")
    output = f"Hidden: {hidden} row{'' if hidden == 1 else 's'} without findings (--show all)"
    assert (output in table) is bool(hidden)


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize("show", ["all", "problems"])
def test_show_changes_only_the_table(show: str) -> None:
    for form in ("json", "yaml", "name"):
        assert text(MANY, "-o", form, "--show", show) == text(MANY, "-o", form)


def daemon(index: int, *, pending: bool = False, stored: Sequence[Json] | None = None) -> Json:
    """Return a pod of a DaemonSet as its controller creates it, with a node affinity to the name of one node."""
    node = NODES[index]
    merged = [requirement("controller-revision-hash", "In", "h1")] if stored is None else stored
    selects = selector({"app": "log"}, *merged)
    match = ["controller-revision-hash"]
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    this_node = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [field]}]}}
    return pod_json(
        f"log-{index:03}",
        node="" if pending else node,
        labels=LOG,
        owner="DaemonSet/log",
        constraints=[
            constraint(selects=selects, match=match),
            constraint(key=HOSTNAME, selects=selector({"app": "log"}), hard=False),
        ],
        affinity={**affinity("podAntiAffinity", term(selects=selects, match=match)), "nodeAffinity": this_node},
    )


ON_SOME = [daemon(index) for index in range(0, 200, 2)]
"""A DaemonSet that runs in one of two zones, as one with a nodeSelector does."""


@pytest.mark.usefixtures("directory")
def test_the_pods_of_a_daemon_set_share_a_row_for_each_term() -> None:
    pods = [daemon(index, pending=index > 190) for index in range(200)]
    table = text([*pods, *map(node_json, NODES)])
    assert table.splitlines()[:6] == [
        "evaluated as Kubernetes 1.37  200 pods in 1 workload, 200 nodes in 2 zones",
        "",
        "WORKLOAD  TOPOLOGY  POLICY                    PODS  DOMAINS  SKEW  MAXSKEW  STATUS",
        "ds/log    hostname  podAntiAffinity required   200  -           -        -  ok",
        "ds/log    zone      DoNotSchedule              200  -           -        1  daemon-set-spread",
        "ds/log    hostname  ScheduleAnyway             200  -           -        1  daemon-set-spread",
    ]
    assert "SPR3" not in table


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize(
    "pods", [pytest.param(ON_SOME, id="running"), pytest.param([daemon(0, pending=True)], id="pending")]
)
def test_the_skew_of_a_daemon_set_is_no_finding(pods: list[Json]) -> None:
    """Each of its pods may run on one node only, so the skew cannot be corrected."""
    document: Any = json.loads(text([*pods, *map(node_json, NODES)], "-o", "json"))
    assert not [finding for finding in document["findings"] if finding["code"].startswith("SPR3")]
    assert document["constraints"]
    assert all("skew" not in row and "domains" not in row for row in document["constraints"])
    assert document["groups"]
    assert all("nodes" not in group for group in document["groups"])


@pytest.mark.usefixtures("directory")
def test_other_workloads_count_the_pods_of_a_daemon_set() -> None:
    web = healthy("web", node="b000", labels={"app": "log"})
    web["spec"]["topologySpreadConstraints"][0]["labelSelector"] = selector({"app": "log"})
    document = json.loads(text([*ON_SOME, web, *map(node_json, NODES)], "-o", "json"))
    (row,) = [row for row in document["constraints"] if row["workload"]["kind"] == "Pod"]
    assert row["topologyKey"] == ZONE
    assert {domain["value"]: domain["matchNum"] for domain in row["domains"]} == {"a": 100, "b": 1}


@pytest.mark.usefixtures("directory")
def test_pods_of_a_daemon_set_that_differ_are_one_finding() -> None:
    pods = [daemon(index, stored=[] if index < 20 else None) for index in range(200)]
    document = json.loads(text([*pods, *map(node_json, NODES)], "-o", "json"))
    assert len(document["constraints"]) == 5
    counts = {finding["code"]: finding["podCount"] for finding in document["findings"]}
    assert (counts["SPR103"], counts["SPR105"]) == (20, 20)
    assert len({(finding["code"], finding["path"]) for finding in document["findings"]}) == len(document["findings"])


@pytest.mark.usefixtures("directory")
def test_a_pending_pod_without_a_finding_is_not_ok() -> None:
    pods = [pod_json(name, node=node, constraints=[constraint()]) for name, node in (("web-0", "a1"), ("web-1", ""))]
    table = text([node_json("a1"), node_json("b1"), *pods])
    assert [line.split()[-1] for line in table.splitlines() if line.startswith("po/")] == ["ok", "pending"]
    assert table.endswith("No findings in 2 workloads (2 pods, 2 constraints). 1 pod is pending.\n")


@pytest.mark.usefixtures("directory")
def test_pods_are_not_called_pending_without_nodes() -> None:
    assert "pending" not in text([pod_json("web-0", stored=False, constraints=[constraint()])])
