"""Manifests for the real control plane: a test states only what matters to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tests.builders import Json

SCHEDULING_GATE: Final[Json] = {"schedulingGates": [{"name": "example.com/wait"}]}
"""Fields of a spec with which a pod waits until a test lifts the gate."""
WITHOUT_GATE: Final[Json] = {"spec": {"schedulingGates": None}}
"""The patch that lifts the gate."""


def pod_spec(constraints: Sequence[Json] = (), **more: Any) -> Json:
    """Return the spec of a pod with one container."""
    return {
        "containers": [{"name": "app", "image": "registry.example/app:1"}],
        "terminationGracePeriodSeconds": 1,
        "topologySpreadConstraints": list(constraints),
        **more,
    }


def pod(
    name: str,
    constraints: Sequence[Json] = (),
    *,
    labels: Mapping[str, str] | None = None,
    namespace: str = "default",
    metadata: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Json:
    """Return a pod, labelled ``app=web`` by default."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"app": "web"} if labels is None else dict(labels),
            **(metadata or {}),
        },
        "spec": pod_spec(constraints, **spec),
    }


def workload(
    kind: str,
    name: str,
    constraints: Sequence[Json] = (),
    *,
    replicas: int = 3,
    labels: Mapping[str, str] | None = None,
    namespace: str = "default",
    **spec: Any,
) -> Json:
    """Return a Deployment, StatefulSet or DaemonSet; its pods are labelled ``app=web`` by default."""
    pod_labels = {"app": "web"} if labels is None else dict(labels)
    template = {"metadata": {"labels": pod_labels}, "spec": pod_spec(constraints, **spec)}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            # The owner does not select by a label that tests change.
            "selector": {"matchLabels": {"app": pod_labels["app"]}},
            "template": template,
            **({} if kind == "DaemonSet" else {"replicas": replicas}),
            **({"serviceName": name, "podManagementPolicy": "Parallel"} if kind == "StatefulSet" else {}),
        },
    }


def deployment(name: str = "web", constraints: Sequence[Json] = (), **more: Any) -> Json:
    """Return a Deployment."""
    return workload("Deployment", name, constraints, **more)
