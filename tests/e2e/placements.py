"""Random nodes and pods on the real scheduler: the report on a gated pod, and the decision of the scheduler.

Pods come in rounds. In one round every app has one pod, and no pod's constraints select the pods of another app of that
round. So all of them can be explained and released at once without changing each other's answer.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.builders import HOSTNAME, ZONE, Json, requirement, selector
from tests.controlplane.client import parallel
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import SCHEDULING_GATE, WITHOUT_GATE, pod
from tests.e2e.scheduler_log import SchedulerLog
from tests.e2e.spread import Spread
from tests.e2e.workloads import idle_replica_set, scheduled

RACK = "example.com/rack"
APPS = 20
_BACKGROUND = 4
_OWNER = "all"
_TAINTS: Sequence[Json] = (
    {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"},
    {"key": "dedicated", "value": "db", "effect": "NoSchedule"},
    {"key": "maintenance", "effect": "NoExecute"},
    {"key": "busy", "effect": "PreferNoSchedule"},
)
_TOLERATIONS: Sequence[Json] = (
    {"key": "dedicated", "operator": "Exists"},
    {"key": "dedicated", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"},
    {"key": "dedicated", "value": "db"},
    {"operator": "Exists", "effect": "NoExecute"},
    {"operator": "Exists"},
)


@dataclass(frozen=True)
class Placement:
    """The report's answer about one gated pod, and the decision of the scheduler without the gate.

    ``blocked`` is whether a finding names the pod as one that no node takes; ``feasible`` is the number of nodes that
    the scheduler found, and ``reason`` that of the PodScheduled condition.
    """

    pod: str
    allowed: frozenset[str]
    refused: tuple[str, ...]
    blocked: bool
    feasible: int
    node: str
    reason: str

    @property
    def agrees(self) -> bool:
        """Whether the scheduler found as many nodes as were allowed, and chose one of them if there are any."""
        if self.feasible != len(self.allowed):
            return False
        return self.node in self.allowed if self.allowed else not self.node and self.reason == "Unschedulable"


class World:
    """One namespace on the nodes of a random cluster, which replace all earlier nodes."""

    def __init__(self, cluster: ControlPlane, spread: Spread, seed: int) -> None:
        """Create the nodes, the first pods, and the owner of all later pods."""
        self._cluster = cluster
        self._spread = spread
        self._random = random.Random(seed)
        self._namespace = f"world-{seed}"
        cluster.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._namespace}})
        self._log = SchedulerLog(cluster)
        self._nodes = self._make_nodes()
        # One owner for all pods, so that one command explains them.
        self._owner = idle_replica_set(cluster.api, pod(_OWNER, namespace=self._namespace))
        self._make_background()

    def round(self, number: int) -> list[Placement]:
        """Explain and release one pod of every app."""
        names = {f"pod-{number}-{app}": f"app-{app}" for app in range(APPS)}
        self._cluster.api.create_all([self._pod(name, app) for name, app in names.items()])
        self._relabel(list(names))
        explained = self._explain()
        paths = {name: f"/api/v1/namespaces/{self._namespace}/pods/{name}" for name in names}
        parallel(lambda path: self._cluster.api.patch(path, WITHOUT_GATE), paths.values())
        decisions = self._log.decisions([f"{self._namespace}/{name}" for name in names])
        self._cluster.wait_for(lambda: all(map(_decided, self._pods(names))), what="the conditions tell the same")
        pods = {pod["metadata"]["name"]: pod for pod in self._pods(names)}
        waiting = [name for name in names if "nodeName" not in pods[name]["spec"]]
        # Pods that wait would be tried again in a later round, and change the counts.
        parallel(lambda name: self._cluster.api.request("DELETE", paths[name]), waiting)
        return [
            Placement(
                name,
                *explained[name],
                feasible=decisions[f"{self._namespace}/{name}"].feasible,
                node=pods[name]["spec"].get("nodeName", ""),
                reason=scheduled(pods[name]).get("reason", ""),
            )
            for name in names
        ]

    def _explain(self) -> dict[str, tuple[frozenset[str], tuple[str, ...], bool]]:
        answer = self._spread("explain", f"rs/{_OWNER}", "-n", self._namespace, "-o", "json")
        assert answer.status == 0, answer.stderr
        document = answer.report.document
        blocked = {name for finding in document["findings"] if finding["code"] == "SPR303" for name in finding["pods"]}
        return {
            name: (
                frozenset(placing["allowed"]),
                tuple(refusal["reason"] for refusal in placing["refused"]),
                name in blocked,
            )
            for placing in document["placing"]
            for name in placing["pods"]
        }

    def _pods(self, names: dict[str, str]) -> list[Json]:
        pods = self._cluster.api.get(f"/api/v1/namespaces/{self._namespace}/pods")["items"]
        return [pod for pod in pods if pod["metadata"]["name"] in names]

    def _make_nodes(self) -> list[str]:
        """Replace all nodes; pods on deleted nodes are not counted."""
        chance, api = self._random, self._cluster.api
        for node in api.get("/api/v1/nodes")["items"]:
            api.request("DELETE", f"/api/v1/nodes/{node['metadata']['name']}")
        names = []
        for _ in range(chance.randint(8, 16)):
            labels: dict[str, str | None] = {"disk": chance.choice(["ssd", "hdd"]), "size": str(chance.randint(1, 9))}
            if chance.random() < 0.8:
                labels[RACK] = chance.choice(["r1", "r2", "r3", ""])
            if chance.random() < 0.1:
                labels[chance.choice([ZONE, HOSTNAME])] = None
            taints = [chance.choice(_TAINTS)] if chance.random() < 0.4 else []
            names += self._cluster.add_nodes(chance.choice("abcd"), per_zone=1, labels=labels, taints=taints)
        for name in chance.sample(names, 2):
            # No controller taints cordoned nodes here, and the scheduler needs no taint.
            api.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True}})
        return names

    def _make_background(self) -> None:
        """Put pods of all apps, and of apps that get no more, onto nodes; some are terminating, some have finished."""
        chance, api = self._random, self._cluster.api
        manifests = []
        apps = [*(f"app-{number}" for number in range(APPS)), *(f"base-{number}" for number in range(_BACKGROUND))]
        for app in apps:
            for number in range(chance.randint(0, 5)):
                labels = {"app": app, "rev": chance.choice(["r1", "r2"]), "tier": chance.choice(["old", "new"])}
                metadata = {"finalizers": ["example.com/hold"]} if chance.random() < 0.1 else {}
                manifest = pod(f"{app}-{number}", labels=labels, namespace=self._namespace, metadata=metadata)
                manifest["spec"]["nodeName"] = chance.choice(self._nodes)
                manifests.append(manifest)
        finished = chance.sample(manifests, 8)
        api.create_all(manifests)
        for manifest in manifests:
            path = f"/api/v1/namespaces/{self._namespace}/pods/{manifest['metadata']['name']}"
            if manifest["metadata"].get("finalizers"):
                api.request("DELETE", path)
            elif manifest in finished:
                api.patch(f"{path}/status", {"status": {"phase": chance.choice(["Succeeded", "Failed"])}})

    def _pod(self, name: str, app: str) -> Json:
        chance = self._random
        labels = {"app": app, "rev": chance.choice(["r1", "r2"]), "tier": chance.choice(["old", "new"])}
        if chance.random() < 0.1:
            del labels["rev"]
        spec: Json = dict(SCHEDULING_GATE)
        if chance.random() < 0.3:
            spec["nodeSelector"] = {"disk": chance.choice(["ssd", "hdd"])}
        if chance.random() < 0.25:
            spec["affinity"] = self._node_affinity()
        if chance.random() < 0.4:
            spec["tolerations"] = chance.sample(_TOLERATIONS, chance.randint(1, 2))
        metadata = {"ownerReferences": [self._owner]}
        constraints = list(self._constraints(app))
        return pod(name, constraints, labels=labels, namespace=self._namespace, metadata=metadata, **spec)

    def _node_affinity(self) -> Json:
        chance = self._random
        choices = (
            requirement(ZONE, "In", *chance.sample("abcd", 2)),
            requirement(ZONE, "NotIn", chance.choice("abcd")),
            requirement("size", chance.choice(["Gt", "Lt"]), str(chance.randint(3, 7))),
            requirement(RACK, chance.choice(["Exists", "DoesNotExist"])),
        )
        terms = [
            {"matchExpressions": chance.sample(choices, chance.randint(1, 2))} for _ in range(chance.randint(1, 2))
        ]
        return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}

    def _constraints(self, app: str) -> Iterator[Json]:
        chance = self._random
        for key in chance.sample([ZONE, HOSTNAME, RACK], chance.choice([1, 1, 2, 2, 3])):
            hard = chance.random() < 0.85
            constraint: Json = {
                "maxSkew": chance.choice([1, 1, 1, 2, 3]),
                "topologyKey": key,
                "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
            }
            selects = self._selector(app)
            if selects is not None:
                constraint["labelSelector"] = selects
                if chance.random() < 0.5:
                    # An empty selector selects all apps unless a key narrows it to one app.
                    keys = (
                        [["rev"], ["rev", "absent"], ["absent"]] if selects else [["app"], ["app", "rev"], ["absent"]]
                    )
                    constraint["matchLabelKeys"] = chance.choice(keys)
            if hard and chance.random() < 0.3:
                constraint["minDomains"] = chance.randint(1, 6)
            for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
                if chance.random() < 0.5:
                    constraint[policy] = chance.choice(["Honor", "Ignore"])
            yield constraint

    def _selector(self, app: str) -> Json | None:
        """Return a selector that selects no other app with pods in the same round."""
        chance = self._random
        base = f"base-{chance.randrange(_BACKGROUND)}"
        own = selector({"app": app})
        both = selector(None, requirement("app", "In", app, base))
        newer = selector({"app": app}, requirement("tier", "NotIn", "old"))
        foreign = selector({"app": base})
        return chance.choice([own, own, own, own, both, both, newer, foreign, {}, None])

    def _relabel(self, names: Sequence[str]) -> None:
        """Edit some of the gated pods: a label changed, removed or added after the merge."""
        for name in self._random.sample(names, 3):
            revision = self._random.choice(["r1", "r2", None])
            path = f"/api/v1/namespaces/{self._namespace}/pods/{name}"
            self._cluster.api.patch(path, {"metadata": {"labels": {"rev": revision}}})


def _decided(manifest: Json) -> bool:
    condition = scheduled(manifest)
    return condition.get("status") == "True" or condition.get("reason") == "Unschedulable"
