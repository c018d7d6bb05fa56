"""The commands of ``docs/policy.md`` on a real API server, which prints what the page shows."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping

import pytest

from tests.builders import constraint
from tests.controlplane import binaries
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import pod
from tests.e2e.shell import paste
from tests.e2e.spread import Plugin
from tests.generated import ROOT

pytestmark = pytest.mark.e2e

PAGE = (ROOT / "docs" / "policy.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"<!-- begin (.+?) -->\n```console\n(.*?)```\n<!-- end \1 -->", PAGE, re.DOTALL))
APPLY = "kubectl apply -f examples/policy/web.yaml"
PROBE = f"{APPLY} --dry-run=server"


@pytest.fixture(scope="module")
def cluster(own_control_plane: ControlPlane) -> ControlPlane:
    return own_control_plane


@pytest.fixture(scope="module")
def environment(cluster: ControlPlane, plugin: Plugin) -> Mapping[str, str]:
    """Return an environment with kubectl and the plugin on PATH, for the user with all rights."""
    path = os.pathsep.join([str(plugin.directory), str(binaries.kubectl().parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "KUBECONFIG": str(cluster.kubeconfig)}


def run(line: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return paste(line, ROOT, environment)


def transcript(line: str, environment: Mapping[str, str]) -> str:
    """Return a command with all that it prints, as a terminal shows both."""
    completed = run(f"{line} 2>&1", environment)
    return f"$ {line}\n{completed.stdout}"


def install(options: str, effect: str, cluster: ControlPlane, environment: Mapping[str, str]) -> None:
    """Apply policies, and wait until they have their effect on a request."""
    applied = run(f"kubectl spread policy {options} | kubectl apply -f -", environment)
    assert applied.returncode == 0, applied.stderr
    cluster.wait_for(lambda: effect in run(PROBE, environment).stderr, what=f"the policies of {options}")


def test_the_page_shows_what_a_user_of_kubectl_sees(cluster: ControlPlane, environment: Mapping[str, str]) -> None:
    install("", "Warning: Validation failed", cluster, environment)
    assert transcript(APPLY, environment) == BLOCKS["warn"]
    run("kubectl delete deployment web", environment)
    install("--action deny", "denied request", cluster, environment)
    assert transcript(APPLY, environment) == BLOCKS["deny"]
    assert run("kubectl get deployment web", environment).returncode == 1


def test_the_guard_reports_each_rule_and_check_the_worst(cluster: ControlPlane, environment: Mapping[str, str]) -> None:
    """One update changes a label that a constraint lists, and removes another one."""
    install("", "Warning: Validation failed", cluster, environment)
    keys = [constraint(match=["rev", "tenant"])]
    cluster.api.create(pod("relabelled", keys, labels={"app": "web", "rev": "r1", "tenant": "a"}))
    update = "kubectl label pod relabelled --overwrite rev=r2 tenant-"
    codes = ["SPR101", "SPR102"]

    def warnings() -> list[str]:
        return sorted(re.findall(r"SPR\d+", run(f"{update} --dry-run=server", environment).stderr))

    cluster.wait_for(lambda: warnings() == codes, what="the guard is in effect")
    run(update, environment)
    checked = run("kubectl spread check pod/relabelled --select SPR1 -o json", environment)
    findings = json.loads(checked.stdout)["findings"]
    assert [finding["code"] for finding in findings] == codes[:1]


def test_the_last_command_of_the_page_removes_all_policies(
    cluster: ControlPlane, environment: Mapping[str, str]
) -> None:
    install("", "SPR107", cluster, environment)
    removed = run(PAGE.rpartition("```console\n$ ")[2].partition("\n```")[0], environment)
    assert (removed.returncode, removed.stderr) == (0, "")
    kinds = "validatingadmissionpolicies,validatingadmissionpolicybindings"
    left = run(f"kubectl get {kinds} -o name", environment)
    assert (left.stdout, left.stderr) == ("", "")
