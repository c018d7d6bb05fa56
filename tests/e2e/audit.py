"""The requests of the plugin in a test session, from the audit logs of the apiservers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from tests.builders import Json
from tests.controlplane import client
from tests.rbac import Permission, permissions

_TOOLS: Final = (
    "kubectl/",
    "Helm/",
    "kube-rbac-proxy/",
    "kubectl-dispatcher/",
    "karpenter/",
    "kube-apiserver/",
    client.USER_AGENT,
)
"""The user agents of the tests' own tools; kubectl-dispatcher chooses a kubectl to run."""
ALLOWED: Final = frozenset([*permissions("cluster"), Permission("get", "", "/version")])
"""The permissions that the documentation names."""


def requests(directory: Path) -> Iterator[Json]:
    """Yield the requests in the audit logs below ``directory``, without those of the tests' own tools.

    They are requests of the plugin, even if some had another user agent.
    """
    for log in directory.rglob("kube-apiserver*-audit*.log"):
        with log.open("rb") as lines:
            events = map(msgspec.json.decode, lines)
            yield from (event for event in events if not event.get("userAgent", "").startswith(_TOOLS))


def permission_of(event: Json) -> Permission:
    """Return the permission that a request needs."""
    target = event.get("objectRef")
    if target is None:
        return Permission(event["verb"], "", event["requestURI"].partition("?")[0])
    resource = "/".join(target[part] for part in ("resource", "subresource") if part in target)
    return Permission(event["verb"], target.get("apiGroup", ""), resource, target.get("name", ""))


def not_allowed(events: Iterable[Json]) -> set[Permission]:
    """Return the permissions of the requests that the documentation does not name."""
    return {permission for permission in map(permission_of, events) if not {permission, _of_any(permission)} & ALLOWED}


def _of_any(permission: Permission) -> Permission:
    """Return the permission for every object of a resource."""
    return permission._replace(name="")
