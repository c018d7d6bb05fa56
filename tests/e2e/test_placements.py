"""kube-scheduler places a pending pod on a node that ``explain`` allows, or nowhere if there is none."""

from __future__ import annotations

import pytest

from tests.controlplane.cluster import ControlPlane
from tests.e2e.placements import APPS, Placement, World
from tests.e2e.spread import Plugin

pytestmark = [pytest.mark.e2e, pytest.mark.long]

SEEDS = (1, 2, 3)
ROUNDS = 4


@pytest.fixture(scope="module")
def placements(without_controllers: ControlPlane, plugin: Plugin) -> list[Placement]:
    """Let the scheduler place all pods of all rounds in three random clusters, one after the other."""
    spread = plugin.on(without_controllers)
    placed = []
    for seed in SEEDS:
        world = World(without_controllers, spread, seed)
        for number in range(ROUNDS):
            placed += world.round(number)
    return placed


def test_the_scheduler_does_what_explain_says(placements: list[Placement]) -> None:
    """The number of feasible nodes is that of the allowed nodes, and the pod is bound to one of these or waits."""
    assert len(placements) == len(SEEDS) * ROUNDS * APPS >= 200
    assert [placement for placement in placements if not placement.agrees] == []


def test_a_pod_without_a_node_is_a_finding(placements: list[Placement]) -> None:
    """SPR303 names no pod that was placed, and each pod that waits for its constraints alone."""
    blocked = [placement for placement in placements if placement.blocked]
    assert [placement for placement in blocked if placement.node] == []
    held = [
        placement
        for placement in placements
        if placement.refused and all(" > " in reason for reason in placement.refused)
    ]
    assert [placement for placement in held if not placement.allowed and not placement.blocked] == []
    assert blocked


def test_some_pods_are_placed_and_some_are_not(placements: list[Placement]) -> None:
    """The comparison covers placed pods, refused pods and pods that only some nodes accept."""
    waiting = sum(not placement.node for placement in placements)
    limited = sum(bool(placement.allowed and placement.refused) for placement in placements)
    assert waiting >= 20
    assert len(placements) - waiting >= 100
    assert limited >= 100
