"""Random small clusters: plans are carried out, and what they leave is tried by all sets of up to three evictions."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Final

import pytest

from kubectl_spread.cli import output
from kubectl_spread.plan.planner import Planner
from kubectl_spread.run.plan import PlanOptions, planner
from kubectl_spread.run.simulate import collect
from kubectl_spread.simulate import controllers
from kubectl_spread.simulate.cluster import SimulatedCluster
from tests.builders import HOSTNAME, ZONE, Json
from tests.simulate.clusters import budget, deployment, node, stateful_set, zone_constraint

CASES: Final = 60
_MOST: Final = 3
"""The most evictions of a set that is tried."""
_TRIES: Final = 10


def cluster_of(seed: int) -> list[Json]:
    """Return a cluster with one to three workloads on three to six nodes, some of them cordoned or nearly full."""
    chance = random.Random(seed)
    names = [f"{zone}{number}" for zone in "abc" for number in range(1, chance.choice([2, 2, 3]))]
    objects = [node(name, cpu=chance.choice([2, 4, 8]), cordoned=chance.random() < 0.1) for name in names]
    for name in ("web", "api", "db")[: chance.randint(1, 3)]:
        places = [chance.choice(names[: chance.randint(2, len(names))]) for _ in range(chance.randint(2, 5))]
        constraints = [
            zone_constraint(name, topologyKey=key, maxSkew=chance.choice([1, 1, 2]))
            for key in chance.choice([[ZONE], [ZONE], [HOSTNAME], [ZONE, HOSTNAME]])
        ]
        if name == "db":
            made = stateful_set(name, places, claims=chance.random() < 0.5)
            for each in made:
                spec = each["spec"].get("template", each)["spec"]
                if "containers" in spec:
                    spec["topologySpreadConstraints"] = constraints
            objects += made
        else:
            objects += deployment(name, places, topologySpreadConstraints=constraints)
        if chance.random() < 0.4:
            objects.append(budget(name, **chance.choice([{"maxUnavailable": 1}, {"minAvailable": len(places)}])))
    return objects


def made(objects: Sequence[Json], directory: Path) -> Planner:
    """Return the planner for objects."""
    path = directory / "cluster.json"
    path.write_text("\n".join(map(json.dumps, objects)), encoding="utf-8")
    run = collect({"filename": (str(path),)}, output)
    return planner(run, PlanOptions(runs=5, seed=0, soft=False, most=1))


def excess(objects: Sequence[Json], cluster: SimulatedCluster) -> int:
    """Return the sum of the skews above maxSkew, counted from the pods of a run."""
    labels = {each["metadata"]["name"]: each["metadata"]["labels"] for each in objects if each["kind"] == "Node"}
    total = 0
    for each in (each for each in objects if each["kind"] in ("Deployment", "StatefulSet")):
        name = each["metadata"]["name"]
        for constraint in each["spec"]["template"]["spec"]["topologySpreadConstraints"]:
            key = constraint["topologyKey"]
            counts = Counter({node_labels[key]: 0 for node_labels in labels.values()})
            counts.update(
                labels[pod.node][key] for pod in cluster.all_pods() if pod.node and pod.kind.labels["app"] == name
            )
            least = min(counts.values())
            total += sum(max(0, number - least - constraint["maxSkew"]) for number in counts.values())
    return total


def helps(objects: Sequence[Json], cluster: SimulatedCluster, names: Sequence[str]) -> bool:
    """Tell whether the eviction of pods lowers the sum in a run, within budgets, while no pod stays pending."""
    before, pending = excess(objects, cluster), len(cluster.pending)
    pods = {pod.name: pod for pod in cluster.all_pods()}
    cluster.begin()
    try:
        for name in names:
            if controllers.refusing_budget(cluster, pods[name]):
                return False
            cluster.remove(pods[name], lost=True)
        controllers.run(cluster)
        return len(cluster.pending) <= pending and excess(objects, cluster) < before
    finally:
        cluster.undo()


def sets(clusters: Sequence[SimulatedCluster]) -> Iterator[tuple[str, ...]]:
    """Yield the sets of up to three pods of different workloads that every run has where they were read."""
    there = [{pod.name for pod in cluster.all_pods() if not pod.simulated and pod.node} for cluster in clusters]
    workloads = {pod.name: pod.workload for pod in clusters[0].all_pods()}
    for number in range(1, _MOST + 1):
        for names in combinations(sorted(set[str].intersection(*there)), number):
            if len({workloads[name] for name in names}) == number:
                yield names


def certain(objects: Sequence[Json], clusters: Sequence[SimulatedCluster], names: Sequence[str]) -> bool:
    """Tell whether the eviction of pods helps in every run, whatever is decided at random."""
    return all(helps(objects, cluster, names) for _ in range(_TRIES) for cluster in clusters)


@pytest.mark.parametrize("seed", range(CASES))
def test_no_set_of_evictions_helps_where_the_plan_ends(seed: int, tmp_path: Path) -> None:
    objects = cluster_of(seed)
    plans = made(objects, tmp_path)
    before = excess(objects, plans._runs[0])
    plan = plans.plan()
    runs = plans._runs
    after = [excess(objects, cluster) for cluster in runs]
    assert all(each <= before - len(plan.waves) for each in after)
    assert bool(plan.left) is any(after)
    assert [names for names in sets(runs) if plan.left and certain(objects, runs, names)] == []


@pytest.mark.parametrize("seed", range(CASES))
def test_a_second_plan_is_empty(seed: int, tmp_path: Path) -> None:
    """The pods are where the last run of the first plan put them."""
    objects = cluster_of(seed)
    plans = made(objects, tmp_path)
    if plans.plan().left:
        return
    assert made(_carried_out(objects, plans._runs[-1]), tmp_path).plan().waves == []


def _carried_out(objects: Sequence[Json], cluster: SimulatedCluster) -> list[Json]:
    """Return the objects with the pods of a run."""
    pods = {each["metadata"]["name"]: each for each in objects if each["kind"] == "Pod"}
    like = {each["metadata"]["ownerReferences"][0]["name"]: each for each in pods.values()}
    after = []
    for pod in cluster.all_pods():
        assert pod.owner is not None
        copied = json.loads(json.dumps(pods.get(pod.name, like[pod.owner.name])))
        copied["metadata"] |= {"name": pod.name, "uid": f"uid-{pod.name}-{pod.node}"}
        copied["spec"]["nodeName"] = pod.node
        after.append(copied)
    return [*(each for each in objects if each["kind"] != "Pod"), *after]
