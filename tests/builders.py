"""Builders of objects for tests: keyword arguments with defaults, so that a test states only what matters to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from kubectl_spread.kube.api.sparse import DetailedPod
from kubectl_spread.kube.api.types import LabelSelector, Message, Node, Pod

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"

Json = dict[str, Any]
M = TypeVar("M", bound=Message)


def requirement(key: str, operator: str = "In", *values: str) -> Json:
    """Return one item of matchExpressions."""
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def selector(labels: Mapping[str, str] | None = None, *expressions: Json) -> Json:
    """Return a label selector; without arguments it is empty."""
    return {
        **({"matchLabels": dict(labels)} if labels else {}),
        **({"matchExpressions": list(expressions)} if expressions else {}),
    }


def constraint(
    *,
    key: str = ZONE,
    hard: bool = True,
    max_skew: int = 1,
    selects: Json | None = None,
    match: Sequence[str] = (),
    **fields: object,
) -> Json:
    """Return a topology spread constraint.

    ``selects`` defaults to ``app=web``. Further fields are spelt as in the API, and left out where they are None.
    """
    written = {"labelSelector": selector({"app": "web"}) if selects is None else selects, **fields}
    return {
        "maxSkew": max_skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
        **({"matchLabelKeys": list(match)} if match else {}),
        **{key: value for key, value in written.items() if value is not None},
    }


def term(
    *,
    key: str = HOSTNAME,
    selects: Json | None = None,
    match: Sequence[str] = (),
    mismatch: Sequence[str] = (),
    **fields: object,
) -> Json:
    """Return an affinity term; ``selects`` defaults to ``app=web``, and further fields are spelt as in the API."""
    written = {"labelSelector": selector({"app": "web"}) if selects is None else selects, **fields}
    return {
        "topologyKey": key,
        **({"matchLabelKeys": list(match)} if match else {}),
        **({"mismatchLabelKeys": list(mismatch)} if mismatch else {}),
        **{name: value for name, value in written.items() if value is not None},
    }


def affinity(field: str, *terms: Json, required: bool = True) -> Json:
    """Return an affinity with ``terms`` in one of the lists of ``podAffinity`` or ``podAntiAffinity``."""
    if required:
        return {field: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}
    weighted = [{"weight": 1, "podAffinityTerm": term} for term in terms]
    return {field: {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}


def node_json(
    name: str,
    *,
    zone: str | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Json] = (),
    without: Sequence[str] = (),
) -> Json:
    """Return a node; its zone defaults to the first letter of its name.

    A zone of "" is an empty value; ``without`` names labels that are left out.
    """
    node_labels = {HOSTNAME: name, ZONE: name[0] if zone is None else zone, **(labels or {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {key: value for key, value in node_labels.items() if key not in without}},
        "spec": {"taints": list(taints)},
    }


def pod_json(
    name: str = "web-1",
    *,
    node: str = "",
    labels: Mapping[str, str] | None = None,
    constraints: Sequence[Json] = (),
    namespace: str = "default",
    owner: str = "",
    stored: bool = True,
    metadata: Mapping[str, object] | None = None,
    phase: str = "",
    **spec: object,
) -> Json:
    """Return a pod, labelled ``app=web`` by default.

    ``owner`` is written ``Kind/name``; further fields go to its spec.
    """
    kind, _, owner_name = owner.partition("/")
    references = [{"apiVersion": "apps/v1", "kind": kind, "name": owner_name, "uid": owner, "controller": True}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"app": "web"} if labels is None else dict(labels),
            **({"uid": f"uid-{namespace}-{name}", "generation": 1} if stored else {}),
            **({"creationTimestamp": "2026-09-01T10:00:00Z"} if stored else {}),
            **({"ownerReferences": references} if owner else {}),
            **(metadata or {}),
        },
        "spec": {
            **({"nodeName": node} if node else {}),
            **({"topologySpreadConstraints": list(constraints)} if constraints else {}),
            **spec,
        },
        "status": {"phase": phase or ("Running" if node else "Pending")},
    }


def decode_selector(manifest: Json | None) -> LabelSelector | None:
    """Return a selector as the type of the core."""
    return None if manifest is None else msgspec.convert(manifest, LabelSelector)


def node_pool_json(
    name: str = "default",
    *requirements: Json,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Json] = (),
    ready: str = "True",
    limits: Mapping[str, str] | None = None,
    used: Mapping[str, str] | None = None,
    **spec: object,
) -> Json:
    """Return a NodePool whose nodes are of the EC2NodeClass ``default``; ``used`` are the resources of its nodes."""
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    of_nodes = {"requirements": list(requirements), "taints": list(taints), "nodeClassRef": reference}
    template = {"metadata": {"labels": dict(labels or {})}, "spec": of_nodes}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": {"template": template, "limits": dict(limits or {}), **spec},
        "status": {"resources": dict(used or {}), "conditions": [{"type": "Ready", "status": ready}]},
    }


def node_class_json(*zones: str) -> Json:
    """Return the EC2NodeClass ``default``, with a subnet in each zone."""
    subnets = [{"zone": zone, "zoneID": f"id-{zone}"} for zone in zones]
    metadata = {"name": "default", "uid": "uid-default"}
    return {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": metadata,
        "status": {"subnets": subnets},
    }


def node_group(name: str, target: int, most: int, *, error: str = "") -> Json:
    """Return a node group in the status of cluster-autoscaler; with an ``error`` it is in backoff."""
    backoff = {"status": "Backoff", "backoffInfo": {"errorCode": error}} if error else {"status": "NoActivity"}
    return {"name": name, "health": {"cloudProviderTarget": target, "maxSize": most}, "scaleUp": backoff}


def claim_json(name: str, volume: str = "", *, namespace: str = "default") -> Json:
    """Return a PersistentVolumeClaim, bound to a volume unless that is ""."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}"},
        "spec": {"volumeName": volume} if volume else {},
    }


def volume_json(name: str, *expressions: Json, labels: Mapping[str, str] | None = None) -> Json:
    """Return a PersistentVolume, whose node affinity is one term of ``expressions`` if there are any."""
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": dict(labels or {})},
        "spec": {"nodeAffinity": affinity} if expressions else {},
    }


def using_claim(claim: str, *, name: str = "data") -> Json:
    """Return a volume of a pod that is a claim."""
    return {"name": name, "persistentVolumeClaim": {"claimName": claim}}


def decode(manifest: Json, type_: type[M]) -> M:
    """Return an object as a type of the core."""
    return msgspec.json.decode(msgspec.json.encode(manifest), type=type_)


def decode_node(manifest: Json) -> Node:
    """Return a node as the type of the core."""
    return msgspec.json.decode(msgspec.json.encode(manifest), type=Node)


def decode_pod(manifest: Json, *, detailed: bool = False) -> Pod:
    """Return a pod as the type of the core; ``detailed`` reads the fields for ``explain`` too."""
    return msgspec.json.decode(msgspec.json.encode(manifest), type=DetailedPod if detailed else Pod)
