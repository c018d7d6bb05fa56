"""Small random clusters, their plans, and the skews of their constraints."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Final, TypeAlias

from kubectl_spread.cli import output
from kubectl_spread.engine.cluster import SimulatedCluster
from kubectl_spread.engine.planner import Planner
from kubectl_spread.run.plan import PlanOptions, planner
from kubectl_spread.run.simulate import collect
from tests.builders import HOSTNAME, ZONE, Json, requirement, selector
from tests.simulate.clusters import budget, deployment, node, stateful_set, zone_constraint

MOST: Final = 3
"""The most evictions of a set that is tried."""
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"

Skews: TypeAlias = dict[tuple[str, str], dict[str, int]]
"""Maps a workload and a topology key of its constraints to the pods that each domain has above maxSkew."""


def cluster_of(seed: int | str, *, varied: bool = False) -> list[Json]:
    """Return a cluster with one to three workloads on three to six nodes, some of them cordoned or nearly full.

    With ``varied`` pods differ in their requests, and some may not be on all nodes, or have no constraint.
    """
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
            fields = _fields(chance, name, names) if varied else {}
            objects += deployment(name, places, **{"topologySpreadConstraints": constraints, **fields})
        if chance.random() < 0.4:
            objects.append(budget(name, **chance.choice([{"maxUnavailable": 1}, {"minAvailable": len(places)}])))
    if varied:
        places = [chance.choice(names) for _ in range(chance.randint(1, 3))]
        objects += deployment("cache", places, cpu=chance.choice(["500m", "1", "2"]))
    return objects


def _fields(chance: random.Random, name: str, names: Sequence[str]) -> dict[str, Any]:
    """Return fields of a pod template: requests, and rules about other pods and nodes."""
    fields: dict[str, Any] = {"cpu": chance.choice(["500m", "1", "1", "2"])}
    unequal = {"labelSelector": selector({"app": name}), "topologyKey": HOSTNAME}
    match chance.randrange(8):
        case 0:
            fields["affinity"] = {"podAntiAffinity": {_REQUIRED: [unequal]}}
        case 1:
            terms = [{"matchExpressions": [requirement(HOSTNAME, "NotIn", chance.choice(names))]}]
            fields["affinity"] = {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": terms}}}
        case 2:
            fields["topologySpreadConstraints"] = []
    return fields


def made(objects: Sequence[Json], directory: Path) -> Planner:
    """Return the planner for objects."""
    path = directory / "cluster.json"
    path.write_text("\n".join(map(json.dumps, objects)), encoding="utf-8")
    run = collect({"filename": (str(path),)}, output)
    return planner(run, PlanOptions(runs=10, seed=0, soft=False, max_per_workload=1), run.world())


def carried_out(objects: Sequence[Json], pods: Iterable[tuple[str, str, str]]) -> list[Json]:
    """Return the objects with other pods: an owner, a name and a node for each."""
    before = {each["metadata"]["name"]: each for each in objects if each["kind"] == "Pod"}
    like = {owner_of(each): each for each in before.values()}
    after = []
    for owner, name, place in pods:
        copied = json.loads(json.dumps(before.get(name, like[owner])))
        copied["metadata"] |= {"name": name, "uid": f"uid-{name}-{place}"}
        copied["spec"]["nodeName"] = place
        after.append(copied)
    return [*(each for each in objects if each["kind"] != "Pod"), *after]


def owner_of(pod: Json) -> str:
    """Return the name of the owner of a pod."""
    name: str = pod["metadata"]["ownerReferences"][0]["name"]
    return name


def placed(cluster: SimulatedCluster) -> Iterator[tuple[str, str]]:
    """Yield the workload and the node of each pod that has a node in a run."""
    return ((pod.kind.labels["app"], pod.node) for pod in cluster.all_pods() if pod.node)


def skews(objects: Sequence[Json], pods: Iterable[tuple[str, str]]) -> Skews:
    """Return the skews above maxSkew, counted from the workload and node of each pod."""
    nodes = {each["metadata"]["name"]: each["metadata"]["labels"] for each in objects if each["kind"] == "Node"}
    on = list(pods)
    found: Skews = {}
    for each in (each for each in objects if each["kind"] in ("Deployment", "StatefulSet")):
        name, spec = each["metadata"]["name"], each["spec"]["template"]["spec"]
        counted = {place: labels for place, labels in nodes.items() if place not in _excluded(spec)}
        for constraint in spec.get("topologySpreadConstraints", ()):
            key = constraint["topologyKey"]
            counts = Counter({labels[key]: 0 for labels in counted.values()})
            counts.update(counted[place][key] for app, place in on if app == name and place in counted)
            most = min(counts.values()) + constraint["maxSkew"]
            found[name, key] = {value: number - most for value, number in counts.items() if number > most}
    return found


def _excluded(spec: Json) -> list[str]:
    """Return the nodes that the node affinity of a template excludes."""
    affinity = spec.get("affinity", {}).get("nodeAffinity")
    if affinity is None:
        return []
    (term,) = affinity[_REQUIRED]["nodeSelectorTerms"]
    values: list[str] = term["matchExpressions"][0]["values"]
    return values


def total(found: Skews) -> int:
    """Return the sum of skews above maxSkew."""
    return sum(sum(values.values()) for values in found.values())


def sets(workloads: Mapping[str, object]) -> Iterator[tuple[str, ...]]:
    """Yield the sets of up to three pods of different workloads; pods are mapped to their workloads."""
    for number in range(1, MOST + 1):
        for names in combinations(sorted(workloads), number):
            if len({workloads[name] for name in names}) == number:
                yield names
