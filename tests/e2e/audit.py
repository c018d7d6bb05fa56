"""What the plugin asked the apiservers of a test session, by their audit logs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from tests.builders import Json
from tests.controlplane import client
from tests.rbac import Permission, permissions

_TOOLS: Final = ("kubectl/", "kubectl-dispatcher/", "kube-apiserver/", client.USER_AGENT)
"""The user agents of the tests themselves; the second is a kubectl that chooses another one to run."""
ALLOWED: Final = frozenset([*permissions("cluster"), Permission("get", "", "/version")])
"""What the documentation says that the plugin needs."""


def requests(directory: Path) -> Iterator[Json]:
    """Yield every request that none of the tests' own tools sent to an apiserver with its files below ``directory``.

    These are the plugin's, also if one day it sent some that do not say so.
    """
    for log in directory.rglob("kube-apiserver*-audit*.log"):
        with log.open("rb") as lines:
            events = map(msgspec.json.decode, lines)
            yield from (event for event in events if not event.get("userAgent", "").startswith(_TOOLS))


def permission_of(event: Json) -> Permission:
    """Return what a request needs permission for."""
    target = event.get("objectRef")
    if target is None:
        return Permission(event["verb"], "", event["requestURI"].partition("?")[0])
    resource = "/".join(target[part] for part in ("resource", "subresource") if part in target)
    return Permission(event["verb"], target.get("apiGroup", ""), resource, target.get("name", ""))


def not_allowed(events: Iterable[Json]) -> set[Permission]:
    """Return what was asked for beyond what the documentation says."""
    return {permission for permission in map(permission_of, events) if not {permission, _of_any(permission)} & ALLOWED}


def _of_any(permission: Permission) -> Permission:
    """Return the permission for every object of a resource."""
    return permission._replace(name="")
