"""Audits and reports of clusters that tests write down as JSON objects."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from kubectl_spread.audit.evaluation.evaluate import Audit, evaluate
from kubectl_spread.audit.merge.verdicts import ServerFacts
from kubectl_spread.audit.snapshot.scope import Scope
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.engine.engine import Engine
from kubectl_spread.explain.explanation import explain
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.storage import PersistentVolume, PersistentVolumeClaim
from kubectl_spread.kube.api.types import Event, Namespace, Object
from kubectl_spread.kube.api.workloads import KINDS
from kubectl_spread.kube.disruption import PodDisruptionBudget
from kubectl_spread.kube.features import behaviour, gates
from kubectl_spread.kube.nodeautoscaling import ConfigMap, EC2NodeClass, NodeClaim, NodePool
from kubectl_spread.kube.scheduler.configuration import WITHOUT_DEFAULTS, Profile
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import Service
from kubectl_spread.render import structured
from kubectl_spread.report import model, projections
from kubectl_spread.rules import RULES
from kubectl_spread.rules.engine import complete
from kubectl_spread.rules.model import SelectedRules, Selection
from tests.builders import Json, decode, decode_node, decode_pod

EVERYTHING = Scope()
ALL_RULES = Selection()


_RELATED: Mapping[str, type[Object]] = {
    each.__name__: each
    for each in (
        *(ConfigMap, EC2NodeClass, Event, Namespace, NodeClaim, NodePool),
        *(PersistentVolume, PersistentVolumeClaim, PodDisruptionBudget, Service),
    )
}


def audit(
    *objects: Json,
    minor: int = 37,
    overrides: Mapping[str, bool] | None = None,
    scope: Scope = EVERYTHING,
    nodes: model.NodesKnown | None = None,
    merge_since: datetime | None = None,
    schedulers: Mapping[str, Profile] = WITHOUT_DEFAULTS,
    detailed: bool = True,
) -> Audit:
    """Return the audit of objects that are read in the order given; with ``overrides`` the gates are known."""
    cluster_snapshot = snapshot(*objects, scope=scope, schedulers=schedulers, detailed=detailed)
    context = ServerFacts(
        behaviour(minor, gates(minor, overrides or {})), gates_known=bool(overrides), merge_since=merge_since
    )
    return evaluate(cluster_snapshot, context, nodes=nodes or ("listed" if cluster_snapshot.nodes else "none"))


def snapshot(
    *objects: Json,
    scope: Scope = EVERYTHING,
    schedulers: Mapping[str, Profile] = WITHOUT_DEFAULTS,
    detailed: bool = True,
) -> Snapshot:
    """Return the snapshot of objects that are read in the order given; ``check`` does not read pods in detail."""
    cluster_snapshot = Snapshot(scope, detailed=True, schedulers=schedulers)
    for manifest in objects:
        match manifest["kind"]:
            case "Pod":
                # Pending pods are read in detail by every command.
                pending = not manifest["spec"].get("nodeName")
                cluster_snapshot.add_pod(decode_pod(manifest, detailed=detailed or pending))
            case "Node":
                cluster_snapshot.add_node(decode_node(manifest))
            case kind if kind in _RELATED:
                cluster_snapshot.add(decode(manifest, _RELATED[kind]))
            case kind:
                group = manifest["apiVersion"].rpartition("/")[0]
                cluster_snapshot.add_workload(kind, decode(manifest, KINDS[group, kind]))
    cluster_snapshot.pods, _ = cluster_snapshot.default_selectors.applied_to(cluster_snapshot.pods)
    return cluster_snapshot


def reported(evaluation: Audit, selection: Selection = ALL_RULES) -> model.Report:
    """Return the report of an audit by all rules."""
    nodes_known: model.NodesKnown = "listed" if evaluation.snapshot.nodes else "none"
    cluster = model.Cluster(
        evaluated_as=f"1.{evaluation.context.behaviour.minor}",
        version_source="flag",
        gates={},
        gates_source="flag" if evaluation.context.gates_known else "version",
        nodes=nodes_known,
        node_count=len(evaluation.snapshot.nodes),
        zone_count=len(projections.zones(evaluation.snapshot.nodes, lambda _: 0)),
        resource_versions={},
    )
    return complete(evaluation, cluster, SelectedRules(RULES, selection), evaluation.snapshot.skipped)


def as_json(evaluation: Audit) -> Any:
    """Return the report of an audit as decoded JSON."""
    return json.loads(structured.json(reported(evaluation)))


def engine_of(evaluation: Audit) -> Engine:
    """Return the model of the cluster of an audit."""
    return Engine(evaluation.snapshot, evaluation.context.behaviour)


def explained(evaluation: Audit, *, replicas: int = 0) -> Any:
    """Return the explanation of everything in an audit as decoded JSON."""
    everything = ObjectRef("default", "Pod", "")
    explanation = explain(evaluation, reported(evaluation), everything, engine_of(evaluation), replicas=replicas)
    return json.loads(structured.json(explanation))


def row(evaluation: Audit, path: str = "spec.topologySpreadConstraints[0]") -> Any:
    """Return the only row of a path."""
    (only,) = [constraint for constraint in as_json(evaluation)["constraints"] if constraint["path"] == path]
    return only


def verdicts(evaluation: Audit) -> dict[str, str]:
    """Return the verdict on each pod and path that is not ``merged``: ``{"web-1 …[0]": "stale-label"}``."""
    return {f"{pod['name']} {pod['path']}": pod["verdict"] for pod in as_json(evaluation)["pods"]}


def without(manifest: Json, *path: str) -> Json:
    """Return a copy of an object without one field."""
    name, *below = path
    if not below:
        return {key: value for key, value in manifest.items() if key != name}
    return {**manifest, name: without(manifest[name], *below)}


def deployment(
    name: str = "web",
    *,
    labels: Mapping[str, str] | None = None,
    constraints: Sequence[Json] = (),
    namespace: str = "default",
    annotations: Mapping[str, str] | None = None,
    kind: str = "Deployment",
    owner: str = "",
    **spec: object,
) -> Json:
    """Return a Deployment, or another workload with the same shape, whose template has ``labels``."""
    owner_kind, _, owner_name = owner.partition("/")
    references = [{"kind": owner_kind, "name": owner_name, "uid": owner, "controller": True}]
    template = {
        "metadata": {"labels": {"app": "web"} if labels is None else dict(labels)},
        "spec": {**({"topologySpreadConstraints": list(constraints)} if constraints else {}), **spec},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": namespace,
            **({"annotations": dict(annotations)} if annotations else {}),
            **({"ownerReferences": references} if owner else {}),
        },
        "spec": {"template": template},
    }
