"""API groups: whether a kind is one of Kubernetes itself."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from kubectl_spread.kube.api.workloads import KINDS

KUBERNETES_GROUPS: Final = frozenset(
    f"{name}.k8s.io"
    for name in (
        "admissionregistration",
        "apiextensions",
        "apiregistration",
        "authentication",
        "authorization",
        "certificates",
        "coordination",
        "discovery",
        "events",
        "flowcontrol.apiserver",
        "internal.apiserver",
        "networking",
        "node",
        "rbac.authorization",
        "resource",
        "scheduling",
        "storage",
        "storagemigration",
    )
)
"""The groups of Kubernetes itself that have a dot.

The group of a CustomResourceDefinition always has a dot, so a group without a dot is Kubernetes' own.
Source: kubernetes v1.37.1 staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go.
"""
_KINDS: Final = frozenset({"Pod", "Node", "Namespace", "Event", "Service", *(kind for _, kind in KINDS)})
"""The kinds of Kubernetes that are read."""


def group_of(api_version: str) -> str:
    """Return the API group in an apiVersion; "" for the core group."""
    return api_version.rpartition("/")[0]


@lru_cache(maxsize=1024)
def is_custom(api_version: str) -> bool:
    """Tell whether an apiVersion has a group that is not one of Kubernetes itself."""
    group = group_of(api_version)
    return "." in group and group not in KUBERNETES_GROUPS


def kind_name(api_version: str, kind: str) -> str:
    """Return the name of a kind: with its group, as kubectl takes it, if Kubernetes has a kind of the same name.

    A ``StatefulSet.apps.kruise.io`` is not a StatefulSet.
    """
    return f"{kind}.{group_of(api_version)}" if kind in _KINDS and is_custom(api_version) else kind


def base_kind(kind: str) -> str:
    """Return the kind without the group in the name of a kind; pods of any Job end, and any DaemonSet pins its pods."""
    return kind.partition(".")[0]
