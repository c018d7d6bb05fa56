"""The report of a cluster is the same from protobuf and from JSON and YAML that kubectl captured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders import constraint
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import deployment, workload
from tests.e2e.spread import Answer, Plugin, Spread
from tests.e2e.workloads import label, pod_names, roll_out

pytestmark = pytest.mark.e2e

PARTS = ("constraints", "groups", "pods", "findings")
KINDS = "pods,nodes,deployments,replicasets,statefulsets,daemonsets,jobs,poddisruptionbudgets"
EVALUATED_AS = (
    "--server-version=1.37",
    "--feature-gates=MatchLabelKeysInPodTopologySpreadSelectorMerge=true",
)


@pytest.fixture(scope="module")
def live(varied_cluster: ControlPlane, plugin: Plugin) -> Spread:
    """Return ``kubectl spread`` on the varied cluster."""
    return plugin.on(varied_cluster)


@pytest.fixture(scope="module", params=["json", "yaml"])
def captured(
    request: pytest.FixtureRequest, varied_cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return a file with the whole cluster, as the real kubectl prints it."""
    form = request.param
    path = tmp_path_factory.mktemp("captured") / f"cluster.{form}"
    listing = varied_cluster.kubectl("get", KINDS, "-A", "-o", form, "--show-managed-fields")
    path.write_text(listing.stdout, encoding="utf-8")
    return path


def parts(answer: Answer) -> dict[str, str]:
    """Return the parts that must agree, as text: the order of everything counts."""
    assert "Traceback" not in answer.stderr
    return {part: json.dumps(answer.report[part], indent=2) for part in PARTS}


def test_a_captured_cluster_is_reported_as_the_live_one(live: Spread, captured: Path) -> None:
    """Rows, groups, pods, findings and the exit status are equal."""
    from_cluster = live("check", "-A", "-o", "json")
    from_file = live("check", "-f", str(captured), *EVALUATED_AS, "-o", "json")
    assert len(from_cluster.report["groups"]) >= 40
    assert len(from_cluster.report["pods"]) >= 10
    assert parts(from_file) == parts(from_cluster)
    assert from_file.status == from_cluster.status


def test_standard_input_is_a_file_too(live: Spread, captured: Path) -> None:
    """The command is ``kubectl get … | kubectl spread check -f -``."""
    text = captured.read_text(encoding="utf-8")
    piped = live("check", "-f", "-", *EVALUATED_AS, "-o", "json", input=text)
    from_file = live("check", "-f", str(captured), *EVALUATED_AS, "-o", "json")
    assert piped.stdout == from_file.stdout


def test_pages_of_any_size_give_the_same_report(live: Spread) -> None:
    """A page has seven pods, or there is one page."""
    small, whole = (live("check", "-A", "-o", "json", f"--chunk-size={size}") for size in (7, 0))
    assert parts(small) == parts(whole)


def test_yaml_has_the_report_of_json(live: Spread) -> None:
    """The YAML parser of kubectl reads the same report from it."""
    from ruamel.yaml import YAML  # noqa: PLC0415 - this test alone reads YAML

    report = YAML(typ="safe", pure=True).load(live("check", "-A", "-o", "yaml").stdout)
    assert {part: report[part] for part in PARTS} == {
        part: live("check", "-A", "-o", "json").report[part] for part in PARTS
    }


def test_a_namespace_of_a_captured_cluster_is_reported_as_the_live_one(live: Spread, captured: Path) -> None:
    """The flag ``-n`` selects objects of files like those of a cluster."""
    from_cluster = live("check", "-n", "lab", "-o", "json")
    from_file = live("check", "-f", str(captured), "-n", "lab", *EVALUATED_AS, "-o", "json")
    assert from_cluster.report["constraints"]
    assert parts(from_file) == parts(from_cluster)


def test_a_template_that_changed_since_proves_nothing(
    control_plane: ControlPlane, namespace: str, spread: Spread, tmp_path: Path
) -> None:
    """The Deployment got the label after it had created the pods' ReplicaSet without it."""
    web = deployment(constraints=[constraint(match=["rev"])], namespace=namespace)
    late, *_ = roll_out(control_plane, web)
    control_plane.kubectl("rollout", "pause", "deploy/web", "-n", namespace)
    control_plane.apply(
        deployment(constraints=[constraint(match=["rev"])], labels={"app": "web", "rev": "r1"}, namespace=namespace)
    )
    label(control_plane, namespace, late, "rev=r1")
    assert spread.report("-n", namespace).verdicts("Deployment/web") == {"absent-key": 2, "unmerged": 1}
    path = tmp_path / "web.json"
    listing = control_plane.kubectl("get", KINDS, "-n", namespace, "-o", "json", "--show-managed-fields")
    path.write_text(listing.stdout, encoding="utf-8")
    from_file = spread("check", "-f", str(path), *EVALUATED_AS, "-o", "json")
    assert parts(from_file) == parts(spread("check", "-n", namespace, "-o", "json"))


@pytest.mark.parametrize(
    "kind",
    [
        "Deployment",
        "StatefulSet",
    ],
)
def test_a_finding_silenced_on_the_workload(
    control_plane: ControlPlane, namespace: str, spread: Spread, tmp_path: Path, kind: str
) -> None:
    """The annotation on the workload has this effect in protobuf and in JSON."""
    web = workload(kind, "web", [constraint(key="example.com/rack")], replicas=1, namespace=namespace)
    web["metadata"]["annotations"] = {"kubectl-spread/ignore": "SPR303,SPR218"}
    control_plane.apply(web)
    control_plane.wait_for(lambda: pod_names(control_plane, namespace), what="the pod is there")
    path = tmp_path / "web.json"
    path.write_text(control_plane.kubectl("get", KINDS, "-n", namespace, "-o", "json").stdout, encoding="utf-8")
    from_file = spread.report("-f", str(path), *EVALUATED_AS)
    assert (from_file["findings"], from_file["summary"]["silenced"]) == ([], 2)
    live = spread.report("-n", namespace)
    assert (live["findings"], live["summary"]["silenced"]) == ([], 2)
