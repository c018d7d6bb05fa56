"""``explain`` names the real cause why a Deployment is uneven or its pods are pending, on a real control plane."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from tests.builders import ZONE, Json, constraint
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import deployment
from tests.e2e.spread import Plugin, Report, Spread
from tests.e2e.users import allow_listing
from tests.e2e.workloads import label, pods, pods_per_zone, roll_out, scale_down_unevenly, wait_for_rollout

pytestmark = pytest.mark.e2e

PATH = "spec.topologySpreadConstraints[0]"
NOT_MATCHED = "didn't match pod topology spread constraints"


def web(namespace: str, *, replicas: int, constraints: Sequence[Json] | None = None, **more: Any) -> Json:
    """Return a Deployment whose pods are spread over zones, whatever their revision."""
    pod_constraints = [constraint()] if constraints is None else constraints
    return deployment("web", pod_constraints, replicas=replicas, namespace=namespace, **more)


def explained(spread: Spread, namespace: str, what: str = "deploy/web") -> Report:
    """Return the explanation of the Deployment as JSON."""
    answer = spread("explain", what, "-n", namespace, "-o", "json")
    assert answer.status == 0, answer.stderr
    return answer.report


@contextmanager
def cordoned(cluster: ControlPlane, *nodes: str) -> Iterator[None]:
    """Cordon nodes inside a ``with`` block."""
    cluster.kubectl("cordon", *nodes)
    try:
        yield
    finally:
        cluster.kubectl("uncordon", *nodes)

        def untainted() -> bool:
            return not any(cluster.api.get(f"/api/v1/nodes/{node}")["spec"].get("taints") for node in nodes)

        cluster.wait_for(untainted, what="the nodes are as before")


def refused(cluster: ControlPlane, namespace: str) -> list[Json]:
    """Return the events about pods that the scheduler refused because of a spread constraint."""
    events = cluster.api.get(f"/api/v1/namespaces/{namespace}/events", fieldSelector="reason=FailedScheduling")["items"]
    return [event for event in events if NOT_MATCHED in event["message"]]


def the_pending_pod(cluster: ControlPlane, namespace: str) -> str:
    """Wait for a pod that was refused because of a spread constraint, and return its name."""
    cluster.wait_for(lambda: refused(cluster, namespace), what="the scheduler refuses a pod")
    (name,) = (pod["metadata"]["name"] for pod in pods(cluster, namespace) if "nodeName" not in pod["spec"])
    assert isinstance(name, str)
    return name


def test_a_scale_down_is_a_cause(control_plane: ControlPlane, namespace: str, spread: Spread) -> None:
    roll_out(control_plane, web(namespace, replicas=6))
    scale_down_unevenly(control_plane, namespace, "web")
    assert pods_per_zone(control_plane, namespace) == {"a": 2, "b": 1}
    (cause,) = explained(spread, namespace)["causes"]
    assert (cause["cause"], cause["confidence"], cause["path"]) == ("scale-down", "certain", PATH)
    assert "from 6 to 3" in cause["evidence"][0]


def test_check_knows_the_ports_that_pods_take(control_plane: ControlPlane, namespace: str, spread: Spread) -> None:
    """The API server sends the pods in protobuf, of which ``check`` decodes a part."""
    ports = [{"containerPort": 8080, "hostPort": 8099}]
    more = len(control_plane.api.get("/api/v1/nodes")["items"]) + 1
    containers = [{"name": "app", "image": "registry.example/app:1", "ports": ports}]
    control_plane.apply(web(namespace, replicas=more, constraints=[], containers=containers))

    def all_but_one() -> bool:
        stored = pods(control_plane, namespace)
        return len(stored) == more and sum("nodeName" in pod["spec"] for pod in stored) == more - 1

    control_plane.wait_for(all_but_one, what="one pod waits")
    answer = spread("check", "-n", namespace, "--fail-on", "never", "-o", "json")
    messages = [each["message"] for each in answer.report["findings"] if each["code"] == "SPR315"]
    assert len(messages) == 1
    assert "port 8099/TCP is taken" in messages[0]


def test_a_rollout_is_a_cause(control_plane: ControlPlane, namespace: str, spread: Spread) -> None:
    """The new pods even out the old pods, and are uneven themselves once the old pods are gone."""
    roll_out(control_plane, web(namespace, replicas=6))
    scale_down_unevenly(control_plane, namespace, "web")
    assert pods_per_zone(control_plane, namespace) == {"a": 2, "b": 1}
    manifest = web(namespace, replicas=3, terminationGracePeriodSeconds=2)
    # All new pods are placed before the first old one goes.
    manifest["spec"]["strategy"] = {"rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0}}
    manifest["spec"]["minReadySeconds"] = 3
    roll_out(control_plane, manifest)
    assert pods_per_zone(control_plane, namespace) == {"b": 1, "c": 2}
    explanation = explained(spread, namespace)
    (cause,) = explanation["causes"]
    assert (cause["cause"], cause["confidence"], cause["path"]) == ("rollout", "certain", PATH)
    assert "created while 3 pods of the older revision still counted" in cause["evidence"][0]
    (owner,) = explanation["rollup"]["owners"]
    assert (owner["kind"], owner["revision"], owner["pods"]) == ("ReplicaSet", 2, 3)
    assert owner["above"] == [{"kind": "Deployment", "name": "web"}]


def test_a_cordoned_zone_is_a_cause(control_plane: ControlPlane, namespace: str, spread: Spread) -> None:
    roll_out(control_plane, web(namespace, replicas=3))
    (there,) = (pod for pod in pods(control_plane, namespace) if pod["spec"]["nodeName"].startswith("c"))
    with cordoned(control_plane, "c1", "c2"):
        control_plane.kubectl("delete", "pod", there["metadata"]["name"], "-n", namespace)
        pending = the_pending_pod(control_plane, namespace)
        explanation = explained(spread, namespace)
    (cause,) = explanation["causes"]
    assert (cause["cause"], cause["confidence"]) == ("drained-domain", "certain")
    assert cause["evidence"] == ["Zone c has no pods and cannot take one (2 nodes: cordoned)."]
    (waiting,) = explanation["waiting"]
    assert (waiting["pods"], waiting["allowed"]) == ([pending], [])
    assert [(node["filter"], node["nodes"]) for node in waiting["refused"]] == [
        ("cordon", ["c1", "c2"]),
        ("spread", ["a1", "a2", "b1", "b2"]),
    ]
    assert waiting["event"]["pod"] == pending
    assert NOT_MATCHED in waiting["event"]["message"]


def test_a_blocked_pod_has_the_numbers_of_the_schedulers_message(
    control_plane: ControlPlane, namespace: str, spread: Spread
) -> None:
    """Node a2 is cordoned in a zone that the constraint refuses too, and counts as cordoned."""
    roll_out(control_plane, web(namespace, replicas=3))
    (there,) = (pod for pod in pods(control_plane, namespace) if pod["spec"]["nodeName"].startswith("c"))
    with cordoned(control_plane, "a2", "c1", "c2"):
        control_plane.kubectl("delete", "pod", there["metadata"]["name"], "-n", namespace)
        the_pending_pod(control_plane, namespace)
        explanation = explained(spread, namespace)
    (finding,) = blocked_findings(explanation)
    assert finding["message"].startswith(
        "No node takes the pending pod: 3 nodes do not match the spread constraints and 3 nodes are cordoned."
    )
    (waiting,) = explanation["waiting"]
    assert "3 node(s) didn't match pod topology spread constraints" in waiting["event"]["message"]
    assert "3 node(s) were unschedulable" in waiting["event"]["message"]


def test_a_half_done_rollout_in_a_closed_zone_is_one_error_until_the_zone_is_open(
    control_plane: ControlPlane, namespace: str, spread: Spread
) -> None:
    """The pending pods of both revisions are in one finding; when the nodes are uncordoned, none is left."""
    manifest = web(namespace, replicas=3)
    manifest["spec"]["strategy"] = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    roll_out(control_plane, manifest)
    (there,) = (pod for pod in pods(control_plane, namespace) if pod["spec"]["nodeName"].startswith("c"))
    with cordoned(control_plane, "c1", "c2"):
        control_plane.kubectl("delete", "pod", there["metadata"]["name"], "-n", namespace)
        the_pending_pod(control_plane, namespace)
        manifest["spec"]["template"]["spec"]["tolerations"] = [{"key": "new", "operator": "Exists"}]
        control_plane.apply(manifest)

        def waiting() -> list[str]:
            return sorted(pod["metadata"]["name"] for pod in pods(control_plane, namespace) if not node_of(pod))

        control_plane.wait_for(lambda: len(waiting()) > 1, what="a pod of each revision is pending")
        (blocked,) = blocked_findings(spread.report("-n", namespace, status=1))
        assert (blocked["severity"], blocked["pending"], blocked["pods"]) == ("error", 2, waiting())
    wait_for_rollout(control_plane, "deploy/web", namespace)
    assert blocked_findings(spread.report("-n", namespace)) == []


def node_of(pod: Json) -> str:
    return str(pod["spec"].get("nodeName", ""))


def blocked_findings(report: Report) -> list[Json]:
    return [finding for finding in report["findings"] if finding["code"] == "SPR303"]


def test_a_changed_label_of_a_pending_pod_is_a_cause(
    control_plane: ControlPlane, namespace: str, spread: Spread
) -> None:
    """Its constraint selects nothing any more, but the scheduler does not try the pod again."""
    keyed = [constraint(match=["rev"], nodeAffinityPolicy="Ignore")]
    labels = {"app": "web", "rev": "r1"}
    control_plane.apply(web(namespace, replicas=2, constraints=keyed, labels=labels, nodeSelector={ZONE: "a"}))
    pending = the_pending_pod(control_plane, namespace)
    assert explained(spread, namespace, f"pod/{pending}")["waiting"][0]["allowed"] == []
    label(control_plane, namespace, pending, "rev=r2")
    explanation = explained(spread, namespace, f"pod/{pending}")
    (cause,) = explanation["causes"]
    assert (cause["cause"], cause["confidence"]) == ("stale-selector", "certain")
    assert f"rev of {pending} was r1 at creation and is r2 now" in cause["evidence"][0]
    (waiting,) = explanation["waiting"]
    assert waiting["allowed"] == ["a1", "a2"]
    assert waiting["inert"] == [{"path": PATH, "key": "rev", "stored": "r1", "label": "r2"}]
    assert NOT_MATCHED in waiting["event"]["message"]
    text = spread("explain", f"pod/{pending}", "-n", namespace).stdout
    assert "tries again only after a node has changed or after 5 minutes" in text
    assert the_pending_pod(control_plane, namespace) == pending


def test_missing_permissions_are_reported(control_plane: ControlPlane, namespace: str, plugin: Plugin) -> None:
    """There is an answer without events and pods of other namespaces, and the missing permissions are named."""
    keyed = [constraint(nodeAffinityPolicy="Ignore")]
    control_plane.apply(web(namespace, replicas=2, constraints=keyed, nodeSelector={ZONE: "a"}))
    pending = the_pending_pod(control_plane, namespace)
    user = f"reader-of-{namespace}"
    allow_listing(control_plane, user, "pods", namespace=namespace)
    allow_listing(control_plane, user, "nodes")
    answer = plugin.on(control_plane, control_plane.kubeconfig_for(user))("explain", f"pod/{pending}", "-n", namespace)
    assert answer.status == 0, answer.stderr
    assert "Unknown: pods of other namespaces were not read" in answer.stdout
    assert "The scheduler's message, from the status of " in answer.stdout
    assert "the controllers' own words are not shown" in answer.stderr
