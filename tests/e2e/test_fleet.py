"""``--contexts`` on three control planes: one of another version, and one that is down."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.builders import constraint
from tests.controlplane import binaries
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import require_built
from tests.e2e.manifests import deployment, pod
from tests.e2e.spread import Json, Plugin, Report, Spread
from tests.e2e.workloads import roll_out

pytestmark = pytest.mark.e2e

OLDER, _ = binaries.OLDER_APISERVERS
KUBE_SYSTEM = "/api/v1/namespaces/kube-system"


class Fleet(NamedTuple):
    """The plugin with one kubeconfig for all clusters, whose current context is the one that is down."""

    spread: Spread
    uids: dict[str, str]

    def ask(self, *arguments: str) -> tuple[int, str, Report]:
        """Return the exit status of a command, its messages and its report."""
        answer = self.spread(*arguments, "-o", "json")
        return answer.status, answer.stderr, answer.report


def uid(cluster: ControlPlane) -> str:
    """Return the UID of the namespace ``kube-system``; some versions create it only after their start."""
    system = cluster.wait_for(
        lambda: [
            each for each in cluster.api.get("/api/v1/namespaces")["items"] if each["metadata"]["name"] == "kube-system"
        ],
        what="the namespace kube-system exists",
    )
    found: str = system[0]["metadata"]["uid"]
    return found


def merged(path: Path, kubeconfigs: dict[str, Path]) -> Path:
    """Write a kubeconfig with a context for each of several kubeconfigs with one context."""
    content: Json = {"apiVersion": "v1", "kind": "Config", "clusters": [], "users": [], "contexts": []}
    for name, each in kubeconfigs.items():
        part = json.loads(each.read_text(encoding="utf-8"))
        content["clusters"].append({"name": name, "cluster": part["clusters"][0]["cluster"]})
        content["users"].append({"name": name, "user": part["users"][0]["user"]})
        content["contexts"].append({"name": name, "context": {"cluster": name, "user": name}})
    path.write_text(json.dumps({**content, "current-context": "gone"}), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def fleet(own_control_plane: ControlPlane, plugin: Plugin, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Return three clusters: the newest with a Deployment, 1.33 with a pod, and one that has been stopped."""
    require_built(OLDER, ("kube-apiserver",))
    directory = tmp_path_factory.mktemp("fleet")
    newest = own_control_plane
    newest.add_nodes()
    newest.kubectl("create", "namespace", "shop")
    roll_out(newest, deployment(constraints=[constraint()], namespace="shop"))
    with ControlPlane.start(directory / "older", version=OLDER, scheduler=False, controllers=False) as older:
        older.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
        older.api.create(pod("web-1", [constraint()], namespace="shop"))
        with ControlPlane.start(directory / "gone", scheduler=False, controllers=False) as gone:
            path = gone.kubeconfig
            kubeconfigs = {"newest": newest.kubeconfig, "older": older.kubeconfig, "gone": path}
            kubeconfig = merged(directory / "kubeconfig", kubeconfigs)
        yield Fleet(plugin.on(newest, kubeconfig), {"newest": uid(newest), "older": uid(older)})


def test_each_cluster_is_a_row_with_its_own_identity_and_version(fleet: Fleet) -> None:
    status, stderr, report = fleet.ask("check", "-A", "--contexts", "newest,gone,older")
    assert status == 2
    newest, gone, older = report["clusters"]
    assert [newest["context"], gone["context"], older["context"]] == ["newest", "gone", "older"]
    for cluster in (newest, older):
        assert cluster["uid"] == fleet.uids[cluster["context"]]
        assert cluster["report"]["cluster"]["context"] == cluster["context"]
    assert fleet.uids["newest"] != fleet.uids["older"]
    assert newest["serverVersion"] == binaries.KUBERNETES_VERSION.removeprefix("v")
    assert older["serverVersion"] == OLDER.removeprefix("v")
    assert (newest["report"]["cluster"]["evaluatedAs"], older["report"]["cluster"]["evaluatedAs"]) == ("1.37", "1.33")
    assert newest["report"]["summary"]["workloads"] == 1
    assert older["report"]["summary"]["pending"] == 1
    assert (gone["status"], "report" in gone) == ("failed", False)
    assert "error: gone: " in stderr
    assert report["summary"]["failed"] == 1


def test_clusters_that_answer_decide_the_exit_status_alone(fleet: Fleet) -> None:
    status, _, report = fleet.ask("check", "-A", "--contexts", "newest,older", "--fail-on", "never")
    assert status == 0, report
    assert [each["status"] for each in report["clusters"]] == ["complete", "complete"]


def test_the_screen_names_each_cluster(fleet: Fleet) -> None:
    answer = fleet.spread("check", "-A", "--contexts", "all", "--color", "never")
    assert answer.status == 2
    lines = answer.stdout.splitlines()
    assert [line for line in lines if line.startswith("=== ")] == [
        f"=== newest (UID {fleet.uids['newest']})",
        f"=== older (UID {fleet.uids['older']})",
    ]
    assert [line.split()[0] for line in lines[-6:-2]] == ["CONTEXT", "gone", "newest", "older"]


def test_a_simulation_of_several_clusters(fleet: Fleet) -> None:
    """The older cluster has no node in the zone, which is an error of this cluster alone."""
    arguments = ("--lose", "zone=a", "-A", "--runs", "2", "--contexts", "newest,older,gone")
    status, _, report = fleet.ask("simulate", *arguments)
    assert status == 2
    assert [each["status"] for each in report["clusters"]] == ["complete", "failed", "failed"]
    assert report["clusters"][0]["report"]["kind"] == "SpreadSimulation"


def test_an_unknown_context_is_an_error(fleet: Fleet) -> None:
    answer = fleet.spread("check", "-A", "--contexts", "newest,newer")
    assert (answer.status, answer.stdout) == (2, "")
    assert answer.error == 'error: context "newer" does not exist; did you mean "newest"?'
