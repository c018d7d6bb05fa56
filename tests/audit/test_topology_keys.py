"""The label of nodes that is meant by a topology key that they do not have."""

from __future__ import annotations

import pytest

from kubectl_spread.audit.evaluation.topologykeys import is_separating, nearest_key, standard_key
from kubectl_spread.kube.api.types import Node, ObjectMeta
from kubectl_spread.kube.scheduler.podtopologyspread.domains import NodeSets
from tests.kube.test_scoring import SERVED

HOSTNAME, ZONE, REGION = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OF_NODES = {
    "beta.kubernetes.io/os": ("linux", "linux"),
    "kubernetes.io/arch": ("amd64", "amd64"),
    "kubernetes.io/os": ("linux", "linux"),
    HOSTNAME: ("n1", "n2"),
    REGION: ("eu", "eu"),
    ZONE: ("a", "b"),
    "example.com/rack": ("r1", "r2"),
    "topology.disk.example.com/zone": ("x", "y"),
    "topology.hostpath.example/node": ("n1", "n2"),
    "tier": ("gold", "gold"),
}


def nodes(labels: dict[str, tuple[str, str]]) -> NodeSets:
    of_each = [{key: values[index] for key, values in labels.items()} for index in range(2)]
    return NodeSets(
        [Node(metadata=ObjectMeta(name=f"n{index}", labels=each)) for index, each in enumerate(of_each)], SERVED
    )


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("topology.kubernetes.io/zones", ZONE),
        ("topology.kubernetes.io/zne", ZONE),
        ("topology.kubernetes.io/Zone", ZONE),
        ("toplogy.kubernetes.io/zone", ZONE),
        ("kubernetes.io/zone", ZONE),
        ("kubernetes.io/az", ZONE),
        ("zone", ZONE),
        ("failure-domain.beta.kubernetes.io/zone", ZONE),
        ("topology.kubernetes.io/hostname", HOSTNAME),
        ("topology.kubernetes.io/node", HOSTNAME),
        ("kubernetes.io/host-name", HOSTNAME),
        ("kubernetes.io/hostnme", HOSTNAME),
        ("hostname", HOSTNAME),
        ("kubernetes.io/region", REGION),
        ("topology.disk.exmple.com/zone", "topology.disk.example.com/zone"),
        ("topology.hostpath.exmple/node", "topology.hostpath.example/node"),
        ("example.org/rack", "example.com/rack"),
        ("example.com/racks", "example.com/rack"),
        ("rack", "example.com/rack"),
        # Not kubernetes.io/arch, and nothing that all nodes have alike.
        ("kubernetes.io/ark", ""),
        ("tiers", ""),
        ("kubernetes.io/oss", ""),
        ("example.com/datacenter", ""),
    ],
)
def test_the_nearest_label_of_nodes_has_the_same_name_or_is_spelt_alike(key: str, meant: str) -> None:
    assert nearest_key(key, nodes(OF_NODES)) == meant


def test_no_label_is_suggested_that_nodes_do_not_have() -> None:
    assert nearest_key("topology.kubernetes.io/zones", nodes({HOSTNAME: ("n1", "n2")})) == ""


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("topology.kubernetes.io/zones", ZONE),
        ("topology.kubernetes.io/zne", ZONE),
        ("toplogy.kubernetes.io/zone", ZONE),
        ("topology.kuberentes.io/zone", ZONE),
        ("topology.kubernetes/zone", ZONE),
        ("topology.k8s.io/zone", ZONE),
        ("failure-domain.kubernetes.io/zone", ZONE),
        ("kubernetes.io/zone", ZONE),
        ("kubernetes.io/region", REGION),
        ("topology.kubernetes.io/hostname", HOSTNAME),
        ("topology.kubernetes.io/node", HOSTNAME),
        ("node.kubernetes.io/hostname", HOSTNAME),
        ("kubernetes.io/host", HOSTNAME),
        (HOSTNAME, ""),
        (ZONE, ""),
        (REGION, ""),
        ("failure-domain.beta.kubernetes.io/zone", ""),
        ("kubernetes.io/os", ""),
        ("kubernetes.io/arch", ""),
        ("node.kubernetes.io/instance-type", ""),
        ("topology.kubernetes.io/rack", ""),
        ("topology.kubernetes.io/subzone", ""),
        ("topology.kubevirt.io/zone", ""),
        ("topology.ebs.csi.aws.com/zone", ""),
        ("topology.gke.io/zone", ""),
        ("topology.k8s.aws/zone-id", ""),
        ("kops.k8s.io/instancegroup", ""),
        ("karpenter.sh/capacity-type", ""),
        ("zone", ""),
        ("example.com/zone", ""),
    ],
)
def test_well_known_mistakes_are_recognized_without_nodes(key: str, meant: str) -> None:
    assert standard_key(key) == meant


def test_a_label_separates_if_nodes_have_several_values_of_it_or_there_is_one_node() -> None:
    assert {key for key in OF_NODES if is_separating(key, nodes(OF_NODES))} == {
        HOSTNAME,
        ZONE,
        "example.com/rack",
        "topology.disk.example.com/zone",
        "topology.hostpath.example/node",
    }
    single = NodeSets([Node(metadata=ObjectMeta(name="n1", labels={HOSTNAME: "n1"}))], SERVED)
    assert is_separating(HOSTNAME, single)
    assert not is_separating(ZONE, single)
