"""The patches of SPR208 and SPR309 in the middle of a rollout end the finding: each revision is spread by itself."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.builders import Json, constraint
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import deployment
from tests.e2e.shell import paste
from tests.e2e.spread import Plugin, Spread
from tests.e2e.workloads import end_pods, pods, roll_out, scheduled, wait_for_rollout

pytestmark = pytest.mark.e2e

_NODES: Final = ["a1", "b1", "c1"]
_HELD: Final = {
    "minReadySeconds": 3600,
    "progressDeadlineSeconds": 7200,
    "strategy": {"rollingUpdate": {"maxSurge": 2, "maxUnavailable": 0}},
}
"""New pods are not available for an hour, so that the rollout waits with two pods of each revision."""
_RELEASED: Final = {"spec": {"minReadySeconds": 0}}


@pytest.fixture(scope="module")
def cluster(own_control_plane: ControlPlane) -> ControlPlane:
    """Return a cluster of three zones with one node each."""
    assert own_control_plane.add_nodes(per_zone=1) == _NODES
    return own_control_plane


class Rollout:
    """A Deployment of two pods whose second revision waits to replace the first."""

    def __init__(self, cluster: ControlPlane, spread: Spread, namespace: str) -> None:
        """Prepare the Deployment, which ``begin`` creates."""
        self._cluster = cluster
        self._spread = spread
        self._namespace = namespace

    def begin(self, nodes: Sequence[str] = _NODES) -> None:
        """Start the second revision, whose pods have room on some nodes only."""
        manifest = deployment(constraints=[constraint()], replicas=2, namespace=self._namespace)
        self._open(["a1", "b1"])
        roll_out(self._cluster, manifest)
        self._open(nodes)
        manifest["spec"].update(_HELD)
        manifest["spec"]["template"]["metadata"]["labels"]["version"] = "2"
        self._cluster.apply(manifest)
        self._wait(4)
        self._open(_NODES)

    def findings(self) -> list[Json]:
        """Return the findings about the Deployment."""
        answer = self._spread("check", "deploy/web", "-n", self._namespace, "-o", "json", "--fail-on", "never")
        findings: list[Json] = answer.report["findings"]
        return findings

    def type_commands(self, finding: Json, directory: Path) -> None:
        """Run the commands of a finding, and wait until the pods of the new template run."""
        done = self.paste(finding, directory)
        assert done.returncode == 0, done.stderr
        self._wait(4)

    def paste(self, finding: Json, directory: Path) -> subprocess.CompletedProcess[str]:
        """Run the commands of a finding."""
        return paste("\n".join(finding["commands"]), directory, self._spread.environment)

    def end(self) -> None:
        """Let the newest revision replace the others."""
        path = f"/apis/apps/v1/namespaces/{self._namespace}/deployments/web"
        self._cluster.api.patch(path, _RELEASED)
        wait_for_rollout(self._cluster, "deploy/web", self._namespace)

    def nodes(self) -> list[str]:
        """Return the nodes of the pods."""
        return sorted(pod["spec"]["nodeName"] for pod in pods(self._cluster, self._namespace))

    def _open(self, nodes: Sequence[str]) -> None:
        """Cordon all other nodes."""
        for node in _NODES:
            cordoned = node not in nodes or None
            self._cluster.api.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": cordoned}})

    def _wait(self, number: int) -> None:
        """Wait until the controller has seen the template, and this many pods run."""
        path = f"/apis/apps/v1/namespaces/{self._namespace}/deployments/web"

        def run() -> bool:
            workload = self._cluster.api.get(path)
            listed = pods(self._cluster, self._namespace)
            seen = workload["status"].get("observedGeneration") == workload["metadata"]["generation"]
            updated = workload["status"].get("updatedReplicas") == workload["spec"]["replicas"]
            return seen and updated and len(listed) == number and all(map(_runs, listed))

        try:
            self._cluster.wait_for(run, what=f"{number} pods run")
        except TimeoutError as error:
            error.add_note(
                "\n".join(
                    f"{pod['metadata']['name']}: {scheduled(pod)}" for pod in pods(self._cluster, self._namespace)
                )
            )
            raise


@pytest.fixture
def rollout(cluster: ControlPlane, plugin: Plugin) -> Iterator[Rollout]:
    """Return a rollout in a namespace of its own."""
    with cluster.namespace() as namespace:
        yield Rollout(cluster, plugin.on(cluster), namespace)
        end_pods(cluster, namespace)


def _is_healed(finding: Json, present: Sequence[Json]) -> bool:
    """Tell whether a finding is gone; old pods that still count all pods may have notes until they are gone."""
    return finding["code"] not in _codes(present) and all(each["severity"] == "info" for each in present)


@contextmanager
def _room_for_one_pod(cluster: ControlPlane, node: str) -> Iterator[None]:
    """Take all but one slot from a node inside a ``with`` block."""
    path = f"/api/v1/nodes/{node}"
    usual = cluster.api.get(path)["status"]["allocatable"]
    cluster.api.patch(f"{path}/status", {"status": {"allocatable": {**usual, "pods": "1"}}})
    try:
        yield
    finally:
        cluster.api.patch(f"{path}/status", {"status": {"allocatable": usual}})


def _runs(pod: Json) -> bool:
    return pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]


def _codes(findings: Sequence[Json]) -> list[str]:
    return [finding["code"] for finding in findings]


def test_without_the_patch_the_new_pods_end_uneven(rollout: Rollout) -> None:
    rollout.begin(["c1"])
    (finding,) = rollout.findings()
    assert finding["code"] == "SPR309"
    assert "The skew is 1 with them and 2 without them." in finding["message"]
    assert finding["message"].endswith("It will exceed maxSkew 1 when they are gone.")
    rollout.end()
    assert rollout.nodes() == ["c1", "c1"]
    assert "SPR301" in _codes(rollout.findings())


def test_the_patch_spreads_the_new_pods_by_themselves(rollout: Rollout, tmp_path: Path) -> None:
    rollout.begin(["c1"])
    (finding,) = rollout.findings()
    rollout.type_commands(finding, tmp_path)
    assert _is_healed(finding, rollout.findings())
    rollout.end()
    assert len({*rollout.nodes()}) == 2
    assert rollout.findings() == []


def test_the_patch_for_pods_that_may_be_uneven_later(cluster: ControlPlane, rollout: Rollout, tmp_path: Path) -> None:
    with _room_for_one_pod(cluster, "c1"):
        rollout.begin()
    (finding,) = rollout.findings()
    assert finding["code"] == "SPR208"
    rollout.type_commands(finding, tmp_path)
    assert _is_healed(finding, rollout.findings())
    rollout.end()
    assert rollout.findings() == []


def test_the_patch_fails_where_the_constraint_has_changed(rollout: Rollout, tmp_path: Path) -> None:
    """It tests for the keys that it has read, and changes nothing."""
    rollout.begin(["c1"])
    (finding,) = rollout.findings()
    rollout.type_commands(finding, tmp_path)
    assert rollout.paste(finding, tmp_path).returncode != 0
    assert _is_healed(finding, rollout.findings())
