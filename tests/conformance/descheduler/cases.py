"""Random clusters for the descheduler; equal seeds give equal clusters."""

from __future__ import annotations

from random import Random
from typing import Final

from tests.builders import Json
from tests.conformance.cases import Generator, _merged

KIND: Final = "descheduler"

_ANNOTATIONS: Final = (
    "descheduler.alpha.kubernetes.io/evict",
    "descheduler.alpha.kubernetes.io/prefer-no-eviction",
    "kubernetes.io/config.mirror",
    "kubernetes.io/config.source",
)
_OWNERS: Final = (*["ReplicaSet"] * 10, "StatefulSet", "Job", "Node", "DaemonSet")
_PRIORITIES: Final = (0, -5, 1000, 1_999_999_999, 2_000_000_000, 2_000_001_000)
_VOLUMES: Final[tuple[Json, ...]] = (
    {"emptyDir": {}},
    {"hostPath": {"path": "/x"}},
    {"persistentVolumeClaim": {"claimName": "c"}},
    {"configMap": {"name": "m"}},
    {"ephemeral": {}},
)
_SOFT_SKEW: Final = 100
_READY: Final = (*["True"] * 6, "False", "Unknown")


class Clusters(Generator):
    """Makes clusters of pods with spread constraints, most of which could be evicted."""

    def question(self) -> Json:
        nodes = [self.node(index) for index in range(self.random.choice((0, 1, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7)))]
        templates = [self.template() for _ in range(self.random.choice((1, 1, 2, 3)))]
        pods = [self.stamped(index, len(nodes), templates) for index in range(self.random.choice((0, 8, 16, 24, 24)))]
        return {"nodes": nodes, "pods": pods}

    def node(self, index: int) -> Json:
        """Return a node, with or without conditions."""
        conditions = self.fields(
            Ready=(0.9, lambda: self.random.choice(_READY)), MemoryPressure=(0.3, lambda: self.random.choice(_READY))
        )
        typed = [{"type": kind, "status": status} for kind, status in conditions.items()]
        return {**super().node(index), "status": {"conditions": typed}}

    def template(self) -> Json:
        """Return a pod as a template for others; it may be merged, and its labels may have changed since."""
        pod = self.placed_pod()
        if self.chance(0.5):
            pod = _merged(pod)
        if self.chance(0.2):
            pod["metadata"]["labels"] = self.labels()
        for constraint in pod["spec"].get("topologySpreadConstraints", ()):
            # The plugin, and so the oracle, does not distinguish constraints that differ in whenUnsatisfiable only.
            constraint["maxSkew"] += _SOFT_SKEW * (constraint["whenUnsatisfiable"] != "DoNotSchedule")
        pod["metadata"]["namespace"] = self.random.choice(("default", "default", "other"))
        pod["metadata"] |= self.fields(ownerReferences=(0.95, lambda: self.some(2, self.owner) or [self.owner()]))
        pod["spec"] |= self.fields(
            priority=(0.2, lambda: self.random.choice(_PRIORITIES)), volumes=(0.2, lambda: self.some(2, self.volume))
        )
        return pod

    def owner(self) -> Json:
        return {"apiVersion": "apps/v1", "kind": self.random.choice(_OWNERS), "name": "owner", "uid": "u"}

    def volume(self) -> Json:
        kinds = _VOLUMES[2:] if self.chance(0.7) else _VOLUMES
        return {"name": f"v{self.random.random()}", **self.random.choice(kinds)}

    def annotations(self) -> Json:
        return {key: self.random.choice(("", "api", "file", "true")) for key in _ANNOTATIONS if self.chance(0.25)}

    def stamped(self, index: int, nodes: int, templates: list[Json]) -> Json:
        """Return a pod of one of ``templates``; it may be unbound, finished, terminating or different."""
        template = self.random.choice(templates)
        metadata = {
            **template["metadata"],
            "name": f"p{index}",
            **self.fields(
                deletionTimestamp=(0.08, lambda: "2026-09-02T10:00:00Z"),
                annotations=(0.15, self.annotations),
                labels=(0.1, self.labels),
            ),
        }
        spec = {
            **template["spec"],
            **self.fields(
                # n<nodes> is a node that does not exist.
                nodeName=(0.95, lambda: f"n{self.random.randint(0, nodes)}"),
                volumes=(0.1, lambda: self.some(2, self.volume)),
                priority=(0.05, lambda: self.random.choice(_PRIORITIES)),
            ),
        }
        phase = self.random.choice((*["Running"] * 12, "Pending", "Unknown", "Succeeded", "Failed", ""))
        return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def case(seed: int, index: int) -> Json:
    """Return one case; the same for the same seed and index."""
    random = Random(f"{seed}/{KIND}/{index}")
    clusters = Clusters(random, spoil=0.0, alike=True)
    clusters.hard = 0.8
    return {"kind": KIND, **clusters.question()}
