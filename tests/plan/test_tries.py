"""Which evictions a plan tries, and that each must help in every run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.builders import HOSTNAME, ZONE, Json, selector
from tests.plan.test_plan import SIX, hard, planned, reasons, steps, waves
from tests.simulate.clusters import deployment, node, nodes, stateful_set, zone_constraint


def _with_volumes(name: str, on: Sequence[str], free: int | None = None) -> list[Json]:
    """Return a StatefulSet with a hard constraint, each pod with a volume in its zone, but one with one of no zone."""
    objects = stateful_set(name, on, claims=True)
    for each in objects:
        pod_or_template = each["spec"].get("template", each)
        if "containers" in pod_or_template["spec"]:
            pod_or_template["spec"].update(hard(name))
    for volume in (each for each in objects if each["metadata"]["name"] == f"pv-data-{name}-{free}"):
        del volume["spec"]["nodeAffinity"]
    return objects


def _of_team(objects: Sequence[Json]) -> Sequence[Json]:
    """Label the pods and templates with a team."""
    for each in objects:
        each["spec"].get("template", each)["metadata"]["labels"]["team"] = "shop"
    return objects


def test_a_pod_is_tried_after_all_that_stay_with_their_volumes() -> None:
    """Their names come first, their node and owner are the same: only their claims tell them apart."""
    report = planned([*SIX, *_with_volumes("db", ["a1"] * 6, free=5)])
    assert waves(report) == [["db-5"]]
    assert reasons(report) == ["its volume is in zone a"]


def test_pods_of_each_domain_with_too_many_are_tried() -> None:
    """Pods of the fullest zone stay with their volumes."""
    report = planned([*SIX, *_with_volumes("db", ["a1", "a1", "a1", "b1", "b1"], free=4)])
    assert waves(report) == [["db-4"]]
    assert steps(report)[0]["to"] == ["c"]


def test_workloads_share_a_wave_beside_one_that_cannot_be_corrected() -> None:
    """All tries of the wave have a pod of db, which would stay pending; a last one leaves db out."""
    web, api = (deployment(name, ["a1", "a2", "b1"], **hard(name)) for name in ("web", "api"))
    report = planned([*SIX, *_with_volumes("db", ["a1"] * 6), *web, *api])
    assert waves(report) == [["api-5d9c-0", "web-5d9c-0"]]


def test_two_pods_of_other_workloads_make_room() -> None:
    """Zone c has two cores, which a pod of api and one of cache take; one of web asks for both."""
    cluster = [*nodes("a1", "a2", "b1"), node("c1", cpu=2), *deployment("web", ["a1", "a2", "b1"], cpu="2", **hard())]
    report = planned([*cluster, *deployment("api", ["c1"]), *deployment("cache", ["c1"])])
    assert [[(step["workload"]["name"], step["to"]) for step in wave["evictions"]] for wave in report["waves"]] == [
        [("api", ["a", "b"]), ("cache", ["a", "b"]), ("web", ["c"])]
    ]


def test_a_soft_skew_must_fall_by_each_eviction() -> None:
    """The scheduler prefers zone b, which has too many pods itself, and avoids the taint of zone c."""
    avoided = [{"key": "spot", "effect": "PreferNoSchedule"}]
    preference = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["b"]}]}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": preference}]}
    web = deployment(
        "web",
        ["a1", "a2", "a1", "b1", "b2"],
        affinity={"nodeAffinity": preferred},
        **hard(whenUnsatisfiable="ScheduleAnyway"),
    )
    report = planned([*nodes("a1", "a2", "b1", "b2"), node("c1", taints=avoided), *web], "--soft")
    assert report["waves"] == []
    assert reasons(report) == ["its replacement may go to zone b, and then the skew does not fall"]


def _undecided(other: Mapping[str, Any]) -> list[Json]:
    """Return a cluster where a pod of web goes to zone b or c, whose nodes have the same score."""
    return [*nodes("a1", "b1", "c1"), *deployment("web", ["a1", "a1"], **hard()), *deployment("api", **other)]


def test_destinations_are_those_of_all_runs() -> None:
    """A pod of api goes to the one of zones b and c to which that of web did not go."""
    apart = {"labelSelector": selector({"app": "web"}), "topologyKey": HOSTNAME}
    unequal = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    report = planned(_undecided({"on": ["a1", "a1"], "affinity": unequal, **hard("api")}))
    assert [step["to"] for step in steps(report)] == [["b", "c"], ["b", "c"]]


def test_an_eviction_must_help_in_every_run() -> None:
    """In zone b the replacement would be the fourth pod that api counts, one more than it may have there."""
    both = {**zone_constraint("api", maxSkew=3), "labelSelector": selector({"team": "shop"})}
    web = deployment("web", ["a1"] * 3, **hard())
    api = deployment("api", ["b1"] * 3, topologySpreadConstraints=[both])
    cache = deployment("cache", ["c1"] * 3)
    report = planned([*nodes("a1", "b1", "c1"), *_of_team([*web, *api]), *cache])
    assert report["waves"] == []
    assert reasons(report) == ["its replacement may raise the skew of deploy/api on zone"]
