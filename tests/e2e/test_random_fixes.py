"""No printed fix leaves more pods pending than before, and each ends its finding, on random clusters."""

from __future__ import annotations

import pytest

from tests.controlplane.cluster import ControlPlane
from tests.e2e.random_fixes import Played, play
from tests.e2e.spread import Plugin

pytestmark = [pytest.mark.e2e, pytest.mark.long]

SEEDS = range(23)


@pytest.fixture(scope="module")
def played(own_control_plane: ControlPlane, plugin: Plugin, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Return the fixes of all cases, once they were carried out."""
    return play(own_control_plane, plugin.program(own_control_plane), SEEDS, tmp_path_factory.mktemp("fixes"))


def test_no_fix_leaves_more_pods_pending(played: Played) -> None:
    assert [fix for fix in played.fixes if fix.harmful] == []


def test_every_fix_ends_its_finding(played: Played) -> None:
    assert [fix for fix in played.fixes if fix.refused or fix.stays] == []


def test_the_fixes_vary(played: Played) -> None:
    assert len(played.broken_off) <= 1
    assert len(played.fixes) >= 15
    assert len({fix.code for fix in played.fixes}) >= 4
    assert {"patch" in fix.commands for fix in played.fixes} == {False, True}
