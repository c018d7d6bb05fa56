"""Random cases about advice: clusters with an unevenly spread workload and with other pods."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from tests.builders import HOSTNAME, ZONE, Json, affinity, constraint, node_json, pod_json, selector, term

NAMESPACES: Final = ("default", "other")
_TAINT: Final = {"key": "gpu", "effect": "NoSchedule"}
_TOLERATION: Final = {"key": "gpu", "operator": "Exists"}
_STAMP: Final = "2026-09-02T10:00:00Z"


def question(random: Random, *, spread_alone: bool = False) -> Json:
    """Return a cluster with a workload and other pods; with ``spread_alone`` only spread constraints decide."""
    maker = _Maker(random, spread_alone=spread_alone)
    nodes = [maker.node(index) for index in range(random.choice((2, 3, 3, 4, 4, 5, 6)))]
    names = [node["metadata"]["name"] for node in nodes]
    return {
        "seed": random.random(),
        "nodes": nodes,
        "pods": [*maker.workload(names), *maker.others(names)],
        "namespaces": [{"metadata": {"name": name, "labels": {"name": name}}} for name in NAMESPACES],
    }


class _Maker:
    """Makes the parts of one case."""

    def __init__(self, random: Random, *, spread_alone: bool) -> None:
        """Draw from ``random``; ``spread_alone`` leaves out resources and pod affinity."""
        self.random = random
        self.spread_alone = spread_alone
        self.zones = random.choice(("ab", "abc", "abc", "abcd"))
        self.resources = not spread_alone and random.random() < 0.4

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def node(self, index: int) -> Json:
        without = [key for key, probability in ((ZONE, 0.04), (HOSTNAME, 0.02)) if self.chance(probability)]
        zone = "" if self.chance(0.01) else self.random.choice(self.zones)
        node = node_json(
            f"n{index}",
            zone=zone,
            labels={"pool": self.random.choice(("web", "web", "db"))},
            taints=[_TAINT] if self.chance(0.12) else [],
            without=without,
        )
        if self.chance(0.08):
            node["spec"]["unschedulable"] = True
        if self.resources:
            node["status"] = {"allocatable": {"cpu": self.random.choice(("1", "2", "4")), "pods": "6"}}
        else:
            node["status"] = {"allocatable": {"cpu": "64", "pods": "110"}}
        return node

    def workload(self, nodes: list[str]) -> list[Json]:
        """Return the pods of one workload, most of them on few of the nodes; some may be pending."""
        spec = self.spec()
        match = spec["topologySpreadConstraints"][0].get("matchLabelKeys", [])
        labels = {"app": "web", **({"rev": "r1"} if match else {})}
        crowded = self.random.sample(nodes, self.random.randint(1, len(nodes)))
        return [
            self.pod(f"web-{index}", self.node_of(crowded, pending=0.06), labels, owner="ReplicaSet/web", **spec)
            for index in range(self.random.choice((1, 2, 3, 3, 4, 5, 6, 7)))
        ]

    def node_of(self, nodes: list[str], *, pending: float) -> str:
        return "" if self.chance(pending) else self.random.choice(nodes)

    def spec(self) -> Json:
        first = self.constraint(self.random.choice((ZONE, ZONE, HOSTNAME)), hard=self.chance(0.75))
        constraints = [first]
        if self.chance(0.3):
            other_keys = [key for key in (ZONE, HOSTNAME, "pool") if key != first["topologyKey"]]
            constraints.append(self.constraint(self.random.choice(other_keys), hard=self.chance(0.5)))
        return {
            "topologySpreadConstraints": constraints,
            **({"nodeSelector": {"pool": "web"}} if self.chance(0.1) else {}),
            **({"tolerations": [_TOLERATION]} if self.chance(0.15) else {}),
            **({"affinity": self.affinity()} if not self.spread_alone and self.chance(0.15) else {}),
        }

    def constraint(self, key: str, *, hard: bool) -> Json:
        fields: Json = {
            name: self.random.choice(("Honor", "Ignore"))
            for name in ("nodeAffinityPolicy", "nodeTaintsPolicy")
            if self.chance(0.25)
        }
        if hard and self.chance(0.2):
            fields["minDomains"] = self.random.choice((2, 3, 4))
        return constraint(
            key=key,
            hard=hard,
            max_skew=self.random.choice((1, 1, 1, 2, 3)),
            match=["rev"] if self.chance(0.15) else [],
            **fields,
        )

    def affinity(self) -> Json:
        """Return a required affinity, or anti-affinity, to the workload's own pods or to those of a database."""
        field = self.random.choice(("podAffinity", "podAntiAffinity"))
        return affinity(field, term(key=self.random.choice((ZONE, HOSTNAME)), selects=self.selects()))

    def selects(self) -> Json:
        return selector({"app": self.random.choice(("web", "db"))})

    def others(self, nodes: list[str]) -> list[Json]:
        """Return other pods: some count, some take room or repel, some do neither."""
        return [self.other(f"other-{index}", nodes) for index in range(self.random.choice((0, 0, 1, 2, 3)))]

    def other(self, name: str, nodes: list[str]) -> Json:
        spec: Json = {}
        if self.chance(0.3):
            spec["topologySpreadConstraints"] = [self.constraint(ZONE, hard=True)]
        if not self.spread_alone and self.chance(0.25):
            spec["affinity"] = affinity(
                "podAntiAffinity", term(key=self.random.choice((ZONE, HOSTNAME)), selects=self.selects())
            )
        pod = self.pod(
            name,
            self.node_of(nodes, pending=0.05),
            {"app": self.random.choice(("web", "web", "db"))},
            namespace=self.random.choice(("default", "default", "default", "other")),
            owner=self.random.choice(("ReplicaSet/other", "ReplicaSet/other", "")),
            **spec,
        )
        if self.chance(0.1):
            pod["metadata"]["deletionTimestamp"] = _STAMP
        if self.chance(0.1):
            pod["status"]["phase"] = self.random.choice(("Succeeded", "Failed"))
        return pod

    def pod(self, name: str, node: str, labels: Json, *, namespace: str = "default", owner: str, **spec: Any) -> Json:
        requests = {"cpu": self.random.choice(("500m", "1"))} if self.resources else {}
        containers = [{"name": "main", "image": "main", "resources": {"requests": requests} if requests else {}}]
        return pod_json(name, node=node, labels=labels, namespace=namespace, owner=owner, **spec, containers=containers)
