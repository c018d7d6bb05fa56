"""Text that would move the cursor, set the clipboard or reverse text is printed as escapes in every place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kubectl_spread.cli import cli, formats
from tests.audits import deployment
from tests.builders import HOSTNAME, ZONE, Json, affinity, constraint, node_json, pod_json, requirement, term
from tests.fuzz.hostile import ESCAPES
from tests.hostile.commands import COMMANDS, clean, run, text_of

EVIL = "".join(ESCAPES)
EXPLANATIONS = (("explain",), ("explain", "-o", "json"), ("explain", "-o", "yaml"))


def cluster(evil: str) -> list[Json]:
    """Return objects with a text in each field that a check reads."""
    selects = {"matchLabels": {evil: evil}, "matchExpressions": [requirement(f"e{evil}", "In", evil)]}
    constraints = [
        constraint(selects=selects, match=[evil, "rev"]),
        constraint(key=evil, hard=False, selects=selects),
        constraint(key=HOSTNAME, whenUnsatisfiable=evil, nodeTaintsPolicy=evil),
    ]
    spec: Json = {
        "constraints": constraints,
        "affinity": affinity("podAntiAffinity", term(key=evil, selects=selects, match=[evil])),
        "nodeSelector": {evil: evil},
        "tolerations": [{"key": evil, "operator": evil, "value": evil, "effect": evil}],
    }
    labels = {"app": "web", "rev": evil, evil: evil}
    metadata = {
        "annotations": {"kubectl-spread/ignore": evil, evil: evil},
        "managedFields": [
            {
                "manager": evil,
                "operation": "Update",
                "time": "2026-10-01T00:00:00Z",
                "fieldsV1": {"f:metadata": {"f:labels": {f"f:{evil}": {}, "f:rev": {}}}},
            }
        ],
    }
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "name": "web-1", "namespace": "default"},
        "reason": "FailedScheduling",
        "message": evil,
        "type": "Warning",
        "lastTimestamp": "2026-10-01T00:00:00Z",
    }
    condition: Any = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": evil}
    pods = [
        pod_json("web-1", labels=labels, owner=f"Deployment/{evil}", metadata=metadata, **spec),
        pod_json(f"p{evil}", labels=labels, node=f"n{evil}", namespace=f"ns{evil}", **spec),
        pod_json(f"q{evil}", labels=labels, node="a1", schedulerName=evil, **spec),
    ]
    pods[0]["status"]["conditions"] = [condition]
    nodes = [
        node_json("a1", labels={evil: evil}, taints=[{"key": evil, "value": evil, "effect": "NoSchedule"}]),
        node_json(f"n{evil}", zone=evil, labels={evil: f"{evil}2"}),
    ]
    workload = deployment(evil, labels=labels, constraints=constraints)
    workload["spec"][evil] = {"template": {"spec": {"topologySpreadConstraints": constraints}}}
    return [*pods, *nodes, workload, event]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_escapes_in_objects_do_not_reach_the_terminal(command: tuple[str, ...]) -> None:
    outcome = clean(run(text_of(*cluster(EVIL)), *command))
    assert outcome.exit_code in (0, 1), outcome.stderr
    assert outcome.stdout


@pytest.mark.parametrize("form", [form for form in formats.names("check") if form != "junit"])
def test_escapes_in_the_name_of_a_cluster_do_not_reach_the_terminal(form: str) -> None:
    outcome = clean(run(text_of(*cluster("x")), "check", "--cluster-name", EVIL, "-o", form))
    assert outcome.exit_code in (0, 1), outcome.stderr
    assert outcome.stdout


@pytest.mark.parametrize("command", EXPLANATIONS, ids=" ".join)
def test_escapes_do_not_reach_the_terminal_through_explain(command: tuple[str, ...]) -> None:
    body = text_of(*cluster(EVIL))
    assert clean(run(body, *command, "pod/web-1")).exit_code == 0
    assert clean(run(body, *command, f"deploy/{EVIL}")).exit_code in (0, 2)
    assert clean(run(body, *command, f"pod/no{EVIL}")).exit_code == 2


def test_escapes_in_errors_do_not_reach_the_terminal() -> None:
    bad = {**pod_json(f"p{EVIL}", namespace=EVIL), "spec": {"nodeSelector": {EVIL: 1}}}
    kind = {"apiVersion": EVIL, "kind": f"{EVIL}List", "items": EVIL}
    for command in ("check", "merge", "unmerge"):
        assert clean(run(text_of(bad, kind), command)).exit_code == 2
        assert clean(run(f'a: 1\n"{EVIL}": [', command)).exit_code == 2
    for option in ("--server-version", "--feature-gates", "--select", "-n", "--to", "--fail-on", f"--x{EVIL}"):
        clean(run(text_of(pod_json()), "check", option, EVIL))


def test_escapes_in_file_names_do_not_reach_the_terminal(tmp_path: Path) -> None:
    for index, evil in enumerate(ESCAPES[:-1]):
        directory = tmp_path / str(index)
        directory.mkdir()
        path = directory / f"{evil.replace('/', '')}.yaml"
        path.write_text("a: [")
        for name in (str(path), f"{path}.gone"):
            outcome = clean(CliRunner().invoke(cli, ["check", "-f", name]))
            assert outcome.exit_code == 2
            assert len(outcome.stderr.splitlines()) == 1


def test_programs_read_the_text_unchanged() -> None:
    """JSON and YAML write the text of the objects with escapes of their own."""
    evil = ESCAPES[0] + ESCAPES[5] + ESCAPES[7] + ZONE
    invocation = run(text_of(pod_json(evil, constraints=[constraint()])), "merge", "-o", "json")
    assert "\\u202e" in invocation.stdout
    assert "\\udb40\\udc41" in invocation.stdout
    assert json.loads(invocation.stdout)["items"][0]["name"] == evil
