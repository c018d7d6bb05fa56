"""A manifest that kube-apiserver would refuse is not simulated; tests/e2e/test_applied.py asks a real one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders import Json
from tests.simulate.applied import REFUSED, WORKLOADS, Refused
from tests.simulate.clusters import command, deployment, nodes, simulated

SIX = nodes("a1", "a2", "b1", "b2", "c1", "c2")


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: f"{case.workload} {case.path} {case.detail[:20]}")
def test_a_refused_manifest_names_file_line_and_field(case: Refused, tmp_path: Path) -> None:
    field, detail = case.expected
    answer = command([*SIX, *WORKLOADS.values()], "--apply", str(_written(case.manifest(), tmp_path)))
    assert (answer.exit_code, answer.stdout) == (2, "")
    (error, *_) = (line for line in answer.stderr.splitlines() if field in line and detail in line)
    assert error.startswith(f"error: {tmp_path}/manifest.json:")
    assert ": the API server would refuse " in error


@pytest.mark.parametrize("name", WORKLOADS)
def test_what_is_stored_may_be_applied(name: str, tmp_path: Path) -> None:
    path = _written(WORKLOADS[name], tmp_path)
    assert simulated([*SIX, *WORKLOADS.values()], "--apply", str(path))["events"][0].endswith("as far as it is read")


def test_all_errors_of_a_file_are_named(tmp_path: Path) -> None:
    """Also those of its other workloads, and those of fields that cannot be read."""
    items = [Refused("web", "spec.replicas", number, "").manifest() for number in (-1, "three")]
    items.append(Refused("db", "spec.selector", {}, "").manifest())
    path = _written({"apiVersion": "v1", "kind": "List", "items": items}, tmp_path)
    answer = command([*SIX, *WORKLOADS.values()], "--apply", str(path))
    assert answer.exit_code == 2
    for text in ("got string", "refuse deploy/web: spec.replicas", "refuse sts/db: spec.selector"):
        assert text in answer.stderr


def test_pods_that_an_old_api_server_refuses_only_later_are_named(tmp_path: Path) -> None:
    """Kubernetes 1.33 does not validate the template of a StatefulSet, and refuses its pods."""
    terms = [{"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]
    manifest = Refused("db", "spec.template.spec.topologySpreadConstraints", terms, "").manifest()
    arguments = ("--apply", str(_written(manifest, tmp_path)), "--server-version")
    cluster = [*SIX, *WORKLOADS.values()]
    for version, what in (("1.33", "the pods of sts/db"), ("1.37", "sts/db")):
        answer = command(cluster, *arguments, version)
        assert (answer.exit_code, f"would refuse {what}: spec." in answer.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--scale", f"deploy/web={'9' * 5000}"), "is not TYPE/NAME=REPLICAS (write deploy/web=12; at most 150,000)"),
        (("--scale", "deploy/web=150001"), "at most 150,000"),
        (("--scale", "deploy/web=\u0663"), "is not TYPE/NAME=REPLICAS"),
        (("--add", f"zone=a:{'9' * 5000}"), "is not KEY=VALUE:NUMBER (write zone=a:3; at most 10,000)"),
        (("--add", "zone=a:10001"), "at most 10,000"),
        (("--add", "zone=a:0"), "is not KEY=VALUE:NUMBER"),
    ],
)
def test_numbers_have_limits(arguments: tuple[str, str], message: str) -> None:
    answer = command([*SIX, *deployment("web", ["a1"])], *arguments)
    assert (answer.exit_code, message in answer.stderr) == (2, True)


def test_a_workload_has_as_many_replicas_as_can_be_simulated(tmp_path: Path) -> None:
    manifest = Refused("web", "spec.replicas", 150_001, "").manifest()
    cluster, path = [*SIX, *WORKLOADS.values()], str(_written(manifest, tmp_path))
    for answer in (command(cluster, "--apply", path), command([*SIX, manifest], "--delete", "a1")):
        assert answer.exit_code == 2
        assert "deploy/web has more than 150,000 replicas" in answer.stderr


def test_no_pod_is_missing_where_less_than_none_are_wanted() -> None:
    """No API server stores such a number, but a file may have it."""
    web = deployment("web", ["a1"])
    web[1]["spec"]["replicas"] = -1
    assert simulated([*SIX, *web], "--delete", "b1")["summary"]["pending"] == {"min": 0, "max": 0}


@pytest.mark.parametrize(
    ("path", "value", "rolls"),
    [
        ("metadata.annotations", {"kubectl.kubernetes.io/restartedAt": "2026-11-01T00:00:00Z"}, False),
        ("spec.restartPolicy", "Always", False),
        ("spec.containers.0.resources.limits.cpu", "1000m", False),
        ("spec.containers.0.image", "app:2", True),
        ("spec.containers.0.resources.limits.cpu", "2", True),
        ("metadata.annotations", {"checksum/config": "8f14e45f"}, True),
        ("spec.initContainers", [{"name": "app", "image": "app"}], True),
        ("spec.nodeSelector", {}, True),
    ],
)
def test_what_changes_a_pod_template(path: str, value: object, *, rolls: bool, tmp_path: Path) -> None:
    changed = Refused("web", f"spec.template.{path}", value, "").manifest()
    cluster = [*SIX, *WORKLOADS.values()]
    (event,) = simulated(cluster, "--apply", str(_written(changed, tmp_path)))["events"]
    assert event.endswith("as far as it is read") is not rolls


def _written(manifest: Json, directory: Path) -> Path:
    path = directory / "manifest.json"
    path.write_text(json.dumps(manifest, indent=2), encoding="utf-8")
    return path
