"""Claims and volumes on the control plane, where no controller binds them: both name each other from the beginning."""

from __future__ import annotations

from collections.abc import Mapping

from tests.builders import ZONE, Json, requirement

_SIZE = {"storage": "1Gi"}
_MODES = {"accessModes": ["ReadWriteOnce"]}


def bound_claim(
    name: str, namespace: str, *expressions: Json, labels: Mapping[str, str] | None = None
) -> tuple[Json, Json]:
    """Return a claim and the volume that it is bound to, with ``expressions`` as its node affinity."""
    volume = f"{namespace}-{name}"
    terms = {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}
    affinity = {"nodeAffinity": {"required": terms}} if expressions else {}
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": name}
    return (
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume, "labels": dict(labels or {})},
            "spec": {"capacity": _SIZE, **_MODES, "hostPath": {"path": "/data"}, "claimRef": reference, **affinity},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
            },
            "spec": {"resources": {"requests": _SIZE}, **_MODES, "volumeName": volume, "storageClassName": ""},
        },
    )


def zonal_claim(name: str, namespace: str, *zones: str) -> tuple[Json, Json]:
    """Return a claim, and its volume that only the nodes of some zones reach."""
    return bound_claim(name, namespace, requirement(ZONE, "In", *zones))


def claim_templates(*names: str) -> list[Json]:
    """Return the claim templates of a StatefulSet."""
    return [{"metadata": {"name": name}, "spec": {"resources": {"requests": _SIZE}, **_MODES}} for name in names]
