"""The script of a plan on a cluster: it ends as printed, or stops, and evicts no pod that the plan does not name."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence

import pytest

from tests.builders import ZONE, constraint, selector
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import deployment
from tests.e2e.own_nodes import budget, cordon
from tests.e2e.plans import Case, PlanPlay, play
from tests.e2e.spread import Plugin

pytestmark = [pytest.mark.e2e, pytest.mark.long]

FEW = range(5)
MANY = range(5, 105)
NODES = [f"f-{zone}-{number}" for zone in "abc" for number in (0, 1)]


@pytest.mark.parametrize("seeds", [FEW, pytest.param(MANY, marks=pytest.mark.nightly)], ids=["few", "many"])
def test_scripts_end_as_their_plans_say(own_control_plane: ControlPlane, plugin: Plugin, seeds: Sequence[int]) -> None:
    played = play(own_control_plane, plugin.program(own_control_plane), seeds)
    assert len(played) >= 0.98 * len(seeds)
    assert [(each.seed, each.differences) for each in played if each.differences] == []
    assert sum(each.evictions for each in played) >= len(seeds) // 2


@pytest.fixture
def uneven(own_control_plane: ControlPlane, plugin: Plugin) -> Iterator[PlanPlay]:
    """Return six pods in zones a and b, of which two have to move to zone c, one after the other."""
    web = deployment(
        "web",
        [constraint(key=ZONE, selects=selector({"app": "web"}))],
        replicas=6,
        nodeSelector={"case": "pf"},
    )
    del web["metadata"]["namespace"]
    case = Case(seed="f", slots=dict.fromkeys(NODES, 8), late=NODES[-2:], objects=[web], scaled={})
    with own_control_plane.namespace("fault") as namespace:
        uneven = PlanPlay(own_control_plane, plugin.program(own_control_plane), case, namespace)
        uneven.prepare()
        yield uneven
        uneven.clean()


def _named(uneven: PlanPlay) -> set[str]:
    return {step["pod"] for wave in uneven.plan()["waves"] for step in wave["evictions"]}


def _evicted(before: dict[str, str], uneven: PlanPlay) -> set[str]:
    return {before[uid] for uid in before.keys() - uneven.uids().keys()}


def test_a_pod_that_is_gone_is_passed_over(uneven: PlanPlay) -> None:
    named, script, before = _named(uneven), uneven.script(), uneven.uids()
    first = min(named)
    uneven.cluster.kubectl("delete", "pod", first, "-n", uneven.namespace)
    uneven.settle()
    done = uneven.run(script)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"already gone: {first}" in done.stdout
    assert _evicted(before, uneven) == named
    assert uneven.plan()["waves"] == []


def test_a_zone_that_is_cordoned_meanwhile_stops_the_script(uneven: PlanPlay) -> None:
    script, before = uneven.script(), uneven.uids()
    for node in uneven.case.late:
        cordon(uneven.cluster, node)
    done = uneven.run(script)
    assert done.returncode == 1
    assert "stopped: no node with topology.kubernetes.io/zone=" in done.stderr
    assert _evicted(before, uneven) == set()


def test_a_budget_that_refuses_stops_the_script(uneven: PlanPlay) -> None:
    script, before = uneven.script(), uneven.uids()
    guard = budget("web", {"minAvailable": 6})
    uneven.apply([guard])
    done = uneven.run(script)
    assert done.returncode == 1
    assert "stopped: a disruption budget does not allow to evict" in done.stderr
    assert _evicted(before, uneven) == set()


def test_a_script_that_was_stopped_goes_on_when_it_is_run_again(uneven: PlanPlay) -> None:
    named, script, before = _named(uneven), uneven.script(), uneven.uids()
    with subprocess.Popen(
        ["sh"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=uneven.environment,
        start_new_session=True,
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(script)
        running.stdin.close()
        for line in running.stdout:
            if line.startswith("evict "):
                # As Ctrl-C does, with the command that runs: it would evict the pod while the next run looks at it.
                os.killpg(running.pid, signal.SIGKILL)
                break
    done = uneven.run(script)
    assert (done.returncode, done.stderr) == (0, "")
    uneven.settle()
    assert _evicted(before, uneven) == named
    assert uneven.plan()["waves"] == []
