"""The report that the monitor keeps current equals that of a fresh check, after any sequence of changes."""

from __future__ import annotations

import os
from typing import Final

import pytest

from kubectl_spread.app.hints import unknown_nodes
from kubectl_spread.audit.evaluation.evaluate import evaluate
from kubectl_spread.audit.merge.verdicts import ServerFacts
from kubectl_spread.audit.snapshot.scope import Scope
from kubectl_spread.kube.api import sparse
from kubectl_spread.kube.api.workloads import KINDS
from kubectl_spread.kube.features import behaviour, gates
from kubectl_spread.monitor.current import CurrentReport
from kubectl_spread.monitor.world import World
from kubectl_spread.render import structured
from kubectl_spread.report import model
from kubectl_spread.rules import RULES
from kubectl_spread.rules.engine import Selection, complete
from tests.audits import snapshot
from tests.builders import Json, decode, decode_node, decode_pod
from tests.monitor.worlds import Key, RandomCluster

_BATCHES: Final = 12
_SEEDS: Final = int(os.environ.get("KUBECTL_SPREAD_MONITOR_SEEDS", "40"))
_FIRST: Final = int(os.environ.get("KUBECTL_SPREAD_MONITOR_FIRST_SEED", "0"))
_CONTEXT: Final = ServerFacts(behaviour(37, gates(37, {})), gates_known=False)
_CLUSTER: Final = model.Cluster(
    judged_as="1.37", version_source="flag", gates={}, gates_source="version", nodes="listed", resource_versions={}
)
_SCOPES: Final = (
    Scope(),
    Scope(),
    Scope(namespace="default"),
    Scope(exclude_namespaces=frozenset({"other"})),
)


def fresh(objects: list[Json], scope: Scope) -> str:
    """Return the report of a check that reads all objects."""
    read = snapshot(*objects, scope=scope, detailed=False)
    audit = evaluate(read, _CONTEXT, nodes="none" if unknown_nodes(read) else "listed")
    return structured.json(complete(audit, _CLUSTER, RULES, Selection(), read.skipped))


def apply(world: World, before: dict[Key, Json], after: dict[Key, Json]) -> None:
    """Apply the difference of two states."""
    for key in before.keys() - after.keys():
        kind, namespace, name = key
        match kind:
            case "Pod":
                world.remove_pod(namespace, name)
            case "Node":
                world.remove_node(name)
            case _:
                world.remove_workload(kind, namespace, name)
    for key, manifest in after.items():
        if before.get(key) is not manifest:
            put(world, manifest)


def put(world: World, manifest: Json) -> None:
    """Apply the present state of an object."""
    match manifest["kind"]:
        case "Pod":
            world.put_pod(sparse.alone(decode_pod(manifest)))
        case "Node":
            world.put_node(decode_node(manifest))
        case kind:
            world.put_workload(kind, decode(manifest, KINDS["apps", kind]))


@pytest.mark.parametrize("seed", range(_FIRST, _FIRST + _SEEDS))
def test_the_current_report_is_that_of_a_fresh_check(seed: int) -> None:
    cluster = RandomCluster(seed, far=seed % 3 == 0)
    scope = _SCOPES[seed % len(_SCOPES)]
    world = World(scope)
    current = CurrentReport(world, _CONTEXT, RULES, Selection())
    before: dict[Key, Json] = {}
    for batch in range(_BATCHES):
        apply(world, before, cluster.objects)
        current.refresh()
        assert structured.json(current.report(_CLUSTER)) == fresh([*cluster.objects.values()], scope), batch
        before = dict(cluster.objects)
        for _ in range(cluster.random.choice((1, 1, 2, 5, 20))):
            cluster.change()
