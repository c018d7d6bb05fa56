"""Random small clusters: plans are carried out, and what they leave is tried by all sets of up to three evictions.

``make conformance`` does the same with the real scheduler.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from kubectl_spread.engine import controllers, drains
from kubectl_spread.engine.cluster import SimulatedCluster
from tests.builders import Json
from tests.plan import small

CASES: Final = 60
_TRIES: Final = 10


def helps(objects: Sequence[Json], cluster: SimulatedCluster, names: Sequence[str]) -> bool:
    """Tell whether the eviction of pods lowers the sum in a run, within budgets, while no pod stays pending."""
    before, pending = excess(objects, cluster), len(cluster.pending)
    pods = {pod.name: pod for pod in cluster.all_pods()}
    cluster.begin()
    try:
        for name in names:
            if drains.refusing_budgets(cluster, pods[name]):
                return False
            cluster.remove(pods[name], lost=True)
        controllers.run(cluster)
        return len(cluster.pending) <= pending and excess(objects, cluster) < before
    finally:
        cluster.undo()


def excess(objects: Sequence[Json], cluster: SimulatedCluster) -> int:
    """Return the sum of the skews above maxSkew, counted from the pods of a run."""
    return small.total(small.skews(objects, small.placed(cluster)))


def sets(clusters: Sequence[SimulatedCluster]) -> Iterator[tuple[str, ...]]:
    """Yield the sets of pods that every run has where they were read."""
    there = [{pod.name for pod in cluster.all_pods() if not pod.simulated and pod.node} for cluster in clusters]
    in_all = set[str].intersection(*there)
    return small.sets({pod.name: pod.workload for pod in clusters[0].all_pods() if pod.name in in_all})


def certain(objects: Sequence[Json], clusters: Sequence[SimulatedCluster], names: Sequence[str]) -> bool:
    """Tell whether the eviction of pods helps in every run, whatever is decided at random."""
    return all(helps(objects, cluster, names) for _ in range(_TRIES) for cluster in clusters)


@pytest.mark.parametrize("seed", range(CASES))
def test_no_set_of_evictions_helps_where_the_plan_ends(seed: int, tmp_path: Path) -> None:
    objects = small.cluster_of(seed)
    plans = small.made(objects, tmp_path)
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
    objects = small.cluster_of(seed)
    plans = small.made(objects, tmp_path)
    if plans.plan().left:
        return
    pods = [(pod.owner.name, pod.name, pod.node) for pod in plans._runs[-1].all_pods() if pod.owner is not None]
    assert small.made(small.carried_out(objects, pods), tmp_path).plan().waves == []
