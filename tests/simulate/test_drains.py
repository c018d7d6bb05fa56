"""What ``kubectl drain`` evicts and leaves, where it would wait, and what would let it continue."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.builders import Json, selector
from tests.simulate.clusters import after, budget, deployment, nodes, pod, simulated, template, zone_constraint

NEVER = "It never allows an eviction, because all of its pods have to be ready."


def messages(report: Any, severity: str = "error") -> list[str]:
    return [each["message"] for each in report["findings"] if each["severity"] == severity]


def waits(node: str, refused: str, budget_name: str = "web") -> str:
    """Return the sentence about a node at which kubectl waits."""
    where = f"Without --timeout, kubectl drain waits at node{'s' if ' and ' in node else ''} {node}"
    return f"{where}: budget {budget_name} in namespace shop refuses to evict {refused}."


def not_ready(web: list[Json], number: int) -> None:
    """Let a pod of a Deployment be not ready."""
    web[2 + number]["status"]["conditions"] = [{"type": "Ready", "status": "False"}]


def test_a_drain_goes_on_past_a_budget() -> None:
    """As ``kubectl drain --timeout``: the next node follows, and then another one of the same budget."""
    web, other = deployment("web", ["a1", "b1"]), deployment("other", ["a1", "b1", "b1"])
    cluster = [*nodes("a1", "b1", "c1"), *web, *other, budget("web", minAvailable=2)]
    report = simulated(cluster, "--drain", "a1,b1")
    assert report["refusedEvictions"] == [
        {"node": "a1", "namespace": "shop", "pod": "web-5d9c-0", "budget": "web"},
        {"node": "b1", "namespace": "shop", "pod": "web-5d9c-1", "budget": "web"},
    ]
    assert report["summary"]["refused"] == {"min": 2, "max": 2}
    (finding,) = report["findings"]
    assert finding["message"] == f"{waits('a1 and b1', 'web-5d9c-0 and web-5d9c-1')} {NEVER}"
    assert finding["commands"] == [
        """kubectl patch pdb web -n shop --type=merge -p '{"spec":{"maxUnavailable":1,"minAvailable":null}}'"""
    ]
    lost = {each["workload"]["name"]: each["lost"] for each in report["workloads"]}
    assert lost == {"other": 3, "web": 0}


def test_another_budget_is_no_fix_where_the_pods_would_wait() -> None:
    spread: dict[str, Any] = {"topologySpreadConstraints": [zone_constraint("web")]}
    cluster = [*nodes("a1", "b1"), *deployment("web", ["a1", "b1"], **spread), budget("web", maxUnavailable=0)]
    (finding,) = simulated(cluster, "--drain", "a1")["findings"]
    assert "fix" not in finding


def test_the_pods_that_would_have_to_be_ready_are_named() -> None:
    web = deployment("web", ["a1", "b1", "b1"])
    not_ready(web, 1)
    report = simulated([*nodes("a1", "b1"), *web, budget("web", minAvailable=2)], "--drain", "a1")
    numbers = "Of 3 pods 2 have to be ready, and 2 are."
    assert messages(report) == [
        f"{waits('a1', 'web-5d9c-0')} {numbers} It continues when 1 more is (web-5d9c-1 is not ready)."
    ]


def test_a_budget_waits_for_a_pod_that_finds_no_node() -> None:
    spread: dict[str, Any] = {"topologySpreadConstraints": [zone_constraint("web")]}
    web = deployment("web", ["a1", "a1", "a1", "b1"], **spread)
    report = simulated([*nodes("a1", "b1"), *web, budget("web", maxUnavailable=1)], "--drain", "a1")
    assert after(report, "web") == ("3", "1")
    (message,) = [each for each in messages(report) if "kubectl" in each]
    assert re.search(r"Of 4 pods 3 .* It continues when 1 more is \(web-5d9c-new-\d has no node\)\.$", message)


def test_pods_with_several_budgets_are_left_at_once() -> None:
    web = deployment("web", ["a1", "b1"])
    cluster = [*nodes("a1", "b1"), *web, budget("web", minAvailable=0), budget("web-2", minAvailable=0)]
    cluster[-1]["spec"]["selector"] = selector({"app": "web"})
    (message,) = messages(simulated(cluster, "--drain", "a1"))
    assert message == (
        "kubectl drain cannot evict web-5d9c-0 from node a1, and continues with an error: the API server refuses the "
        "eviction of a pod that several budgets select (web and web-2 in namespace shop). It continues when only one "
        "of them does."
    )


def test_a_budget_that_finds_no_controller_says_so() -> None:
    bare = [pod(f"b{number}", "a1", template("b")) for number in range(2)]
    report = simulated([*nodes("a1", "b1"), *bare, budget("b", maxUnavailable=1)], "--drain", "a1")
    (message,) = messages(report)
    assert message.startswith(f"{waits('a1', 'b0 and b1', 'b')} It expects no pods, because it finds no controller")


@pytest.mark.parametrize("budgets", [1, 2])
def test_no_budget_protects_a_pod_that_has_not_started(budgets: int) -> None:
    """A bound pod whose image is being pulled is still in the phase Pending."""
    web = deployment("web", ["a1"])
    web[-1]["status"] = {"phase": "Pending", "conditions": [{"type": "Ready", "status": "False"}]}
    each = [budget("web", maxUnavailable=0), budget("web-2", maxUnavailable=0)][:budgets]
    each[-1]["spec"]["selector"] = selector({"app": "web"})
    report = simulated([*nodes("a1", "b1"), *web, *each], "--drain", "a1")
    assert (report["refusedEvictions"], report["workloads"][0]["lost"]) == ([], 1)


def test_what_kubectl_evicts_only_with_a_flag_is_named() -> None:
    local: dict[str, Any] = {"volumes": [{"name": "cache", "emptyDir": {}}, {"name": "c", "configMap": {"name": "c"}}]}
    cluster = [*nodes("a1", "b1"), *deployment("web", ["a1", "b1"], **local), pod("bare", "a1", template("bare"))]
    report = simulated(cluster, "--drain", "a1")
    assert messages(report, "info") == [
        "kubectl drain needs --force: po/bare has no controller, so nothing creates it again.",
        "kubectl drain needs --delete-emptydir-data: po/web-5d9c-0 has an emptyDir volume, whose data is lost.",
    ]


def test_a_drain_waits_for_the_pods_of_a_node_that_does_not_answer() -> None:
    cluster = [*nodes("a1", "a2", "b1"), *deployment("web", ["a1", "a1", "b1"])]
    report = simulated(cluster, "--lose", "a1", "--drain", "a1,a2")
    where = "Without --timeout, kubectl drain waits at node a1"
    assert messages(report) == [f"{where}: 2 pods stay Terminating until the node answers or is deleted."]
    assert messages(simulated(cluster, "--lose", "a1", "--delete", "a1", "--drain", "a2")) == []


def test_the_pods_of_a_node_are_those_when_its_turn_comes() -> None:
    """A pod that tolerates the cordon of the second node is evicted from it as well."""
    tolerates: dict[str, Any] = {"tolerations": [{"operator": "Exists"}]}
    web = deployment("web", ["a1"], nodeSelector={"kubernetes.io/os": "linux"}, **tolerates)
    cluster = [*nodes("a1", "a2"), *web]
    for node in cluster[:2]:
        node["metadata"]["labels"]["kubernetes.io/os"] = "linux"
    report = simulated(cluster, "--drain", "a1,a2", "--runs", "20")
    assert after(report, "web") == ("1", "0")
    assert report["workloads"][0]["lost"] == 2
