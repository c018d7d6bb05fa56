"""When the pods that ``explain`` names are evicted, kube-scheduler makes the workload even again."""

from __future__ import annotations

import pytest

from tests.controlplane.cluster import ControlPlane
from tests.e2e.spread import Plugin
from tests.e2e.uneven import Outcome, Play
from tests.e2e.uneven_cases import Way, random_case

pytestmark = pytest.mark.e2e

SEEDS = range(20)


@pytest.fixture(scope="module")
def outcomes(own_control_plane: ControlPlane, plugin: Plugin) -> list[Outcome]:
    """Return the outcome of each case."""
    spread = plugin.on(own_control_plane)
    played = []
    for seed in SEEDS:
        with own_control_plane.namespace() as namespace:
            played.append(Play(own_control_plane, spread, random_case(seed), namespace).outcome())
    return played


def test_every_case_is_uneven_at_first(outcomes: list[Outcome]) -> None:
    assert [outcome for outcome in outcomes if outcome.skews[0] <= outcome.case.max_skew] == []


def test_evicting_the_named_pods_ends_the_skew(outcomes: list[Outcome]) -> None:
    """Every replacement runs."""
    named = [outcome for outcome in outcomes if outcome.named]
    assert len(named) >= 15
    assert [outcome for outcome in named if not outcome.sure or not outcome.even] == []


def test_no_eviction_helps_where_no_pod_is_named(outcomes: list[Outcome]) -> None:
    """The eviction of surplus pods shows it: no placement of all pods is within maxSkew."""
    unnamed = [outcome for outcome in outcomes if not outcome.named]
    assert unnamed
    assert all(outcome.reason.startswith("no eviction is sure to help: ") for outcome in unnamed)
    assert [outcome for outcome in unnamed if outcome.possible or outcome.even] == []


def test_the_cases_vary(outcomes: list[Outcome]) -> None:
    assert {outcome.case.way for outcome in outcomes} == set(Way)
    assert len({(outcome.case.key, outcome.case.max_skew) for outcome in outcomes}) >= 5
    assert {bool(outcome.case.spec.get("tolerations")) for outcome in outcomes} == {False, True}
    assert {"minDomains" in outcome.case.fields for outcome in outcomes} == {False, True}
    assert {outcome.case.patient for outcome in outcomes} == {False, True}
