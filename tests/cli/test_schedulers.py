"""``--defaults`` and ``--scheduler-config`` on files: reports, exit status and tables."""

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
    """Run in a directory with a configuration, from where no kubeconfig can be found."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    (tmp_path / "scheduler.yaml").write_text(CONFIG, encoding="utf-8")


def replica_set() -> Json:
    replica_set_json = deployment("web-1", kind="ReplicaSet", owner="Deployment/web")
    return {**replica_set_json, "spec": {**replica_set_json["spec"], "selector": selector(HASHED)}}


def web(name: str, node: str = "", **fields: Any) -> Json:
    return pod_json(name, node=node, labels=HASHED, owner="ReplicaSet/web-1", **fields)


CLUSTER = (web("web-1", "a1"), web("web-2", "a1"), web("web-3"), SERVICE, replica_set(), *NODES)
BY_FILE = ("--scheduler-config", "scheduler.yaml")


def rows(outcome: Result) -> list[tuple[str, str, bool]]:
    constraints = json.loads(outcome.stdout)["constraints"]
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
def test_rows_have_the_default_constraints_of_the_options(
    arguments: tuple[str, ...], expected: list[tuple[str, str, bool]]
) -> None:
    assert rows(check(*CLUSTER, arguments=("-o", "json", *arguments))) == expected


def test_services_are_not_read_without_the_options() -> None:
    """They are then counted as objects of another kind, even if they are malformed."""
    broken = {**SERVICE, "spec": {"selector": []}}
    silent = json.loads(check(web("p"), broken, arguments=("-o", "json")).stdout)
    assert silent["summary"]["skipped"] == {"unknownKind": 1}
    outcome = check(web("p"), broken, replica_set(), arguments=("-o", "json", "--defaults"))
    assert outcome.exit_code == 2
    assert "Service default/web: spec.selector: expected object, got array" in outcome.stderr


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        pytest.param(("--defaults", *BY_FILE), "--defaults and --scheduler-config", id="both"),
        pytest.param(("--scheduler-config", "-"), "cannot both be standard input", id="standard input twice"),
        pytest.param(("--scheduler-config", "nowhere.yaml"), "nowhere.yaml", id="no such file"),
    ],
)
@pytest.mark.parametrize("command", ["check", "explain"])
def test_usage_errors_have_one_line(command: str, arguments: tuple[str, ...], output: str) -> None:
    names = ("web-1",) if command == "explain" else ()
    outcome = run(command, "-f", "-", *names, *arguments, stdin=json.dumps(web("web-1")))
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith("error: ")
    assert outcome.stderr.count("\n") == 1
    assert output in outcome.stderr


def test_every_fault_of_a_configuration_is_reported_with_its_line() -> None:
    faulty = CONFIG.replace("maxSkew: 1", "maxSkew: 0").replace("schedulerName: second", "schedulerNam: second")
    Path("scheduler.yaml").write_text(faulty, encoding="utf-8")
    outcome = check(*CLUSTER, arguments=BY_FILE)
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    lines = outcome.stderr.splitlines()
    assert [line.partition(": KubeSchedulerConfiguration: ")[0] for line in lines] == [
        "error: scheduler.yaml:10",
        "error: scheduler.yaml:12",
        "error: scheduler.yaml:12",
    ]
    field = "profiles[0].pluginConfig[0].args.defaultConstraints[0].maxSkew"
    assert f"{field}: Invalid value: 0: not in valid range (0, inf)" in lines[0]
    assert "profiles[1].schedulerNam: unknown field" in outcome.stderr
    assert "profiles[1].schedulerName: Required value" in outcome.stderr


def test_an_owner_that_is_not_in_the_files_is_a_problem() -> None:
    """The default selector combines those of the owner and the Services, so a Service alone gives a wrong one."""
    owners = [web(f"p{number}") for number in range(2)]
    outcome = check(*owners, pod_json("bare"), SERVICE, *NODES, arguments=("-o", "json", "--defaults"))
    assert outcome.exit_code == 2
    assert {constraint["workload"]["name"] for constraint in json.loads(outcome.stdout)["constraints"]} == {"bare"}
    assert (
        "error: default constraints are not known of the pods of ReplicaSet/web-1: their selectors could not be read"
        in outcome.stderr.splitlines()
    )


def test_a_capture_without_services_has_a_note() -> None:
    output = "no Services in what was read: default constraints select by the pods' owners alone"
    without = [manifest for manifest in CLUSTER if manifest is not SERVICE]
    outcome = check(*without, arguments=("--defaults",))
    assert outcome.exit_code == 0
    assert output in outcome.stderr.splitlines()
    assert output not in check(*CLUSTER, arguments=("--defaults",)).stderr
    assert output not in check(*without).stderr


def test_a_list_without_defaults_needs_no_services() -> None:
    empty = CONFIG.partition("      defaultConstraints")[0]
    Path("scheduler.yaml").write_text(empty, encoding="utf-8")
    outcome = check(web("p"), SERVICE, arguments=("-o", "json", *BY_FILE))
    assert outcome.exit_code == 0
    assert json.loads(outcome.stdout)["summary"]["skipped"] == {"unknownKind": 1}


def test_pods_of_a_profile_are_placed_by_a_known_scheduler() -> None:
    own = web("p", constraints=[constraint()], schedulerName="second")
    unknown = web("q", constraints=[constraint()], schedulerName="third")
    outcome = check(own, unknown, *NODES, arguments=("-o", "json", *BY_FILE))
    by_pod = {group["pods"][0]: "nodes" in group for group in json.loads(outcome.stdout)["groups"]}
    assert by_pod == {"p": True, "q": False}
    silent = json.loads(check(own, unknown, *NODES, arguments=("-o", "json")).stdout)["groups"]
    assert ["nodes" in document for document in silent] == [False, False]


def test_tables_have_the_default_constraints(golden: Golden) -> None:
    arguments = ("--server-version", "1.37", *BY_FILE)
    outcome = check(*CLUSTER, arguments=(*arguments, "-o", "wide"))
    golden(GOLDEN / "defaults.wide.txt", outcome.stdout)
    explained = run(
        "explain", "deploy/web", "-f", "-", *arguments, stdin="\n".join(json.dumps(manifest) for manifest in CLUSTER)
    )
    assert explained.exit_code == 0, explained.stderr
    golden(GOLDEN / "defaults.explain.txt", explained.stdout)
