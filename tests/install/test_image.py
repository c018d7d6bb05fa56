"""The root file system of the container image serves a cluster to nobody's user, read-only and without a shell.

No container runtime is needed: Linux gives the program a root directory and a user of its own.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from release import image
from release.environments import ROOT
from tests.builders import Json
from tests.controlplane.cluster import ControlPlane
from tests.deploy.objects import BASE, NAME
from tests.deploy.pods import pod_of, service_account, variables
from tests.e2e.monitored import running

pytestmark = [pytest.mark.install, pytest.mark.nightly]

_LARGEST = 75 << 20
_MOUNTED = ("proc", "var/run/secrets/kubernetes.io/serviceaccount")
_MOUNT = """
mount --bind "$0" "$0" &&
mount --rbind /proc "$0/proc" &&
{ [ -z "$ACCOUNT" ] || mount --bind "$ACCOUNT" "$0/var/run/secrets/kubernetes.io/serviceaccount"; } &&
mount -o remount,ro,bind "$0" &&
exec unshare --map-user=65532 --map-group=65532 --root="$0" --wd=/ "$@"
"""


@pytest.fixture(scope="module")
def root(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the root file system, written as deploy/Containerfile does, with the directories that a runtime mounts."""
    directory = tmp_path_factory.mktemp("image") / "root"
    script = str(ROOT / "release" / "image.py")
    subprocess.run([sys.executable, "-I", script, str(archive), str(directory)], check=True, timeout=60)
    for name in _MOUNTED:
        (directory / name).mkdir(parents=True)
    return directory


def container(root: Path, *arguments: str) -> list[str]:
    """Return a command that runs the program as the container's, with the container's arguments."""
    mounts = ["unshare", "--map-root-user", "--mount", "sh", "-c", _MOUNT, str(root)]
    return [*mounts, str(image.PROGRAM), *arguments]


def run(root: Path, arguments: Sequence[str], stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run the program in the container, without a cluster."""
    command = ["env", "ACCOUNT=", *container(root, *arguments)]
    return subprocess.run(command, input=stdin, check=False, capture_output=True, text=True, timeout=60)


def test_it_has_no_program_but_the_plugin(root: Path) -> None:
    """It has no shell and no interpreter."""
    files = [path for path in root.rglob("*") if path.is_file()]
    programs = {path for path in files if path.stat().st_mode & 0o111 and ".so" not in path.name}
    assert programs == {root / image.PROGRAM.relative_to("/")}


def test_everybody_may_read_it_and_only_root_may_write(root: Path) -> None:
    modes = {path.stat().st_mode & 0o777 for path in (root, *root.rglob("*"))}
    assert modes == {0o644, 0o755}


def test_it_has_the_licences_of_its_libraries(root: Path) -> None:
    notices = sorted(path.relative_to(root).as_posix() for path in root.rglob("copyright"))
    assert notices == ["usr/share/doc/libc6/copyright", "usr/share/doc/zlib1g/copyright"]
    assert (root / "opt" / "kubectl-spread" / "THIRD-PARTY-NOTICES.txt").exists()


def test_it_is_small(root: Path) -> None:
    assert sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) < _LARGEST


def test_it_starts_without_a_cluster(root: Path) -> None:
    completed = run(root, ["monitor", "--help"])
    assert (completed.returncode, completed.stderr) == (0, "")
    assert "--listen" in completed.stdout


def test_it_can_write_nothing(root: Path) -> None:
    pod = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": []}}'
    completed = run(root, ["check", "-f", "-", "--server-version=1.37", "-o", "json=/report.json"], pod)
    assert completed.returncode == 2
    assert "ead-only file system" in completed.stderr


@pytest.fixture(scope="module")
def pod(web: ControlPlane) -> Json:
    """Apply the base, and return its pod."""
    web.kubectl("apply", "-k", str(BASE))
    web.kubectl("rollout", "status", "-n", NAME, f"deploy/{NAME}", "--timeout=60s")
    return pod_of(web, NAME)


@pytest.fixture
def environment(web: ControlPlane, pod: Json, tmp_path: Path) -> dict[str, str]:
    """Return the environment of the pod's container."""
    return variables(web, service_account(web, pod, tmp_path / "account"))


def test_it_serves_a_cluster_as_the_pod_of_the_base(
    root: Path, web: ControlPlane, pod: Json, environment: dict[str, str], tmp_path: Path
) -> None:
    command = container(root, *pod["spec"]["containers"][0]["args"])
    with running(command, environment) as monitor:
        metrics = monitor.get("/metrics")
        assert (metrics.status, b'workload="web",workload_type="deployment"' in metrics.data) == (200, True)
        assert b"<!doctype html>" in monitor.get("/").data.lower()
        assert monitor.get("/report.json").headers["content-type"] == "application/json"
        assert b"kubectl_spread_list_total" in monitor.get("/metrics", telemetry=True).data
        assert Path(f"/proc/{monitor.process.pid}/root").resolve() == root
        assert monitor.end() == 0
