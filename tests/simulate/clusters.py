"""Small clusters, and what ``simulate`` says about events on them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from click.testing import Result

from tests import contract
from tests.builders import HOSTNAME, ZONE, Json, constraint, selector
from tests.cli.test_check import run

HASH: Final = "5d9c"
RUNS: Final = ("--runs", "5")


def node(name: str, *, zone: str = "", cpu: int = 8, cordoned: bool = False, taints: Sequence[Json] = ()) -> Json:
    """Return a node; its zone defaults to the first letter of its name."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {HOSTNAME: name, ZONE: zone or name[0]},
            "creationTimestamp": "2026-09-01T09:00:00Z",
        },
        "spec": {"taints": list(taints), **({"unschedulable": True} if cordoned else {})},
        "status": {
            "allocatable": {"cpu": str(cpu), "memory": "32Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def nodes(*names: str, cpu: int = 8) -> list[Json]:
    """Return nodes, each in the zone of its first letter."""
    return [node(name, cpu=cpu) for name in names]


def template(name: str, *, cpu: str = "1", **spec: object) -> Json:
    """Return a pod template."""
    requests = {"cpu": cpu, "memory": "1Gi"}
    containers = [{"name": "app", "image": "app", "resources": {"requests": requests}}]
    return {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers, **spec}}


def zone_constraint(name: str, **fields: Any) -> Json:
    """Return a hard constraint on the zone for the pods of a workload."""
    return constraint(selects=selector({"app": name}), **fields)


def workload(
    kind: str, name: str, spec: Json, *, version: str = "apps/v1", owner: str = "", **metadata: object
) -> Json:
    """Return a workload; ``owner`` is written ``Kind/name``."""
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": f"uid-{kind}-{name}",
            **({"ownerReferences": [_reference(owner)]} if owner else {}),
            **metadata,
        },
        "spec": spec,
    }


def _reference(owner: str) -> Json:
    kind, _, name = owner.partition("/")
    version = "batch/v1" if kind == "Job" else "apps/v1"
    return {"apiVersion": version, "kind": kind, "name": name, "uid": f"uid-{kind}-{name}", "controller": True}


def pod(name: str, on: str, pod_template: Json, owner: str = "", **metadata: Any) -> Json:
    """Return a pod of a template; ``on`` is its node, "" while it is pending."""
    labels = {**pod_template["metadata"]["labels"], **metadata.pop("labels", {})}
    ready = [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-09-01T10:01:00Z"}] if on else []
    spec = dict(pod_template["spec"])
    if priority := metadata.pop("priority", None):
        spec["priority"] = priority
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": f"uid-{name}",
            "generation": 1,
            "creationTimestamp": "2026-09-01T10:00:00Z",
            "labels": labels,
            **({"ownerReferences": [_reference(owner)]} if owner else {}),
            **metadata,
        },
        "spec": {**spec, **({"nodeName": on} if on else {})},
        "status": {"phase": "Running" if on else "Pending", "conditions": ready},
    }


def only_on(name: str) -> Json:
    """Return the affinity that a DaemonSet gives its pod for a node."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def deployment(name: str, on: Sequence[str], *, strategy: Json | None = None, **spec: Any) -> list[Json]:
    """Return a Deployment with its ReplicaSet and a pod on each of some nodes; ``spec`` goes to the template."""
    priority = spec.pop("priority", None)
    pod_template = template(name, **spec)
    labels = {"app": name, "pod-template-hash": HASH}
    revised = {**pod_template, "metadata": {"labels": labels}}
    replica_set = f"{name}-{HASH}"
    rolling = {"strategy": strategy} if strategy else {}
    return [
        workload(
            "Deployment",
            name,
            {"replicas": len(on), "selector": selector({"app": name}), "template": pod_template, **rolling},
        ),
        workload(
            "ReplicaSet",
            replica_set,
            {"replicas": len(on), "selector": selector(labels), "template": revised},
            owner=f"Deployment/{name}",
            annotations={"deployment.kubernetes.io/revision": "1"},
        ),
        *(
            pod(f"{replica_set}-{number}", place, revised, f"ReplicaSet/{replica_set}", priority=priority)
            for number, place in enumerate(on)
        ),
    ]


def stateful_set(name: str, on: Sequence[str], *, claims: bool = False, **fields: Any) -> list[Json]:
    """Return a StatefulSet and a pod on each of some nodes; with ``claims`` each has a volume in its zone."""
    pod_template = template(name)
    made: list[Json] = []
    templates = [{"metadata": {"name": "data"}}] if claims else []
    spec = {"replicas": len(on), "selector": selector({"app": name}), "template": pod_template}
    made.append(workload("StatefulSet", name, {**spec, "volumeClaimTemplates": templates, **fields}))
    for number, place in enumerate(on):
        own = pod(f"{name}-{number}", place, pod_template, f"StatefulSet/{name}")
        if claims:
            claim = f"data-{name}-{number}"
            own["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
            made += _volume(claim, place[0])
        made.append(own)
    return made


def _volume(claim: str, zone: str) -> list[Json]:
    expression = {"key": ZONE, "operator": "In", "values": [zone]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": claim, "namespace": "shop", "uid": claim},
            "spec": {"volumeName": f"pv-{claim}"},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"pv-{claim}", "uid": f"pv-{claim}"},
            "spec": {"nodeAffinity": affinity},
        },
    ]


def budget(name: str, **spec: object) -> Json:
    """Return a PodDisruptionBudget of the pods of a workload."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "shop", "uid": f"uid-pdb-{name}"},
        "spec": {"selector": selector({"app": name}), **spec},
    }


def command(objects: Sequence[Json], *arguments: str) -> Result:
    """Run ``simulate`` on objects."""
    return run("simulate", *arguments, "-f", "-", stdin="\n".join(map(json.dumps, objects)))


def simulated(objects: Sequence[Json], *arguments: str) -> Any:
    """Return the report of ``simulate -o json``, which the schema allows."""
    answer = command(objects, *RUNS, *arguments, "-o", "json")
    assert answer.stdout, answer.stderr
    return contract.loaded(answer.stdout)


def after(report: Any, name: str) -> tuple[str, str]:
    """Return the running and the pending pods of a workload after the events: ``2``, or ``1..2``."""
    (workload_after,) = [each["after"] for each in report["workloads"] if each["workload"]["name"] == name]
    running, pending = (_text(workload_after[part]) for part in ("running", "pending"))
    return running, pending


def _text(span: Mapping[str, int]) -> str:
    return str(span["min"]) if span["min"] == span["max"] else f"{span['min']}..{span['max']}"


def reasons(report: Any, name: str) -> list[str]:
    """Return why pods of a workload stay pending."""
    (workload_after,) = [each for each in report["workloads"] if each["workload"]["name"] == name]
    return [reason["text"] for reason in workload_after["reasons"]]
