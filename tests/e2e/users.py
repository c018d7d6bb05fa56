"""Users with roles of their own."""

from __future__ import annotations

from collections.abc import Sequence

from tests.builders import Json
from tests.controlplane.cluster import ControlPlane

_GROUP = "rbac.authorization.k8s.io"


def bind(cluster: ControlPlane, role: Json, user: str, namespace: str = "") -> None:
    """Bind a role to a user, in one namespace or in the whole cluster, and wait until the API server knows of it."""
    kind, name = role["kind"], role["metadata"]["name"]
    cluster.api.create(
        {
            "apiVersion": f"{_GROUP}/v1",
            "kind": f"{kind}Binding",
            "metadata": {"name": f"{name}-{user}", "namespace": namespace},
            "subjects": [{"apiGroup": _GROUP, "kind": "User", "name": user}],
            "roleRef": {"apiGroup": _GROUP, "kind": kind, "name": name},
        }
    )
    rule = next(rule for rule in role["rules"] if "resources" in rule)
    cluster.wait_for(lambda: _allowed(cluster, rule, user, namespace), what=f"user {user} has the role {name}")


def _allowed(cluster: ControlPlane, rule: Json, user: str, namespace: str) -> bool:
    """Tell whether the API server allows the first request of a rule; it learns of new roles a moment later."""
    resource, _, subresource = rule["resources"][0].partition("/")
    request = {
        "group": rule["apiGroups"][0],
        "resource": resource,
        "subresource": subresource,
        "verb": rule["verbs"][0],
        "name": rule.get("resourceNames", [""])[0],
        "namespace": namespace,
    }
    review = cluster.api.create(
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": user, "resourceAttributes": request},
        }
    )
    allowed: bool = review["status"]["allowed"]
    return allowed


def allow(cluster: ControlPlane, user: str, rules: Sequence[Json], namespace: str = "") -> None:
    """Create a role of these rules for a user, in one namespace or in the whole cluster."""
    role: Json = {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "Role" if namespace else "ClusterRole",
        "metadata": {"name": user, "namespace": namespace},
        "rules": list(rules),
    }
    cluster.api.create(role)
    bind(cluster, role, user, namespace)


def allow_listing(cluster: ControlPlane, user: str, *resources: str, namespace: str = "") -> None:
    """Let a user list resources of the core group, in one namespace or in the whole cluster, and nothing else."""
    allow(cluster, user, [{"apiGroups": [""], "resources": list(resources), "verbs": ["list"]}], namespace)


def allow_account(cluster: ControlPlane, namespace: str, name: str, rules: Sequence[Json]) -> None:
    """Create a ClusterRole of these rules for a service account."""
    role = f"{namespace}-{name}"
    cluster.api.create(
        {
            "apiVersion": f"{_GROUP}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": role},
            "rules": list(rules),
        }
    )
    cluster.api.create(
        {
            "apiVersion": f"{_GROUP}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": role},
            "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": name}],
            "roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", "name": role},
        }
    )
