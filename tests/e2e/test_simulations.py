"""After random events on a real cluster, as many pods are pending as ``simulate`` said, and for its reasons."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.controlplane.cluster import ControlPlane
from tests.e2e.simulations import Difference, play
from tests.e2e.spread import Plugin

pytestmark = [pytest.mark.e2e, pytest.mark.long]

FEW = range(10)
MANY = range(10, 110)


@pytest.mark.parametrize("seeds", [FEW, pytest.param(MANY, marks=pytest.mark.nightly)], ids=["few", "many"])
def test_what_happens_is_what_was_simulated(
    own_control_plane: ControlPlane, plugin: Plugin, seeds: Sequence[int]
) -> None:
    """The order of queues and ties are random, so that one case in a hundred may be one that no run had."""
    played = play(own_control_plane, plugin.program(own_control_plane), seeds)
    assert len(played) >= 0.98 * len(seeds)
    differences: list[Difference] = [difference for each in played for difference in each.differences]
    assert len(differences) <= len(seeds) // 100, differences
    assert sum(each.pending for each in played) >= len(seeds) // 5
