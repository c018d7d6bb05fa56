"""Why no node is made, from the objects of Karpenter and cluster-autoscaler in a cluster, as far as there are any."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import pytest

from tests.builders import ZONE, Json, constraint
from tests.controlplane import nodes
from tests.controlplane.cluster import ControlPlane
from tests.e2e import audit
from tests.e2e.manifests import deployment, pod
from tests.e2e.spread import Answer, Plugin, Spread
from tests.e2e.users import allow
from tests.e2e.workloads import pods
from tests.rbac import permissions

pytestmark = pytest.mark.e2e

KARPENTER = {"NodePool": "karpenter.sh", "NodeClaim": "karpenter.sh", "EC2NodeClass": "karpenter.k8s.aws"}
STATUS = """\
autoscalerStatus: Running
nodeGroups:
- name: workers-a
  health: {cloudProviderTarget: 2, minSize: 1, maxSize: 2}
  scaleUp: {status: NoActivity}
"""
CHECK = ("check", "--fail-on", "never", "-o", "json")
NO_NODE = (
    "No NodePool or node group can make a node: NodePool default refuses because its limit of cpu is reached (8 of 8), "
    "and 1 more refuse too."
)
OF_AUTOSCALERS = {"nodepools", "nodeclaims", "ec2nodeclasses", "configmaps"}


def definition(kind: str, group: str) -> Json:
    singular = kind.lower()
    plural = f"{singular}es" if singular.endswith("s") else f"{singular}s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": singular}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Cluster", "names": names, "versions": [version]},
    }


REFERENCE: Json = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
REQUIREMENTS = [{"key": ZONE, "operator": "In", "values": ["a"]}]
OBJECTS = [
    {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default"},
        "spec": {
            "template": {"spec": {"nodeClassRef": REFERENCE, "requirements": REQUIREMENTS}},
            "limits": {"cpu": "8"},
        },
        "status": {"resources": {"cpu": "8"}, "conditions": [{"type": "Ready", "status": "True"}]},
    },
    {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "default"},
        "status": {"subnets": [{"id": "subnet-1", "zone": "a"}]},
    },
]


def status_map(status: str) -> Json:
    metadata = {"name": "cluster-autoscaler-status", "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"status": status}}


@pytest.fixture(scope="module")
def cluster(own_control_plane: ControlPlane) -> ControlPlane:
    """Return a control plane with one node, which is of Karpenter and of a node group by its labels."""
    own_control_plane.add_nodes(
        ["a"], 1, labels={"karpenter.sh/nodepool": "default", "eks.amazonaws.com/nodegroup": "workers-a"}
    )
    return own_control_plane


@pytest.fixture
def shop(cluster: ControlPlane) -> Iterator[str]:
    """Return a namespace with a pod that no node takes."""
    with cluster.namespace("shop") as namespace:
        cluster.api.create(pod("waits", [constraint()], namespace=namespace, nodeSelector={"example.com/gpu": "yes"}))
        yield namespace


@pytest.fixture
def autoscaled(cluster: ControlPlane) -> Iterator[None]:
    """Define the kinds of Karpenter, and store a NodePool that is at its limit and a status of cluster-autoscaler."""
    definitions = [definition(kind, group) for kind, group in KARPENTER.items()]
    names = [f"crd/{each['metadata']['name']}" for each in definitions]
    cluster.apply(definitions)
    cluster.kubectl("wait", "--for=condition=Established", *names, "--timeout=60s")
    cluster.kubectl("create", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": OBJECTS}))
    cluster.apply(status_map(STATUS))
    yield
    cluster.kubectl("delete", *names, "--wait=true")
    cluster.kubectl("delete", "configmap", "-n", "kube-system", "cluster-autoscaler-status")


def requested(cluster: ControlPlane, position: int) -> list[str]:
    """Return the permissions that requests of the plugin for objects of node autoscalers needed, since a position."""
    events = [event for event in cluster.audited(position) if event.get("userAgent", "").startswith("kubectl-spread/")]
    needed = {audit.permission_of(event) for event in events}
    return sorted(str(each) for each in needed if each.resource in OF_AUTOSCALERS)


def message(answer: Answer) -> str:
    """Return the message about the pod that waits."""
    (finding,) = [each for each in answer.report["findings"] if each["code"] == "SPR315"]
    text: str = finding["message"]
    return text


def test_without_an_autoscaler_two_requests_find_that_out(cluster: ControlPlane, spread: Spread, shop: str) -> None:
    before = cluster.audit_position()
    answer = spread(*CHECK, "-n", shop)
    assert (answer.status, answer.stderr) == (0, "")
    assert "NodePool" not in message(answer)
    assert requested(cluster, before) == ["get configmaps/cluster-autoscaler-status", "list nodepools.karpenter.sh"]


@pytest.mark.usefixtures("autoscaled")
def test_nothing_is_requested_while_no_pod_waits_and_nobody_asks(
    cluster: ControlPlane, spread: Spread, namespace: str
) -> None:
    cluster.api.create(pod("runs", [constraint()], namespace=namespace))
    cluster.kubectl("wait", "pod/runs", "-n", namespace, "--for=condition=Ready", "--timeout=60s")
    before = cluster.audit_position()
    assert spread("check", "-n", namespace).status == 0
    assert requested(cluster, before) == []
    assert spread("check", "-n", namespace, "--severity", "info").status == 0
    assert "list nodepools.karpenter.sh" in requested(cluster, before)


@pytest.mark.usefixtures("autoscaled")
def test_the_cluster_role_is_enough_to_say_why_no_node_is_made(
    cluster: ControlPlane, plugin: Plugin, shop: str
) -> None:
    user = f"auditor-{shop}"
    allow(cluster, user, [each.rule for each in permissions("cluster")])
    spread = plugin.on(cluster, cluster.kubeconfig_for(user))
    before = cluster.audit_position()
    answer = spread(*CHECK, "-n", shop)
    assert (answer.status, answer.stderr) == (0, "")
    assert NO_NODE in message(answer)
    assert requested(cluster, before) == [
        "get configmaps/cluster-autoscaler-status",
        "list ec2nodeclasses.karpenter.k8s.aws",
        "list nodeclaims.karpenter.sh",
        "list nodepools.karpenter.sh",
    ]
    explanation = spread("explain", "waits", "-n", shop)
    assert explanation.status == 0
    text = " ".join(explanation.stdout.split())
    assert "Node group workers-a (its nodes are in zone a) has its maximum of 2 nodes." in text


@pytest.mark.usefixtures("autoscaled")
def test_a_simulation_says_why_no_node_is_made(cluster: ControlPlane, spread: Spread, namespace: str) -> None:
    cluster.apply(deployment(namespace=namespace))
    cluster.kubectl("rollout", "status", "deploy/web", "-n", namespace, "--timeout=60s")
    answer = spread("simulate", "--drain", "zone=a", "-n", namespace, "-o", "json")
    assert (answer.status, answer.stderr) == (1, "")
    assert NO_NODE in answer.report["findings"][0]["message"]


@pytest.mark.usefixtures("autoscaled")
def test_a_missing_permission_is_one_note(cluster: ControlPlane, plugin: Plugin, shop: str) -> None:
    user = f"less-{shop}"
    allow(cluster, user, [each.rule for each in permissions("cluster") if each.resource not in OF_AUTOSCALERS])
    answer = plugin.on(cluster, cluster.kubeconfig_for(user))("check", "-n", shop, "--fail-on", "never")
    assert answer.status == 0
    assert answer.error == (
        "this user may not list nodepools.karpenter.sh and get the ConfigMap cluster-autoscaler-status: "
        "answers about new nodes are not complete"
    )


@pytest.mark.usefixtures("autoscaled")
def test_a_status_that_cannot_be_read_is_a_note(cluster: ControlPlane, spread: Spread, shop: str) -> None:
    cluster.apply(status_map("nodeGroups: [{name: ["))
    answer = spread(*CHECK, "-n", shop)
    assert answer.status == 0
    assert answer.error.startswith("could not get the ConfigMap cluster-autoscaler-status: data.status: is not YAML")
    assert message(answer).endswith(
        "No NodePool can make a node: NodePool default refuses because its limit of cpu is reached (8 of 8)."
    )


@pytest.mark.usefixtures("autoscaled")
def test_the_nodes_that_a_simulation_makes_let_the_pods_run(
    cluster: ControlPlane, spread: Spread, namespace: str
) -> None:
    """Nobody makes nodes here: the test adds those that were said, and the scheduler places the pods."""
    team, few = {"team": "roomy"}, {"cpu": "2", "memory": "4Gi", "pods": "10"}
    labels = {"karpenter.sh/nodepool": "roomy", **team}
    zones = [{"key": ZONE, "operator": "In", "values": ["x", "y", "z"]}]
    reference = {**REFERENCE, "name": "other"}
    template = {"metadata": {"labels": team}, "spec": {"nodeClassRef": reference, "requirements": zones}}
    pool: Json = {**OBJECTS[0], "metadata": {"name": "roomy"}, "spec": {"template": template}}
    cluster.kubectl("create", "-f", "-", input=json.dumps(pool))
    first = [made(f"roomy-{zone}", zone, labels, few) for zone in ("x", "y")]
    nodes.add(cluster.api, first, [])
    app = [{"name": "app", "image": "registry.example/app:1", "resources": {"requests": {"cpu": "1"}}}]
    # The other NodePool names zone a, which counts for all pods that may use it.
    selector = {"nodeSelectorTerms": [{"matchExpressions": zones}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}
    manifest = deployment(
        "web",
        [constraint()],
        replicas=4,
        namespace=namespace,
        containers=app,
        nodeSelector=team,
        affinity=affinity,
    )
    cluster.apply(manifest)
    cluster.kubectl("rollout", "status", "deploy/web", "-n", namespace, "--timeout=60s")
    answer = spread("simulate", "--scale", "deploy/web=9", "-n", namespace, "-o", "json")
    assert answer.status == 1
    grown = answer.report["withNewNodes"]
    assert grown["pending"] == {"min": 0, "max": 0}
    assert {(each["zone"], each["nodes"]["min"], each["nodes"]["max"]) for each in grown["nodes"]} == {
        ("x", 1, 1),
        ("y", 1, 1),
        ("z", 2, 2),
    }
    cluster.kubectl("scale", "deploy/web", "-n", namespace, "--replicas=9")
    cluster.wait_for(lambda: len(waiting(cluster, namespace)) == 5, what="five pods wait")
    said = [each["zone"] for each in grown["nodes"] for _ in range(each["nodes"]["min"])]
    more = [made(f"roomy-new-{number}", zone, labels, few) for number, zone in enumerate(said)]
    nodes.add(cluster.api, more, [])
    cluster.wait_for(lambda: not waiting(cluster, namespace), timeout=90, what="all pods run")
    for node in (*first, *more):
        cluster.api.request("DELETE", f"/api/v1/nodes/{node['metadata']['name']}")


def made(name: str, zone: str, labels: Mapping[str, str], allocatable: Mapping[str, str]) -> Json:
    """Return a node of a NodePool."""
    node = nodes.node(name, zone, labels)
    return {**node, "status": {**node["status"], "allocatable": dict(allocatable)}}


def waiting(cluster: ControlPlane, namespace: str) -> list[Json]:
    """Return the pods without a node."""
    return [each for each in pods(cluster, namespace) if "nodeName" not in each["spec"]]
