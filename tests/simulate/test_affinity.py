"""Pod affinity in simulations: new pods go to the pods that theirs ask for, or wait for them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import HOSTNAME, ZONE, Json, selector
from tests.simulate.clusters import after, deployment, nodes, reasons, simulated

THREE = nodes("a1", "b1", "c1")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def affinity(name: str, kind: str) -> Json:
    """Return affinity for the zone of the pods of a workload."""
    term = {"topologyKey": ZONE, "labelSelector": selector({"app": name})}
    return {"podAffinity": {kind: [term if kind == REQUIRED else {"weight": 100, "podAffinityTerm": term}]}}


def zones(report: Any, name: str) -> dict[str, int]:
    """Return the running pods of a workload in each zone after the events, which are the same in all runs."""
    (found,) = [each for each in report["workloads"] if each["workload"]["name"] == name]
    assert all(domain["pods"]["min"] == domain["pods"]["max"] for domain in found["domains"])
    return {domain["value"]: domain["pods"]["min"] for domain in found["domains"]}


@pytest.mark.parametrize("kind", [REQUIRED, PREFERRED])
def test_new_pods_go_to_the_pods_that_their_affinity_selects(kind: str) -> None:
    cluster = [*THREE, *deployment("db", ["b1"]), *deployment("web", ["b1"], affinity=affinity("db", kind))]
    report = simulated(cluster, "--scale", "deploy/web=3")
    assert after(report, "web") == ("3", "0")
    assert zones(report, "web") == {"b": 3}


def test_pods_wait_for_the_pods_that_their_required_affinity_selects() -> None:
    held = deployment("db", ["b1"], nodeSelector={HOSTNAME: "b1"})
    cluster = [*THREE, *held, *deployment("web", ["b1"], affinity=affinity("db", REQUIRED))]
    report = simulated(cluster, "--drain", "b1")
    assert after(report, "db") == after(report, "web") == ("0", "1")
    assert reasons(report, "web") == [
        "2 nodes: its required affinity on zone finds no pod that it selects there; 1 node: cordoned"
    ]


def test_the_first_pod_of_a_group_needs_no_other() -> None:
    report = simulated([*THREE, *deployment("web", ["b1"], affinity=affinity("web", REQUIRED))], "--drain", "b1")
    assert after(report, "web") == ("1", "0")


def test_a_pod_with_scheduling_gates_waits_for_whoever_set_them() -> None:
    gated = deployment("web", ["a1", ""], schedulingGates=[{"name": "example.com/quota"}])
    report = simulated([*THREE, *gated], "--drain", "b1")
    assert after(report, "web") == ("1", "1")
    assert reasons(report, "web") == ["it has scheduling gates: example.com/quota"]
