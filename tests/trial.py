"""A cluster like that of a trial: 62 namespaces whose zone b is cordoned while rollouts are half done.

``python -m tests.trial FILE`` writes it as a capture for ``check -f``. The same objects are built each time.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from itertools import count, cycle
from pathlib import Path
from typing import Any, Final

from tests.builders import HOSTNAME, Json, constraint, node_json, pod_json, selector

NAMESPACES: Final = 62
ZONES: Final = {"a": ("a1", "a2", "a3"), "b": ("b1", "b2", "b3"), "c": ("c1", "c2", "c3")}
CLOSED: Final = "b"
HASH: Final = "pod-template-hash"
_CORDON: Final[Json] = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
_PENDING: Final = ""
_OPEN: Final = ("a1", "c1", "a2", "c2", "a3", "c3")


class Trial:
    """The objects of the cluster; each method adds one workload to the next namespace."""

    def __init__(self) -> None:
        """Begin with the nodes."""
        self.objects = [_node(name, closed=zone == CLOSED) for zone, names in ZONES.items() for name in names]
        self._numbers = count(1)
        self._namespaces = cycle(f"team-{number:02}" for number in range(1, NAMESPACES + 1))
        self._starts = cycle(range(len(_OPEN)))

    def open_nodes(self, number: int) -> list[str]:
        """Return nodes of the zones that are open, taken in turn."""
        start = next(self._starts)
        return [_OPEN[(start + index) % len(_OPEN)] for index in range(number)]

    def deployment(
        self,
        base: str,
        nodes: Sequence[str],
        constraints: Sequence[Json] = (),
        *,
        older: Sequence[str] = (),
        labels: Mapping[str, str] | None = None,
        relabelled: Mapping[str, str] | None = None,
        budget: int | None = None,
        **spec: Any,
    ) -> None:
        """Add a Deployment with pods on nodes; "" is the node of a pending pod.

        Args:
            base: The name, before the number that makes it unique.
            nodes: The nodes of the pods of the newest revision.
            constraints: The constraints; their selectors default to the label of the Deployment.
            older: The nodes of the pods of the revision before.
            labels: More labels of the pod template.
            relabelled: Labels that the first pod was given later.
            budget: minAvailable of a PodDisruptionBudget.
            spec: Further fields of the pods' spec.
        """
        name, namespace = f"{base}-{next(self._numbers)}", next(self._namespaces)
        own = {"app": name, **(labels or {})}
        written = [{"labelSelector": selector({"app": name}), **each} for each in constraints]
        template = {
            "metadata": {"labels": own},
            "spec": {"containers": [], "topologySpreadConstraints": written, **spec},
        }
        desired = max(len(nodes), len(older))
        self.objects.append(
            _owned(
                "apps/v1",
                "Deployment",
                name,
                namespace,
                replicas=desired,
                selector={"matchLabels": {"app": name}},
                template=template,
            )
        )
        revisions = [(1, older), (2, nodes)] if older else [(1, nodes)]
        for revision, places in revisions:
            hashed = f"{name}-r{revision}"
            labelled = {**own, HASH: f"r{revision}"}
            replica_set = _owned(
                "apps/v1",
                "ReplicaSet",
                hashed,
                namespace,
                owner=f"Deployment/{name}",
                replicas=len(places),
                selector={"matchLabels": {"app": name, HASH: f"r{revision}"}},
                template={"metadata": {"labels": labelled}, "spec": template["spec"]},
            )
            replica_set["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": str(revision)}
            self.objects.append(replica_set)
            stored = [_merged(each, labelled) for each in written]
            for index, node in enumerate(places):
                later = relabelled if relabelled and not index else {}
                self.objects.append(
                    pod_json(
                        f"{hashed}-{index}",
                        node=node,
                        labels={**labelled, **later},
                        namespace=namespace,
                        constraints=stored,
                        owner=f"ReplicaSet/{hashed}",
                        **spec,
                    )
                )
        if budget is not None:
            self.objects.append(_budget(name, namespace, budget, sum(node != _PENDING for node in (*nodes, *older))))


def _node(name: str, *, closed: bool) -> Json:
    node = node_json(name, taints=[_CORDON] if closed else ())
    node["metadata"]["uid"] = f"uid-{name}"
    node["spec"].update({"unschedulable": True} if closed else {})
    node["status"] = {
        "allocatable": {"cpu": "32", "memory": "128Gi", "pods": "250"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return node


def _owned(api_version: str, kind: str, name: str, namespace: str, *, owner: str = "", **spec: Any) -> Json:
    metadata: Json = {"name": name, "namespace": namespace, "uid": f"{kind}/{name}", "generation": 1}
    if owner:
        owner_kind, _, owner_name = owner.partition("/")
        metadata["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": owner_kind, "name": owner_name, "uid": owner, "controller": True}
        ]
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def _merged(authored: Json, labels: Mapping[str, str]) -> Json:
    """Return a constraint as the API server stores it."""
    added = [
        {"key": key, "operator": "In", "values": [labels[key]]}
        for key in authored.get("matchLabelKeys", ())
        if key in labels
    ]
    if not added:
        return authored
    return {**authored, "labelSelector": {**authored["labelSelector"], "matchExpressions": added}}


def _budget(app: str, namespace: str, minimum: int, healthy: int) -> Json:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": namespace, "uid": f"uid-pdb-{app}", "generation": 1},
        "spec": {"minAvailable": minimum, "selector": {"matchLabels": {"app": app}}},
        "status": {
            "observedGeneration": 1,
            "desiredHealthy": minimum,
            "currentHealthy": healthy,
            "expectedPods": healthy,
            "disruptionsAllowed": max(0, healthy - minimum),
        },
    }


def _by_zone(**fields: Any) -> Json:
    """Return a constraint that selects the pods of its Deployment."""
    return {name: value for name, value in constraint(**fields).items() if name != "labelSelector"}


def _by_node(**fields: Any) -> Json:
    return _by_zone(key=HOSTNAME, **fields)


def objects() -> list[Json]:
    """Return the objects of the cluster: 653 pods of 203 workloads; 118 pods of 106 wait for the closed zone."""
    trial = Trial()
    _add_waiting(trial)
    _add_mistakes(trial)
    _add_running(trial)
    return trial.objects


def _add_waiting(trial: Trial) -> None:
    """Add workloads with a pod that only the closed zone could take."""
    for index in range(74):
        keys = (HASH,) if index % 2 else ()
        budget = 2 if index % 5 == 0 else None
        trial.deployment("web", [*trial.open_nodes(2), _PENDING], [_by_zone(match=keys)], budget=budget)
    for _ in range(12):
        trial.deployment("api", [*trial.open_nodes(4), _PENDING, _PENDING], [_by_zone(), _by_node(hard=False)])
    for _ in range(6):
        trial.deployment("ledger", [*trial.open_nodes(2), _PENDING], [_by_zone(minDomains=3)])
    for _ in range(8):
        trial.deployment("cart", [_PENDING], [_by_zone()], older=["a1", "c1"])
    for _ in range(6):
        trial.deployment("store", [*_OPEN, _PENDING], [_by_node()])


def _add_mistakes(trial: Trial) -> None:
    """Add workloads with constraints that do not do what they say, and such that ask for too much."""
    trial.deployment("payments", ["a1", "c1", _PENDING], [_by_zone(minDomains=4)])
    trial.deployment("search", [_PENDING, _PENDING], [_by_zone(key="example.com/rack")])
    for index in range(6):
        chosen = [None, selector(), selector({"app": "misspelt"})][index % 3]
        trial.deployment("mail", ["a1", "a1", "a1"], [{**_by_zone(hard=False), "labelSelector": chosen}])
    for _ in range(8):
        nodes = trial.open_nodes(3)
        trial.deployment(
            "blog", nodes, [_by_zone(match=("rev",), hard=False)], labels={"rev": "r1"}, relabelled={"rev": "r2"}
        )
    for _ in range(4):
        trial.deployment("news", ["a1", "a2", "a3", "c1"], [_by_zone()], budget=4)


def _add_running(trial: Trial) -> None:
    """Add workloads whose pods all run."""
    for _ in range(10):
        trial.deployment("one-zone", ["a1", "a2", "a3"])
        trial.deployment("one-node", ["c1", "c1"])
    for _ in range(4):
        trial.deployment("next-waits", ["a1", "c1", "b1", "a2", "c2"], [_by_zone()])
    for _ in range(36):
        trial.deployment("even", ["a1", "b1", "c1"], [_by_zone()])
    for _ in range(17):
        trial.deployment("pair", ["a2", "c2"], [_by_node()])


def capture() -> Json:
    """Return the cluster as kubectl prints it."""
    return {"apiVersion": "v1", "kind": "List", "items": objects()}


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(capture()))
