"""After a recommended patch and an event on a real cluster, what was promised is there."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.controlplane.cluster import ControlPlane
from tests.e2e.recommendations import play
from tests.e2e.spread import Plugin

pytestmark = [pytest.mark.e2e, pytest.mark.long]

FEW = range(10)
MANY = range(10, 110)


@pytest.mark.parametrize("seeds", [FEW, pytest.param(MANY, marks=pytest.mark.nightly)], ids=["few", "many"])
def test_what_was_promised_is_there(own_control_plane: ControlPlane, plugin: Plugin, seeds: Sequence[int]) -> None:
    """Ties are random, so that one case in fifty may be one that no run had."""
    played = play(own_control_plane, plugin.program(own_control_plane), seeds)
    assert len(played) >= 0.98 * len(seeds)
    differences = [(each.case.seed, text) for each in played for text in each.differences]
    assert len(differences) <= len(seeds) // 50, differences
    assert sum(each.changed for each in played) >= len(seeds) // 3
