"""One uneven cluster, corrected by ``plan`` and by the descheduler: the table in ``docs/comparison.md``."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from tests.controlplane.cluster import ControlPlane
from tests.e2e import peers, rebalanced
from tests.e2e.rebalanced import MOST_PASSES, Outcome
from tests.e2e.spread import Plugin
from tests.generated import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.nightly]

BLOCK = re.compile(r"<!-- begin rebalanced -->\n(.*?)<!-- end rebalanced -->", re.DOTALL)
UNDETERMINED = re.compile(r"\d+(?= evictions, 1 pending, zone 1, node 1 )|\d+ evictions in \d+ passes")
"""The descheduler evicts pods of ``web`` in a random order."""


@pytest.fixture(scope="module")
def outcomes(own_control_plane: ControlPlane, plugin: Plugin) -> Mapping[str, Outcome]:
    """Correct the cluster with both."""
    assert peers.binary(*peers.DESCHEDULER).exists()
    return rebalanced.play(own_control_plane, plugin.program(own_control_plane))


def test_the_page_has_the_table(outcomes: Mapping[str, Outcome]) -> None:
    (block,) = BLOCK.findall((ROOT / "docs" / "comparison.md").read_text(encoding="utf-8"))
    assert UNDETERMINED.sub("N", rebalanced.table(outcomes)) == UNDETERMINED.sub("N", block)


def test_the_script_ends_as_its_plan_says(outcomes: Mapping[str, Outcome]) -> None:
    assert outcomes["plan"].differences == []
    assert outcomes["plan"].refused.total() == outcomes["plan"].pending.total() == 0


def test_the_descheduler_ends_with_more_evictions(outcomes: Mapping[str, Outcome]) -> None:
    assert 2 <= outcomes["descheduler"].rounds < MOST_PASSES
    assert outcomes["descheduler"].evicted["web"] > outcomes["plan"].evicted["web"]
