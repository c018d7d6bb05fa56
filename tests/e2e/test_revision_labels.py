"""Controllers of Kubernetes create pods with their revision labels, so these are merged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from tests.builders import HOSTNAME, Json, constraint, selector
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import pod_spec, workload
from tests.e2e.spread import Report, Spread
from tests.e2e.verdicts import MERGED, pod_verdicts
from tests.e2e.workloads import pods

pytestmark = pytest.mark.e2e

PER_POD = ("apps.kubernetes.io/pod-index", "statefulset.kubernetes.io/pod-name")
JOB = ("batch.kubernetes.io/job-name", "job-name", "batch.kubernetes.io/controller-uid", "controller-uid")
INDEX = "batch.kubernetes.io/job-completion-index"
KEYS: dict[str, Sequence[str]] = {
    "agent": ("controller-revision-hash", "pod-template-generation"),
    "db": ("controller-revision-hash",),
    "each": PER_POD,
    "batch": JOB,
    "indexed": (INDEX, *JOB),
    "web": ("pod-template-hash",),
}
WITH_INDEX = {"completionMode": "Indexed"}


@pytest.fixture(scope="module")
def shop(control_plane: ControlPlane) -> Iterator[str]:
    """Run one workload of each kind that gives its pods revision labels."""
    with control_plane.namespace("revisions") as namespace:
        kinds = {"agent": "DaemonSet", "db": "StatefulSet", "each": "StatefulSet", "web": "Deployment"}
        manifests = [
            workload(kind, name, _constraints(name), labels={"app": name}, namespace=namespace)
            for name, kind in kinds.items()
        ]
        manifests += [_job("batch", namespace), _job("indexed", namespace, **WITH_INDEX)]
        control_plane.apply(manifests)
        # Each of six nodes has one agent; every other workload has three pods.
        control_plane.wait_for(lambda: _running(control_plane, namespace) == 6 + 5 * 3, what="all pods run")
        yield namespace


@pytest.fixture(scope="module")
def report(shop: str, spread: Spread) -> Report:
    """Return the report on all these workloads, which has no error."""
    return spread.report("-n", shop)


def _constraints(name: str) -> list[Json]:
    return [constraint(key=HOSTNAME, hard=False, selects=selector({"app": name}), match=KEYS[name])]


def _job(name: str, namespace: str, **more: object) -> Json:
    template = {"metadata": {"labels": {"app": name}}, "spec": pod_spec(_constraints(name), restartPolicy="Never")}
    spec = {"parallelism": 3, "completions": 3, "template": template, **more}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def _running(cluster: ControlPlane, namespace: str) -> int:
    return sum(pod["status"]["phase"] == "Running" for pod in pods(cluster, namespace))


def test_every_pod_is_merged_with_its_own_values(control_plane: ControlPlane, shop: str, report: Report) -> None:
    """The stored value of each pod is that of its label."""
    by_name = {pod["metadata"]["name"]: pod for pod in pods(control_plane, shop)}
    assert pod_verdicts(report) == dict.fromkeys(by_name, MERGED)
    assert report["pods"] == []
    for item_value in by_name.values():
        labels = item_value["metadata"]["labels"]
        (clause,) = item_value["spec"]["topologySpreadConstraints"]
        stored = {pod["key"]: pod["values"] for pod in clause["labelSelector"]["matchExpressions"]}
        assert stored == {key: [labels[key]] for key in KEYS[labels["app"]]}


@pytest.mark.parametrize(
    ("owner", "groups"),
    [
        ("DaemonSet/agent", 1),
        ("StatefulSet/db", 1),
        ("StatefulSet/each", 3),
        ("Job/batch", 1),
        ("Job/indexed", 3),
        ("Deployment/web", 1),
    ],
)
def test_pods_with_the_same_values_are_one_row(report: Report, owner: str, groups: int) -> None:
    """With a key whose value is different on each pod, each pod counts only itself."""
    rows = report.rows(owner, "spec.topologySpreadConstraints[0]")
    assert len(rows) == groups
