"""``domains`` on a real cluster: the minimum of budgets is that of the real disruption controller."""

from __future__ import annotations

import random
from collections import Counter
from typing import Final

import pytest

from tests import contract
from tests.builders import ZONE, Json
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import pod, workload
from tests.e2e.spread import Plugin, Spread
from tests.e2e.users import allow
from tests.e2e.workloads import pods

pytestmark = pytest.mark.e2e

SEEDS: Final = range(4)
APPS: Final = ("web", "db", "old", "plain")
ZONES: Final = ("a", "b", "c")


def budget(name: str, namespace: str, selects: Json, field: str, amount: int | str) -> Json:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": selects, field: amount},
    }


def objects(namespace: str, generator: random.Random) -> list[Json]:
    """Return workloads of several kinds, and random budgets of one or all of them; some pods stay pending."""
    replicas = {app: generator.randint(1, 7) for app in APPS}
    nowhere = {"example.com/none": ""}
    labels = {"app": "old", "all": "yes"}
    template = pod("old", labels=labels)
    old = {"replicas": replicas["old"], "selector": {"app": "old"}, "template": template}
    return [
        workload(
            "Deployment", "web", replicas=replicas["web"], labels={"app": "web", "all": "yes"}, namespace=namespace
        ),
        workload("StatefulSet", "db", replicas=replicas["db"], labels={"app": "db", "all": "yes"}, namespace=namespace),
        workload("ReplicaSet", "plain", replicas=replicas["plain"], labels={"app": "plain"}, namespace=namespace),
        workload(
            "Deployment",
            "wait",
            replicas=2,
            labels={"app": "wait", "all": "yes"},
            namespace=namespace,
            nodeSelector=nowhere,
        ),
        {
            "apiVersion": "v1",
            "kind": "ReplicationController",
            "metadata": {"name": "old", "namespace": namespace},
            "spec": {**old, "template": {key: template[key] for key in ("metadata", "spec")}},
        },
        pod("alone", labels={"app": "alone", "all": "yes"}, namespace=namespace),
        *random_budgets(namespace, generator),
    ]


def random_budgets(namespace: str, generator: random.Random) -> list[Json]:
    selectors: dict[str, Json] = {
        **{app: {"matchLabels": {"app": app}} for app in APPS},
        "all": {"matchExpressions": [{"key": "all", "operator": "Exists"}]},
        "some": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "old"]}]},
        "everything": {},
    }
    budgets = []
    for name, selects in selectors.items():
        for serial in range(2):
            field = generator.choice(["minAvailable", "maxUnavailable"])
            amounts: list[int | str] = [generator.randint(0, 9), f"{generator.randint(0, 100)}%"]
            budgets.append(budget(f"{name}-{serial}", namespace, selects, field, generator.choice(amounts)))
    return budgets


def written(cluster: ControlPlane, namespace: str) -> dict[str, int]:
    """Return the minimum of each budget as the controller has written it."""
    items = cluster.api.get(f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets")["items"]
    statuses = {item["metadata"]["name"]: item.get("status", {}) for item in items}
    return {name: status["desiredHealthy"] for name, status in statuses.items() if status.get("observedGeneration")}


def stable(cluster: ControlPlane, namespace: str) -> bool:
    """Tell whether each pod has a node, except those that find none."""
    listed = pods(cluster, namespace)
    waiting = [each for each in listed if "nodeName" not in each["spec"]]
    return len(listed) > len(APPS) and {each["metadata"]["labels"]["app"] for each in waiting} == {"wait"}


def expected_pods(manifests: list[Json]) -> int:
    return 1 + sum(int(manifest["spec"].get("replicas", 0)) for manifest in manifests)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_minimum_is_what_the_controller_writes(
    seed: int, control_plane: ControlPlane, namespace: str, spread: Spread
) -> None:
    """Each budget of pods in a zone is compared, whether it has a number or a percentage of one or of five owners."""
    manifests = objects(namespace, random.Random(seed))
    control_plane.apply(manifests)
    number = expected_pods(manifests)
    control_plane.wait_for(lambda: len(pods(control_plane, namespace)) == number, what="all pods exist")
    control_plane.wait_for(lambda: stable(control_plane, namespace), what="all pods have a node")
    compared: dict[str, int] = {}
    for zone in ZONES:
        answer = spread("domains", "zone", zone, "-n", namespace, "-o", "json")
        assert (answer.status, answer.stderr) == (0, "")
        for lost in contract.loaded(answer.stdout)["workloads"]:
            for each in lost["budgets"]:
                assert each["below"] is (each["left"] < each["minimum"])
                compared[each["name"]] = each["minimum"]
    assert {"web-0", "web-1", "all-0", "all-1", "everything-0", "everything-1"} <= compared.keys()
    # The controller may not have seen the last pods yet.
    agrees = f"the controller writes {compared}"
    control_plane.wait_for(lambda: compared.items() <= written(control_plane, namespace).items(), what=agrees)


def test_the_counts_are_those_of_the_cluster(control_plane: ControlPlane, namespace: str, spread: Spread) -> None:
    control_plane.apply(objects(namespace, random.Random(9)))
    control_plane.wait_for(lambda: stable(control_plane, namespace), what="all pods have a node")
    listed = pods(control_plane, namespace)
    zones = {
        node["metadata"]["name"]: node["metadata"]["labels"].get(ZONE)
        for node in control_plane.api.get("/api/v1/nodes")["items"]
    }
    expected = Counter(zones[each["spec"]["nodeName"]] for each in listed if "nodeName" in each["spec"])
    answer = spread("domains", "-n", namespace, "-o", "json")
    report = contract.loaded(answer.stdout)
    assert {row["value"]: row["pods"] for row in report["domains"] if row["pods"]} == expected
    assert report["totals"]["pending"] == len(listed) - expected.total()
    assert not any("requests" in row for row in report["domains"])
    everywhere = contract.loaded(spread("domains", "-A", "-o", "json").stdout)
    nodes = Counter(zones.values())
    assert {row["value"]: row["nodes"] for row in everywhere["domains"]} == nodes
    assert [row["requests"]["cpu"]["allocatable"] for row in everywhere["domains"]] == [
        64000 * nodes[row["value"]] for row in everywhere["domains"]
    ]


def test_without_the_permission_to_list_budgets_their_minimum_is_unknown(
    control_plane: ControlPlane, namespace: str, plugin: Plugin
) -> None:
    control_plane.apply(objects(namespace, random.Random(5)))
    control_plane.wait_for(lambda: stable(control_plane, namespace), what="all pods have a node")
    user = f"without-budgets-{namespace}"
    lists = [("", ["pods", "nodes", "replicationcontrollers"]), ("apps", ["*"]), ("batch", ["*"])]
    allow(
        control_plane,
        user,
        [{"apiGroups": [group], "resources": resources, "verbs": ["list"]} for group, resources in lists],
    )
    spread = plugin.on(control_plane, control_plane.kubeconfig_for(user))
    answer = spread("domains", "zone", "a", "-n", namespace)
    assert answer.status == 0
    assert 'cannot list resource "poddisruptionbudgets" in API group "policy"' in answer.error
    assert answer.error.endswith(": the minimum of the budgets is unknown")
    assert all(line.endswith("unknown") for line in answer.stdout.splitlines() if "deploy/" in line)
    assert spread("domains", "-n", namespace).stderr == ""


def test_without_the_permission_to_list_nodes_there_is_no_answer(
    control_plane: ControlPlane, namespace: str, plugin: Plugin
) -> None:
    user = f"without-nodes-{namespace}"
    allow(control_plane, user, [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}])
    answer = plugin.on(control_plane, control_plane.kubeconfig_for(user))("domains", "-n", namespace)
    assert (answer.status, answer.stdout) == (2, "")
    assert answer.error.endswith(": only nodes tell the domains")
