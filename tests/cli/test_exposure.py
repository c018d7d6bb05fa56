"""What is lost with a node or a zone: the option --by, each format, and what explain says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kubectl_spread.cli import cli
from tests.builders import Json, node_json, pod_json

ON_ONE_NODE = [
    *(pod_json(f"web-{number}", node="a1", owner="Deployment/web") for number in range(3)),
    node_json("a1", labels={"topology.kubernetes.io/region": "east", "rack": "r1"}),
    node_json("b1", labels={"topology.kubernetes.io/region": "west", "rack": "r2"}),
]
"""Three pods on one of two nodes."""
MANIFEST = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web}]}
"""
FORMATS = [
    "github",
    "html",
    "json",
    "junit",
    "markdown",
    "openmetrics",
    "sarif",
    "table",
    "wide",
    "yaml",
]


def run(*arguments: str, objects: list[Json]) -> Result:
    stdin = "\n".join(map(json.dumps, objects))
    return CliRunner().invoke(cli, [*arguments, "-f", "-", "--server-version", "1.37"], input=stdin)


def codes(*arguments: str, objects: list[Json] | None = None) -> list[str]:
    outcome = run("check", "-o", "json", *arguments, objects=objects or ON_ONE_NODE)
    return [finding["code"] for finding in json.loads(outcome.stdout)["findings"]]


def test_keys_of_the_user_replace_the_node_and_the_zone() -> None:
    assert codes() == ["SPR501"]
    assert codes("--by", "zone") == ["SPR502"]
    assert codes("--by", "hostname") == ["SPR501"]
    assert codes("--by", "node") == ["SPR501"]
    assert codes("--by", "region") == ["SPR505"]
    assert codes("--by", "zone,hostname") == ["SPR501"]
    assert codes("--by", "region", "--by", "rack") == ["SPR505"]


def test_the_smallest_domain_is_reported() -> None:
    third = node_json("a2", labels={"topology.kubernetes.io/region": "east", "rack": "r3"})
    outcome = run("check", "--by", "zone,rack", objects=[*ON_ONE_NODE, third])
    assert "All 3 running pods are in domain rack=r1, so its loss stops them all. Node a2 in domain rack=r3" in (
        " ".join(outcome.stdout.split())
    )
    assert "SPR502" not in outcome.stdout


def test_metrics_have_the_share_of_the_node() -> None:
    metrics = run("check", "-o", "openmetrics", objects=ON_ONE_NODE).stdout.splitlines()
    web = 'namespace="default",workload="web",workload_type="deployment"'
    assert f"kube_spread_workload_pods{{{web}}} 3" in metrics
    assert f'kube_spread_workload_largest_domain_ratio{{{web},topology_key="kubernetes.io/hostname"}} 1.0' in metrics


@pytest.mark.parametrize("key", ["a b", "x/y/z", "-"])
def test_a_key_that_no_label_can_have_is_refused(key: str) -> None:
    outcome = run("check", "--by", key, objects=ON_ONE_NODE)
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert f'--by: "{key}" is not the key of a node label' in outcome.stderr


@pytest.mark.parametrize("form", FORMATS)
def test_each_format_has_the_finding(form: str) -> None:
    outcome = run("check", "-o", form, objects=ON_ONE_NODE)
    assert outcome.exit_code == 0, outcome.stderr
    assert "SPR501" in outcome.stdout


@pytest.mark.parametrize("form", ["github", "junit", "sarif"])
def test_the_template_in_a_manifest_has_its_place(form: str, tmp_path: Path) -> None:
    path = tmp_path / "web.yaml"
    path.write_text(MANIFEST, encoding="utf-8")
    outcome = CliRunner().invoke(cli, ["check", "-f", str(path), "-o", form, "--severity", "info"])
    assert "SPR504" in outcome.stdout
    assert "web.yaml" in outcome.stdout
    assert "10" in outcome.stdout


def test_explain_has_the_finding() -> None:
    text = run("explain", "deploy/web", objects=ON_ONE_NODE).stdout
    assert text.startswith("deploy/web in default: 1 warning.\n\nwarning SPR501 all-on-one-node, 3 pods\n")


def test_explain_says_once_that_there_are_no_constraints() -> None:
    spread = [
        *(pod_json(f"web-{node}", node=node, owner="Deployment/web") for node in ("a1", "b1")),
        *ON_ONE_NODE[3:],
    ]
    text = run("explain", "deploy/web", objects=spread).stdout
    assert text.startswith("deploy/web in default: no errors or warnings, 1 note.\n")
    assert "without spread constraints" not in text
    assert text.count("topologySpreadConstraints nor podAntiAffinity") == 1
    assert text.count("default constraints") == 1


def test_pods_on_one_node_name_the_zone_only_where_there_are_several() -> None:
    everything_else = [manifest for manifest in ON_ONE_NODE if manifest["metadata"]["name"] != "b1"]
    text = " ".join(run("check", objects=[*everything_else, node_json("a2")]).stdout.split())
    assert "on node a1, so the loss of this node stops them all. Node a2 could take one." in text
    assert "on node a1 in zone a, so the loss of this node or zone stops them all." in " ".join(
        run("check", objects=ON_ONE_NODE).stdout.split()
    )


def test_the_fix_for_one_node_covers_a_zone_that_the_template_names() -> None:
    pinned = [
        pod_json(f"web-{number}", node="a1", owner="Deployment/web", nodeSelector={"topology.kubernetes.io/zone": "a"})
        for number in range(2)
    ]
    nodes = [node_json("a1"), node_json("a2"), node_json("b1")]
    text = " ".join(run("check", objects=[*pinned, *nodes]).stdout.split())
    assert "on node a1 in zone a, so the loss of this node or zone stops them all. Node a2 in zone a" not in text
    assert "Node a2 could take one." in text
    assert "For the zone, let nodeSelector or node affinity in the pod template match another zone" in text
