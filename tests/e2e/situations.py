"""The example of a rule on the real control plane: its owners at work, and its pods as the example stores them.

An example lists pods as an API server may have stored them long ago, often without their owner. The owner is created,
its controller creates the pods, and each of them is then overwritten in etcd with what the example says.
"""

from __future__ import annotations

import copy
import json
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from ruamel.yaml import YAML

from tests.builders import Json
from tests.controlplane import nodes
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import SCHEDULING_GATE, pod_spec
from tests.e2e.stored import Store

WORKLOADS: Final = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob")
_VERSIONS: Final = {"Pod": "v1", "Job": "batch/v1", "CronJob": "batch/v1"}
_HASHES: Final = ("pod-template-hash", "controller-revision-hash")
"""Labels whose values the controllers choose."""
OWNED: Final = "owned-by"
"""The label by which a workload selects its pods where the example has no such label."""
_OPTIONS: Final = "# options: "


class Example(NamedTuple):
    """The objects of a file by kind, and the options of its first line."""

    options: Sequence[str]
    nodes: Sequence[Json]
    pods: Sequence[Json]
    workloads: Sequence[Json]

    @property
    def minor(self) -> str:
        """The version of the API server that the example is about; "" for any."""
        return self.options[self.options.index("--server-version") + 1] if "--server-version" in self.options else ""

    @property
    def gates(self) -> dict[str, bool]:
        """The feature gates of the API server that the example is about."""
        if "--feature-gates" not in self.options:
            return {}
        pairs = self.options[self.options.index("--feature-gates") + 1].split(",")
        return {gate: value == "true" for gate, _, value in (pair.partition("=") for pair in pairs)}

    @property
    def stored(self) -> bool:
        """Whether the pods are stored ones; others are manifests that nobody has created."""
        return all("uid" in pod["metadata"] for pod in self.pods)


def example(path: Path) -> Example:
    """Read a file of manifests."""
    text = path.read_text(encoding="utf-8")
    first, *_ = text.splitlines()
    loaded = [document for document in YAML(typ="safe").load_all(text) if document]
    documents: list[Json] = json.loads(json.dumps(loaded, default=str))
    by_kind = {kind: [each for each in documents if each["kind"] == kind] for kind in ("Node", "Pod", *WORKLOADS)}
    return Example(
        options=shlex.split(first.removeprefix(_OPTIONS)) if first.startswith(_OPTIONS) else [],
        nodes=by_kind["Node"],
        pods=[pod for pod in by_kind["Pod"] if "deletionTimestamp" not in pod["metadata"]],
        # Controllers create the ReplicaSets of Deployments.
        workloads=[each for kind in WORKLOADS for each in by_kind[kind] if "ownerReferences" not in each["metadata"]],
    )


class Situation:
    """One example in a namespace of a cluster that has nothing else."""

    def __init__(self, cluster: ControlPlane, case: Example, namespace: str, *, late: bool = False) -> None:
        """Prepare an example, which ``make`` creates; ``late``: labels without a requirement came after the pods."""
        self._late = late
        self._cluster = cluster
        self._case = case
        self._namespace = namespace
        self._store = Store(cluster)

    def make(self) -> None:
        """Create the owners, overwrite the pods that their controllers create, and add the nodes at last.

        Without nodes no pod is placed before it is overwritten. The pods of a DaemonSet need their nodes first, and so
        do pods that are not overwritten: waiting pods would all be placed on the first node.
        """
        self._store.clear()
        self._cluster.forget_nodes()
        owners = [*self._owners()]
        nodes_first = not self._case.pods or any(owner["kind"] == "DaemonSet" for owner, _ in owners)
        if nodes_first:
            self._add_nodes()
        for owner, _ in owners:
            self._cluster.api.create(owner)
        for owner, pods in owners:
            self._overwrite(owner, pods)
        for pod in self._case.pods:
            if _owner(pod) is None:
                self._store.put(self._complete(pod))
        if not nodes_first:
            self._add_nodes()

    def _add_nodes(self) -> None:
        needed = {pod["spec"]["nodeName"] for pod in self._case.pods if "nodeName" in pod["spec"]}
        named = {node["metadata"]["name"] for node in self._case.nodes}
        usual = [] if self._case.nodes else ["a1", "b1", "c1", "a2", "b2", "c2"]
        for name in sorted({*usual, *([] if self._case.nodes else needed)} - named):
            self._store.put(_node({"metadata": {"name": name}}))
        for node in self._case.nodes:
            self._store.put(_node(node))

    def _owners(self) -> Iterator[tuple[Json, list[Json]]]:
        """Yield each workload with the pods of the example that it owns."""
        by_owner: dict[tuple[str, str], list[Json]] = {}
        for pod in self._case.pods:
            if owner := _owner(pod):
                by_owner.setdefault((owner["kind"], owner["name"]), []).append(pod)
        for workload in self._case.workloads:
            pods = by_owner.pop((workload["kind"], workload["metadata"]["name"]), [])
            yield self._complete_workload(workload, pods), pods
        for (kind, name), pods in by_owner.items():
            template = {
                "metadata": {"labels": _labels_at_creation(pods[0], late=self._late)},
                "spec": _unmerged(pods[0]["spec"]),
            }
            workload = {"kind": kind, "metadata": {"name": name}, "spec": {"template": template}}
            yield self._complete_workload(workload, pods), pods

    def _complete_workload(self, workload: Json, pods: Sequence[Json]) -> Json:
        """Return a workload with all that the API requires, and as many replicas as it has pods."""
        completed = copy.deepcopy(workload)
        kind = completed["kind"]
        completed["apiVersion"] = _VERSIONS.get(kind, "apps/v1")
        completed["metadata"] = {**_kept(completed["metadata"]), "namespace": self._namespace}
        completed.pop("status", None)
        spec = completed["spec"]
        job = spec["jobTemplate"] if kind == "CronJob" else completed
        template = job["spec"]["template"]
        labels = template.setdefault("metadata", {}).setdefault("labels", {})
        template["spec"] = {**pod_spec(), **template["spec"]}
        template["spec"]["containers"] = template["spec"]["containers"] or pod_spec()["containers"]
        if kind == "CronJob":
            spec.setdefault("schedule", "0 0 1 1 *")
        if kind in ("Job", "CronJob"):
            template["spec"].setdefault("restartPolicy", "Never")
        else:
            lasting = _lasting(labels, [_labels(pod) for pod in pods])
            if not lasting:
                # Controllers forget a pod that has none of the labels they select by.
                lasting = {OWNED: completed["metadata"]["name"]}
                labels.update(lasting)
            spec.setdefault("selector", {"matchLabels": lasting})
        if kind == "Job" and pods:
            spec.update(parallelism=len(pods), completions=len(pods))
        if kind in ("Deployment", "ReplicaSet", "StatefulSet"):
            spec["replicas"] = len(pods) or spec.get("replicas", 3)
        if kind == "StatefulSet":
            spec.update(serviceName=completed["metadata"]["name"], podManagementPolicy="Parallel")
        return completed

    def _overwrite(self, owner: Json, pods: Sequence[Json]) -> None:
        if not pods:
            return
        # Controllers wait up to half a minute until they connect to an apiserver that was restarted.
        self._cluster.wait_for(lambda: len(self._pods_of(owner)) >= len(pods), timeout=90, what=f"the pods of {owner}")
        by_name = {_name(pod): pod for pod in self._pods_of(owner)}
        others = [pod for name, pod in sorted(by_name.items()) if name not in {_name(pod) for pod in pods}]
        for pod in pods:
            self._store.put(self._complete(pod, by_name.get(_name(pod)) or others.pop(0)))

    def _pods_of(self, owner: Json) -> list[Json]:
        """Return the pods that the controllers have created for a workload."""
        selector = ",".join(f"{key}={value}" for key, value in owner["spec"]["selector"]["matchLabels"].items())
        path = f"/api/v1/namespaces/{self._namespace}/pods"
        listed: list[Json] = self._cluster.api.get(path, labelSelector=selector)["items"]
        prefix = f"{owner['metadata']['name']}-"
        return [pod for pod in listed if _name(pod).startswith(prefix)]

    def _complete(self, pod: Json, created: Json | None = None) -> Json:
        """Return a pod as the example stores it, with the identity of the one that a controller has created."""
        completed = copy.deepcopy(pod)
        completed.update(apiVersion="v1", kind="Pod")
        metadata, spec = completed["metadata"], completed["spec"]
        metadata["namespace"] = self._namespace
        spec["containers"] = spec.get("containers") or pod_spec()["containers"]
        if created is not None:
            names = ("name", "uid", "ownerReferences", "finalizers", "generateName")
            metadata.update({key: created["metadata"][key] for key in names if key in created["metadata"]})
            _set_hashes(completed, _labels(created))
            if OWNED in _labels(created):
                metadata["labels"][OWNED] = _labels(created)[OWNED]
            if "nodeName" in created["spec"]:
                spec["nodeName"] = created["spec"]["nodeName"]
            spec.update({key: created["spec"][key] for key in ("hostname", "subdomain") if key in created["spec"]})
        if "nodeName" not in spec:
            spec.update(SCHEDULING_GATE)
        completed.setdefault("status", {"phase": "Running" if "nodeName" in spec else "Pending"})
        return completed


def _node(node: Json) -> Json:
    """Return a node with room for many pods unless it states its room; without a UID, none could be patched."""
    name = node["metadata"]["name"]
    usual = nodes.node(name, name[0], {})
    metadata = {**usual["metadata"], "uid": f"uid-{name}", **node["metadata"]}
    status = {**usual["status"], **node.get("status", {})}
    room = {**usual["status"]["allocatable"], **node.get("status", {}).get("allocatable", {})}
    return {**usual, **node, "metadata": metadata, "status": {**status, "allocatable": room, "capacity": room}}


def _owner(pod: Json) -> Json | None:
    owners: list[Json] = pod["metadata"].get("ownerReferences", [])
    return next((owner for owner in owners if owner.get("controller")), None)


def _name(pod: Json) -> str:
    name: str = pod["metadata"]["name"]
    return name


def _labels(pod: Json) -> dict[str, str]:
    labels: dict[str, str] = pod["metadata"].get("labels", {})
    return labels


def _kept(metadata: Json) -> Json:
    return {key: value for key, value in metadata.items() if key in ("name", "labels", "annotations")}


def _lasting(labels: dict[str, str], of_pods: Sequence[dict[str, str]]) -> dict[str, str]:
    """Return the labels of a template that all of its pods still have."""
    return {
        key: value
        for key, value in labels.items()
        if key not in _HASHES and all(pod.get(key) == value for pod in of_pods)
    }


def _terms(spec: Any) -> Iterator[Json]:
    """Yield the constraints and affinity terms within a spec."""
    if isinstance(spec, dict):
        if "topologyKey" in spec:
            yield spec
        for value in spec.values():
            yield from _terms(value)
    elif isinstance(spec, list):
        for value in spec:
            yield from _terms(value)


def _requirements(term: Json) -> list[Json]:
    requirements: list[Json] = term.get("labelSelector", {}).get("matchExpressions", [])
    return requirements


def _merged(term: Json) -> list[Json]:
    """Return the requirements that the API server has added for keys."""
    match, mismatch = term.get("matchLabelKeys", []), term.get("mismatchLabelKeys", [])
    return [
        requirement
        for requirement in _requirements(term)
        if (requirement["operator"] == "In" and requirement["key"] in match)
        or (requirement["operator"] == "NotIn" and requirement["key"] in mismatch)
    ]


def _labels_at_creation(pod: Json, *, late: bool) -> dict[str, str]:
    """Return the labels that the template must have had when the selectors were merged."""
    fields = ("matchLabelKeys", "mismatchLabelKeys")
    keys = {key for term in _terms(pod["spec"]) for field in fields for key in term.get(field, ())}
    merged = {each["key"]: each["values"][0] for term in _terms(pod["spec"]) for each in _merged(term)}
    labels = {key: value for key, value in _labels(pod).items() if not (late and key in keys)}
    return {key: value for key, value in {**labels, **merged}.items() if key not in _HASHES}


def _unmerged(spec: Json) -> Json:
    """Return the fields of a pod's spec that decide its place, as its author wrote them."""
    written = {
        key: value
        for key, value in copy.deepcopy(spec).items()
        if key in ("topologySpreadConstraints", "affinity", "nodeSelector", "tolerations")
    }
    for term in _terms(written):
        merged, selector = _merged(term), term.get("labelSelector", {})
        for field, requirements in (("matchExpressions", selector.get("matchExpressions")),):
            if requirements:
                selector[field] = [each for each in requirements if each not in merged]
        if labels := selector.get("matchLabels"):
            selector["matchLabels"] = {key: labels[key] for key in labels if key not in term.get("matchLabelKeys", [])}
    return written


def _set_hashes(pod: Json, created: dict[str, str]) -> None:
    """Give a pod the labels that its controller chose, in its selectors too."""
    labels = pod["metadata"].setdefault("labels", {})
    for key in created.keys() & {*_HASHES, "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"}:
        for term in _terms(pod["spec"]):
            for requirement in _requirements(term):
                if requirement["key"] == key and requirement.get("values") == [labels.get(key)]:
                    requirement["values"] = [created[key]]
        labels[key] = created[key]
