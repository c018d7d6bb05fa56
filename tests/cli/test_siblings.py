"""One workload in each zone, as vendors advise: a note that names its siblings, and never "remove the nodeSelector"."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from kubectl_spread.cli import cli
from kubectl_spread.kube.api.labels import ZONE
from tests import contract
from tests.builders import Json, node_json, pod_json

NODES = [node_json(f"{zone}{number}", zone=zone) for zone in ("us-1a", "us-1b", "us-1c") for number in (1, 2)]


def workload(
    name: str, zone: str, labels: dict[str, str], *, image: str = "ingester:2.1", kind: str = "StatefulSet"
) -> list[Json]:
    """Return two running pods of a workload that only one zone allows."""
    pods = [
        pod_json(f"{name}-{number}", node=f"{zone}{number}", owner=f"{kind}/{name}", labels=labels) for number in (1, 2)
    ]
    for pod in pods:
        pod["spec"] |= {"nodeSelector": {ZONE: zone}, "containers": [{"name": "app", "image": image}]}
    return pods


def budget(**labels: str) -> Json:
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": labels}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "all"}, "spec": spec}


def check(*objects: Json) -> Any:
    stdin = "\n".join(map(json.dumps, [*NODES, *objects]))
    outcome = CliRunner().invoke(cli, ["check", "-f", "-", "-o", "json", "--severity", "info"], input=stdin)
    findings = contract.loaded(outcome.stdout)["findings"]
    return {
        finding["object"]["name"]: (finding["severity"], finding["values"]["siblings"], finding["fix"])
        for finding in findings
        if finding["code"] == "SPR502"
    }


def severities(*objects: Json) -> dict[str, str]:
    return {name: severity for name, (severity, _, _) in check(*objects).items()}


ROLLOUT_GROUP = {"app": "mimir", "rollout-group": "ingester"}
SETS = {
    "rollout groups": [
        workload(
            f"ingester-zone-{zone}", real, {**ROLLOUT_GROUP, "zone": f"zone-{zone}", "name": f"ingester-zone-{zone}"}
        )
        for zone, real in (("a", "us-1c"), ("b", "us-1a"))
    ],
    "the zone in the name": [
        workload(f"web-{zone}", zone, {"app": "web", "pool": zone}, kind="Deployment") for zone in ("us-1a", "us-1b")
    ],
    "the end of the zone in the name": [workload(f"es-{zone}-data", f"us-1{zone}", {"es": "x"}) for zone in "ab"],
    "an upgrade that is half done": [
        workload("es-us-1a", "us-1a", {"es": "x"}, image="host:5000/es:1"),
        workload("es-us-1b", "us-1b", {"es": "x"}, image="host:5000/es:2@sha256:0"),
    ],
}


@pytest.mark.parametrize("pods", SETS.values(), ids=list(SETS))
def test_workloads_equal_but_for_the_zone_are_siblings(pods: list[list[Json]]) -> None:
    first, second = pods
    findings = check(*first, *second)
    assert len(findings) == 2
    for severity, siblings, fix in findings.values():
        assert severity == "info"
        assert "runs in zone us-1" in siblings
        assert fix == "Nothing to do if these workloads stand in for each other: they run in several zones."
    # Without the sibling the loss of the zone stops everything.
    assert set(severities(*first).values()) == {"warning"}


def test_a_budget_over_all_joins_workloads_of_one_image() -> None:
    masters, data = workload("masters", "us-1a", {"cluster": "q"}), workload("data", "us-1b", {"cluster": "q"})
    assert severities(*masters, *data) == {"masters": "warning", "data": "warning"}
    assert severities(*masters, *data, budget(cluster="q")) == {"masters": "info", "data": "info"}
    other = workload("web", "us-1c", {"cluster": "q"}, image="web")
    assert severities(*masters, *other, budget(cluster="q")) == {"masters": "warning", "web": "warning"}


UNRELATED = {
    "other images": [workload(f"db-{at}", f"us-1{at}", {"app": "db"}, image=f"image-{at}") for at in "ab"],
    "no label in common": [workload(f"db-{at}", f"us-1{at}", {"app": f"db-{at}"}) for at in "ab"],
    "a component each": [
        workload(name, f"us-1{at}", {"part-of": "shop", "component": name})
        for name, at in (("orders", "a"), ("users", "b"))
    ],
    "the same zone": [workload(f"db-zone-{at}", "us-1a", {"app": "db"}) for at in "ab"],
    "other kinds": [
        workload("db-us-1a", "us-1a", {"app": "db"}),
        workload("db-us-1b", "us-1b", {"app": "db"}, kind="Deployment"),
    ],
}


@pytest.mark.parametrize("pods", UNRELATED.values(), ids=list(UNRELATED))
def test_other_workloads_are_no_siblings(pods: list[list[Json]]) -> None:
    first, second = pods
    assert set(severities(*first, *second).values()) == {"warning"}
    every = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "all"},
        "spec": {"selector": {}},
    }
    assert set(severities(*first, *second, every).values()) == {"warning"}


def test_a_workload_that_could_run_elsewhere_stays_a_warning() -> None:
    """Nothing keeps its pods in the zone, so the siblings do not explain it."""
    first, second = SETS["the zone in the name"]
    free = [{**pod, "spec": {**pod["spec"], "nodeSelector": {}}} for pod in first]
    assert severities(*free, *second) == {"web-us-1a": "warning", "web-us-1b": "info"}


def test_siblings_may_have_one_node_each() -> None:
    nodes = [node_json(f"n{zone}", zone=zone) for zone in ("us-1a", "us-1b")]
    pods = [pod for of_zone in SETS["the zone in the name"] for pod in of_zone]
    together = [{**pod, "spec": {**pod["spec"], "nodeName": f"n{pod['spec']['nodeSelector'][ZONE]}"}} for pod in pods]
    stdin = "\n".join(map(json.dumps, [*nodes, *together]))
    outcome = CliRunner().invoke(cli, ["check", "-f", "-", "-o", "json"], input=stdin)
    findings = [(each["code"], each["severity"]) for each in contract.loaded(outcome.stdout)["findings"]]
    assert findings == [("SPR501", "info"), ("SPR501", "info")]
