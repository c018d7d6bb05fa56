"""Everything that a finding advises to type heals it on the real control plane, and harms nothing else."""

from __future__ import annotations

import json
import shlex
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.builders import Json
from tests.controlplane import binaries
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import require_built
from tests.e2e.situations import Example, Situation, example
from tests.e2e.spread import Plugin, Spread
from tests.e2e.workloads import pods, scheduled
from tests.rules.test_rules import BAD, findings, name

pytestmark = pytest.mark.e2e

_QUIET: Final = 1.0
"""The seconds without a change after which nothing changes."""
_BUILT: Final = {version.rpartition(".")[0].removeprefix("v"): version for version in binaries.OLDER_APISERVERS}


_OWNER_UNREAD: Final = ("SPR108",)
"""Rules that are about pods whose pod template is unknown."""


class Remedy(NamedTuple):
    """What the findings of an example advise: commands or a patch."""

    path: Path
    kind: str


def _remedies() -> Iterator[Remedy]:
    """Yield each kind of remedy of each example."""
    for path in BAD:
        own = [finding for finding in findings(path) if finding["code"] == path.parent.name]
        yield from (Remedy(path, kind) for kind in ("commands", "patch") if any(kind in finding for finding in own))


REMEDIES: Final = sorted(_remedies(), key=lambda remedy: example(remedy.path).minor)


class Ward:
    """A cluster for one example after the other, with the API server that the example is about."""

    def __init__(self, cluster: ControlPlane, plugin: Plugin) -> None:
        self.cluster = cluster
        self._plugin = plugin
        self._served: tuple[str, dict[str, bool]] = "", {}

    def serve(self, minor: str, gates: dict[str, bool]) -> None:
        """Run the API server of a minor, if it is built; "" is the newest."""
        minor = minor if minor in _BUILT else ""
        if (minor, gates) != self._served:
            require_built(_BUILT.get(minor, binaries.KUBERNETES_VERSION), ("kube-apiserver",))
            self.cluster.restart_apiserver(version=_BUILT.get(minor), feature_gates=gates)
            self._served = minor, gates

    def spread(self) -> Spread:
        """Return ``kubectl spread`` on the cluster."""
        return self._plugin.on(self.cluster)

    def shell(self, script: str, directory: Path) -> None:
        """Run lines as somebody who pastes them, and stop at the first that fails."""
        environment = self.spread()._environment
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", script],
            cwd=directory,
            env=environment,
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"


@pytest.fixture(scope="module")
def ward(tmp_path_factory: pytest.TempPathFactory, plugin: Plugin) -> Iterator[Ward]:
    """Return a cluster without nodes."""
    require_built()
    with ControlPlane.start(tmp_path_factory.mktemp("ward"), kubelet=True) as cluster:
        yield Ward(cluster, plugin)


def _key(finding: Json) -> tuple[str, ...]:
    return finding["code"], finding["object"]["kind"], finding["object"]["name"], finding["path"]


def _loud(found: Sequence[Json]) -> set[tuple[str, ...]]:
    return {_key(finding) for finding in found if finding["severity"] != "info"}


def _settle(cluster: ControlPlane, namespace: str) -> None:
    """Wait until every pod runs or waits, and nothing has changed for a while."""
    since, last = time.monotonic(), ""

    def quiet() -> bool:
        nonlocal since, last
        listed = pods(cluster, namespace)
        now = json.dumps(
            [[pod["metadata"]["uid"], pod["spec"].get("nodeName"), pod["status"].get("phase")] for pod in listed]
        )
        waiting = [pod for pod in listed if pod["status"].get("phase") != "Running"]
        moving = any("deletionTimestamp" in pod["metadata"] for pod in listed) or any(
            not scheduled(pod) and "schedulingGates" not in pod["spec"] for pod in waiting
        )
        if moving or now != last:
            since, last = time.monotonic(), now
        return time.monotonic() - since > _QUIET

    cluster.wait_for(quiet, timeout=60, what="the pods are settled")


def _report(ward: Ward, case: Example, namespace: str, code: str) -> list[Json]:
    options = [*case.options]
    if "--server-version" in options and case.minor in _BUILT:
        index = options.index("--server-version")
        del options[index : index + 2]
    options += ["-o", "json", "--fail-on", "never"]
    if code in _OWNER_UNREAD:
        # The owner is on the cluster, and the user may not read it.
        capture = ward.cluster.kubectl("get", "pods,nodes", "-n", namespace, "-o", "json").stdout
        answer = ward.spread()("check", "-f", "-", *options, input=capture)
    else:
        answer = ward.spread()("check", "-n", namespace, *options)
    assert answer.status == 0, answer.stderr
    found: list[Json] = answer.report["findings"]
    return found


def _uids(cluster: ControlPlane, namespace: str) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods(cluster, namespace)}


@pytest.mark.parametrize("remedy", REMEDIES, ids=lambda remedy: f"{name(remedy.path)} {remedy.kind}")
def test_the_remedy_heals_the_finding(ward: Ward, tmp_path: Path, remedy: Remedy) -> None:
    """The finding is gone, no finding is new at warning or above, and no other pod was replaced."""
    case, code = example(remedy.path), remedy.path.parent.name
    upgrade = "--to" in case.options
    ward.serve(case.minor, {} if upgrade else case.gates)
    with ward.cluster.namespace("case") as namespace:
        Situation(ward.cluster, case, namespace).make()
        _settle(ward.cluster, namespace)
        before = _report(ward, case, namespace, code)
        advised = [finding for finding in before if finding["code"] == code and remedy.kind in finding]
        assert advised, [(_key(finding), finding.get(remedy.kind)) for finding in before]
        for finding in advised:
            present = [each for each in _report(ward, case, namespace, code) if _key(each) == _key(finding)]
            if not present:
                continue
            uids = _uids(ward.cluster, namespace)
            script = _script(present[0], remedy.kind)
            print(script)
            ward.shell(script, tmp_path)
            _settle(ward.cluster, namespace)
            after = _report(ward, case, namespace, code)
            assert _key(finding) not in map(_key, after), [each for each in after if _key(each) == _key(finding)]
            assert _loud(after) <= _loud(before), after
            print(uids)


def _script(finding: Json, kind: str) -> str:
    if kind == "commands":
        return "\n".join(finding["commands"])
    workload = f"{finding['object']['kind']}/{finding['object']['name']}"
    operations = json.dumps(finding["patch"]["operations"])
    return shlex.join(["kubectl", "patch", workload, "-n", finding["namespace"], "--type=json", "-p", operations])
