"""What ``explain`` says of a pending pod is what kube-scheduler does next: on one of the nodes allowed, or nowhere."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import require_built
from tests.e2e.placements import APPS, Placement, World
from tests.e2e.spread import Plugin

pytestmark = pytest.mark.e2e

SEEDS = (1, 2, 3)
ROUNDS = 4


@pytest.fixture(scope="module")
def placements(tmp_path_factory: pytest.TempPathFactory, plugin: Plugin) -> Iterator[list[Placement]]:
    """Let the scheduler place all pods of all rounds in three random clusters, one after the other."""
    require_built()
    with ControlPlane.start(tmp_path_factory.mktemp("placements"), controllers=False) as cluster:
        spread = plugin.on(cluster)
        placed = []
        for seed in SEEDS:
            world = World(cluster, spread, seed)
            for number in range(ROUNDS):
                placed += world.round(number)
        yield placed


def test_the_scheduler_does_what_was_said(placements: list[Placement]) -> None:
    """As many nodes are feasible as were allowed, the one chosen is among them, and without any the pod waits."""
    assert len(placements) == len(SEEDS) * ROUNDS * APPS >= 200
    assert [placement for placement in placements if not placement.as_said] == []


def test_a_pod_without_a_node_is_a_finding(placements: list[Placement]) -> None:
    """SPR303 names a pod that waits, never one that was placed, and every one that its constraints alone hold back."""
    blocked = [placement for placement in placements if placement.blocked]
    assert [placement for placement in blocked if placement.node] == []
    held = [
        placement
        for placement in placements
        if placement.refused and all(" > " in reason for reason in placement.refused)
    ]
    assert [placement for placement in held if not placement.allowed and not placement.blocked] == []
    assert blocked


def test_both_ends_are_seen(placements: list[Placement]) -> None:
    """The random pods are neither all placed nor all refused, and many have only some of the nodes to go to."""
    waiting = sum(not placement.node for placement in placements)
    limited = sum(bool(placement.allowed and placement.refused) for placement in placements)
    assert waiting >= 20
    assert len(placements) - waiting >= 100
    assert limited >= 100
