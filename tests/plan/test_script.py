"""The scripts of plans are POSIX sh without a finding of shellcheck, whatever the names in a capture are."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from msgspec import UNSET

from kubectl_spread.render import shell
from kubectl_spread.report.model import Cluster
from kubectl_spread.report.plan import PlannedWave, PlanSummary, SpreadPlan
from tests.builders import Json
from tests.conftest import Golden
from tests.plan.test_plan import SIX, command, hard, planned
from tests.simulate.clusters import budget, deployment

SHELLCHECK: Final = Path(sys.executable).with_name("shellcheck")
HOSTILE: Final = (
    "c'; touch broken; '",
    "$(touch broken)",
    "`touch broken`",
    '"; touch broken; "',
    "c\ntouch broken\n",
    "c\\' & touch broken #",
    "-n",
    "shellcheck disable=SC2086",
    "\u2028touch broken\r",
)
_REPLACED: Final = ("a", "b", "web-5d9c", "uid-web-5d9c-0", "a1", "db")
"""The zone that a pod leaves, one that it may go to, its owner, its UID, its node, and a workload that stays."""
_FUNCTIONS: Final = 'same_cluster() { evicted=1; }; check() { :; }; arrive() { :; }; evict() { printf "%s\\0" "$@"; }'
"""They take the place of those of the script, so that only its arguments are read."""


def shellcheck(text: str, severity: str = "style") -> str:
    """Return the findings of shellcheck about a script."""
    arguments = [str(SHELLCHECK), "--norc", "--shell=sh", f"--severity={severity}", "-"]
    completed = subprocess.run(arguments, input=text, check=False, capture_output=True, text=True)
    assert completed.returncode in {0, 1}, completed.stderr
    return completed.stdout


def _cluster() -> list[Json]:
    """Return a cluster with one workload that is corrected in two waves, and one that is not."""
    db = deployment("db", ["a1", "a2"], **hard("db"))
    return [*SIX, *deployment("web", ["a1"] * 4, **hard()), *db, budget("db", minAvailable=2)]


def _hostile(objects: Sequence[Json], first: int) -> list[Json]:
    """Return objects with hostile names, each in place of all strings that are equal to one name."""
    text = json.dumps(objects)
    for number, name in enumerate(_REPLACED, first):
        text = text.replace(json.dumps(name), json.dumps(HOSTILE[number % len(HOSTILE)]))
    renamed: list[Json] = json.loads(text)
    return renamed


def test_the_script_is_readable_and_has_no_finding(golden: Golden) -> None:
    text = command(_cluster(), "-o", "script").stdout
    golden(Path(__file__).with_name("script.sh"), text)
    assert shellcheck(text) == ""


def test_a_script_without_evictions_has_no_finding() -> None:
    assert shellcheck(command(SIX, "-o", "script").stdout) == ""


def test_shellcheck_finds_a_seeded_fault() -> None:
    text = command(_cluster(), "-o", "script").stdout
    assert "SC2086" in shellcheck(text.replace('k get pods -n "$1"', "k get pods -n $1"))


@pytest.mark.parametrize("first", range(len(HOSTILE)))
def test_hostile_names_stay_arguments(first: int, tmp_path: Path) -> None:
    cluster = _hostile(_cluster(), first)
    text = command(cluster, "-o", "script").stdout
    assert shellcheck(text, "warning") == ""
    replaced = text.replace("\nmain() {", f"\nsay() {{ :; }}\n{_FUNCTIONS}\nmain() {{")
    printed = subprocess.run(["sh"], input=replaced.encode(), cwd=tmp_path, check=True, stdout=subprocess.PIPE).stdout
    evictions = [step for wave in planned(cluster)["waves"] for step in wave["evictions"]]
    assert printed.decode().split("\0") == [
        part
        for step in evictions
        for part in (step["namespace"], step["pod"], step["uid"], step["owner"]["kind"], step["owner"]["name"])
    ] + [""]
    assert list(tmp_path.iterdir()) == []


def _live(context: str, uid: str = "") -> str:
    """Return the script of an empty plan with one wave for a live cluster."""
    header = Cluster(
        evaluated_as="1.37",
        version_source="live",
        gates={},
        gates_source="version",
        nodes="listed",
        resource_versions={},
        read_at="2026-09-01T10:00:00Z",
        context=context,
        uid=uid or UNSET,
    )
    summary = PlanSummary(
        evictions=0, waves=1, uneven=1, corrected=1, runs=1, seed=0, unknown=[], not_simulated=[], skipped={}
    )
    waves = [PlannedWave(evictions=[])]
    return shell.evictions(SpreadPlan(cluster=header, waves=waves, not_correctable=[], summary=summary), ())


def test_a_plan_of_a_live_cluster_pins_its_context_and_its_uid() -> None:
    text = _live(context="prod eu; touch broken", uid="41c7")
    assert """k() { kubectl --context 'prod eu; touch broken' "$@"; }""" in text
    assert "    same_cluster 41c7 plan\n" in text


def test_where_the_uid_may_not_be_read_the_script_says_what_tells_the_cluster() -> None:
    text = _live(context="prod")
    assert "same_cluster" not in text.partition("\nmain() {")[2]
    assert "# The namespace kube-system could not be read: it is not known whether this is the cluster" in text
    assert shellcheck(text) == ""
