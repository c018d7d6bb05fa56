"""Which change is recommended, and why others are not enough."""

from __future__ import annotations

from typing import Any

import pytest

from tests.recommend import recipes
from tests.recommend.asked import NINE, SPREAD, changes, command, failing, recommended, spread
from tests.recommend.recipes import RECIPES, Recipe
from tests.simulate.clusters import deployment, node

HONOR = "nodeTaintsPolicy: Honor in the constraint on zone"
HASH = "matchLabelKeys: [pod-template-hash] in the constraint on zone"
HOST_HASH = "matchLabelKeys: [pod-template-hash] in the constraint on hostname"
HOST_SOFT = "a constraint on hostname (ScheduleAnyway)"
NO_MIN_DOMAINS = "no minDomains in the constraint on zone"
EXPECTED = {
    "host soft": ["a constraint on zone (ScheduleAnyway)"],
    "zone and host soft": [HASH],
    "zone hard": [HONOR, HASH, HOST_SOFT],
    "zone hard, hash": [HONOR, HOST_SOFT],
    "zone hard, hash, minDomains 3": [HONOR, NO_MIN_DOMAINS, HOST_SOFT],
    "zone hard, host hard": [HONOR, HASH, HOST_HASH],
}
"""The changes of the recipes that do not survive everything as they are."""


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_the_ten_recipes_of_guides(recipe: Recipe) -> None:
    """Six replicas on nine nodes in three zones, with room everywhere.

    Where pods must not share a node, those that a rollout deletes keep new ones away for a time. So a zone may have
    three of six pods afterwards: on a real control plane it had in 9 of 14 restarts.
    """
    report = recipes.report(recipe)
    assert changes(report) == EXPECTED.get(recipe.name, [])
    unreachable = ["restart, then lose a zone"] if recipe.name == "host anti-affinity" else []
    assert failing(report, "patched") == unreachable
    assert [each["event"] for each in report["notReachable"]] == unreachable


def test_nothing_to_change_is_an_answer() -> None:
    cluster = [*NINE, *deployment("web", SPREAD)]
    answer = command(cluster, "deploy/web", "--runs", "1")
    assert answer.exit_code == 0
    assert "Nothing to change: it survives all of these events." in answer.stdout


def test_a_change_is_a_patch_that_tests_what_it_changes() -> None:
    cluster = [*NINE, *deployment("web", SPREAD, topologySpreadConstraints=[spread()])]
    report = recommended(cluster, "deploy/web", "--runs", "5")
    assert command(cluster, "deploy/web", "--runs", "1").exit_code == 1
    path = "/spec/template/spec/topologySpreadConstraints/0"
    operations: list[Any] = report["change"]["patch"]["operations"]
    assert operations[:3] == [
        {"op": "test", "path": f"{path}/topologyKey", "value": "topology.kubernetes.io/zone"},
        {"op": "add", "path": f"{path}/nodeTaintsPolicy", "value": "Honor"},
        {"op": "add", "path": f"{path}/matchLabelKeys", "value": ["pod-template-hash"]},
    ]
    assert operations[-1]["value"]["topologyKey"] == "kubernetes.io/hostname"
    assert report["change"]["commands"][0].startswith("kubectl patch deploy/web -n shop --type=json -p ")


def test_deleted_pods_may_end_before_their_replacements_are_placed() -> None:
    """Then a rollout puts several pods on a large node again; a real control plane did so in each of six rollouts."""
    sizes = {"a1": 3, "a2": 8, "a3": 3, "b1": 8, "b2": 3, "b3": 3, "c1": 3, "c2": 4}
    places = ("a2", "a2", "a2", "b1", "b1", "b1", "c1", "c2")
    cluster = [node(name, cpu=cpu) for name, cpu in sizes.items()]
    cluster += deployment("web", places, topologySpreadConstraints=[spread(max_skew=2)])
    report = recommended(cluster, "deploy/web", "--runs", "10")
    assert changes(report) == [HONOR, HOST_SOFT]
