"""Claims that a StatefulSet creates: the volumes that exist are taken one by one, and a class may make others."""

from __future__ import annotations

import pytest

from tests.builders import HOSTNAME, Json, requirement
from tests.simulate.clusters import after, deployment, nodes, reasons, simulated, stateful_set

NONE = "no PersistentVolume is available for a claim that is not bound, and none can be made"
EBS = "ebs.csi.aws.com"


def local(name: str, *on: str) -> Json:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [requirement(HOSTNAME, "In", *on)]}]}
    spec = {"capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "disk"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "uid": name},
        "spec": {**spec, "nodeAffinity": {"required": terms}},
        "status": {"phase": "Available"},
    }


def storage_class(provisioner: str, **fields: object) -> Json:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "disk", "uid": "disk"},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
        **fields,
    }


LOCAL = storage_class("kubernetes.io/no-provisioner")
DRIVER: Json = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "CSIDriver",
    "metadata": {"name": EBS, "uid": EBS},
    "spec": {"attachRequired": True},
}


def database() -> list[Json]:
    """Return a StatefulSet without pods, each of which has a claim of the class, and a claim of another."""
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "disk", "resources": {"requests": {"storage": "5Gi"}}}
    templates = [{"metadata": {"name": "data"}, "spec": spec}]
    other = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "other", "namespace": "shop"}}
    return [*stateful_set("db", [], volumeClaimTemplates=templates, podManagementPolicy="Parallel"), other]


@pytest.mark.parametrize(
    ("volumes", "running"),
    [
        pytest.param([], "0", id="no volume"),
        pytest.param([local("one", "a1"), local("two", "a1")], "2", id="two on one node"),
        pytest.param([local("one", "a1"), local("two", "b1"), local("three", "c1")], "3", id="one on each node"),
        pytest.param([local("one", "d1")], "0", id="on a node that is gone"),
    ],
)
def test_each_pod_takes_a_volume(volumes: list[Json], running: str) -> None:
    report = simulated([*nodes("a1", "b1", "c1"), *database(), LOCAL, *volumes], "--scale", "sts/db=3")
    assert after(report, "db") == (running, str(3 - int(running)))
    assert report["summary"]["unknown"] == []
    if running != "3":
        assert reasons(report, "db") == [f"3 nodes: {NONE}"]


def test_a_pod_comes_back_to_the_volume_that_it_took() -> None:
    """After the scaling its claim is bound; the other volume is not for it."""
    objects = [*nodes("a1", "b1"), *database(), LOCAL, local("one", "a1"), local("two", "b1")]
    report = simulated(objects, "--scale", "sts/db=2", "--delete", "a1")
    assert after(report, "db") == ("1", "1")


def test_a_class_that_makes_volumes_anywhere_is_known() -> None:
    objects = [*nodes("a1", "b1"), *database(), storage_class(EBS)]
    known = simulated([*objects, DRIVER], "--scale", "sts/db=2")
    assert (after(known, "db"), known["summary"]["unknown"]) == (("2", "0"), [])
    unknown = simulated(objects, "--scale", "sts/db=2")
    assert unknown["summary"]["unknown"] == ["where new volumes can be"]


def test_a_volume_that_is_made_stays_in_its_zone() -> None:
    """The volumes that its class made before tell by which labels nodes reach it."""
    objects = [*nodes("a1", "b1"), *database(), storage_class(EBS), DRIVER]
    events = ("--scale", "sts/db=2", "--delete", "a1")
    unknown = simulated(objects, *events)
    assert unknown["summary"]["unknown"] == ["where new volumes can be"]
    made = {**local("made", "b1"), "status": {"phase": "Bound"}}
    made["spec"] = {**made["spec"], "claimRef": {"namespace": "shop", "name": "other"}}
    known = simulated([*objects, made], *events)
    assert (after(known, "db"), known["summary"]["unknown"]) == (("1", "1"), [])


def test_pods_that_share_a_claim_follow_the_first_of_them() -> None:
    claim: Json = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "shop", "uid": "data"},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "disk",
            "resources": {"requests": {"storage": "5Gi"}},
        },
    }
    shared = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    web = deployment("web", [], volumes=shared)
    objects = [*nodes("a1", "b1", cpu=2), *web, claim, storage_class(EBS), DRIVER]
    unknown = simulated(objects, "--scale", "deploy/web=3")
    assert unknown["summary"]["unknown"] == ["where new volumes can be"]
    made = {**local("made", "b1"), "status": {"phase": "Bound"}}
    made["spec"] = {**made["spec"], "claimRef": {"namespace": "shop", "name": "other"}}
    known = simulated([*objects, made], "--scale", "deploy/web=3")
    assert (after(known, "web"), known["summary"]["unknown"]) == (("2", "1"), [])


@pytest.mark.parametrize(
    ("objects", "status"),
    [
        pytest.param([], 1, id="no class was read"),
        pytest.param([storage_class(EBS), DRIVER], 0, id="anywhere"),
        pytest.param([storage_class(EBS, volumeBindingMode="Immediate"), DRIVER], 1, id="before the pod has a node"),
        pytest.param([LOCAL, DRIVER], 1, id="only volumes that exist"),
        pytest.param([storage_class(EBS)], 1, id="the driver was not read"),
    ],
)
def test_where_the_ephemeral_volumes_of_new_pods_can_be(objects: list[Json], status: int) -> None:
    web = deployment("web", ["a1"], volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}])
    cluster = [*nodes("a1", "b1"), *web, *objects]
    unknown = simulated(cluster, "--delete", "a1")["summary"]["unknown"]
    assert unknown == ["where new volumes can be"] * status
    assert simulated(cluster, "--delete", "b1")["summary"]["unknown"] == []
