"""The controllers of Kubernetes work as before where policies refuse what the rules find.

The controllers have service accounts of their own, as on most clusters. The objects in the namespace ``early`` were
stored before the policies, which would refuse to create them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from tests.builders import HOSTNAME, ZONE, Json, constraint
from tests.controlplane.client import STRATEGIC_PATCH, ApiError
from tests.controlplane.cluster import ControlPlane
from tests.e2e import guarded
from tests.e2e.guarded import EARLY, refusal, try_create
from tests.e2e.manifests import pod, workload
from tests.e2e.workloads import label, pods, pods_of, roll_out

pytestmark = pytest.mark.e2e

REVISION = "controller-revision-hash"
INDEX = "apps.kubernetes.io/pod-index"
POD_NAME = "statefulset.kubernetes.io/pod-name"
ABSENT_KEY = "SPR107 absent-key: "


@pytest.fixture
def shop(guarded_cluster: ControlPlane) -> Iterator[str]:
    """Return a namespace for one test."""
    with guarded_cluster.namespace("shop") as name:
        yield name


def test_each_policy_refuses(guarded_cluster: ControlPlane) -> None:
    """Otherwise the other tests would prove nothing."""
    messages = {resource: refusal(send) for resource, send in guarded.probes(guarded_cluster).items()}
    codes = {resource: message.partition(": ")[0] for resource, message in messages.items()}
    assert codes == {
        "labels of pods": "SPR101 stale-label",
        "pods": "SPR107 absent-key",
        "deployments": "SPR107 absent-key",
        "cronjobs": "SPR107 absent-key",
        "podtemplates": "SPR107 absent-key",
    }


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet"])
def test_a_workload_of_before_rolls_out_again(guarded_cluster: ControlPlane, kind: str) -> None:
    """A restart and another image change the template, but no field that the rules read."""
    name = kind.lower()
    assert refusal(lambda: try_create(guarded_cluster, guarded.early(kind, "again"))).startswith(ABSENT_KEY)
    before = _uids(guarded_cluster, EARLY, name)
    for command in (["restart", f"{name}/{name}"], ["image", f"{name}/{name}", "app=registry.example/app:2"]):
        verb = "rollout" if command[0] == "restart" else "set"
        guarded_cluster.kubectl(verb, *command, "-n", EARLY)
    guarded_cluster.kubectl("rollout", "status", f"{name}/{name}", "-n", EARLY, "--timeout=120s")
    after = _uids(guarded_cluster, EARLY, name)
    assert after
    assert not before & after


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "ReplicaSet"])
def test_a_workload_of_before_is_scaled(guarded_cluster: ControlPlane, kind: str) -> None:
    """By the scale subresource, as a HorizontalPodAutoscaler does, and by an update of the workload itself."""
    name = kind.lower()
    path = f"/apis/apps/v1/namespaces/{EARLY}/{name}s/{name}"
    scale = guarded_cluster.api.get(f"{path}/scale")
    guarded_cluster.api.request("PUT", f"{path}/scale", scale | {"spec": {"replicas": 3}})
    _wait_for_pods(guarded_cluster, EARLY, name, 3)
    guarded_cluster.api.patch(path, {"spec": {"replicas": 2}})
    _wait_for_pods(guarded_cluster, EARLY, name, 2)


def test_pods_of_a_workload_of_before_are_replaced(guarded_cluster: ControlPlane) -> None:
    """An evicted and a deleted pod of the ReplicaSet have replacements."""
    _wait_for_pods(guarded_cluster, EARLY, "replicaset", 2)
    first, second = pods_of(guarded_cluster, EARLY, "replicaset")
    metadata = {"name": first["metadata"]["name"], "namespace": EARLY}
    path = f"/api/v1/namespaces/{EARLY}/pods"
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
    guarded_cluster.api.request("POST", f"{path}/{metadata['name']}/eviction", eviction)
    guarded_cluster.api.request("DELETE", f"{path}/{second['metadata']['name']}")
    old = {first["metadata"]["uid"], second["metadata"]["uid"]}

    def replaced() -> bool:
        current = _uids(guarded_cluster, EARLY, "replicaset")
        return len(current) == 2 and not current & old

    guarded_cluster.wait_for(replaced, 60, "both pods are replaced")


def test_a_job_of_before_runs_and_completes(guarded_cluster: ControlPlane) -> None:
    """The Job is resumed, its pod finishes, and the controller removes its finalizer from the pod."""
    path = f"/apis/batch/v1/namespaces/{EARLY}/jobs/job"
    guarded_cluster.api.patch(path, {"spec": {"suspend": False}})
    _finish(guarded_cluster, "job")
    guarded_cluster.wait_for(lambda: _complete(guarded_cluster.api.get(path)), 60, "the Job is complete")
    (finished,) = pods_of(guarded_cluster, EARLY, "job")
    assert "finalizers" not in finished["metadata"]


def test_a_cron_job_of_before_creates_jobs(guarded_cluster: ControlPlane) -> None:
    """Its controller has one run to make up for."""
    path = f"/apis/batch/v1/namespaces/{EARLY}/cronjobs/cronjob"
    last = (datetime.now(UTC) - timedelta(minutes=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
    guarded_cluster.api.patch(f"{path}/status", {"status": {"lastScheduleTime": last}})
    guarded_cluster.api.patch(path, {"spec": {"suspend": False}})
    guarded_cluster.wait_for(lambda: pods_of(guarded_cluster, EARLY, "cronjob"), 60, "the Job of the CronJob has a pod")
    guarded_cluster.api.patch(path, {"spec": {"suspend": True}})


def test_the_daemon_set_controller_relabels_pods_of_a_repeated_revision(
    guarded_cluster: ControlPlane, shop: str
) -> None:
    """The label is one that matchLabelKeys names, and the rollout would stop if the policy refused the change.

    Source: kubernetes v1.37.1 pkg/controller/daemon/update.go, dedupCurHistories.
    """
    keys = [constraint(key=HOSTNAME, hard=False, selects={"matchLabels": {"app": "agent"}}, match=[REVISION])]
    agent = workload("DaemonSet", "agent", keys, labels={"app": "agent"}, namespace=shop)
    roll_out(guarded_cluster, agent)
    path = f"/apis/apps/v1/namespaces/{shop}/controllerrevisions"
    (revision,) = guarded_cluster.api.get(path)["items"]
    metadata = revision["metadata"]
    again = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": "agent-again",
            "namespace": shop,
            "labels": metadata["labels"] | {REVISION: "again"},
            "ownerReferences": metadata["ownerReferences"],
        },
        "data": revision["data"],
        "revision": revision["revision"] + 1,
    }
    # The controller compares bytes, and kubectl writes JSON without spaces, as the controller does.
    guarded_cluster.kubectl("create", "-f", "-", input=json.dumps(again))
    changes = count()

    def relabelled() -> bool:
        # The controller looks at its revisions only when the DaemonSet or one of its pods changes.
        change = {"metadata": {"annotations": {"example.com/change": str(next(changes))}}}
        guarded_cluster.api.patch(f"/apis/apps/v1/namespaces/{shop}/daemonsets/agent", change)
        names = [each["metadata"]["name"] for each in guarded_cluster.api.get(path)["items"]]
        values = {each["metadata"]["labels"][REVISION] for each in pods(guarded_cluster, shop)}
        return (names, values) == (["agent-again"], {"again"})

    guarded_cluster.wait_for(relabelled, 60, "the pods have the label of the newest of two equal revisions")
    name = pods(guarded_cluster, shop)[0]["metadata"]["name"]
    with pytest.raises(ApiError, match="SPR102 removed-label: "):
        guarded_cluster.api.patch(f"/api/v1/namespaces/{shop}/pods/{name}", {"metadata": {"labels": {REVISION: None}}})


def test_the_stateful_set_controller_labels_a_pod_that_it_adopts(guarded_cluster: ControlPlane) -> None:
    """The pod was created by hand, with other values of the two labels that its matchLabelKeys names.

    Source: kubernetes v1.37.1 pkg/controller/statefulset/stateful_set_utils.go, updateIdentity.
    """
    keys = [constraint(selects={"matchLabels": {"app": "adopted"}}, hard=False)]
    adopter = workload("StatefulSet", "adopted", keys, replicas=1, labels={"app": "adopted"}, namespace=EARLY)
    # A rolling update would replace the pod, which is of no revision, soon after it was labelled.
    adopter["spec"]["updateStrategy"] = {"type": "OnDelete"}
    path = f"/api/v1/namespaces/{EARLY}/pods/adopted-0"
    identity: Json = {POD_NAME: "adopted-0", INDEX: "0"}
    assert refusal(lambda: guarded.try_label(guarded_cluster, "adopted-0", identity)).startswith("SPR101 stale-label: ")
    before = guarded_cluster.api.get(path)
    guarded_cluster.api.create(adopter)

    def labelled() -> bool:
        labels = guarded_cluster.api.get(path)["metadata"]["labels"]
        return {key: labels.get(key) for key in identity} == identity

    guarded_cluster.wait_for(labelled, 60, "the pod has the labels of its StatefulSet")
    assert guarded_cluster.api.get(path)["metadata"]["uid"] == before["metadata"]["uid"]


def test_binding_overwrites_the_zone_of_a_merged_label(guarded_cluster: ControlPlane, shop: str) -> None:
    """The policy of labels evaluates updates of pods, and a binding is not an update."""
    keys = [constraint(key=HOSTNAME, hard=False, match=[ZONE])]
    for zone in ("a", "b"):
        labels = {"app": "web", ZONE: "a"}
        guarded_cluster.api.create(pod(f"bound-{zone}", keys, labels=labels, namespace=shop, nodeSelector={ZONE: zone}))

    def bound() -> bool:
        zones = {each["metadata"]["name"]: each["metadata"]["labels"][ZONE] for each in pods(guarded_cluster, shop)}
        nodes = [each["spec"].get("nodeName") for each in pods(guarded_cluster, shop)]
        return all(nodes) and zones == {"bound-a": "a", "bound-b": "b"}

    guarded_cluster.wait_for(bound, 60, "the pods are bound")


def test_a_replica_set_releases_and_adopts_pods(guarded_cluster: ControlPlane, shop: str) -> None:
    """A pod is taken out of service by a label that no matchLabelKeys names, and put back.

    With the label ``pod-template-hash``, which matchLabelKeys names, the change is refused.
    """
    keys = [constraint(match=["pod-template-hash"])]
    roll_out(guarded_cluster, workload("Deployment", "web", keys, replicas=2, namespace=shop))
    released, _ = pods_of(guarded_cluster, shop, "web")
    name = released["metadata"]["name"]
    path = f"/api/v1/namespaces/{shop}/pods/{name}"
    with pytest.raises(ApiError, match="SPR101 stale-label: "):
        guarded_cluster.api.patch(path, {"metadata": {"labels": {"pod-template-hash": "debug"}}})
    label(guarded_cluster, shop, name, "app=debug")
    _wait_for_pods(guarded_cluster, shop, "web", 2)
    guarded_cluster.wait_for(
        lambda: "ownerReferences" not in guarded_cluster.api.get(path)["metadata"], 60, "the pod is released"
    )
    label(guarded_cluster, shop, name, "app=web")

    def adopted() -> bool:
        current = pods_of(guarded_cluster, shop, "web")
        return len(current) == 2 and all("ownerReferences" in each["metadata"] for each in current)

    guarded_cluster.wait_for(adopted, 60, "the pod is adopted, and one of three is deleted")


def test_garbage_collection(guarded_cluster: ControlPlane, shop: str) -> None:
    """Orphans lose their owner, a foreground deletion waits for the pods, and finalizers are removed."""
    keys = [constraint(match=["pod-template-hash"])]
    for name in ("kept", "deleted"):
        selecting = [each | {"labelSelector": {"matchLabels": {"app": name}}} for each in keys]
        roll_out(guarded_cluster, workload("Deployment", name, selecting, labels={"app": name}, namespace=shop))
    (replica_set,) = guarded_cluster.api.get(f"/apis/apps/v1/namespaces/{shop}/replicasets", labelSelector="app=kept")[
        "items"
    ]
    guarded_cluster.kubectl("delete", "deploy/kept", "-n", shop, "--cascade=orphan")
    name = replica_set["metadata"]["name"]
    guarded_cluster.kubectl("delete", f"replicaset/{name}", "-n", shop, "--cascade=orphan")
    guarded_cluster.kubectl("delete", "deploy/deleted", "-n", shop, "--cascade=foreground", "--timeout=60s")
    orphans = pods(guarded_cluster, shop)
    assert [each["metadata"]["labels"]["app"] for each in orphans] == ["kept"] * 3
    assert not any("ownerReferences" in each["metadata"] for each in orphans)


def _uids(cluster: ControlPlane, namespace: str, app: str) -> set[str]:
    """Return the identities of the pods of an app, without those that are deleted already."""
    return {
        each["metadata"]["uid"]
        for each in pods_of(cluster, namespace, app)
        if "deletionTimestamp" not in each["metadata"]
    }


def _wait_for_pods(cluster: ControlPlane, namespace: str, app: str, count: int) -> None:
    """Wait until an app has exactly so many pods, which all run."""

    def running() -> bool:
        current = pods_of(cluster, namespace, app)
        deleted = [each for each in current if "deletionTimestamp" in each["metadata"]]
        return not deleted and [each["status"]["phase"] for each in current] == ["Running"] * count

    cluster.wait_for(running, 60, f"{count} pods of {app} run")


def _finish(cluster: ControlPlane, app: str) -> None:
    """Report that the container of the pod of an app ended well."""
    _wait_for_pods(cluster, EARLY, app, 1)
    (running,) = pods_of(cluster, EARLY, app)
    state = {"terminated": {"exitCode": 0, "reason": "Completed"}}
    statuses = [each | {"state": state, "ready": False} for each in running["status"]["containerStatuses"]]
    body = {"status": {"phase": "Succeeded", "containerStatuses": statuses}}
    path = f"/api/v1/namespaces/{EARLY}/pods/{running['metadata']['name']}/status"
    cluster.api.patch(path, body, STRATEGIC_PATCH)


def _complete(stored: Json) -> bool:
    conditions = stored["status"].get("conditions", [])
    return any((each["type"], each["status"]) == ("Complete", "True") for each in conditions)
