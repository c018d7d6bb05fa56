"""Random clusters and random changes of them; equal seeds give equal sequences."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from tests.builders import HOSTNAME, ZONE, Json
from tests.conformance.cases import Generator

NAMESPACES: Final = ("default", "other", "third")
_CLAIMS: Final = ("data", "shared")
_CLAIM_NAMES: Final = (*_CLAIMS, *(f"data-w{workload}-{ordinal}" for workload in (1, 2) for ordinal in range(4)))
_VOLUMES: Final = ("v1", "v2", "v3")
_BUDGETS: Final = ("p1", "p2")
_SERVICES: Final = ("s1", "s2", "s3")
_AMOUNTS: Final = ("100m", "500m", "1", "2")
_OWNERS: Final = ("ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController")
_SELECTING: Final = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")
_WORKLOADS: Final = ("Deployment", "ReplicaSet", *_OWNERS)
Key = tuple[str, str, str]
"""Kind, namespace and name of an object."""


class RandomCluster:
    """A cluster whose objects change at random.

    Attributes:
        objects: The objects that exist, by kind, namespace and name.
    """

    def __init__(self, seed: int, *, far: bool, unconstrained: float = 0.0) -> None:
        """Start with some objects.

        Args:
            seed: Decides the objects and all changes.
            far: Whether there are affinity terms that name or select other namespaces.
            unconstrained: The part of the pods that has no spread constraints.
        """
        self.random = Random(seed)
        self.generator = Generator(self.random, spoil=0.0, alike=self.random.random() < 0.6)
        self.far = far
        self._unconstrained = unconstrained
        self.objects: dict[Key, Json] = {}
        self._number = 0
        self._templates: list[Json] = [self._pod_template() for _ in range(self.random.randint(2, 5))]
        for _ in range(self.random.randint(2, 6)):
            self._add_node()
        for _ in range(self.random.randint(1, 5)):
            self._add_workload()
        for name in _VOLUMES:
            self._put_volume(name)
        for namespace in NAMESPACES:
            for name in _CLAIM_NAMES:
                self._put_claim(namespace, name)
            for name in _SERVICES[:2]:
                self._put_service(namespace, name)
        for _ in range(self.random.randint(3, 25)):
            self._add_pod()

    def change(self) -> None:
        """Change, add or remove one object."""
        changes: tuple[tuple[int, Callable[[], None]], ...] = (
            (20, self._add_pod),
            (10, self._remove_pod),
            (8, self._bind),
            (6, self._relabel),
            (4, self._end),
            (4, self._recreate),
            (3, self._touch),
            (3, self._edit_workload),
            (2, self._add_workload),
            (2, self._remove_workload),
            (2, self._change_node),
            (1, self._add_node),
            (1, self._remove_node),
            (1, self._replace_template),
            (3, self._change_claim),
            (2, self._change_volume),
            (3, self._change_service),
            (3, self._change_budget),
            (1, self._remove_related),
        )
        self.random.choices([change for _, change in changes], [weight for weight, _ in changes])[0]()

    def _name(self, prefix: str) -> str:
        self._number += 1
        return f"{prefix}{self._number}"

    def _put(self, manifest: Json) -> None:
        metadata = manifest["metadata"]
        self.objects[manifest["kind"], metadata.get("namespace", ""), metadata["name"]] = manifest

    def _of_kind(self, *kinds: str) -> list[Json]:
        return [manifest for (kind, _, _), manifest in self.objects.items() if kind in kinds]

    def _any(self, *kinds: str) -> Json | None:
        manifests = self._of_kind(*kinds)
        return self.random.choice(manifests) if manifests else None

    def _pod_template(self) -> Json:
        generator = self.generator
        spec = generator.placed_pod()["spec"]
        if generator.chance(self._unconstrained):
            spec.pop("topologySpreadConstraints", None)
        requests = {"cpu": self.random.choice(_AMOUNTS), "memory": self.random.choice(("64Mi", "1Gi"))}
        spec["containers"] = [{"name": "app", "resources": {"requests": requests} if generator.chance(0.7) else {}}]
        if generator.chance(0.4):
            term = {"topologyKey": self.random.choice((ZONE, HOSTNAME)), "labelSelector": generator.selector()}
            if self.far and generator.chance(0.5):
                term |= self.random.choice(
                    (
                        {"namespaces": ["other"]},
                        {"namespaceSelector": {}},
                        {"namespaceSelector": {"matchLabels": {"team": "a"}}},
                    )
                )
            kind = self.random.choice(("podAffinity", "podAntiAffinity", "podAntiAffinity"))
            required = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
            spec["affinity"] = {**spec.get("affinity", {}), **required}
        if generator.chance(0.05):
            spec["restartPolicy"] = "Never"
        if generator.chance(0.3):
            claim = self.random.choice(_CLAIMS)
            spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
        return {"metadata": {"labels": generator.labels()}, "spec": spec}

    def _add_node(self) -> None:
        node = self.generator.node(self.random.randint(0, 9))
        cpu, pods = self.random.choice(("1", "2", "4")), self.random.choice(("3", "10"))
        if self.generator.chance(0.8):
            node["status"] = {"allocatable": {"cpu": cpu, "memory": "4Gi", "pods": pods}}
        self._put({"apiVersion": "v1", "kind": "Node", **node})

    def _change_node(self) -> None:
        node = self._any("Node")
        if node is not None and self.generator.chance(0.5):
            self._put({**node, "status": {**node.get("status", {}), "allocatable": {"cpu": "1", "pods": "4"}}})
        elif node is not None:
            other = self.generator.node(0)
            metadata = {
                **node["metadata"],
                "labels": {**other["metadata"]["labels"], HOSTNAME: node["metadata"]["name"]},
            }
            self._put({**node, "metadata": metadata, "spec": other["spec"]})

    def _remove_node(self) -> None:
        node = self._any("Node")
        if node is not None:
            del self.objects["Node", "", node["metadata"]["name"]]

    def _add_workload(self) -> None:
        kind = self.random.choice(_WORKLOADS)
        owner = self._any("Deployment") if kind == "ReplicaSet" else None
        namespace = self.random.choice(NAMESPACES) if owner is None else owner["metadata"]["namespace"]
        metadata: Json = {"name": self.random.choice(("w1", "w2", "w3", "w4")), "namespace": namespace}
        template = self.random.choice(self._templates)
        if owner is not None and self.generator.chance(0.7):
            metadata["ownerReferences"] = [_reference(owner)]
            metadata["annotations"] = {"deployment.kubernetes.io/revision": str(self.random.randint(1, 3))}
            template = owner["spec"]["template"]
        elif owner is not None and self.generator.chance(0.3):
            # A cycle of owners, or an owner that does not exist.
            metadata["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": kind, "name": "w1", "controller": True}]
        if self.generator.chance(0.1):
            metadata.setdefault("annotations", {})["kubectl-spread/ignore"] = "SPR3"
        spec = self._workload_spec(template)
        if kind == "StatefulSet" and self.generator.chance(0.5):
            spec["volumeClaimTemplates"] = [{"metadata": {"name": "data"}}]
        version = "apps/v1"
        if kind == "ReplicationController":
            version, spec["selector"] = "v1", spec["selector"]["matchLabels"]
        self._put({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec})

    def _workload_spec(self, template: Json) -> Json:
        return {
            "replicas": self.random.choice((0, 1, 3, 3, 5)),
            "selector": {"matchLabels": template["metadata"]["labels"]},
            "template": template,
        }

    def _edit_workload(self) -> None:
        workload = self._any(*_SELECTING)
        if workload is None:
            return
        template = workload["spec"]["template"] if self.generator.chance(0.5) else self.random.choice(self._templates)
        metadata = {**workload["metadata"]}
        if self.generator.chance(0.2):
            metadata.pop("ownerReferences", None)
        self._put({**workload, "metadata": metadata, "spec": {**workload["spec"], **self._workload_spec(template)}})

    def _remove_workload(self) -> None:
        workload = self._any(*_WORKLOADS)
        if workload is not None:
            self._remove(workload)

    def _remove(self, manifest: Json) -> None:
        metadata = manifest["metadata"]
        del self.objects[manifest["kind"], metadata.get("namespace", ""), metadata["name"]]

    def _replace_template(self) -> None:
        self._templates[self.random.randrange(len(self._templates))] = self._pod_template()

    def _add_pod(self) -> None:
        owner = self._any(*_OWNERS) if self.generator.chance(0.8) else None
        in_set = owner is not None and owner["kind"] == "StatefulSet"
        name = f"{owner['metadata']['name']}-{self.random.randint(0, 4)}" if owner and in_set else self._name("p")
        self._put(self._pod(name, owner))

    def _pod(self, name: str, owner: Json | None) -> Json:
        template = self.random.choice(self._templates) if owner is None else owner["spec"]["template"]
        namespace = self.random.choice(NAMESPACES) if owner is None else owner["metadata"]["namespace"]
        labels = {**template["metadata"]["labels"]}
        if owner is not None and owner["kind"] == "ReplicaSet":
            labels["pod-template-hash"] = owner["metadata"]["name"]
        metadata: Json = {
            "name": name,
            "namespace": namespace,
            "uid": self._name("uid"),
            "generation": 1,
            "creationTimestamp": f"2026-09-01T10:00:{self._number % 60:02}Z",
            "labels": labels,
        }
        if owner is not None:
            metadata["ownerReferences"] = [_reference(owner)]
        if self.generator.chance(0.02):
            metadata["annotations"] = {"kubernetes.io/config.mirror": "x"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**template["spec"]}}
        return self._placed(pod) if self.generator.chance(0.8) else {**pod, "status": {"phase": "Pending"}}

    def _placed(self, pod: Json) -> Json:
        node = self._any("Node")
        name = "gone" if node is None or self.generator.chance(0.05) else node["metadata"]["name"]
        return {**pod, "spec": {**pod["spec"], "nodeName": name}, "status": {"phase": "Running"}}

    def _remove_pod(self) -> None:
        pod = self._any("Pod")
        if pod is not None:
            self._remove(pod)

    def _bind(self) -> None:
        pending = [pod for pod in self._of_kind("Pod") if not pod["spec"].get("nodeName")]
        if pending:
            self._put(self._placed(self.random.choice(pending)))

    def _relabel(self) -> None:
        pod = self._any("Pod")
        if pod is not None:
            labels = {**pod["metadata"]["labels"], **self.generator.few_labels()}
            self._put({**pod, "metadata": {**pod["metadata"], "labels": labels}})

    def _end(self) -> None:
        pod = self._any("Pod")
        if pod is None:
            return
        if self.generator.chance(0.5):
            self._put({**pod, "metadata": {**pod["metadata"], "deletionTimestamp": "2026-09-02T10:00:00Z"}})
        else:
            self._put({**pod, "status": {"phase": self.random.choice(("Succeeded", "Failed"))}})

    def _recreate(self) -> None:
        """Replace a pod by another one with the same name."""
        pod = self._any("Pod")
        if pod is not None:
            self._put(self._pod(pod["metadata"]["name"], None))

    def _change_claim(self) -> None:
        """Add a claim, or bind it to another volume."""
        self._put_claim(self.random.choice(NAMESPACES), self.random.choice(_CLAIM_NAMES))

    def _put_claim(self, namespace: str, name: str) -> None:
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": namespace},
        }
        self._put({**claim, "spec": {"volumeName": self.random.choice((*_VOLUMES, ""))}})

    def _change_volume(self) -> None:
        """Add or change a volume."""
        self._put_volume(self.random.choice(_VOLUMES))

    def _put_volume(self, name: str) -> None:
        """Store a volume, which some nodes may not reach."""
        labels = {ZONE: self.random.choice(("a", "b", "a__b"))} if self.generator.chance(0.4) else {}
        volume: Json = {"apiVersion": "v1", "kind": "PersistentVolume", "spec": {}}
        if self.generator.chance(0.5):
            expression = {"key": ZONE, "operator": "In", "values": [self.random.choice(("a", "b"))]}
            terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
            volume["spec"]["nodeAffinity"] = {"required": terms}
        self._put({**volume, "metadata": {"name": name, "labels": labels}})

    def _change_service(self) -> None:
        """Add a Service, or change its selector."""
        self._put_service(self.random.choice(NAMESPACES), self.random.choice(_SERVICES))

    def _put_service(self, namespace: str, name: str) -> None:
        template = self.random.choice(self._templates)["metadata"]["labels"]
        selecting = self.random.choice((template, self.generator.few_labels(), {}))
        metadata = {"name": name, "namespace": namespace}
        self._put({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"selector": selecting}})

    def _change_budget(self) -> None:
        """Add a PodDisruptionBudget, or change its selector and its status."""
        template = self.random.choice(self._templates)["metadata"]["labels"]
        selecting = self.random.choice((template, self.generator.few_labels(), {}))
        metadata = {"name": self.random.choice(_BUDGETS), "namespace": self.random.choice(NAMESPACES), "generation": 1}
        status = {"observedGeneration": 1, "disruptionsAllowed": self.random.randint(0, 2), "expectedPods": 3}
        self._put(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": metadata,
                "spec": {"selector": {"matchLabels": selecting}, "minAvailable": 2},
                "status": {**status, "currentHealthy": 2, "desiredHealthy": 2},
            }
        )

    def _remove_related(self) -> None:
        """Remove a claim, a volume, a budget or a Service."""
        removed = self._any("PersistentVolumeClaim", "PersistentVolume", "PodDisruptionBudget", "Service")
        if removed is not None:
            self._remove(removed)

    def _touch(self) -> None:
        """Change a field that is not read."""
        pod = self._any("Pod")
        if pod is not None:
            self._put({**pod, "status": {**pod.get("status", {}), "message": self._name("m")}})


def _reference(owner: Json) -> Json:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": "u",
        "controller": True,
    }
