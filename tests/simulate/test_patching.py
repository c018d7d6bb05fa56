"""The scripts that apply the patches of a simulation are POSIX sh without a finding of shellcheck."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
import pytest

from kubectl_spread.render import shell
from kubectl_spread.report.model import Severity
from kubectl_spread.report.simulation import SimulationFinding, SpreadSimulation
from tests.builders import Json
from tests.conftest import Golden
from tests.plan.test_script import HOSTILE, shellcheck
from tests.simulate.clusters import budget, command, deployment, node, nodes, zone_constraint

_FUNCTIONS = 'same_cluster() { :; }; change() { printf "%s\\0" "$@"; }; wait_rolled_out() { :; }'
"""They take the place of those of the script, so that only its arguments are read."""
LOSE = ("--lose", "zone=c", "-o", "script")


def _cluster(number: int, zone: str = "c") -> list[Json]:
    """Return two nodes in each of three zones, and some Deployments of six pods with a hard constraint."""
    places = ("a1", "a2", "b1", "b2", "c1", "c2")
    objects = [node(name, zone=zone if name[0] == "c" else "", cpu=16) for name in places]
    for index in range(number):
        name = f"web{index}"
        objects += deployment(name, places, topologySpreadConstraints=[zone_constraint(name)])
    return objects


def test_the_script_patches_five_workloads_at_a_time(golden: Golden) -> None:
    text = command(_cluster(6), *LOSE).stdout
    golden(Path(__file__).with_name("script.sh"), text)
    assert shellcheck(text) == ""


def test_commands_that_a_person_decides_on_are_comments() -> None:
    """A budget that refuses an eviction guards a workload."""
    guarded = [*_cluster(1), budget("web0", minAvailable=6)]
    text = command(guarded, "--drain", "c1", "--runs", "1", "-o", "script").stdout
    assert "# Not in this script: set maxUnavailable: 1 in budget web0: kubectl patch pdb web0 -n shop " in text
    assert "pdb" not in text.partition("\nmain() {")[2]


def test_a_workload_with_two_patches_is_waited_for_once() -> None:
    """The context has the word that kubectl's command has, too."""
    text = command(_cluster(1), "--lose", "zone=c", "--runs", "1", "-o", "json").stdout
    report = msgspec.json.decode(text, type=SpreadSimulation)
    commands = [f"kubectl --context 'a patch b' patch deploy/web -n shop --type=json -p '[{n}]'" for n in (1, 2)]
    finding = SimulationFinding(severity=Severity.ERROR, message="", workloads=[], fix="set", commands=commands)
    text = shell.patches(msgspec.structs.replace(report, findings=[finding]), ())
    assert "\nplanned=1\n" in text
    lines = [line.split() for line in text.splitlines() if "deploy/web" in line]
    assert [words[0] for words in lines] == ["change", "change", "wait_rolled_out"]


def test_a_script_without_patches_does_nothing() -> None:
    text = command([*nodes("a1", "b1"), *deployment("web", ["a1"])], "--restart", "deploy/web", "-o", "script").stdout
    assert text.endswith("\necho 'nothing to patch'\n")
    assert shellcheck(text) == ""


@pytest.mark.parametrize("zone", HOSTILE)
def test_names_in_sentences_stay_comments(zone: str, tmp_path: Path) -> None:
    """The lost zone is named in the first lines, and in why pods wait."""
    text = command(_cluster(1, zone), *LOSE[2:], "--lose", "c1,c2").stdout
    assert shellcheck(text, "warning") == ""
    replaced = text.replace("\nmain() {", f"\nsay() {{ :; }}\n{_FUNCTIONS}\nmain() {{")
    printed = subprocess.run(["sh"], input=replaced.encode(), cwd=tmp_path, check=True, stdout=subprocess.PIPE).stdout
    assert printed.decode().split("\0")[:3] == ["shop", "deploy/web0", "json"]
    assert list(tmp_path.iterdir()) == []
