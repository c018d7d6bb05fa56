"""The check of the audit logs finds forbidden requests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders import Json
from tests.e2e import audit
from tests.rbac import Permission

PLUGIN = "kubectl-spread"


def event(verb: str, resource: str, *, group: str = "", agent: str = PLUGIN, **target: str) -> Json:
    reference = {"resource": resource, **({"apiGroup": group} if group else {}), **target}
    return {"verb": verb, "userAgent": agent, "requestURI": f"/api/v1/{resource}?limit=500", "objectRef": reference}


def path(uri: str, verb: str = "get") -> Json:
    return {"verb": verb, "userAgent": PLUGIN, "requestURI": uri}


@pytest.mark.parametrize(
    "allowed",
    [
        event("list", "pods"),
        event("get", "pods", name="web-1", namespace="shop"),
        event("get", "namespaces", name="kube-system"),
        event("list", "deployments", group="apps"),
        event("watch", "pods"),
        event("watch", "jobs", group="batch"),
        path("/version?timeout=32s"),
        path("/metrics"),
    ],
    ids=lambda match: str(audit.permission_of(match)),
)
def test_documented_permissions_are_allowed(allowed: Json) -> None:
    assert audit.not_allowed([allowed]) == set()


@pytest.mark.parametrize(
    "excess",
    [
        event("create", "pods"),
        event("create", "pods", subresource="eviction"),
        event("patch", "deployments", group="apps"),
        event("deletecollection", "pods"),
        event("get", "secrets"),
        event("list", "secrets"),
        event("watch", "secrets"),
        event("watch", "events"),
        event("watch", "namespaces"),
        event("list", "configmaps"),
        event("get", "pods", subresource="log"),
        event("get", "pods", subresource="exec"),
        event("get", "nodes"),
        event("get", "namespaces", name="shop"),
        event("list", "nodes", group="metrics.k8s.io"),
        event("list", "widgets", group="example.com"),
        event("create", "selfsubjectaccessreviews", group="authorization.k8s.io"),
        path("/api"),
        path("/metrics", "post"),
        path("/metrics/cadvisor"),
    ],
    ids=lambda match: str(audit.permission_of(match)),
)
def test_permissions_beyond_the_documented_ones_are_refused(excess: Json) -> None:
    assert audit.not_allowed([event("list", "pods"), excess]) == {audit.permission_of(excess)}


def test_a_subresource_is_a_resource_of_its_own() -> None:
    requested = audit.permission_of(event("get", "deployments", group="apps", subresource="scale"))
    assert requested == Permission("get", "apps", "deployments/scale")


def test_only_requests_of_the_plugin_are_checked(tmp_path: Path) -> None:
    """Those of all apiservers, of rotated logs too, whatever they say they are but a tool of the tests."""
    agents = ("kubectl/v1.37.1 (linux/amd64) kubernetes/0f9b9a8", "kube-apiserver/v1.37.1", "tests")
    mine = [event("list", "pods"), event("get", "secrets", agent="OpenAPI-Generator/36.0.0/python"), path("/version")]
    nameless = {"verb": "get", "requestURI": "/api"}
    logs = {
        "a/kube-apiserver-audit.log": [*(event("create", "pods", agent=agent) for agent in agents), mine[0]],
        "a/kube-apiserver-audit-2026-11-21T12-00-00.000.log": [mine[1]],
        "b/c/kube-apiserver-3-audit.log": [mine[2], nameless],
        "b/c/kube-apiserver-3.log": [],
    }
    for name, events in logs.items():
        log = tmp_path / name
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("".join(f"{json.dumps(event)}\n" for event in events), encoding="utf-8")
    requests = list(audit.requests(tmp_path))
    assert len(requests) == 4
    assert all(request in requests for request in [*mine, nameless])
