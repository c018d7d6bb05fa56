"""The plugin only reads: the audit logs of all apiservers have nothing else of it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kubectl_spread import __version__
from tests.builders import Json, constraint
from tests.controlplane.cluster import ControlPlane
from tests.e2e import audit
from tests.e2e.manifests import deployment
from tests.e2e.spread import Plugin
from tests.e2e.workloads import label, roll_out

pytestmark = pytest.mark.e2e

COMMANDS: Sequence[Sequence[str]] = (
    ["check", "-A"],
    ["check", "-A", "-o", "json"],
    ["check", "-o", "wide"],
    ["check", "deploy/web"],
    ["check", "-l", "app=web", "--select", "SPR1"],
    ["explain", "deploy/web"],
    ["domains", "zone", "a"],
)


@pytest.fixture(scope="module")
def events(control_plane: ControlPlane, plugin: Plugin) -> list[Json]:
    """Run every command as a user with all rights, and return the requests to the apiserver."""
    user = "reviewer"
    spread = plugin.on(control_plane, control_plane.kubeconfig_for(user, ["system:masters"]))
    labels = {"app": "web", "rev": "r1"}
    with control_plane.namespace() as namespace:
        web = deployment(constraints=[constraint(match=["rev", "late"])], labels=labels, namespace=namespace)
        late, *_ = roll_out(control_plane, web)
        label(control_plane, namespace, late, "late=yes")
        for command in COMMANDS:
            scope = [] if "-A" in command else ["-n", namespace]
            answer = spread(*command, *scope)
            assert answer.status in (0, 1), answer.stderr
    requests = audit.requests(control_plane.directory)
    return [event for event in requests if event["user"]["username"] == user]


def test_only_get_and_list_are_requested(events: list[Json]) -> None:
    """Nothing is written or watched, although this user may do both; this cluster has no node autoscaler."""
    assert {event["verb"] for event in events} == {"get", "list"}
    missing = [event for event in events if event["responseStatus"]["code"] == 404]
    assert {event["responseStatus"]["code"] for event in events} == {200, 404}
    assert {
        (event["verb"], event["objectRef"]["resource"], event["objectRef"].get("name", "")) for event in missing
    } == {
        ("list", "nodepools", ""),
        ("get", "configmaps", "cluster-autoscaler-status"),
    }


def test_only_what_the_answer_needs_is_read(events: list[Json]) -> None:
    """Pods, nodes, workloads, events and autoscalers to explain, budgets, version, identity, gates; no secrets."""
    resources = {event["objectRef"]["resource"] for event in events if "objectRef" in event}
    paths = {event["requestURI"].partition("?")[0] for event in events if "objectRef" not in event}
    assert {"pods", "nodes", "replicasets"} <= resources
    workloads = {"deployments", "statefulsets", "daemonsets", "jobs", "cronjobs", "replicationcontrollers"}
    of_autoscalers = {"nodepools", "configmaps"}
    others = {"events", "namespaces", "poddisruptionbudgets"}
    assert resources <= {"pods", "nodes", "replicasets"} | others | of_autoscalers | workloads
    names = {
        event["objectRef"].get("name") for event in events if event.get("objectRef", {}).get("resource") == "namespaces"
    }
    assert names == {"kube-system"}
    assert paths <= {"/version", "/metrics"}


def test_pods_are_listed_as_the_scheduler_lists_them(events: list[Json]) -> None:
    """In pages, without finished pods, and never from a stale cache."""
    requests = [event["requestURI"] for event in events if event.get("objectRef", {}).get("resource") == "pods"]
    assert requests
    assert all("fieldSelector=status.phase" in request and "limit=500" in request for request in requests)
    assert not any("resourceVersion=" in request for request in requests)


def test_the_plugin_says_who_it_is(events: list[Json]) -> None:
    """Administrators of a cluster can distinguish its requests from others."""
    assert {event["userAgent"] for event in events} == {f"kubectl-spread/{__version__}"}


def test_every_request_is_allowed_by_the_documented_role(events: list[Json]) -> None:
    """docs/rbac/cluster.yaml allows them; the fixture ``read_only`` asks the same of every other test."""
    assert events
    assert audit.not_allowed(events) == set()
