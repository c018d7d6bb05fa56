"""No printed fix leaves more pods pending than before, and each ends its finding, on random clusters."""

from __future__ import annotations

import pytest

from tests.controlplane.cluster import ControlPlane
from tests.e2e.random_fixes import Fix, play
from tests.e2e.spread import Plugin

pytestmark = pytest.mark.e2e

SEEDS = range(8)


@pytest.fixture(scope="module")
def fixes(own_control_plane: ControlPlane, plugin: Plugin, tmp_path_factory: pytest.TempPathFactory) -> list[Fix]:
    """Return the fixes of all cases, once they were carried out."""
    return play(own_control_plane, plugin.program(own_control_plane), SEEDS, tmp_path_factory.mktemp("fixes"))


def test_no_fix_leaves_more_pods_pending(fixes: list[Fix]) -> None:
    assert [fix for fix in fixes if fix.harmful] == []


def test_every_fix_ends_its_finding(fixes: list[Fix]) -> None:
    assert [fix for fix in fixes if fix.refused or fix.stays] == []


def test_the_fixes_vary(fixes: list[Fix]) -> None:
    assert len(fixes) >= 5
    assert len({fix.code for fix in fixes}) >= 2
    assert {"patch" in fix.commands for fix in fixes} == {False, True}
