"""The objects of Karpenter and cluster-autoscaler in captures."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubectl_spread.kube.nodeautoscaling import ConfigMap, EC2NodeClass, NodePool
from tests.builders import ZONE, Json
from tests.sources.test_manifests import read_text

STATUS = """\
autoscalerStatus: Running
nodeGroups:
- name: workers-a
  health: {status: Healthy, cloudProviderTarget: 5, minSize: 1, maxSize: 5}
  scaleUp: {status: NoActivity}
- name: workers-b
  health: {cloudProviderTarget: 0, minSize: 0, maxSize: 5}
  scaleUp:
    status: Backoff
    backoffInfo: {errorCode: QUOTA_EXCEEDED, errorMessage: no more}
"""


def stored(api_version: str, kind: str, name: str = "default", **fields: object) -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "uid": name}, **fields}


def status_map(text: str, name: str = "cluster-autoscaler-status") -> Json:
    manifest = stored("v1", "ConfigMap", name, data={"status": text})
    manifest["metadata"]["namespace"] = "kube-system"
    return manifest


def read(manifest: Json) -> Any:
    """Return the only object that is read, without errors."""
    [loaded], reading = read_text(json.dumps(manifest))
    assert not reading.errors
    return loaded.object


def problem(manifest: Json) -> str:
    objects, reading = read_text(json.dumps(manifest))
    assert objects == []
    assert reading.skipped == {"malformed": 1}
    return str(reading.errors[0])


def test_a_node_pool_has_its_labels_limits_and_readiness() -> None:
    template = {
        "metadata": {"labels": {"team": "shop"}},
        "spec": {
            "requirements": [{"key": ZONE, "operator": "In", "values": ["a"], "minValues": 1}],
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "al2023"},
            "startupTaints": [{"key": "cni", "effect": "NoSchedule"}],
        },
    }
    conditions = [{"type": "Ready", "status": "True", "reason": "Ready"}]
    pool = read(
        stored(
            "karpenter.sh/v1",
            "NodePool",
            spec={"template": template, "limits": {"cpu": 100}, "unknown": [1]},
            status={"resources": {"cpu": "96"}, "conditions": conditions},
        )
    )
    assert isinstance(pool, NodePool)
    assert pool.ready
    assert pool.labels == {
        "team": "shop",
        "karpenter.sh/nodepool": "default",
        "karpenter.k8s.aws/ec2nodeclass": "al2023",
    }
    assert pool.spec.limits == {"cpu": "100"}
    assert pool.metadata.namespace == ""


def test_the_subnets_of_a_node_class_say_the_zones() -> None:
    subnets = [{"id": "subnet-1", "zone": "eu-1a", "zoneID": "euz1-az1"}, {"zone": "eu-1b", "zoneID": "euz1-az2"}]
    node_class = read(stored("karpenter.k8s.aws/v1", "EC2NodeClass", status={"subnets": subnets}))
    assert isinstance(node_class, EC2NodeClass)
    assert node_class.values(ZONE) == frozenset({"eu-1a", "eu-1b"})
    assert node_class.values("topology.k8s.aws/zone-id") == frozenset({"euz1-az1", "euz1-az2"})
    assert node_class.values("kubernetes.io/hostname") is None
    assert read(stored("karpenter.k8s.aws/v1", "EC2NodeClass")).values(ZONE) is None
    without_ids = read(stored("karpenter.k8s.aws/v1", "EC2NodeClass", status={"subnets": [{"zone": "eu-1a"}]}))
    assert without_ids.values("topology.k8s.aws/zone-id") is None


def test_the_status_of_cluster_autoscaler_is_yaml_in_a_config_map() -> None:
    read_map = read(status_map(STATUS))
    assert isinstance(read_map, ConfigMap)
    full, backing_off = read_map.status.node_groups
    assert (full.name, full.is_full, full.backs_off) == ("workers-a", True, False)
    assert (backing_off.is_full, backing_off.backs_off) == (False, True)
    assert backing_off.scale_up.backoff_info.error_code == "QUOTA_EXCEEDED"


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(status_map(STATUS, "other"), id="another ConfigMap"),
        pytest.param(stored("v1", "ConfigMap", data={"n": 1}), id="another ConfigMap, malformed"),
        pytest.param(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n", "uid": "u", "labels": {"a": 1}}},
            id="another ConfigMap with malformed metadata",
        ),
        pytest.param(status_map("Cluster-autoscaler status at 2023-05-01:\nCluster-wide:\n"), id="the old text"),
        pytest.param(stored("karpenter.sh/v1beta1", "NodePool"), id="an older version"),
        pytest.param(
            {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"}, "spec": 1},
            id="a manifest, which has no state",
        ),
    ],
)
def test_other_objects_are_of_other_kinds(manifest: Json) -> None:
    objects, reading = read_text(json.dumps(manifest))
    assert objects == []
    assert not reading.errors
    assert reading.skipped == {"unknownKind": 1}


@pytest.mark.parametrize(
    ("manifest", "field"),
    [
        pytest.param(
            stored("karpenter.sh/v1", "NodePool", spec={"limits": []}), "spec.limits: expected object", id="a list"
        ),
        pytest.param(
            stored("karpenter.sh/v1", "NodePool", spec={"replicas": "2"}),
            "spec.replicas: expected integer, got string",
            id="text",
        ),
        pytest.param(status_map("nodeGroups: [{name: [}"), "data.status: is not YAML", id="YAML that is cut off"),
        pytest.param(status_map("just text"), "data.status: expected object, got string", id="not a mapping"),
        pytest.param(
            status_map("nodeGroups: [{health: {maxSize: many}}]"),
            "data.status.nodeGroups[0].health.maxSize: expected integer, got string",
            id="a field of another type",
        ),
    ],
)
def test_a_malformed_object_is_an_error_with_its_field(manifest: Json, field: str) -> None:
    assert field in problem(manifest)
