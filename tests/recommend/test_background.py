"""In a large cluster the pods of other workloads are placed once for all changes, and only take room."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from kubectl_spread.cli import output
from kubectl_spread.engine.background import without_background
from kubectl_spread.engine.cluster import SimulatedCluster
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.workloads import Deployment
from kubectl_spread.recommend import trials
from kubectl_spread.run import recommend
from kubectl_spread.run.simulate import collect
from tests.builders import (
    HOSTNAME,
    ZONE,
    Json,
    claim_json,
    constraint,
    requirement,
    selector,
    using_claim,
    volume_json,
)
from tests.recommend import recipes
from tests.recommend.asked import NINE, RUNS, SPREAD, changes, command, failing, recommended
from tests.recommend.recipes import RECIPES, Recipe
from tests.recommend.test_recommend import EXPECTED
from tests.simulate.clusters import deployment, nodes, pod, template

_SIX = nodes("a1", "a2", "b1", "b2", "c1", "c2", cpu=3)
"""Nodes with room for three pods each."""


@pytest.fixture(autouse=True)
def _each_cluster_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recommend, "_MANY", 0)


def _after_a_lost_zone(objects: list[Json]) -> Any:
    return recommended(objects, "deploy/web", "--survive", "zone")["events"][0]["now"]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_where_others_have_room_the_answers_are_those_of_a_small_cluster(recipe: Recipe) -> None:
    assert changes(recipes.report(recipe)) == EXPECTED.get(recipe.name, [])


@pytest.mark.parametrize(
    ("others", "pending"),
    [
        ({}, 2),
        ({"priority": 10}, 2),
        ({"priority": -10}, 0),
        ({"nodeSelector": {HOSTNAME: "a1"}}, 0),
    ],
)
def test_others_that_an_event_moves_take_room_first(others: Json, pending: int) -> None:
    """Four pods find room when zone a is lost: those of ``db``, unless ``web`` may preempt them or they go nowhere."""
    moving = deployment("db", ("a1", "a1", "a2", "a2"), **others)
    staying = [pod(f"cache-{name}", name, template("cache")) for name in ("b1", "b2", "c1", "c2")]
    assert _after_a_lost_zone([*_SIX, *deployment("web", SPREAD), *moving, *staying])["pending"] == pending


def test_others_that_repel_its_pods_take_part() -> None:
    """Each node of the zones that are left has a pod that repels those of the workload."""
    term = {"topologyKey": HOSTNAME, "labelSelector": selector({"app": "web"})}
    repelling = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    others = deployment("db", ("b1", "b2", "c1", "c2"), affinity=repelling)
    cluster = [*nodes("a1", "a2", "b1", "b2", "c1", "c2"), *deployment("web", ("a1", "a2")), *others]
    assert _after_a_lost_zone(cluster)["pending"] == 2


def test_pods_that_a_budget_selects_too_take_part() -> None:
    """The other pod is not ready, so that the budget of both refuses the eviction."""
    other = deployment("db", ("b1",))
    other[-1]["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "both", "namespace": "shop"},
        "spec": {"maxUnavailable": 1, "selector": {}},
    }
    report = recommended([*NINE, *deployment("web", SPREAD), *other, budget], "deploy/web", "--survive", "drain")
    assert [each["now"].get("budget") for each in report["events"]] == ["both", "both"]


@pytest.mark.parametrize(("number", "remarks"), [(14, 0), (12, 1)])
def test_the_answer_says_that_harm_was_not_tried_where_room_is_scarce(number: int, remarks: int) -> None:
    """In a rollout, the workload has twelve pods at most, so another pod needs a thirteenth node in its zone."""
    names = [f"{zone}{index:02}" for zone in "abc" for index in range(number)]
    places = ("a01", "b01", "c01", "a02", "b02", "c02")
    report = recommended([*nodes(*names), *deployment("web", places), *deployment("db", places)])
    assert failing(report, "patched") == []
    text = (
        "The cluster has 12 pods: after each event those of other workloads are placed first. There is little room "
        "then, and whether the change harms them was not tried, unless their constraints, terms, budgets or claims "
        "concern its pods."
    )
    assert report["remarks"] == [text] * remarks


def _cluster(tmp_path: Path, *objects: Json) -> SimulatedCluster:
    """Return the cluster of a run about ``web``."""
    capture = tmp_path / "cluster.json"
    capture.write_text("\n".join(map(json.dumps, [*NINE, *objects])))
    run = collect({"filename": (str(capture),)}, output)
    web, world = ObjectRef("shop", "Deployment", "web"), run.world()
    manifest = world.object(web)
    assert isinstance(manifest, Deployment)
    world = without_background(world, web, trials.kind_of(world, web, manifest), manifest.selector)
    return SimulatedCluster(world, Random(0))


def _term(app: str) -> Json:
    return {"topologyKey": ZONE, "labelSelector": selector({"app": app})}


_CLAIM: Final = [using_claim("data")]
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    ("own", "others", "takes_part"),
    [
        ({}, {}, False),
        ({"topologySpreadConstraints": [constraint(selects=selector({"app": "web"}))]}, {}, False),
        ({"topologySpreadConstraints": [constraint(selects=selector())]}, {}, True),
        ({}, {"topologySpreadConstraints": [constraint(hard=False, selects=selector({"app": "web"}))]}, True),
        ({"affinity": {"podAffinity": {_REQUIRED: [_term("db")]}}}, {}, True),
        ({"affinity": {"podAntiAffinity": {_PREFERRED: [{"weight": 1, "podAffinityTerm": _term("db")}]}}}, {}, True),
        ({}, {"affinity": {"podAffinity": {_REQUIRED: [_term("web")]}}}, True),
        ({}, {"affinity": {"podAffinity": {_REQUIRED: [_term("db")]}}}, False),
        ({"volumes": _CLAIM}, {"volumes": _CLAIM}, True),
    ],
)
def test_others_take_part_whose_pods_decide_by_more_than_their_room(
    own: Json, others: Json, takes_part: bool, tmp_path: Path
) -> None:
    cluster = _cluster(tmp_path, *deployment("web", SPREAD, **own), *deployment("db", SPREAD, **others))
    assert {each.workload.name for each in cluster.all_pods()} == {"web", *(["db"] if takes_part else [])}


def test_one_that_takes_part_brings_those_that_decide_about_it(tmp_path: Path) -> None:
    db = deployment("db", SPREAD, affinity={"podAffinity": {_REQUIRED: [_term("web"), _term("cache")]}})
    cluster = _cluster(tmp_path, *deployment("web", SPREAD), *db, *deployment("cache", SPREAD))
    assert {each.workload.name for each in cluster.all_pods()} == {"web", "db", "cache"}


def test_pods_that_could_preempt_others_are_not_known() -> None:
    """All nodes are full of pods with a lower priority, which no event moves."""
    staying = [pod(f"cache-{each}", each, template("cache", cpu="2"), priority=-10) for each in SPREAD]
    cluster = [*_SIX, *deployment("web", SPREAD, priority=5), *staying]
    answer = command(cluster, "deploy/web", "--survive", "zone", *RUNS)
    assert answer.exit_code == 2
    assert "preemption" in answer.stderr


def test_others_whose_volumes_are_on_the_lost_nodes_take_no_room() -> None:
    moving = deployment("db", ("a1", "a1", "a2", "a2"), volumes=_CLAIM)
    volumes = [claim_json("data", "pv", namespace="shop"), volume_json("pv", requirement(ZONE, "In", "a"))]
    staying = [pod(f"cache-{name}", name, template("cache")) for name in ("b1", "b2", "c1", "c2")]
    assert _after_a_lost_zone([*_SIX, *deployment("web", SPREAD), *moving, *staying, *volumes])["pending"] == 0


def test_room_is_scarce_too_where_only_pods_with_a_lower_priority_need_it() -> None:
    names = [f"{zone}{index:02}" for zone in "abc" for index in range(20)]
    web = deployment("web", ("a00", "b00", "c00", "a01", "b01", "c01"))
    report = recommended([*nodes(*names, cpu=1), *web, *deployment("db", names[2:20], priority=-10)])
    assert [remark for remark in report["remarks"] if "There is little room then" in remark]


def test_room_stays_taken_when_nodes_are_added(tmp_path: Path) -> None:
    cluster = _cluster(tmp_path, *deployment("web", SPREAD), *deployment("db", SPREAD))
    world = cluster.world
    cluster.move_background(["a1"])
    before = dict(zip(cluster.table.names, cluster.state.used, strict=True))
    cluster.add_nodes([(world.copied(cluster.nodes[0], "a4"), "a1")])
    after = dict(zip(cluster.table.names, cluster.state.used, strict=True))
    assert after.pop("a4") == {}
    assert after == before
    assert sum(used.get("cpu", 0) for used in before.values()) == 13 * 1000


def test_room_next_to_pods_whose_requests_cannot_be_read_is_unknown() -> None:
    other = pod("db", "b1", template("db", cpu="4 cores"))
    answer = command([*NINE, *deployment("web", SPREAD), other], "deploy/web", "--survive", "zone", *RUNS)
    assert answer.exit_code == 2
    assert "the requests of po/db" in answer.stderr
