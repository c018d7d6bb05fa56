"""Whether the nodes that Karpenter makes are those that a simulation makes, with its kwok provider."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import pytest

from tests.builders import HOSTNAME, ZONE, Json, affinity, constraint, requirement, selector, term
from tests.controlplane.cluster import ControlPlane
from tests.e2e import karpenter
from tests.e2e.spread import Plugin, Spread

pytestmark = [pytest.mark.e2e, pytest.mark.nightly]

ZONES: Final = ("a", "b", "c")
QUIET: Final = 15.0
"""Seconds without a change after which nothing is expected to happen: the scheduler waits up to 10 between attempts."""
DB: Final = {"matchLabels": {"app": "db"}}


def deployment(name: str, replicas: int, cpu: str, **spec: Any) -> Json:
    requests = {"requests": {"cpu": cpu}}
    containers = [{"name": "app", "image": "registry.example/app:1", "resources": requests}]
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers, **spec}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": selector({"app": name}), "template": template},
    }


def in_zones(*zones: str) -> Json:
    terms = [{"matchExpressions": [requirement(ZONE, "In", *zones)]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


class Autoscaled:
    """A cluster with Karpenter."""

    def __init__(self, cluster: ControlPlane, spread: Spread) -> None:
        self.cluster, self.spread = cluster, spread

    def nodes(self) -> dict[str, str]:
        """Return the zone of each node."""
        nodes = (node["metadata"] for node in self.cluster.api.get("/api/v1/nodes")["items"])
        return {node["name"]: node["labels"][ZONE] for node in nodes}

    def pending(self) -> int:
        """Return the number of pods without a node."""
        pods = self.cluster.api.get("/api/v1/namespaces/default/pods")["items"]
        return sum("nodeName" not in pod["spec"] for pod in pods)

    def settle(self) -> None:
        """Wait until neither nodes nor pods that wait have changed for a while."""
        last, since = None, time.monotonic()

        def is_quiet() -> bool:
            nonlocal last, since
            now = self.nodes(), self.pending()
            if now != last:
                last, since = now, time.monotonic()
            return time.monotonic() - since > QUIET

        self.cluster.wait_for(is_quiet, timeout=180, what="Karpenter and the scheduler have no more to do")

    def clear(self, kept: set[str]) -> None:
        """Delete the workloads of a scenario, and the nodes that were made for it."""
        self.cluster.kubectl("delete", "deployment", "web", "db", "-n", "default", "--ignore-not-found")
        claims = self.cluster.api.get("/apis/karpenter.sh/v1/nodeclaims")["items"]
        names = [each["metadata"]["name"] for each in claims if each["status"]["nodeName"] not in kept]
        if names:
            self.cluster.kubectl("delete", "nodeclaim", *names)
        self.cluster.wait_for(lambda: self.nodes().keys() == kept, timeout=120, what="the nodes are gone")


@pytest.fixture(scope="module")
def autoscaled(tmp_path_factory: pytest.TempPathFactory, plugin: Plugin) -> Iterator[Autoscaled]:
    """Run Karpenter, and let it make a node in each zone, which a pod fills."""
    directory = tmp_path_factory.mktemp("karpenter")
    with ControlPlane.start(directory, kubelet=True) as cluster, karpenter.running(cluster, ZONES):
        autoscaled = Autoscaled(cluster, plugin.on(cluster))
        apart = constraint(selects=selector({"app": "seed"}))
        cluster.apply(deployment("seed", len(ZONES), "1800m", topologySpreadConstraints=[apart]))
        autoscaled.settle()
        assert Counter(autoscaled.nodes().values()) == Counter(ZONES)
        yield autoscaled


class Scenario(NamedTuple):
    """A Deployment that is scaled while all nodes are full.

    Attributes:
        replicas: The number of its pods.
        cpu: What each requests.
        spec: More fields of the pods.
        others: Workloads that are there before.
        determined: Whether one or two numbers of nodes are possible in each zone.
        races: Whether Karpenter may order more nodes if it decides again before the scheduler has placed the pods.
    """

    replicas: int
    cpu: str
    spec: Json
    others: Sequence[Json] = ()
    determined: bool = True
    races: bool = False


GUARDS: Final = affinity("podAntiAffinity", term(key=ZONE), term(key=ZONE, selects=DB))
SCENARIOS: Final = {
    "a constraint on the zone": Scenario(5, "1", {"topologySpreadConstraints": [constraint()]}),
    "apart over zones": Scenario(4, "1", {"affinity": affinity("podAntiAffinity", term(key=ZONE))}),
    "apart over hosts": Scenario(
        3, "500m", {"affinity": affinity("podAntiAffinity", term(key=HOSTNAME))}, determined=False
    ),
    "together in a zone": Scenario(
        3, "1500m", {"affinity": affinity("podAffinity", term(key=ZONE))}, determined=False, races=True
    ),
    "with other pods": Scenario(
        3,
        "1",
        {"affinity": affinity("podAffinity", term(key=ZONE, selects=DB))},
        [deployment("db", 1, "100m", nodeSelector={ZONE: "b"})],
    ),
    "repelled by other pods": Scenario(
        2, "1", {}, [deployment("db", 2, "100m", affinity={**in_zones("a", "b"), **GUARDS})]
    ),
}


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS.keys())
def test_karpenter_makes_the_nodes_of_the_simulation(autoscaled: Autoscaled, scenario: Scenario) -> None:
    cluster, kept = autoscaled.cluster, set(autoscaled.nodes())
    cluster.apply([*scenario.others, deployment("web", 0, scenario.cpu, **scenario.spec)])
    autoscaled.settle()
    before = autoscaled.nodes()
    event = ("--scale", f"deploy/web={scenario.replicas}", "-n", "default")
    answer = autoscaled.spread("simulate", *event, "--runs", "20", "--fail-on", "never", "-o", "json")
    promised = answer.report["withNewNodes"]
    try:
        cluster.kubectl("scale", "deploy/web", f"--replicas={scenario.replicas}", "-n", "default")
        autoscaled.settle()
        made = Counter(zone for name, zone in autoscaled.nodes().items() if name not in before)
        assert promised["pending"] == {"min": autoscaled.pending(), "max": autoscaled.pending()}
        assert promised["total"]["min"] <= made.total()
        assert scenario.races or made.total() <= promised["total"]["max"]
        zones = {each["zone"]: each["nodes"] for each in promised["nodes"]}
        if scenario.determined:
            assert made.keys() <= zones.keys()
            assert all(nodes["min"] <= made[zone] <= nodes["max"] for zone, nodes in zones.items())
    finally:
        autoscaled.clear(kept)
