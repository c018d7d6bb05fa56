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
