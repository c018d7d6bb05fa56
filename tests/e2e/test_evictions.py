"""The pods that ``explain`` names are evicted, and kube-scheduler makes the workload even again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import require_built
from tests.e2e.spread import Plugin
from tests.e2e.uneven import Outcome, Play
from tests.e2e.uneven_cases import Way, random_case

pytestmark = pytest.mark.e2e

SEEDS = range(20)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory, plugin: Plugin) -> Iterator[list[Outcome]]:
    """Let every case be played, one after the other."""
    require_built()
    with ControlPlane.start(tmp_path_factory.mktemp("evictions"), kubelet=True) as cluster:
        spread = plugin.on(cluster)
        found = []
        for seed in SEEDS:
            with cluster.namespace() as namespace:
                found.append(Play(cluster, spread, random_case(seed), namespace).outcome())
        yield found


def test_every_case_is_uneven_at_first(outcomes: list[Outcome]) -> None:
    assert [one for one in outcomes if one.skews[0] <= one.case.max_skew] == []


def test_the_named_pods_suffice(outcomes: list[Outcome]) -> None:
    """Once they are replaced the skew is within maxSkew and every pod runs."""
    named = [one for one in outcomes if one.named]
    assert len(named) >= 15
    assert [one for one in named if not one.sure or not one.even] == []


def test_without_a_name_nothing_helps(outcomes: list[Outcome]) -> None:
    """Where no pod is named no placement of all pods is even, and evicting those that are too many shows it."""
    unnamed = [one for one in outcomes if not one.named]
    assert unnamed
    assert [one.reason for one in unnamed if not one.reason.startswith("no eviction is sure to help: ")] == []
    assert [one for one in unnamed if one.possible or one.even] == []


def test_all_sorts_are_seen(outcomes: list[Outcome]) -> None:
    assert {one.case.way for one in outcomes} == set(Way)
    assert len({(one.case.key, one.case.max_skew) for one in outcomes}) >= 5
    assert {bool(one.case.spec.get("tolerations")) for one in outcomes} == {False, True}
    assert {"minDomains" in one.case.fields for one in outcomes} == {False, True}
    assert {one.case.patient for one in outcomes} == {False, True}
