"""``kubectl spread domains`` on files: what it prints, in each format, and its errors; ``domains/`` is reviewed."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import Result

from tests import contract
from tests.builders import HOSTNAME, ZONE, Json, node_json, pod_json
from tests.cli.test_check import run
from tests.conftest import Golden
from tests.generated import DOMAINS, ROOT
from tests.render.test_html import Elements
from tests.terminals import printed

GOLDEN: Final = Path(__file__).parent / "domains"
CAPTURE: Final = str(ROOT / DOMAINS)
COMMANDS: Final = {"zones": ("zone",), "zone-a": ("zone", "a"), "nodes": ("node",)}
WIDTHS: Final = {"80": 80, "120": 120, "pipe": None}
ATTRIBUTE: Final = "'\"><img src=x onerror=alert(1)>"
MARKUP: Final = "<script>alert(1)</script>"
BUDGET: Final[Json] = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
}
WEB: Final = [pod_json(f"web-{zone}", node=f"{zone}1", owner="StatefulSet/web") for zone in "ab"]
NODES: Final = [node_json("a1"), node_json("b1"), node_json("x1", without=[ZONE])]


def domains(*objects: Json, arguments: tuple[str, ...] = ()) -> Result:
    return run("domains", *arguments, "-f", "-", stdin="\n".join(json.dumps(manifest) for manifest in objects))


def report(*objects: Json, arguments: tuple[str, ...] = ()) -> Any:
    return contract.loaded(domains(*objects, arguments=(*arguments, "-o", "json")).stdout)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", COMMANDS)
def test_screens_match_their_golden_files(
    name: str, width: str, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    command = ("domains", *COMMANDS[name], "-f", DOMAINS, "--cluster-name", "prod-eu", "--color", "never")
    columns = WIDTHS[width]
    text = run(*command).stdout if columns is None else printed(columns, *command)
    golden(GOLDEN / f"{name}.{width}.txt", text)
    assert columns is None or max(map(len, text.splitlines())) <= columns


@pytest.mark.parametrize("form", ["json", "wide", "yaml"])
@pytest.mark.parametrize("name", COMMANDS)
def test_formats_match_their_golden_files(
    name: str, form: str, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    answer = run("domains", *COMMANDS[name], "-f", DOMAINS, "--cluster-name", "prod-eu", "-o", form)
    assert (answer.exit_code, answer.stderr) == (0, "")
    golden(GOLDEN / f"{name}.{form}", answer.stdout)
    if form == "json":
        contract.loaded(answer.stdout)


def test_the_order_of_the_input_does_not_matter() -> None:
    objects = [*NODES, *WEB, BUDGET]
    for arguments in (("zone",), ("zone", "a")):
        assert domains(*objects, arguments=arguments).stdout == domains(*reversed(objects), arguments=arguments).stdout


def test_without_headers_only_lines_are_on_stdout() -> None:
    answer = run("domains", "zone", "a", "-f", CAPTURE, "--no-headers")
    assert answer.stdout.splitlines()[0].split() == ["shop", "deploy/cart", "2", "of", "2", "0", "-"]
    assert len(answer.stdout.splitlines()) == 4
    assert answer.stderr == "1 pod is pending.\n"


def test_a_namespace_and_labels_choose_the_pods() -> None:
    objects = [*NODES, *WEB, pod_json("db-1", node="a1", labels={"app": "db"}, namespace="data")]
    totals = {
        arguments: report(*objects, arguments=arguments)["totals"]["pods"]
        for arguments in (("-A",), ("-n", "data"), ("--exclude-namespace", "data"), ("-l", "app=db"), ("-l", "app!=db"))
    }
    assert list(totals.values()) == [3, 1, 2, 1, 2]


def test_nodes_without_the_key_are_a_row_and_can_be_named() -> None:
    objects = [*NODES, *WEB, pod_json("web-x", node="x1", owner="StatefulSet/web"), BUDGET]
    assert [row["value"] for row in report(*objects)["domains"]] == ["a", "b", None]
    without_key = report(*objects, arguments=("zone", "<none>"))
    assert [row["value"] for row in without_key["domains"]] == [None]
    assert without_key["workloads"][0]["here"] == 1
    assert "Nodes without topology.kubernetes.io/zone: 1 node" in domains(*objects, arguments=("zone", "<none>")).stdout


@pytest.mark.parametrize("value", ["", '""'])
def test_the_empty_value_can_be_named(value: str) -> None:
    answer = report(node_json("y", zone=""), *NODES, BUDGET, arguments=("zone", value))
    assert [(row["value"], row["nodes"]) for row in answer["domains"]] == [("", 1)]
    assert answer["workloads"] == []


def test_a_domain_without_pods_says_so() -> None:
    answer = domains(*NODES, *WEB, BUDGET, arguments=("zone", "<none>"))
    assert answer.exit_code == 0
    assert "\nNo pods run here.\n" in answer.stdout


def test_everything_that_is_in_no_row_is_reported() -> None:
    answer = domains(
        *NODES,
        *WEB,
        pod_json("far", node="z1"),
        pod_json("waiting"),
        pod_json("going", node="a1", metadata={"deletionTimestamp": "2026-11-01T10:00:00Z"}),
        pod_json("etcd", node="a1", metadata={"annotations": {"kubernetes.io/config.mirror": "x"}}),
        pod_json("odd", node="a1", containers=[{"name": "app", "resources": {"requests": {"cpu": "much"}}}]),
    )
    assert answer.exit_code == 0
    assert answer.stdout.splitlines()[-5:] == [
        "1 running pod is on 1 node that was not listed (z1).",
        "1 pod is pending.",
        "1 pod is terminating and not counted.",
        "1 mirror pod is not counted.",
        "The requests of 1 pod are unknown, so sums with >= are lower bounds.",
    ]
    assert ">=0/?" in answer.stdout


def test_bound_pods_on_none_of_the_nodes_are_an_error() -> None:
    answer = domains(node_json("a1"), pod_json("far", node="z1"))
    assert answer.exit_code == 2
    assert answer.stderr.startswith("error: 1 bound pod runs on a node not among the 1 node")


def test_a_capture_without_nodes_is_an_error() -> None:
    answer = domains(*WEB)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert answer.stderr == (
        "error: there are no nodes in the files, and only nodes tell the domains: capture nodes as well\n"
    )


def test_a_malformed_object_is_an_error_and_the_others_are_counted() -> None:
    answer = domains(*NODES, *WEB, {**WEB[0], "metadata": {"name": 1}})
    assert answer.exit_code == 2
    assert answer.stderr == "error: STDIN:6: Pod: metadata.name: expected string, got integer\n"
    assert "2 running pods in 1 workload" in answer.stdout


def test_a_malformed_budget_is_an_error() -> None:
    broken = {**BUDGET, "spec": {"minAvailable": {}}}
    answer = domains(*NODES, *WEB, broken, arguments=("zone", "a"))
    assert answer.exit_code == 2
    assert "PodDisruptionBudget default/web: spec.minAvailable: expected integer, got object" in answer.stderr


def test_a_capture_without_budgets_does_not_say_that_none_is_broken() -> None:
    answer = domains(*NODES, *WEB, arguments=("zone", "a"))
    assert (answer.exit_code, answer.stderr) == (
        0,
        "no PodDisruptionBudgets in what was read: their minimum is unknown (capture them as well)\n",
    )
    assert answer.stdout.splitlines()[5].split() == ["default", "sts/web", "1", "of", "2", "1", "unknown"]
    assert "budgets" not in report(*NODES, *WEB, arguments=("zone", "a"))["workloads"][0]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("zon",), '"zon" (nodes have kubernetes.io/hostname, topology.kubernetes.io/zone); did you mean "zone"?'),
        (("rack",), '"rack" (nodes have kubernetes.io/hostname, topology.kubernetes.io/zone)'),
        (
            ("region",),
            (
                '"topology.kubernetes.io/region" (nodes have kubernetes.io/hostname, topology.kubernetes.io/zone)'
                '; did you mean "topology.kubernetes.io/zone"?'
            ),
        ),
        (("zone", "a1"), 'topology.kubernetes.io/zone="a1" (nodes have a, b, <none>)'),
        (("node", "A1"), 'kubernetes.io/hostname="A1"; did you mean "a1"?'),
        (("zone", "\x1b[2J"), 'topology.kubernetes.io/zone="\\x1b[2J" (nodes have a, b, <none>)'),
    ],
)
def test_an_unknown_key_or_value_is_an_error(arguments: tuple[str, ...], problem: str) -> None:
    answer = domains(*NODES, *WEB, arguments=arguments)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert answer.stderr == f"error: no node has the label {problem}\n"


def test_three_arguments_are_an_error() -> None:
    answer = domains(*NODES, arguments=("zone", "a", "b"))
    assert answer.exit_code == 2
    assert "unexpected extra argument" in answer.stderr


def test_several_files_in_one_run(tmp_path: Path) -> None:
    pages = [f"{form}={tmp_path / form}" for form in ("html", "json", "yaml")]
    answer = run("domains", "-f", CAPTURE, *(word for page in pages for word in ("-o", page)), "-o", "table")
    assert answer.exit_code == 0
    assert answer.stdout.startswith("12 running pods in 4 workloads\n")
    assert (tmp_path / "json").read_text() == run("domains", "-f", CAPTURE, "-o", "json").stdout


def test_an_unknown_format_is_an_error_and_files_that_are_read_are_not_replaced(tmp_path: Path) -> None:
    assert "allowed formats are: html, json, markdown, table, wide, yaml" in run("domains", "-o", "sarif").stderr
    capture = tmp_path / "cluster.yaml"
    capture.write_text((ROOT / DOMAINS).read_text())
    answer = run("domains", "-f", str(capture), "-o", f"json={capture}")
    assert (answer.exit_code, capture.read_text()) == (2, (ROOT / DOMAINS).read_text())


def hostile() -> list[Json]:
    """Return objects whose names are markup and control characters; no API server would store them."""
    owner = pod_json("web-1", node="a1", owner=f"StatefulSet/{ATTRIBUTE}", namespace=MARKUP, labels={"app": "web"})
    bare = pod_json("\x1b[2Jbare", node="a1", namespace=MARKUP, labels={"app": "web"})
    named = {**BUDGET, "metadata": {"name": f"{MARKUP}\x1b", "namespace": MARKUP}}
    return [
        node_json("a1", zone=ATTRIBUTE),
        node_json("b1", zone=MARKUP),
        node_json("c1", zone="\x07"),
        owner,
        bare,
        named,
    ]


@pytest.mark.parametrize("form", ["html", "json", "markdown", "table", "wide", "yaml"])
@pytest.mark.parametrize("arguments", [(), ("zone", ATTRIBUTE)])
def test_names_move_no_cursor(arguments: tuple[str, ...], form: str) -> None:
    answer = domains(*hostile(), arguments=(*arguments, "-o", form))
    assert answer.exit_code == 0
    assert not {"\x1b", "\x07"} & set(answer.stdout)


@pytest.mark.parametrize("arguments", [(), ("zone", ATTRIBUTE)])
def test_names_are_not_markup(arguments: tuple[str, ...]) -> None:
    page = domains(*hostile(), arguments=(*arguments, "-o", "html")).stdout
    elements = Elements(page)
    assert [tag for tag, _ in elements.elements if tag in ("script", "img")] == ["script"]
    assert MARKUP in "".join(elements.texts)


def test_the_page_may_load_nothing_and_run_only_its_script() -> None:
    page = run("domains", "-f", CAPTURE, "-o", "html").stdout
    (policy,) = (attributes["content"] for _, attributes in Elements(page).elements if "http-equiv" in attributes)
    assert policy is not None
    (script,) = re.findall("<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert f"script-src 'sha256-{digest}'" in policy


def test_shares_are_rounded_and_never_reach_the_ends() -> None:
    pods = [pod_json(f"p{index}", node="a1") for index in range(1000)]
    answer = domains(*NODES, *pods, pod_json("last", node="b1"))
    assert [line.split()[5] for line in answer.stdout.splitlines()[5:8]] == [">99%", "<1%", "0%"]


def test_each_node_can_be_asked_for() -> None:
    answer = report(*NODES, *WEB, BUDGET, arguments=("hostname", "a1"))
    assert (answer["topologyKey"], answer["domains"][0]["pods"]) == (HOSTNAME, 1)
    assert answer["workloads"][0]["budgets"] == [{"name": "web", "minimum": 2, "left": 1, "below": True}]
