"""The nodes on which claims that are not bound find a volume, or would have one made."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_spread.kube.api.labels import ascending
from kubectl_spread.kube.api.storage import CSIDriver, PersistentVolume, PersistentVolumeClaim, StorageClass
from kubectl_spread.kube.scheduler.podtopologyspread.domains import NodeLabels
from kubectl_spread.kube.scheduler.volumebinding import Bindable, UnboundClaim, VolumeBinder
from kubectl_spread.kube.scheduler.volumes import ClaimedVolumes, Unresolved, allowed_by_affinity, node_selector
from tests.builders import HOSTNAME, ZONE, Json, decode, decode_node, node_json, requirement

NAMES = ("a1", "b1", "c1")
NODES = NodeLabels([decode_node(node_json(name)) for name in NAMES])
LOCAL = "kubernetes.io/no-provisioner"
EBS = "ebs.csi.aws.com"


def storage_class(name: str, provisioner: str = LOCAL, mode: str = "WaitForFirstConsumer", **fields: Any) -> Json:
    metadata = {"name": name, "annotations": fields.pop("annotations", {})}
    return {"metadata": metadata, "provisioner": provisioner, "volumeBindingMode": mode, **fields}


def local(name: str, node: str, size: str = "10Gi", **spec: Any) -> Json:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [requirement(HOSTNAME, "In", node)]}]}
    reach = {"nodeAffinity": {"required": terms}} if node else {}
    fields = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local", **reach}
    phase, labels = spec.pop("phase", "Available"), spec.pop("labels", {})
    return {"metadata": {"name": name, "labels": labels}, "spec": {**fields, **spec}, "status": {"phase": phase}}


def zonal(name: str, zone: str | None, storage_class: str) -> Json:
    volume = local(name, "", storageClassName=storage_class, phase="Bound")
    if zone:
        terms = {"nodeSelectorTerms": [{"matchExpressions": [requirement(ZONE, "In", zone)]}]}
        volume["spec"]["nodeAffinity"] = {"required": terms}
    return volume


def claim(name: str = "data", size: str = "5Gi", *, created: bool = True, node: str = "", **spec: Any) -> UnboundClaim:
    annotations = {"volume.kubernetes.io/selected-node": node} if node else {}
    fields = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    fields |= {"storageClassName": "local", **spec}
    stored = decode({"metadata": {"name": name, "annotations": annotations}, "spec": fields}, PersistentVolumeClaim)
    return UnboundClaim(("shop", name), stored, created=created)


def read(*volumes: Json, classes: tuple[Json, ...] = (), drivers: dict[str, bool] | None = None) -> ClaimedVolumes:
    claimed = ClaimedVolumes()
    for volume in volumes:
        claimed.add(decode(volume, PersistentVolume))
    for each in (storage_class("local"), *classes):
        claimed.add(decode(each, StorageClass))
    for name, capacity in (drivers or {}).items():
        claimed.add(decode({"metadata": {"name": name}, "spec": {"storageCapacity": capacity}}, CSIDriver))
    claimed.classes_complete = True
    return claimed


def names(answer: Bindable) -> list[str]:
    return [NAMES[number] for number in ascending(answer.nodes)]


@pytest.mark.parametrize(
    ("volumes", "asked", "allowed"),
    [
        pytest.param([local("one", "a1"), local("two", "c1")], claim(), ["a1", "c1"], id="two nodes have a volume"),
        pytest.param([], claim(), [], id="no volume"),
        pytest.param([local("one", "a1", "1Gi")], claim(), [], id="too small"),
        pytest.param([local("one", "a1", "5120Mi")], claim(), ["a1"], id="just large enough"),
        pytest.param([local("one", "a1", phase="Released")], claim(), [], id="not available"),
        pytest.param([local("one", "a1", storageClassName="fast")], claim(), [], id="of another class"),
        pytest.param([local("one", "a1", volumeMode="Block")], claim(), [], id="of another mode"),
        pytest.param([local("one", "a1")], claim(accessModes=["ReadWriteMany"]), [], id="without the access mode"),
        pytest.param([local("one", "")], claim(), ["a1", "b1", "c1"], id="in reach of all nodes"),
        pytest.param(
            [local("one", "a1"), local("two", "b1", labels={"disk": "ssd"})],
            claim(selector={"matchLabels": {"disk": "ssd"}}),
            ["b1"],
            id="the claim selects by labels",
        ),
        pytest.param(
            [local("one", "a1", claimRef={"namespace": "shop", "name": "data"}, phase="Pending"), local("two", "b1")],
            claim(),
            ["a1"],
            id="reserved for the claim",
        ),
        pytest.param(
            [local("one", "a1", claimRef={"namespace": "shop", "name": "other"})],
            claim(),
            [],
            id="reserved for another",
        ),
    ],
)
def test_a_class_without_provisioner_binds_to_volumes_that_exist(
    volumes: list[Json], asked: UnboundClaim, allowed: list[str]
) -> None:
    answer = VolumeBinder(read(*volumes), NODES).bindable([asked])
    assert (names(answer), answer.waiting, answer.unknown) == (allowed, "", False)


def test_volumes_that_others_took_are_gone() -> None:
    volumes = read(local("one", "a1"), local("two", "b1"))
    assert names(VolumeBinder(volumes, NODES).bindable([claim()], {"one"})) == ["b1"]


def test_two_claims_of_a_pod_need_two_volumes_on_one_node() -> None:
    """The smaller claim is bound first, to the smallest volume that is large enough."""
    volumes = read(local("a-small", "a1", "5Gi"), local("a-large", "a1", "20Gi"), local("b", "b1", "20Gi"))
    binder = VolumeBinder(volumes, NODES)
    answer = binder.bindable([claim("big", "15Gi"), claim("small", "2Gi")])
    assert names(answer) == ["a1"]
    bound = {name: volume.metadata.name for name, volume in binder.bound(answer, 0).items()}  # type: ignore[union-attr]
    assert bound == {("shop", "small"): "a-small", ("shop", "big"): "a-large"}


@pytest.mark.parametrize(
    ("made", "drivers", "allowed", "unknown"),
    [
        pytest.param(storage_class("ebs", EBS), {EBS: False}, ["a1", "b1", "c1"], False, id="on every node"),
        pytest.param(storage_class("ebs", EBS), {EBS: True}, ["a1", "b1", "c1"], True, id="where there is room"),
        pytest.param(storage_class("ebs", EBS), {}, ["a1", "b1", "c1"], True, id="the drivers were not read"),
        pytest.param(
            storage_class(
                "ebs",
                EBS,
                allowedTopologies=[{"matchLabelExpressions": [{"key": ZONE, "values": ["a", "c"]}]}],
            ),
            {EBS: False},
            ["a1", "c1"],
            False,
            id="in two zones",
        ),
    ],
)
def test_a_provisioner_makes_volumes(made: Json, drivers: dict[str, bool], allowed: list[str], unknown: bool) -> None:
    answer = VolumeBinder(read(classes=(made,), drivers=drivers), NODES).bindable([claim(storageClassName="ebs")])
    assert (names(answer), answer.unknown, answer.binds) == (allowed, unknown, True)


@pytest.mark.parametrize(
    ("others", "reached"),
    [
        pytest.param([], None, id="no other volume tells"),
        pytest.param([zonal("one", "c", "ebs")], ["a1"], id="the zone, as the others"),
        pytest.param([zonal("one", None, "nfs"), zonal("two", "c", "ebs")], ["a1"], id="volumes of another class"),
        pytest.param([zonal("one", None, "ebs")], ["a1", "b1", "c1"], id="everywhere"),
    ],
)
def test_a_volume_that_is_made_is_reached_as_the_others_of_its_class(
    others: list[Json], reached: list[str] | None
) -> None:
    volumes = read(*others, classes=(storage_class("ebs", EBS),), drivers={EBS: False})
    binder = VolumeBinder(volumes, NODES)
    (volume,) = binder.bound(binder.bindable([claim(storageClassName="ebs")]), 0).values()
    if reached is None:
        assert volume is Unresolved.MADE
    else:
        assert isinstance(volume, PersistentVolume)
        assert allowed_by_affinity(node_selector(volume), NODES) == sum(NODES.named(name) for name in reached)


def test_a_volume_that_is_being_made_keeps_its_pod_on_the_chosen_node() -> None:
    volumes = read(classes=(storage_class("ebs", EBS),), drivers={EBS: False})
    assert names(VolumeBinder(volumes, NODES).bindable([claim(storageClassName="ebs", node="b1")])) == ["b1"]


IMMEDIATE = storage_class("now", EBS, "Immediate")


@pytest.mark.parametrize(
    ("asked", "waiting", "unknown"),
    [
        pytest.param(claim(storageClassName="now", created=False), True, False, id="a claim of an immediate class"),
        pytest.param(claim(storageClassName="", created=False), True, False, id="a claim without class"),
        pytest.param(claim(storageClassName="gone", created=False), True, False, id="a class that does not exist"),
        pytest.param(claim(storageClassName="now"), False, True, id="a claim that will be made and bound somewhere"),
        pytest.param(claim(storageClassName=""), True, False, id="no volume could be for it"),
        pytest.param(claim("bad", "much"), False, True, id="a size that cannot be read"),
    ],
)
def test_other_claims_are_bound_before_the_pod_is_placed(asked: UnboundClaim, waiting: bool, unknown: bool) -> None:
    answer = VolumeBinder(read(classes=(IMMEDIATE,), drivers={EBS: False}), NODES).bindable([asked])
    assert (names(answer), bool(answer.waiting), answer.unknown) == ([*NAMES], waiting, unknown)


def test_without_the_class_nothing_is_known() -> None:
    volumes = read()
    volumes.classes_complete = False
    answer = VolumeBinder(volumes, NODES).bindable([claim(storageClassName="ebs", created=False)])
    assert (names(answer), answer.waiting, answer.unknown) == ([*NAMES], "", True)


def test_a_new_claim_without_class_gets_the_newest_default_class() -> None:
    """A claim that exists without one was created where none was the default."""
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    old, new = storage_class("old", LOCAL, annotations=default), storage_class("new", EBS, annotations=default)
    old["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    new["metadata"]["creationTimestamp"] = "2026-02-01T00:00:00Z"
    volumes = read(classes=(old, new), drivers={EBS: False})
    assert names(VolumeBinder(volumes, NODES).bindable([claim(storageClassName=None)])) == [*NAMES]
    assert VolumeBinder(volumes, NODES).bindable([claim(storageClassName=None, created=False)]).waiting == "data"
