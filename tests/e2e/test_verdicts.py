"""The verdicts on pods that the real apiserver merged and real label edits changed."""

from __future__ import annotations

import json

import pytest

from tests.builders import HOSTNAME, ZONE, constraint, requirement, selector
from tests.controlplane import binaries
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import SCHEDULING_GATE, deployment, pod
from tests.e2e.spread import Spread, counts
from tests.e2e.workloads import label, pod_names, pods, pods_per_zone, roll_out

pytestmark = pytest.mark.e2e

HASH = "pod-template-hash"


def test_a_deployment_is_all_merged_and_counted(control_plane: ControlPlane, namespace: str, spread: Spread) -> None:
    """Every pod has the merged selector, the domains have the pods, and there are no findings."""
    roll_out(control_plane, deployment(constraints=[constraint(match=[HASH])], replicas=7, namespace=namespace))
    report = spread.report("-n", namespace)
    row = report.row("Deployment/web")
    assert row["verdicts"] == {"merged": 7}
    assert row["selector"]["stored"] == row["selector"]["merged"] == row["selector"]["effective"]
    assert row["diff"] == []
    assert counts(row) == pods_per_zone(control_plane, namespace)
    assert (row["minMatchNum"], row["selfMatchNum"], row["skew"]) == (2, 1, 1)
    assert len(row["next"]["allowed"]) == 2
    assert report["pods"] == report["findings"] == []
    assert report["summary"]["pods"] == 7


def test_the_table_shows_row_version_and_totals(control_plane: ControlPlane, namespace: str, spread: Spread) -> None:
    """It is printed without ``-o``, and stderr stays empty."""
    roll_out(control_plane, deployment(constraints=[constraint(match=[HASH])], replicas=6, namespace=namespace))
    answer = spread("check", "-n", namespace)
    assert (answer.status, answer.stderr) == (0, "")
    first, *_, last = answer.stdout.splitlines()
    about = f"tests  Kubernetes {binaries.KUBERNETES_VERSION.removeprefix('v')}  namespace {namespace}: "
    assert first.startswith(f"{about}6 pods in 1 workload, 6 nodes in 3 zones  20")
    (row,) = (line.split() for line in answer.stdout.splitlines() if line.startswith("deploy/web"))
    assert row == ["deploy/web", "zone", "DoNotSchedule", "6", "a=2", "b=2", "c=2", "0", "1", "ok"]
    assert last == "No findings in 1 workload (6 pods, 1 pod template, 1 constraint)."


def test_a_relabelled_pod_is_stale(control_plane: ControlPlane, namespace: str, spread: Spread) -> None:
    """``kubectl label --overwrite`` makes exactly one pod stale-label, and kubectl-label is named."""
    web = deployment(constraints=[constraint(match=["rev"])], labels={"app": "web", "rev": "r1"}, namespace=namespace)
    changed, *_ = roll_out(control_plane, web)
    label(control_plane, namespace, changed, "rev=r2")
    report = spread.report("-n", namespace)
    assert report.verdicts("Deployment/web") == {"merged": 2, "stale-label": 1}
    assert [entry["name"] for entry in report["pods"]] == [changed]
    entry = report.verdict_of(changed)
    assert (entry["verdict"], entry["confidence"]) == ("stale-label", "certain")
    (key,) = entry["keys"]
    assert (key["key"], key["operator"], key["stored"], key["label"]) == ("rev", "In", "r1", "r2")
    assert key["changedBy"]["manager"] == "kubectl-label"
    assert report.codes("Deployment/web") == {"SPR101": [changed]}
    text = spread("check", "-n", namespace).stdout
    assert "stale-label" in text
    assert "Label rev changed from r1 to r2 after creation (by kubectl-label). " in text
    assert "Its 2 siblings still select rev=r1 and no longer count this pod" in text
    assert f"$ kubectl delete pod -n {namespace} {changed}\n" in text


def test_a_pod_relabelled_at_once_is_stale(control_plane: ControlPlane, namespace: str, spread: Spread) -> None:
    """An edit in the second of the creation is still distinguished from the creator's value."""
    for number in range(4):
        name = f"web-{number}"
        labels = {"app": "web", "rev": "r1"}
        control_plane.api.create(pod(name, [constraint(match=["rev"])], labels=labels, namespace=namespace))
        label(control_plane, namespace, name, "rev=r2")
    report = spread.report("-n", namespace)
    keys = {entry["name"]: entry["keys"][0] for entry in report["pods"]}
    assert sorted(keys) == pod_names(control_plane, namespace)
    assert {(key["verdict"], key["changedBy"]["manager"]) for key in keys.values()} == {
        ("stale-label", "kubectl-label")
    }


def test_a_changed_template_hash_lets_the_pod_go(control_plane: ControlPlane, namespace: str, spread: Spread) -> None:
    """The pod is stale and has no owner any more; the ReplicaSet creates a merged pod in its place."""
    web = deployment(constraints=[constraint(match=[HASH])], replicas=3, namespace=namespace)
    lost, *_ = roll_out(control_plane, web)
    label(control_plane, namespace, lost, f"{HASH}=other")
    control_plane.wait_for(lambda: len(pod_names(control_plane, namespace)) == 4, what="the pod is replaced")
    control_plane.kubectl("rollout", "status", "deploy/web", "-n", namespace, "--timeout=60s")
    report = spread.report("-n", namespace)
    assert report.verdicts("Deployment/web") == {"merged": 3}
    assert report.verdicts(f"Pod/{lost}") == {"stale-label": 1}
    entry = report.verdict_of(lost)
    assert entry["workload"] == {"kind": "Pod", "name": lost}
    (key,) = entry["keys"]
    assert (key["key"], key["label"]) == (HASH, "other")
    assert key["changedBy"]["manager"] == "kubectl-label"


def test_a_label_that_is_added_later_is_late(control_plane: ControlPlane, namespace: str, spread: Spread) -> None:
    """Another key of the pod is merged, which proves it."""
    two_keys = deployment(constraints=[constraint(match=[HASH, "rev"])], namespace=namespace)
    late, *_ = roll_out(control_plane, two_keys)
    assert spread.report("-n", namespace).verdicts("Deployment/web") == {"absent-key": 3}
    label(control_plane, namespace, late, "rev=r1")
    report = spread.report("-n", namespace)
    assert report.verdicts("Deployment/web") == {"absent-key": 2, "late-label": 1}
    entry = report.verdict_of(late)
    assert (entry["verdict"], entry["confidence"]) == ("late-label", "certain")
    verdicts = {key["key"]: key["verdict"] for key in entry["keys"]}
    assert verdicts == {HASH: "merged", "rev": "late-label"}
    (key,) = (key for key in entry["keys"] if key["key"] == "rev")
    assert key["changedBy"]["manager"] == "kubectl-label"
    assert report.codes("Deployment/web")["SPR105"] == [late]


def test_a_late_label_without_proof_is_unmerged(control_plane: ControlPlane, namespace: str, spread: Spread) -> None:
    """No other key proves that the merge ran, so no reason is given."""
    late, *_ = roll_out(control_plane, deployment(constraints=[constraint(match=["rev"])], namespace=namespace))
    label(control_plane, namespace, late, "rev=r1")
    report = spread.report("-n", namespace)
    assert report.verdicts("Deployment/web") == {"absent-key": 2, "unmerged": 1}
    entry = report.verdict_of(late)
    assert (entry["verdict"], entry["confidence"]) == ("unmerged", "unknown")
    assert report["cluster"]["gatesSource"] == "metrics"


def test_a_label_that_is_added_at_once_is_still_late(
    control_plane: ControlPlane, namespace: str, spread: Spread
) -> None:
    """A bare pod labelled within the second of its creation is not taken for one from before an upgrade."""
    control_plane.api.create(pod("web", [constraint(match=["rev"])], namespace=namespace))
    label(control_plane, namespace, "web", "rev=r1")
    entry = spread.report("-n", namespace).verdict_of("web")
    assert (entry["verdict"], entry["confidence"]) == ("unmerged", "unknown")
    assert entry["keys"][0]["changedBy"]["manager"] == "kubectl-label"


def test_a_label_that_the_creator_adds_at_once_has_no_known_cause(
    control_plane: ControlPlane, namespace: str, spread: Spread
) -> None:
    """Within one second managedFields look as if the pods had been created with the label, which proves nothing."""
    names = [f"web-{number}" for number in range(5)]
    stored = []
    for name in names:
        control_plane.api.create(pod(name, [constraint(match=["rev"])], namespace=namespace))
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        stored.append(control_plane.api.patch(path, {"metadata": {"labels": {"rev": "r1"}}})["metadata"])
    assert any(
        entry["time"] == metadata["creationTimestamp"] and "f:spec" in entry["fieldsV1"]
        for metadata in stored
        for entry in metadata["managedFields"]
        if "f:rev" in entry["fieldsV1"]["f:metadata"]["f:labels"]
    )
    report = spread.report("-n", namespace)
    assert {report.verdict_of(name)["verdict"] for name in names} == {"unmerged"}
    assert {finding["code"] for finding in report["findings"]} == {"SPR108"}


def test_a_removed_label_and_an_authored_requirement_look_the_same_on_a_bare_pod(
    control_plane: ControlPlane, namespace: str, spread: Spread
) -> None:
    """The message names both causes. The owner's template tells them apart, and a manifest was never created."""
    keys = [constraint(match=["rev"])]
    authored = [constraint(match=["rev"], selects=selector({"app": "web"}, requirement("rev", "In", "r1")))]
    written = pod("written", authored, namespace=namespace, **SCHEDULING_GATE)
    control_plane.api.create(written)
    labels = {"app": "web", "rev": "r1"}
    control_plane.api.create(pod("removed", keys, labels=labels, namespace=namespace, **SCHEDULING_GATE))
    kept, *_ = roll_out(control_plane, deployment("api", keys, labels=labels, namespace=namespace))
    roll_out(control_plane, deployment("web", authored, labels={"app": "web"}, namespace=namespace))
    label(control_plane, namespace, "removed", "rev-")
    label(control_plane, namespace, kept, "rev-")
    report = spread.report("-n", namespace, status=1)
    either = (
        "Label rev is missing, but the selector requires rev=r1. It was removed after creation, or the author wrote "
    )
    messages = {
        finding["object"]["name"]: finding["message"] for finding in report["findings"] if finding["code"] == "SPR102"
    }
    assert set(messages) == {"written", "removed", "api"}
    assert messages["written"].startswith(either)
    assert messages["removed"].startswith(either)
    assert messages["api"].startswith("Label rev was removed after creation, but the selector still requires rev=r1.")
    assert report.verdicts("Deployment/web") == {"authored": 3}
    assert {"SPR109", "SPR206"} <= set(report.codes("Deployment/web"))
    manifest = spread("check", "-f", "-", "-o", "json", input=json.dumps(written)).report
    assert {finding["code"] for finding in manifest["findings"]} == {"SPR109", "SPR206"}


def test_a_removed_label_has_its_verdict_and_no_manager(
    control_plane: ControlPlane, namespace: str, spread: Spread
) -> None:
    """The removal leaves no manager in managedFields."""
    web = deployment(constraints=[constraint(match=["rev"])], labels={"app": "web", "rev": "r1"}, namespace=namespace)
    bare, *_ = roll_out(control_plane, web)
    label(control_plane, namespace, bare, "rev-")
    report = spread.report("-n", namespace)
    assert report.verdicts("Deployment/web") == {"merged": 2, "removed-label": 1}
    entry = report.verdict_of(bare)
    (key,) = entry["keys"]
    assert (entry["verdict"], key["stored"]) == ("removed-label", "r1")
    assert "label" not in key
    assert "changedBy" not in key
    assert report.codes("Deployment/web") == {"SPR102": [bare]}


def test_a_zone_label_from_binding_is_no_fault(control_plane: ControlPlane, namespace: str, spread: Spread) -> None:
    """Pods get their zone label when they are bound, after the merge: bind-label, and only the template is reported."""
    by_zone = constraint(key=HOSTNAME, match=[ZONE])
    roll_out(control_plane, deployment(constraints=[by_zone], namespace=namespace))
    assert all(ZONE in pod["metadata"]["labels"] for pod in pods(control_plane, namespace))
    report = spread.report("-n", namespace)
    assert report.verdicts("Deployment/web") == {"bind-label": 3}
    (row,) = report.rows("Deployment/web")
    assert row["selector"]["effective"] == row["selector"]["stored"]
    assert sum(counts(row).values()) == 3
    assert report.codes("Deployment/web").keys() == {"SPR110", "SPR219"}


def test_a_relabelled_pending_pod_is_a_warning(control_plane: ControlPlane, namespace: str, spread: Spread) -> None:
    """Its stored and current values exclude each other, so it counts nothing. That it waits is an error."""
    labels = {"app": "web", "rev": "r1"}
    control_plane.apply(pod("web", [constraint(match=["rev"])], labels=labels, namespace=namespace, **SCHEDULING_GATE))
    label(control_plane, namespace, "web", "rev=r2")
    report = spread.report("-n", namespace, status=1)
    row = report.row("Pod/web")
    assert (row["pending"], row["verdicts"]) == (1, {"stale-label": 1})
    assert (counts(row), row["selfMatchNum"]) == ({"a": 0, "b": 0, "c": 0}, 0)
    severities = {finding["code"]: finding["severity"] for finding in report["findings"]}
    assert severities == {"SPR101": "warning", "SPR315": "error"}


def test_a_stale_anti_affinity_is_an_error(control_plane: ControlPlane, namespace: str, spread: Spread) -> None:
    """A running pod's required anti-affinity still repels by the old value."""
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "web"}}, "matchLabelKeys": ["rev"]}
    required = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    web = deployment(labels={"app": "web", "rev": "r1"}, namespace=namespace, affinity=required)
    changed, *_ = roll_out(control_plane, web)
    label(control_plane, namespace, changed, "rev=r2")
    report = spread.report("-n", namespace, status=1)
    path = "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
    assert report.verdicts("Deployment/web", path) == {"merged": 2, "stale-label": 1}
    assert [(finding["code"], finding["severity"], finding["pods"]) for finding in report["findings"]] == [
        ("SPR101", "error", [changed])
    ]


def test_a_pod_on_a_node_that_is_gone_counts_nowhere(
    control_plane: ControlPlane, namespace: str, spread: Spread
) -> None:
    """A pod bound to a name without a Node is in no domain, as for the scheduler."""
    for name, node in {"here": "a1", "lost": "gone"}.items():
        control_plane.api.create(pod(name, [constraint()], namespace=namespace, nodeName=node))
    report = spread.report("-n", namespace)
    assert counts(report.row("Pod/here")) == counts(report.row("Pod/lost")) == {"a": 1, "b": 0, "c": 0}


def test_explain_says_who_changed_the_label(control_plane: ControlPlane, namespace: str, spread: Spread) -> None:
    """``explain`` shows the selector's difference, the manager and the domains."""
    web = deployment(constraints=[constraint(match=["rev"])], labels={"app": "web", "rev": "r1"}, namespace=namespace)
    changed, *_ = roll_out(control_plane, web)
    label(control_plane, namespace, changed, "rev=r2")
    answer = spread("explain", f"pod/{changed}", "-n", namespace)
    assert (answer.status, answer.stderr) == (0, "")
    assert "kubectl-label" in answer.stdout
    assert "stale-label" in answer.stdout


def test_a_deployment_without_a_pod_is_not_no_resources(
    control_plane: ControlPlane, namespace: str, spread: Spread
) -> None:
    """The API accepts the Deployment and refuses all of its pods, which is a finding."""
    control_plane.apply(deployment(constraints=[constraint(match=["app"])], replicas=3, namespace=namespace))

    def refused() -> bool:
        events = control_plane.api.get(f"/api/v1/namespaces/{namespace}/events")["items"]
        return any(event["reason"] == "FailedCreate" for event in events)

    control_plane.wait_for(refused, what="a pod is refused")
    answer = spread("check", "deploy/web", "-n", namespace)
    assert answer.status == 1
    assert "error SPR202 pods-refused: deploy/web" in answer.stdout
    assert 'spec.topologySpreadConstraints[0][0]: Invalid value: "app"' in answer.stdout
    assert "FailedCreate events report this error." in answer.stdout
