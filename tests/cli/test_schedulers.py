"""``--defaults`` and ``--scheduler-config`` on files: what is reported, the exit status, and what people are shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.audits import deployment
from tests.builders import Json, constraint, node_json, pod_json, selector
from tests.cli.test_check import check, run
from tests.conftest import Golden

GOLDEN = Path(__file__).parent.parent / "render" / "golden"
pytestmark = pytest.mark.usefixtures("offline")
SERVICE: Json = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"selector": {"app": "web"}},
}
NODES = tuple(node_json(name) for name in ("a1", "b1", "c1"))
HASHED = {"app": "web", "pod-template-hash": "h1"}
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints:
      - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}
      - {maxSkew: 2, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway}
- schedulerName: second
"""


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a directory with a configuration, from where no kubeconfig could be found."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    (tmp_path / "scheduler.yaml").write_text(CONFIG, encoding="utf-8")


def replica_set() -> Json:
    made = deployment("web-1", kind="ReplicaSet", owner="Deployment/web")
    return {**made, "spec": {**made["spec"], "selector": selector(HASHED)}}


def web(name: str, node: str = "", **fields: Any) -> Json:
    return pod_json(name, node=node, labels=HASHED, owner="ReplicaSet/web-1", **fields)


CLUSTER = (web("web-1", "a1"), web("web-2", "a1"), web("web-3"), SERVICE, replica_set(), *NODES)
BY_FILE = ("--scheduler-config", "scheduler.yaml")


def rows(result: Result) -> list[tuple[str, str, bool]]:
    constraints = json.loads(result.stdout)["constraints"]
    return [
        (constraint["path"], constraint["topologyKey"].rpartition("/")[2], constraint["default"])
        for constraint in constraints
    ]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param((), [], id="nothing unless asked for"),
        pytest.param(
            ("--defaults",),
            [("defaultConstraints[0]", "hostname", True), ("defaultConstraints[1]", "zone", True)],
            id="the system's",
        ),
        pytest.param(
            BY_FILE,
            [("defaultConstraints[0]", "zone", True), ("defaultConstraints[1]", "hostname", True)],
            id="of a file",
        ),
    ],
)
def test_rows(arguments: tuple[str, ...], expected: list[tuple[str, str, bool]]) -> None:
    assert rows(check(*CLUSTER, arguments=("-o", "json", *arguments))) == expected


def test_services_are_not_read_unless_asked_for() -> None:
    """Without the options they are of a kind that is not evaluated, malformed or not."""
    broken = {**SERVICE, "spec": {"selector": []}}
    silent = json.loads(check(web("p"), broken, arguments=("-o", "json")).stdout)
    assert silent["summary"]["skipped"] == {"unknownKind": 1}
    result = check(web("p"), broken, replica_set(), arguments=("-o", "json", "--defaults"))
    assert result.exit_code == 2
    assert "Service default/web: spec.selector: expected object, got array" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        pytest.param(("--defaults", *BY_FILE), "--defaults and --scheduler-config", id="both"),
        pytest.param(("--scheduler-config", "-"), "cannot both be standard input", id="standard input twice"),
        pytest.param(("--scheduler-config", "nowhere.yaml"), "nowhere.yaml", id="no such file"),
    ],
)
@pytest.mark.parametrize("command", ["check", "explain"])
def test_usage_errors_are_one_line(command: str, arguments: tuple[str, ...], output: str) -> None:
    names = ("web-1",) if command == "explain" else ()
    result = run(command, "-f", "-", *names, *arguments, stdin=json.dumps(web("web-1")))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert output in result.stderr


def test_every_fault_of_a_configuration_is_told_with_its_line() -> None:
    faulty = CONFIG.replace("maxSkew: 1", "maxSkew: 0").replace("schedulerName: second", "schedulerNam: second")
    Path("scheduler.yaml").write_text(faulty, encoding="utf-8")
    result = check(*CLUSTER, arguments=BY_FILE)
    assert (result.exit_code, result.stdout) == (2, "")
    lines = result.stderr.splitlines()
    assert [line.partition(": KubeSchedulerConfiguration: ")[0] for line in lines] == [
        "error: scheduler.yaml:10",
        "error: scheduler.yaml:12",
        "error: scheduler.yaml:12",
    ]
    field = "profiles[0].pluginConfig[0].args.defaultConstraints[0].maxSkew"
    assert f"{field}: Invalid value: 0: not in valid range (0, inf)" in lines[0]
    assert "profiles[1].schedulerNam: unknown field" in result.stderr
    assert "profiles[1].schedulerName: Required value" in result.stderr


def test_an_owner_that_is_not_in_the_files_is_a_problem() -> None:
    """Its selector would belong to the answer; a Service alone would make a wrong one."""
    owners = [web(f"p{number}") for number in range(2)]
    result = check(*owners, pod_json("bare"), SERVICE, *NODES, arguments=("-o", "json", "--defaults"))
    assert result.exit_code == 2
    assert {constraint["workload"]["name"] for constraint in json.loads(result.stdout)["constraints"]} == {"bare"}
    assert (
        "error: default constraints are not known of the pods of ReplicaSet/web-1: their selectors could not be read"
        in result.stderr.splitlines()
    )


def test_a_capture_without_services_is_told() -> None:
    output = "no Services in what was read: default constraints select by the pods' owners alone"
    without = [manifest for manifest in CLUSTER if manifest is not SERVICE]
    result = check(*without, arguments=("--defaults",))
    assert result.exit_code == 0
    assert output in result.stderr.splitlines()
    assert output not in check(*CLUSTER, arguments=("--defaults",)).stderr
    assert output not in check(*without).stderr


def test_a_list_without_defaults_needs_no_services() -> None:
    empty = CONFIG.partition("      defaultConstraints")[0]
    Path("scheduler.yaml").write_text(empty, encoding="utf-8")
    result = check(web("p"), SERVICE, arguments=("-o", "json", *BY_FILE))
    assert result.exit_code == 0
    assert json.loads(result.stdout)["summary"]["skipped"] == {"unknownKind": 1}


def test_pods_of_a_profile_are_placed_by_a_known_scheduler() -> None:
    own = web("p", constraints=[constraint()], schedulerName="second")
    unknown = web("q", constraints=[constraint()], schedulerName="third")
    result = check(own, unknown, *NODES, arguments=("-o", "json", *BY_FILE))
    by_pod = {group["pods"][0]: "nodes" in group for group in json.loads(result.stdout)["groups"]}
    assert by_pod == {"p": True, "q": False}
    silent = json.loads(check(own, unknown, *NODES, arguments=("-o", "json")).stdout)["groups"]
    assert ["nodes" in item for item in silent] == [False, False]


def test_what_people_are_shown(golden: Golden) -> None:
    arguments = ("--server-version", "1.37", *BY_FILE)
    displayed = check(*CLUSTER, arguments=(*arguments, "-o", "wide"))
    golden(GOLDEN / "defaults.wide.txt", displayed.stdout)
    explained = run(
        "explain", "deploy/web", "-f", "-", *arguments, stdin="\n".join(json.dumps(manifest) for manifest in CLUSTER)
    )
    assert explained.exit_code == 0, explained.stderr
    golden(GOLDEN / "defaults.explain.txt", explained.stdout)
