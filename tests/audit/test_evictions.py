"""The pods to evict end the skew however replacements are placed, and no smaller set does."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec
import pytest

from kubectl_spread.audit.snapshot.scope import Scope, Target
from kubectl_spread.diagnosis.evictions import EvictionGame, fewest
from kubectl_spread.kube.api.types import TopologySpreadConstraint
from kubectl_spread.kube.features import behaviour, gates
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import Constraint, working_constraint
from tests.audits import audit, deployment, explained
from tests.builders import HOSTNAME, ZONE, Json, affinity, constraint, node_json, pod_json, term

HARD = working_constraint(
    TopologySpreadConstraint(topology_key=ZONE, when_unsatisfiable="DoNotSchedule"),
    None,
    behaviour(37, gates(37, {})),
)
A, B, C = node_json("a1"), node_json("b1"), node_json("c1")
TAINT = {"key": "gpu", "effect": "NoSchedule"}


def zones(max_skew: int, min_domains: int) -> Constraint:
    return msgspec.structs.replace(HARD, max_skew=max_skew, min_domains=min_domains)


def game(
    *counts: int, capacity: int = 99, max_skew: int = 1, min_domains: int = 1, full: str = "", fixed: str = ""
) -> EvictionGame:
    domains = dict(zip("abcdef", counts, strict=False))
    return EvictionGame(
        counts=domains,
        capacity={domain: 0 if domain in full else capacity for domain in domains},
        movable={domain: 0 if domain in fixed else number for domain, number in domains.items()},
        lost={domain: number for domain, number in domains.items() if domain in full},
        constraint=zones(max_skew, min_domains),
    )


@pytest.mark.parametrize(
    ("eviction_game", "numbers"),
    [
        pytest.param(game(5, 0, 0), {"a": 3}, id="5/0/0 -> evict 3, which end as 2/2/1"),
        pytest.param(game(2, 1, 0), {"a": 1}, id="2/1/0 -> 1/1/1"),
        pytest.param(game(5, 4, 3), {"a": 1}, id="5/4/3 -> 4/4/4"),
        pytest.param(game(7, 0, 0, max_skew=3), {"a": 4}, id="with maxSkew 3 replacements may crowd one domain"),
        pytest.param(game(3, 0, full="b"), None, id="nowhere else to go"),
        pytest.param(game(3, 0, fixed="a"), None, id="the fullest domain's pods belong to others"),
        pytest.param(game(2, 1, min_domains=3), None, id="below minDomains a replacement would stay pending"),
    ],
)
def test_the_fewest_pods_are_evicted(eviction_game: EvictionGame, numbers: Mapping[str, int] | None) -> None:
    assert fewest(eviction_game) == numbers


def holds(eviction_game: EvictionGame, gone: Mapping[str, int]) -> bool:
    """Try every order in which the filter lets replacements be placed."""
    domains = sorted(eviction_game.counts)
    freed = {domain: max(0, number - eviction_game.lost.get(domain, 0)) for domain, number in gone.items()}
    limits = tuple(eviction_game.capacity[domain] + freed.get(domain, 0) for domain in domains)

    def least(counts: tuple[int, ...]) -> int:
        return min(counts) if len(counts) >= eviction_game.constraint.min_domains else 0

    @cache
    def ends_well(counts: tuple[int, ...], left: tuple[int, ...], number: int) -> bool:
        if not number:
            return max(counts) - least(counts) <= eviction_game.constraint.max_skew
        allowed = [
            index
            for index, count in enumerate(counts)
            if left[index] and count + 1 - least(counts) <= eviction_game.constraint.max_skew
        ]
        return bool(allowed) and all(
            ends_well(changed(counts, index, 1), changed(left, index, -1), number - 1) for index in allowed
        )

    start = tuple(eviction_game.counts[domain] - gone.get(domain, 0) for domain in domains)
    return ends_well(start, limits, sum(gone.values()))


def changed(numbers: tuple[int, ...], index: int, change: int) -> tuple[int, ...]:
    return (*numbers[:index], numbers[index] + change, *numbers[index + 1 :])


def smallest(eviction_game: EvictionGame) -> int | None:
    domains = sorted(eviction_game.counts)
    every = itertools.product(*(range(eviction_game.movable[domain] + 1) for domain in domains))
    sizes = sorted((sum(numbers), numbers) for numbers in every if any(numbers))
    return next(
        (size for size, numbers in sizes if holds(eviction_game, dict(zip(domains, numbers, strict=True)))), None
    )


def random_game(seed: int) -> EvictionGame:
    chance = random.Random(seed)
    domains = "abcd"[: chance.randint(2, 4)]
    counts = {domain: chance.choice([0, 0, 1, 2, 3, 4, 5]) for domain in domains}
    return EvictionGame(
        counts=counts,
        capacity={domain: chance.choice([0, 1, 2, 9, 9]) for domain in domains},
        movable={domain: chance.choice([number, number, number // 2]) for domain, number in counts.items()},
        lost={domain: chance.choice([0, 0, 1, 5]) for domain in domains},
        constraint=zones(chance.randint(1, 3), chance.choice([1, 1, 1, 3, 5])),
    )


def test_no_smaller_set_suffices() -> None:
    """Compared with every set and every placement, on random domains."""
    named = 0
    for seed in range(400):
        eviction_game = random_game(seed)
        if max(eviction_game.counts.values()) <= eviction_game.limit(min(eviction_game.counts.values())):
            continue
        numbers = fewest(eviction_game)
        assert (None if numbers is None else sum(numbers.values())) == smallest(eviction_game), eviction_game
        if numbers is not None:
            assert holds(eviction_game, numbers), eviction_game
            named += 1
    assert named > 50


def test_pods_are_named_among_a_thousand_domains() -> None:
    """A thousand hosts have too many sets to try each, so that the named pods need not be the fewest."""
    counts = {f"host-{index:04}": index % 7 for index in range(1000)}
    numbers = fewest(EvictionGame(counts, dict.fromkeys(counts, 99), counts, {}, zones(1, 1)))
    assert numbers is not None
    assert 0 < sum(numbers.values()) < 1000


def web(name: str, node: str, **fields: Any) -> Json:
    return pod_json(name, node=node, **{"owner": "Deployment/web", "constraints": [constraint()], **fields})


def repelling(node: str) -> Json:
    """Return a pod whose required anti-affinity keeps web's pods from its host."""
    return pod_json("db", node=node, labels={"app": "db"}, affinity=affinity("podAntiAffinity", term()))


@pytest.mark.parametrize(
    ("objects", "pods", "reason"),
    [
        pytest.param([web("w1", "a1"), web("w2", "a1"), A, B], ["w1"], None, id="one of two"),
        pytest.param(
            [web("w1", "a1"), web("w2", "a1"), A, node_json("b1", taints=[TAINT])], None, "nowhere better", id="tainted"
        ),
        pytest.param(
            [web("w1", "a1"), web("w2", "a1"), repelling("b1"), A, B],
            None,
            "nowhere better",
            id="the anti-affinity of another pod closes the lower domain",
        ),
        pytest.param(
            [web("w1", "a1"), web("w2", "a1"), repelling("a1"), A, B],
            ["w1"],
            None,
            id="the anti-affinity of another pod closes the fullest domain",
        ),
        pytest.param(
            [web("w1", "a1", labels={"app": "x"}), pod_json("o1", node="a1"), pod_json("o2", node="a1"), A, B],
            None,
            "not be like these",
            id="pods that do not count themselves",
        ),
        pytest.param(
            [pod_json("w1", node="a1", constraints=[constraint()]), pod_json("o1", node="a1"), A, B],
            None,
            "nothing replaces these pods: they have no owner",
            id="nobody replaces a bare pod",
        ),
    ],
)
def test_pods_to_evict_are_named_unless_there_is_a_reason_against_it(
    objects: list[Json], pods: list[str] | None, reason: str | None
) -> None:
    (eviction,) = explained(audit(*objects))["evictions"][:1]
    assert eviction.get("pods") == pods
    assert (reason or "") in eviction.get("reason", "")


def requesting(name: str, node: str, cpu: str, owner: str = "Deployment/web") -> Json:
    containers = [{"name": "app", "resources": {"requests": {"cpu": cpu}}}]
    return web(name, node, containers=containers, owner=owner)


def with_cpu(node: Json, cpu: str) -> Json:
    return {**node, "status": {"allocatable": {"cpu": cpu, "pods": "110"}}}


def test_an_eviction_is_not_sure_to_help_where_pods_of_the_workload_request_different_amounts() -> None:
    """Node b1 has room for a small replacement only, and either pod may be the next to be replaced."""
    nodes = (with_cpu(A, "8"), with_cpu(B, "1"))
    alike = explained(audit(requesting("w1", "a1", "1"), requesting("w2", "a1", "1"), *nodes))
    mixed = explained(audit(requesting("w1", "a1", "1"), requesting("w2", "a1", "4"), *nodes))
    assert [(eviction["pods"], eviction["sure"]) for eviction in alike["evictions"]] == [(["w1"], True)]
    assert [(eviction["pods"], eviction["sure"]) for eviction in mixed["evictions"]] == [(["w1"], False)]


@pytest.mark.parametrize(
    ("cpu", "reason"),
    [
        pytest.param("1", "no eviction is sure to help: replacements have nowhere better to go", id="equal requests"),
        pytest.param(
            "4",
            "no set of pods was found: they differ in the nodes or resources that they need",
            id="different requests",
        ),
    ],
)
def test_no_pod_is_named_where_no_replacement_fits_a_lower_domain(cpu: str, reason: str) -> None:
    nodes = (with_cpu(A, "8"), with_cpu(B, "500m"))
    (eviction,) = explained(audit(requesting("w1", "a1", "1"), requesting("w2", "a1", cpu), *nodes))["evictions"]
    assert "pods" not in eviction
    assert eviction["reason"] == reason


def test_pods_of_another_workload_are_not_evicted_for_one_whose_pods_request_less() -> None:
    """Pod other of the other workload comes first by name, but its replacement does not fit on b1."""
    nodes = (with_cpu(A, "8"), with_cpu(B, "1"))
    other = requesting("other", "a1", "4", owner="Deployment/other")
    evictions = explained(audit(requesting("w1", "a1", "1"), other, *nodes))["evictions"]
    assert [eviction.get("pods") for eviction in evictions] == [None, ["w1"]]


def test_pods_of_manifests_are_evicted_where_the_user_names_their_workload() -> None:
    """The API server would store such pods with other selectors, so an evaluation holds copies of them."""
    pods = [web(name, "a1", stored=False, constraints=[constraint(match=["app"])]) for name in ("w1", "w2")]
    scope = Scope(targets=(Target("Deployment", "web"),))
    (eviction,) = explained(audit(deployment(), *pods, A, B, scope=scope))["evictions"]
    assert eviction.get("pods") == ["w1"]


def test_the_pod_is_evicted_whose_node_takes_no_replacement_before_pods_that_come_first_by_name() -> None:
    """Node a1 has a pod that repels replacements, so that the room of w2 is lost."""
    pods = [web("w1", "a2"), web("w2", "a1"), repelling("a1")]
    (eviction,) = explained(audit(*pods, A, node_json("a2"), B))["evictions"]
    assert eviction["pods"] == ["w2"]


def test_a_terminating_pod_is_not_evicted() -> None:
    both = [constraint(), constraint(key=HOSTNAME, max_skew=9)]
    terminating = web("w0", "a1", constraints=both)
    terminating["metadata"]["deletionTimestamp"] = "2026-09-01T11:00:00Z"
    pods = [web(name, "a1", constraints=both) for name in ("w1", "w2")]
    (eviction,) = explained(audit(terminating, *pods, A, B))["evictions"]
    assert eviction["pods"] == ["w1"]


def test_an_eviction_is_not_sure_to_help_where_namespaces_that_decide_were_not_read() -> None:
    """The anti-affinity of db selects namespaces by a label, and no namespace was read."""
    elsewhere = {**term(), "namespaceSelector": {"matchLabels": {"team": "a"}}}
    db = pod_json("db", node="b1", labels={"app": "db"}, affinity=affinity("podAntiAffinity", elsewhere))
    (eviction,) = explained(audit(web("w1", "a1"), web("w2", "a1"), db, A, B))["evictions"]
    assert (eviction["pods"], eviction["sure"]) == (["w1"], False)


def test_soft_constraints_have_no_evictions() -> None:
    soft = [constraint(hard=False)]
    explanation = explained(audit(web("w1", "a1", constraints=soft), web("w2", "a1", constraints=soft), A, B, C))
    assert explanation["evictions"] == []


@pytest.mark.parametrize(
    ("targets", "reason"),
    [
        pytest.param((Target("Pod", "w1"),), "one pod alone", id="one pod"),
        pytest.param((Target("Pod", "w1"), Target("Pod", "w2")), "a part of the pods alone", id="two of three"),
        pytest.param((Target("Deployment", "web"),), None, id="the whole workload"),
        pytest.param(tuple(Target("Pod", f"w{index}") for index in (1, 2, 3)), None, id="all its pods by name"),
    ],
)
def test_no_pod_is_named_for_a_part_of_a_workload(targets: tuple[Target, ...], reason: str | None) -> None:
    leaving = web("w4", "a1")
    leaving["metadata"]["deletionTimestamp"] = "2026-09-01T11:00:00Z"
    pods = [web(name, "a1") for name in ("w1", "w2", "w3")]
    evictions = explained(audit(deployment(), *pods, leaving, A, B, C, scope=Scope(targets=targets)))["evictions"]
    expected = f"{reason} is not what decides: name deploy/web instead" if reason else None
    assert [eviction.get("reason") for eviction in evictions] == [expected]
    assert ("pods" in evictions[0]) is (reason is None)
