"""Random clusters with pods to place, as an API server stores them; equal seeds give equal cases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final, TypeVar

from tests.builders import HOSTNAME, ZONE, Json, claim_json, constraint, requirement, selector, term, using_claim
from tests.builders import volume_json as volume
from tests.conformance.cases import _merged

KIND: Final = "placements"

T = TypeVar("T")

_REGION: Final = "topology.kubernetes.io/region"
_BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
_RACK: Final = "rack"
_SIZE: Final = "size"
_KEYS: Final = (ZONE, ZONE, HOSTNAME, _RACK, _REGION)
_APPS: Final = ("a", "b", "c", "d")
_REVISIONS: Final = ("r1", "r2")
_NAMESPACES: Final = {"shop": {"team": "x"}, "lab": {"team": "y"}, "none": {}}
_ZONES: Final = ("x", "y", "z", "w", "")
_GPU: Final = "example.com/gpu"
_REQUESTS: Final = {
    "cpu": ("100m", "250m", "1", "0", "1500m"),
    "memory": ("64Mi", "1Gi", "500M", "0"),
    "ephemeral-storage": ("1Gi",),
    _GPU: ("1",),
}
_PRIORITIES: Final = (0, 0, 0, 10, 1000)
_SAMPLED: Final = (101, 110, 130, 170, 260)
"""Numbers of nodes of which the scheduler looks only at a part; few of them are excluded."""


def case(seed: int, index: int) -> Json:
    """Return a case."""
    return _Generator(Random(f"{KIND}/{seed}/{index}")).case()


class _Generator:
    def __init__(self, random: Random) -> None:
        self._random = random
        self._volumes: list[Json] = []
        self._claims: list[Json] = []
        self._sampled = self._chance(0.06)
        self._zones = random.sample(_ZONES, random.randint(1, 4))
        self._beta = self._chance(0.1)
        self._bound = self._chance(0.3)

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _some(self, numbers: Sequence[int], make: Callable[[], T]) -> list[T]:
        return [make() for _ in range(self._random.choice(numbers))]

    def case(self) -> Json:
        random = self._random
        size = random.choice(_SAMPLED) if self._sampled else random.choice((3, 4, 5, 6, random.randint(7, 40)))
        nodes = [self._node(f"n{number:03}") for number in range(size)]
        names = [node["metadata"]["name"] for node in nodes]
        templates = [self._template(app) for app in _APPS[: random.randint(1, 4)]]
        running = [self._pod(f"old-{number}", templates, random.choice(names)) for number in range(self._running(size))]
        queue = [self._pod(f"new-{number}", templates, "") for number in range(random.randint(1, 12))]
        return {
            "kind": KIND,
            "nodes": nodes,
            "pods": running,
            "queue": queue,
            "namespaces": [self._namespace(name) for name in _NAMESPACES],
            "services": [self._service(app, space) for app in _APPS for space in _NAMESPACES if self._chance(0.3)],
            "replicaSets": [self._replica_set(app, space) for app in _APPS for space in _NAMESPACES],
            "claims": self._claims,
            "volumes": self._volumes,
        }

    def _running(self, nodes: int) -> int:
        return self._random.choice((0, nodes // 2, nodes, min(2 * nodes, 50)))

    def _node(self, name: str) -> Json:
        random = self._random
        labels = {
            HOSTNAME: name if self._chance(0.97) else "shared",
            ZONE: random.choice(self._zones),
            _RACK: random.choice("12"),
            _REGION: random.choice("ee") if self._chance(0.9) else "f",
            _SIZE: random.choice(("1", "2", "8")),
        }
        if self._beta and self._chance(0.5):
            labels[_BETA_ZONE] = random.choice(self._zones)
        taints = [] if self._sampled and self._chance(0.9) else self._some((0, 0, 0, 0, 1, 2), self._taint)
        cordoned = self._chance(0.06)
        if cordoned and self._chance(0.5):
            taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
        allocatable = {
            "cpu": random.choice(("1", "4", "8", "4500m", "16")),
            "memory": random.choice(("2Gi", "8Gi", "33333333333")),
            "pods": random.choice(("3", "110", "110")),
            "ephemeral-storage": "20Gi",
            **({_GPU: random.choice(("0", "1", "4"))} if self._chance(0.3) else {}),
        }
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {k: v for k, v in labels.items() if not self._chance(0.04)}},
            "spec": {"taints": taints, **({"unschedulable": True} if cordoned else {})},
            "status": {"allocatable": {k: v for k, v in allocatable.items() if k == "pods" or not self._chance(0.02)}},
        }

    def _taint(self) -> Json:
        effects = ("PreferNoSchedule", "PreferNoSchedule", "NoSchedule", "NoExecute")
        return {"key": self._random.choice(("gpu", "spot")), "value": "a", "effect": self._random.choice(effects)}

    def _template(self, app: str) -> Json:
        random = self._random
        spec: Json = {
            "containers": self._containers("c", (1, 1, 2)),
            "initContainers": self._containers("i", (0, 0, 0, 1, 2)),
            "topologySpreadConstraints": self._constraints(),
            "affinity": self._affinity(),
            "tolerations": self._some((0, 0, 1, 2), self._toleration),
        }
        if self._chance(0.1):
            spec["nodeSelector"] = {_RACK: "1"}
        if self._chance(0.1):
            spec["overhead"] = {"cpu": "50m", "memory": "32Mi"}
        if self._chance(0.08):
            spec["resources"] = {"requests": {"cpu": "3", "memory": "3Gi"}}
        if self._chance(0.06) and not self._sampled:
            # Which domains are eligible for a pod that only one node may take is not modelled.
            spec["topologySpreadConstraints"] = []
            spec["affinity"]["nodeAffinity"] = self._pin()
        return {
            "namespace": random.choice(("shop", "shop", "lab", "none")),
            "labels": {"app": app, "tier": random.choice("12")},
            "spec": {name: value for name, value in spec.items() if value},
        }

    def _containers(self, letter: str, numbers: Sequence[int]) -> list[Json]:
        made = self._some(numbers, self._container)
        for number, container in enumerate(made):
            container["name"] = f"{letter}{number}"
            if letter == "i" and self._chance(0.4):
                container["restartPolicy"] = "Always"
        return made

    def _container(self) -> Json:
        asks = {"cpu": 0.7, "memory": 0.7, "ephemeral-storage": 0.1, _GPU: 0.05}
        requests = {
            name: self._random.choice(_REQUESTS[name])
            for name, probability in asks.items()
            if self._chance(probability)
        }
        limits = {_GPU: requests[_GPU]} if _GPU in requests else {}
        return {"resources": {"requests": requests, "limits": limits}}

    def _selector(self) -> Json:
        random = self._random
        app = random.choice(_APPS)
        return random.choice(
            (
                *[selector({"app": app})] * 6,
                selector({"app": app, "tier": "1"}),
                selector(None, requirement("app", "In", "a", "b")),
                selector(None, requirement("app", "NotIn", app)),
                selector({"tier": "1"}, requirement("rev", "Exists")),
                selector(None, requirement("rev", "DoesNotExist")),
                selector(),
            )
        )

    def _constraints(self) -> list[Json]:
        made = self._some((0, 0, 1, 1, 2, 3), self._constraint)
        return list({(each["topologyKey"], each["whenUnsatisfiable"]): each for each in made}.values())

    def _constraint(self) -> Json:
        random = self._random
        hard = self._chance(0.35)
        made = constraint(
            key=random.choice(_KEYS),
            hard=hard,
            max_skew=random.choice((1, 1, 2, 5)),
            selects=self._selector(),
            match=["rev"] if self._chance(0.3) else (),
            minDomains=random.choice((1, 2, 3, 6)) if hard and self._chance(0.25) else None,
            nodeTaintsPolicy=random.choice(("Honor", "Ignore", None, None)),
            nodeAffinityPolicy=random.choice(("Honor", "Ignore", None, None)),
        )
        if self._chance(0.03):
            # It selects no pod, and may not have keys.
            del made["labelSelector"]
            made.pop("matchLabelKeys", None)
        return made

    def _affinity(self) -> Json:
        made: Json = {}
        if self._chance(0.1 if self._sampled else 0.35):
            made["nodeAffinity"] = self._node_affinity()
        for name in ("podAffinity", "podAntiAffinity"):
            if self._chance(0.3):
                made[name] = self._pod_affinity()
        return {name: value for name, value in made.items() if value}

    def _node_affinity(self) -> Json:
        made: Json = {}
        if self._chance(0.35):
            terms = self._some((1, 1, 2), self._node_term)
            made["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
        if self._chance(0.7):
            made["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": self._random.choice((1, 30, 100)), "preference": preference}
                for preference in self._some((1, 2, 3), self._node_term)
            ]
        return made

    def _pin(self) -> Json:
        """Return the affinity of a pod of a DaemonSet."""
        names = [requirement("metadata.name", "In", f"n{self._random.randrange(5):03}")]
        terms = [{"matchFields": names}]
        return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}

    def _node_term(self) -> Json:
        random = self._random
        expressions = (
            requirement(ZONE, "In", *random.sample(_ZONES, 2)),
            requirement(_RACK, "NotIn", random.choice("12")),
            requirement(_BETA_ZONE, "DoesNotExist"),
            requirement(_SIZE, random.choice(("Gt", "Lt")), random.choice("128")),
            requirement(_REGION, "Exists"),
        )
        if self._chance(0.04) and not self._sampled:
            # One that names only one node pins the pod.
            return {"matchFields": [requirement("metadata.name", "NotIn", f"n{random.randrange(4):03}")]}
        return {"matchExpressions": random.sample(expressions, random.choice((1, 1, 2)))}

    def _pod_affinity(self) -> Json:
        made: Json = {}
        if self._chance(0.25):
            made["requiredDuringSchedulingIgnoredDuringExecution"] = self._some((1, 1, 2), self._pod_term)
        if self._chance(0.7):
            made["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": self._random.choice((1, 50, 100)), "podAffinityTerm": each}
                for each in self._some((1, 2, 3), self._pod_term)
            ]
        return made

    def _pod_term(self) -> Json:
        random = self._random
        spaces: Any = {"namespaces": random.sample([*_NAMESPACES], random.randint(1, 2))} if self._chance(0.2) else {}
        if self._chance(0.2):
            spaces["namespaceSelector"] = random.choice((selector(), selector({"team": random.choice("xy")})))
        return term(
            key=random.choice(_KEYS),
            selects=self._selector(),
            match=["rev"] if self._chance(0.1) else (),
            mismatch=["tier"] if self._chance(0.05) else (),
            **spaces,
        )

    def _toleration(self) -> Json:
        random = self._random
        effect = random.choice(
            ({}, {}, {"effect": "NoSchedule"}, {"effect": "PreferNoSchedule"}, {"effect": "NoExecute"})
        )
        key = random.choice(("gpu", "spot", "node.kubernetes.io/unschedulable"))
        how = random.choice(
            ({"key": key, "operator": "Exists"}, {"key": key, "value": random.choice("ab")}, {"operator": "Exists"})
        )
        return {**how, **effect}

    def _pod(self, name: str, templates: Sequence[Json], node: str) -> Json:
        random = self._random
        template = random.choice(templates)
        labels = {**template["labels"], **({"rev": random.choice(_REVISIONS)} if self._chance(0.8) else {})}
        app, namespace = labels["app"], template["namespace"]
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": app, "controller": True}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": name,
                "labels": labels,
                **({"ownerReferences": [owner]} if self._chance(0.9) else {}),
            },
            "spec": {
                **template["spec"],
                "schedulerName": "default-scheduler",
                "priority": 0 if node else random.choice(_PRIORITIES),
                "preemptionPolicy": "Never",
                **({"nodeName": node} if node else {}),
                **({"volumes": self._pod_volumes(namespace, name)} if self._bound and self._chance(0.4) else {}),
            },
            "status": {"phase": "Running" if node else "Pending"},
        }
        return _merged(pod) if self._chance(0.9) else pod

    def _pod_volumes(self, namespace: str, pod: str) -> list[Json]:
        random = self._random
        used = []
        for number in range(random.choice((1, 1, 2))):
            name = f"{pod}-{number}"
            bound = self._chance(0.93)
            claim = claim_json(name, name, namespace=namespace)
            claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
            claim["spec"] |= {"accessModes": ["ReadWriteOnce"]}
            labels = {ZONE: random.choice(("x", "y", "x__y"))} if self._chance(0.3) else {}
            reached = random.choice(
                (
                    requirement(ZONE, "In", random.choice(_ZONES[:3])),
                    requirement(HOSTNAME, "In", *[f"n{random.randrange(6):03}" for _ in range(2)]),
                    requirement(_RACK, "Exists"),
                )
            )
            self._claims += [claim] if self._chance(0.97) else []
            self._volumes += [volume(name, *[reached][: random.choice((0, 1, 1))], labels=labels)] if bound else []
            used.append(using_claim(name, name=f"data-{number}"))
        return used

    @staticmethod
    def _namespace(name: str) -> Json:
        labels = {"kubernetes.io/metadata.name": name, **_NAMESPACES[name]}
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}

    def _service(self, app: str, namespace: str) -> Json:
        selects = self._random.choice(({"app": app}, {"app": app}, {"app": app, "tier": "1"}, {}))
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": app, "namespace": namespace},
            "spec": {"selector": selects},
        }

    @staticmethod
    def _replica_set(app: str, namespace: str) -> Json:
        return {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": app, "namespace": namespace, "uid": app},
            "spec": {
                "replicas": 3,
                "selector": selector({"app": app}),
                "template": {"metadata": {"labels": {"app": app}}},
            },
        }
