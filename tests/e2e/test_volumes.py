"""Volumes keep pods where they are, as the scheduler says; claims are read only where they decide."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.builders import HOSTNAME, ZONE, Json, constraint, requirement, using_claim
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import require_built
from tests.e2e import audit
from tests.e2e.manifests import pod, workload
from tests.e2e.monitored import monitoring
from tests.e2e.spread import Plugin, Spread
from tests.e2e.users import bind
from tests.e2e.volumes import bound_claim, claim_templates, zonal_claim
from tests.e2e.workloads import pod_names, pods, scheduled, wait_for_rollout
from tests.rbac import permissions

pytestmark = pytest.mark.e2e

KINDS = "pods,nodes,statefulsets,persistentvolumeclaims,persistentvolumes"
EVALUATED_AS = (
    "--server-version=1.37",
    "--feature-gates=MatchLabelKeysInPodTopologySpreadSelectorMerge=true",
)
REFUSED = "node(s) didn't match PersistentVolume's node affinity"


def stateful_set(name: str, namespace: str, *, hard: bool = True, max_skew: int = 1) -> Json:
    """Return a StatefulSet of three pods with a claim each."""
    labels = {"app": name}
    spread = constraint(selects={"matchLabels": labels}, hard=hard, max_skew=max_skew)
    manifest = workload("StatefulSet", name, [spread], labels=labels, namespace=namespace)
    manifest["spec"] |= {"volumeClaimTemplates": claim_templates("data"), "podManagementPolicy": "Parallel"}
    return manifest


@pytest.fixture(scope="module")
def shop(control_plane: ControlPlane) -> Iterator[str]:
    """Return a namespace where ``held`` runs in zone a alone, and two pods of ``stuck`` cannot run there."""
    with control_plane.namespace("volumes") as namespace:
        for name in ("held", "stuck"):
            for ordinal in range(3):
                control_plane.apply(list(zonal_claim(f"data-{name}-{ordinal}", namespace, "a")))
        control_plane.apply(stateful_set("held", namespace, max_skew=3))
        wait_for_rollout(control_plane, "sts/held", namespace)
        control_plane.apply(stateful_set("stuck", namespace))
        control_plane.wait_for(lambda: len(waiting(control_plane, namespace)) == 2, what="two pods are refused")
        yield namespace


def waiting(cluster: ControlPlane, namespace: str) -> dict[str, str]:
    """Map the pods that the scheduler refused to its message."""
    return {
        pod["metadata"]["name"]: scheduled(pod)["message"]
        for pod in pods(cluster, namespace)
        if scheduled(pod).get("status") == "False"
    }


def test_explain_refuses_as_many_nodes_as_the_scheduler(control_plane: ControlPlane, shop: str, spread: Spread) -> None:
    """The nodes outside of zone a are refused because of the volume, and those in it by the constraint."""
    messages = waiting(control_plane, shop)
    answers = spread("explain", "sts/stuck", "-n", shop, "-o", "json").report.document["waiting"]
    assert {name for answer in answers for name in answer["pods"]} == set(messages)
    for answer in answers:
        refused = {refusal["filter"]: len(refusal["nodes"]) for refusal in answer["refused"]}
        for name in answer["pods"]:
            (by_volumes,) = re.findall(rf"(\d+) {re.escape(REFUSED)}", messages[name])
            (by_constraint,) = re.findall(
                r"(\d+) node\(s\) didn't match pod topology spread constraints", messages[name]
            )
            assert refused == {"volumes": int(by_volumes), "spread": int(by_constraint)}
        assert answer["allowed"] == []
        assert "unknown" not in answer


def test_a_pod_with_its_volume_in_another_zone_is_recreated_where_its_volume_is(
    control_plane: ControlPlane, shop: str, spread: Spread
) -> None:
    """The constraint is tightened without a rollout: deleting a pod would not help, and is not advised."""
    zones = {pod["spec"]["nodeName"][0] for pod in pods(control_plane, shop) if "held" in pod["metadata"]["name"]}
    assert zones == {"a"}
    held = spread("check", "sts/held", "-n", shop, "-o", "json").report
    assert [finding for finding in held["findings"] if finding.get("commands")] == []


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_capture_is_explained_as_the_cluster(
    control_plane: ControlPlane, shop: str, spread: Spread, tmp_path: Path, form: str
) -> None:
    """Protobuf, JSON and YAML lead to the same volumes."""
    path = tmp_path / f"cluster.{form}"
    listing = control_plane.kubectl("get", KINDS, "-n", shop, "-o", form, "--show-managed-fields")
    path.write_text(listing.stdout, encoding="utf-8")
    live = spread("explain", "sts/stuck", "-n", shop, "-o", "json").report.document
    from_file = spread("explain", "sts/stuck", "-f", str(path), "-n", shop, *EVALUATED_AS, "-o", "json").report.document
    assert live["placing"]
    assert from_file["placing"] == live["placing"]
    without_events = [{**each, "event": None, "condition": None} for each in live["waiting"]]
    assert [{**each, "event": None, "condition": None} for each in from_file["waiting"]] == without_events
    assert from_file["findings"] == live["findings"]


def test_without_the_permission_the_answer_says_so(control_plane: ControlPlane, shop: str, plugin: Plugin) -> None:
    """One line on standard error names the permission, and the answer names what is unknown."""
    rules = [
        allowed.rule
        for allowed in permissions("cluster")
        if allowed.resource not in ("persistentvolumes", "persistentvolumeclaims")
    ]
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "without-volumes"},
        "rules": rules,
    }
    control_plane.api.create(role)
    bind(control_plane, role, "volumeless", shop)
    answer = plugin.on(control_plane, control_plane.kubeconfig_for("volumeless"))(
        "explain", "sts/stuck", "-n", shop, "-o", "json"
    )
    assert answer.status == 0
    (line,) = [line for line in answer.stderr.splitlines() if "persistentvolumeclaims" in line]
    assert line.endswith("volumes may keep pods where they are")
    unknown = [text for each in answer.report.document["waiting"] for text in each["unknown"]]
    assert set(unknown) == {"volumes: the pods' PersistentVolumeClaims and PersistentVolumes were not read"}


def test_claims_are_not_read_where_no_answer_depends_on_them(
    control_plane: ControlPlane, shop: str, plugin: Plugin
) -> None:
    """Selectors do not depend on volumes; one answer about nodes reads them once."""
    user = "economist"
    spread = plugin.on(control_plane, control_plane.kubeconfig_for(user, ["system:masters"]))
    for command in (["check", "sts/held", "--select", "SPR1"], ["explain", "sts/stuck"]):
        answer = spread(*command, "-n", shop)
        assert answer.status in (0, 1), answer.stderr
    listed = [
        event["objectRef"]["resource"]
        for event in audit.requests(control_plane.directory)
        if event["user"]["username"] == user and "objectRef" in event
    ]
    assert listed.count("persistentvolumeclaims") == listed.count("persistentvolumes") == 1
    assert pod_names(control_plane, shop)


@pytest.fixture(scope="module")
def uncontrolled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Return a control plane without controllers, which would delete pods of an owner that is gone."""
    require_built()
    directory = tmp_path_factory.mktemp("uncontrolled")
    with ControlPlane.start(directory, scheduler=False, controllers=False) as cluster:
        cluster.add_nodes()
        yield cluster


OWNERS = {"StatefulSet": "apps/v1", "Broker": "example.com/v1"}
"""Kinds of owners that do not exist, with their API versions; the second is a custom kind."""


def test_pods_without_a_known_template_are_the_same_live_in_the_monitor_and_from_a_file(
    uncontrolled: ControlPlane, plugin: Plugin, tmp_path: Path
) -> None:
    """What keeps them where they are is known from their own volumes alone."""
    namespace = "default"
    for kind in OWNERS:
        for name, nodes, bound in (
            ("free", ("a1", "a1"), None),
            ("node", ("a1", "a1"), requirement(HOSTNAME, "In", "a1")),
            ("zone", ("a1", "a2"), requirement(ZONE, "In", "a")),
        ):
            owned(uncontrolled, kind, f"{name}-{kind.lower()}", nodes, bound)
    assert uncontrolled.run_pods() == 12
    options = ("-n", namespace, "--select=SPR501,SPR502", "--severity=info")
    spread = plugin.on(uncontrolled)
    live = spread("check", *options, "-o", "json").report["findings"]
    path = tmp_path / "cluster.json"
    listing = uncontrolled.kubectl("get", KINDS, "-n", namespace, "-o", "json", "--show-managed-fields")
    path.write_text(listing.stdout, encoding="utf-8")
    from_file = spread("check", "-f", str(path), *options, *EVALUATED_AS, "-o", "json").report["findings"]
    with monitoring(uncontrolled.environment(), *options) as monitor:
        monitored = json.loads(monitor.get("/report.json").text)["findings"]
    expected = {"free": ("SPR501", "warning"), "node": ("SPR501", "info"), "zone": ("SPR502", "info")}
    for findings in (live, from_file, monitored):
        found = {finding["object"]["name"]: (finding["code"], finding["severity"]) for finding in findings}
        assert found == {f"{name}-{kind.lower()}": answer for kind in OWNERS for name, answer in expected.items()}
    messages = {finding["object"]["name"]: finding["message"] for finding in live}
    for findings in (from_file, monitored):
        assert {finding["object"]["name"]: finding["message"] for finding in findings} == messages


def owned(cluster: ControlPlane, kind: str, name: str, nodes: Sequence[str], bound: Json | None) -> None:
    """Create a pod on each node, with an owner that does not exist, and with a claim that is bound to a volume."""
    owner = {"apiVersion": OWNERS[kind], "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}
    for ordinal, node in enumerate(nodes):
        more: Json = {}
        if bound is not None:
            claim = f"data-{name}-{ordinal}"
            cluster.apply(list(bound_claim(claim, "default", bound)))
            more["volumes"] = [using_claim(claim)]
        manifest = pod(f"{name}-{ordinal}", labels={"app": name}, nodeName=node, **more)
        manifest["metadata"]["ownerReferences"] = [owner]
        cluster.api.create(manifest)


def local_volume(name: str, node: str, storage_class: str) -> Json:
    """Return a volume on the disk of a node."""
    (volume, _) = bound_claim("data", name, requirement(HOSTNAME, "In", node))
    volume["metadata"]["name"] = name
    del volume["spec"]["claimRef"]
    return {**volume, "spec": {**volume["spec"], "storageClassName": storage_class}}


def bind_claims(cluster: ControlPlane, namespace: str, volumes: Sequence[str]) -> int:
    """Do what the controller of volumes does after the scheduler has chosen them; return how many were chosen."""
    chosen = [cluster.api.get(f"/api/v1/persistentvolumes/{name}") for name in volumes]
    chosen = [volume for volume in chosen if "claimRef" in volume["spec"]]
    for volume in chosen:
        path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{volume['spec']['claimRef']['name']}"
        completed = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
        cluster.api.patch(path, {"metadata": completed, "spec": {"volumeName": volume["metadata"]["name"]}})
    return len(chosen)


@pytest.fixture
def disks(control_plane: ControlPlane) -> Iterator[str]:
    """Return a namespace with a StatefulSet without replicas, whose class has volumes on two nodes."""
    with control_plane.namespace("disks") as namespace:
        storage_class = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": namespace},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
        control_plane.apply(storage_class)
        for name in ("a1", "b1"):
            control_plane.apply(local_volume(f"{namespace}-{name}", name, namespace))
            path = f"/api/v1/persistentvolumes/{namespace}-{name}/status"
            control_plane.api.patch(path, {"status": {"phase": "Available"}})
        manifest = stateful_set("db", namespace, hard=False)
        manifest["spec"]["replicas"] = 0
        manifest["spec"]["volumeClaimTemplates"][0]["spec"]["storageClassName"] = namespace
        control_plane.apply(manifest)
        yield namespace
        for name in ("a1", "b1"):
            control_plane.api.request("DELETE", f"/api/v1/persistentvolumes/{namespace}-{name}")
        control_plane.api.request("DELETE", f"/apis/storage.k8s.io/v1/storageclasses/{namespace}")


def test_new_claims_take_the_volumes_that_exist(control_plane: ControlPlane, disks: str, spread: Spread) -> None:
    """Three pods, two volumes: the scheduler binds as many as the simulation said, on the same nodes."""
    reason = "no PersistentVolume is available for a claim that is not bound, and none can be made"
    said = spread("simulate", "--scale", "sts/db=3", "-n", disks, "-o", "json")
    assert said.status == 1, said.stderr
    (simulated,) = said.report.document["workloads"]
    after = simulated["after"]
    assert (after["running"], after["pending"]) == ({"min": 2, "max": 2}, {"min": 1, "max": 1})
    assert [reason in each["text"] for each in simulated["reasons"]] == [True]
    control_plane.kubectl("scale", "sts/db", "-n", disks, "--replicas=3")
    names = [f"{disks}-{name}" for name in ("a1", "b1")]
    control_plane.wait_for(lambda: bind_claims(control_plane, disks, names) == 2, what="two volumes are chosen")

    def nodes() -> list[str]:
        return sorted(each["spec"].get("nodeName", "") for each in pods(control_plane, disks))

    control_plane.wait_for(lambda: nodes() == ["", "a1", "b1"], what="two pods run")
    control_plane.wait_for(lambda: waiting(control_plane, disks), what="the scheduler refuses the third")
    (message,) = waiting(control_plane, disks).values()
    assert "didn't find available persistent volumes to bind" in message
    checked = spread("check", "-n", disks, "-o", "json")
    (finding,) = [each for each in checked.report["findings"] if each["severity"] == "error"]
    assert (checked.status, finding["code"]) == (1, "SPR315")
    assert reason in finding["message"]


def test_without_the_classes_the_place_of_a_new_volume_is_unknown(
    control_plane: ControlPlane, disks: str, plugin: Plugin
) -> None:
    rules = [allowed.rule for allowed in permissions("cluster") if allowed.group != "storage.k8s.io"]
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "classless"}}
    control_plane.api.create({**role, "rules": rules})
    bind(control_plane, {**role, "rules": rules}, "classless", disks)
    simulator = plugin.on(control_plane, control_plane.kubeconfig_for("classless"))
    answer = simulator("simulate", "--scale", "sts/db=3", "-n", disks, "-o", "json")
    assert answer.status == 2
    assert answer.report.document["summary"]["unknown"] == ["where new volumes can be"]
