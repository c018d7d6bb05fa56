"""Labels edited before and after binding on 1.37: the report, and the decisions of the scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.builders import HOSTNAME, ZONE, Json, affinity, constraint, term
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import SCHEDULING_GATE, WITHOUT_GATE, deployment, pod
from tests.e2e.spread import Report, Spread
from tests.e2e.verdicts import (
    ABSENT,
    MERGED,
    REMOVED,
    STALE,
    STALE_UNTRACKED,
    UNMERGED_EDITED,
    PodVerdict,
    edit,
    evidence,
    look,
    pod_verdicts,
)
from tests.e2e.workloads import label, pods, roll_out, scheduled

pytestmark = pytest.mark.e2e

ZONE_A: Json = {"nodeSelector": {ZONE: "a"}, **SCHEDULING_GATE}
REV = {"app": "web", "rev": "r1"}
BARE = {"app": "web"}
EDITS = {
    "rev=r2": ["changed", "back", "added", "added-proven"],
    "rev=r1": ["back"],
    "rev-": ["removed"],
}
GATED = {
    "kept": MERGED,
    "changed": STALE,
    "removed": REMOVED,
    "back": MERGED,
    "added": UNMERGED_EDITED,
    "added-proven": PodVerdict("late-label", "certain", ("kubectl-label",)),
    "never": ABSENT,
}
# Zone a has three pods of each revision and the other zones have none, so only a pod that counts nothing fits there.
PLACED = {"changed"}


class Release(NamedTuple):
    """Relabelled gated pods: the report, the explanation of each, and the pods that are placed without gates."""

    report: Report
    fitting: dict[str, bool]
    blocked: set[str]
    placed: set[str]
    errors: dict[str, str]


@pytest.fixture(scope="module")
def release(control_plane: ControlPlane, spread: Spread) -> Iterator[Release]:
    """Relabel gated pods that may run in a full zone only, ask, and release them one after the other.

    Only a pod is placed that counts nothing, and it makes the zone no emptier for those that come next.
    """
    with control_plane.namespace("gated") as namespace:
        for rev in ("r1", "r2"):
            labels = {"app": "web", "rev": rev}
            full = [pod(f"there-{rev}-{n}", labels=labels, namespace=namespace, nodeName="a1") for n in range(3)]
            control_plane.api.create_all(full)
        for name in GATED:
            bare = name in ("added", "added-proven", "never")
            keys = ["app", "rev"] if name == "added-proven" else ["rev"]
            clause = constraint(match=keys, nodeAffinityPolicy="Ignore")
            if name == "added-proven":
                clause["labelSelector"] = {}
            manifest = pod(name, [clause], labels=BARE if bare else REV, namespace=namespace, **ZONE_A)
            control_plane.api.create(manifest)
        edit(control_plane, namespace, EDITS)
        report = look(spread, namespace)
        fitting = {name: _fits(spread, namespace, name) for name in GATED}
        placed, errors = set(), {}
        for name in GATED:
            path = f"/api/v1/namespaces/{namespace}/pods/{name}"
            control_plane.api.patch(path, WITHOUT_GATE)
            condition = _decision(control_plane, path)
            if condition["status"] == "True":
                placed.add(name)
            else:
                errors[name] = condition["message"]
        blocked = {name for finding in report["findings"] if finding["code"] == "SPR303" for name in finding["pods"]}
        yield Release(report, fitting, blocked, placed, errors)


def _fits(spread: Spread, namespace: str, name: str) -> bool:
    """Tell whether ``explain`` allows a pod any node."""
    answer = spread("explain", f"pod/{name}", "-n", namespace, "-o", "json")
    assert answer.status in (0, 1), answer.stderr
    (placing,) = answer.report["placing"]
    return bool(placing["allowed"])


def _decision(cluster: ControlPlane, path: str) -> Json:
    """Wait until the scheduler has decided on a pod, and return the condition about it."""

    def decision() -> Json | None:
        condition = scheduled(cluster.api.get(path))
        return None if condition.get("reason") == "SchedulingGated" else condition

    condition = cluster.wait_for(decision, what=f"the scheduler decides on {path}")
    assert condition
    return condition


def test_each_edit_of_a_gated_pod_has_its_own_verdict(release: Release) -> None:
    """The verdict depends on the edit alone."""
    assert pod_verdicts(release.report) == GATED


def test_a_stale_or_removed_label_of_a_gated_pod_is_a_warning(release: Release) -> None:
    """The scheduler will not respect the spec of these pods, but no constraint keeps them from running."""
    severities = {
        (finding["code"], *finding["pods"]): finding["severity"]
        for finding in release.report["findings"]
        if finding["code"] in ("SPR101", "SPR102")
    }
    assert severities == {("SPR101", "changed"): "warning", ("SPR102", "removed"): "warning"}


def test_the_scheduler_ignores_the_constraint_of_a_stale_pod_alone(release: Release) -> None:
    """Its two values select no pod, so it is placed where the other pods are refused, as the report says."""
    assert release.placed == PLACED
    assert {name for name, fits in release.fitting.items() if fits} == PLACED
    assert release.blocked == set(GATED) - PLACED
    assert all("didn't match pod topology spread constraints" in message for message in release.errors.values())


def test_labels_written_at_binding_over_the_users_own(
    control_plane: ControlPlane, namespace: str, spread: Spread
) -> None:
    """A zone from the template is merged and then overwritten: it is stale by the binding, and no manager is named."""
    labels = {"app": "web", ZONE: "a"}
    keys = [constraint(key=HOSTNAME, match=[ZONE])]
    for zone in ("a", "b"):
        chosen: Json = {"nodeSelector": {ZONE: zone}}
        control_plane.api.create(pod(f"bound-{zone}", keys, labels=labels, namespace=namespace, **chosen))
    control_plane.api.create(pod("waiting", keys, labels=labels, namespace=namespace, **SCHEDULING_GATE))
    # Admission writes the label of a pod that has its node already before the merge, not after it.
    control_plane.api.create(pod("placed", keys, labels=labels, namespace=namespace, nodeName="b1"))
    control_plane.wait_for(lambda: _bound(control_plane, namespace) == 3, what="pods are bound")
    report = look(spread, namespace)
    assert pod_verdicts(report) == {
        "bound-a": MERGED,
        "bound-b": STALE_UNTRACKED,
        "waiting": MERGED,
        "placed": MERGED,
    }
    assert evidence(report, "bound-b") == ["binding the pod overwrote the label with its node's value"]
    (key,) = report.verdict_of("bound-b")["keys"]
    assert (key["stored"], key["label"]) == ("a", "b")


def _bound(cluster: ControlPlane, namespace: str) -> int:
    return sum("nodeName" in pod["spec"] for pod in pods(cluster, namespace))


def test_a_zone_in_a_template_makes_pods_of_other_zones_stale(
    control_plane: ControlPlane, namespace: str, spread: Spread
) -> None:
    """The Deployment has pods in three zones, and no manager is named."""
    keys = [constraint(), constraint(key=HOSTNAME, hard=False, match=[ZONE])]
    labels = {"app": "web", ZONE: "a"}
    roll_out(control_plane, deployment(constraints=keys, labels=labels, namespace=namespace))
    report = look(spread, namespace)
    zones = {pod["metadata"]["name"]: pod["metadata"]["labels"][ZONE] for pod in pods(control_plane, namespace)}
    assert sorted(zones.values()) == ["a", "b", "c"]
    path = "spec.topologySpreadConstraints[1]"
    expected = {name: MERGED if zone == "a" else STALE_UNTRACKED for name, zone in zones.items()}
    assert pod_verdicts(report, path) == expected
    stale = [name for name, verdict in expected.items() if verdict == STALE_UNTRACKED]
    assert {evidence(report, name, path)[0] for name in stale} == {
        "binding the pod overwrote the label with its node's value"
    }


def test_a_relabelled_pod_still_repels(control_plane: ControlPlane, namespace: str, spread: Spread) -> None:
    """A running pod with stale required anti-affinity keeps its node from pods of the old revision."""
    anti = affinity("podAntiAffinity", term(match=["rev"]))
    on_a1: Json = {"nodeSelector": {HOSTNAME: "a1"}}
    old: Json = {"labels": REV, "namespace": namespace}
    control_plane.api.create(pod("repelling", affinity=anti, **old, **on_a1))
    control_plane.wait_for(lambda: _bound(control_plane, namespace) == 1, what="the pod is bound")
    control_plane.wait_for(lambda: pods(control_plane, namespace)[0]["status"]["phase"] == "Running", what="it runs")
    label(control_plane, namespace, "repelling", "rev=r2")
    control_plane.api.create(pod("old", **old, **on_a1))
    control_plane.api.create(pod("new", labels={"app": "web", "rev": "r2"}, namespace=namespace, **on_a1))
    path = f"/api/v1/namespaces/{namespace}/pods"
    refused = _decision(control_plane, f"{path}/old")
    accepted = _decision(control_plane, f"{path}/new")
    assert "1 node(s) didn't satisfy existing pods anti-affinity rules" in refused["message"]
    assert (refused["status"], accepted["status"]) == ("False", "True")
    report = spread.report("-n", namespace, status=1)
    where = "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
    assert pod_verdicts(report, where) == {"repelling": STALE}
    assert [(finding["code"], finding["severity"], finding["pods"]) for finding in report["findings"]] == [
        ("SPR315", "error", ["old"]),
        ("SPR101", "error", ["repelling"]),
    ]


def test_running_pods_of_one_owner_after_every_edit(
    control_plane: ControlPlane, namespace: str, spread: Spread
) -> None:
    """Labels are changed, removed, added and changed back, and no finding is an error."""
    keys = [constraint(match=["pod-template-hash", "rev"])]
    with_label = deployment("web", keys, replicas=4, labels=REV, namespace=namespace)
    remaining, changed, removed, back = roll_out(control_plane, with_label)
    without = deployment("bare", keys, replicas=2, labels={"app": "bare"}, namespace=namespace)
    added, never = [name for name in roll_out(control_plane, without) if name.startswith("bare-")]
    edits = {"rev=r2": [changed, back], "rev=r1": [back, added], "rev-": [removed]}
    edit(control_plane, namespace, edits)
    report = spread.report("-n", namespace)
    assert pod_verdicts(report) == {
        remaining: MERGED,
        changed: STALE,
        removed: PodVerdict("removed-label"),
        back: MERGED,
        added: PodVerdict("late-label", "certain", ("kubectl-label",)),
        never: ABSENT,
    }
