"""Mirrors of a simulated API server: lists in pages that break off, watches that end, expired versions, bookmarks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Any, Final

import pytest

from kubectl_spread.audit.snapshot.scope import Scope
from kubectl_spread.kube.scheduler.configuration import SYSTEM
from kubectl_spread.monitor.current import CurrentReport
from kubectl_spread.monitor.mirror import Mirror, ObjectName, StoredObjects
from kubectl_spread.monitor.world import World
from kubectl_spread.render import structured
from kubectl_spread.rules import RULES
from kubectl_spread.rules.selection import SelectedRules, Selection
from tests.builders import Json
from tests.monitor.test_current import CLUSTER, CONTEXT, fresh, put, remove
from tests.monitor.worlds import Key, RandomCluster

_KINDS: Final = (
    "Pod",
    "Node",
    "Service",
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "DaemonSet",
    "ReplicationController",
)
_ROUNDS: Final = 120
_PAGE: Final = 3


class History:
    """All states of a cluster, one for each resourceVersion."""

    def __init__(self, seed: int) -> None:
        """Start with the first state."""
        self.cluster = RandomCluster(seed, far=False, unconstrained=0.3)
        self.states: list[dict[Key, Json]] = [{}]
        self.oldest = 0
        self.store()

    def store(self) -> None:
        """Store the present state."""
        self.states.append(dict(self.cluster.objects))

    def change(self) -> None:
        """Change an object."""
        self.cluster.change()
        self.store()

    def of_kind(self, kind: str, version: int) -> dict[Key, Json]:
        """Return the objects of a kind in one state."""
        return {key: manifest for key, manifest in self.states[version].items() if key[0] == kind}

    def events(self, kind: str, version: int) -> Iterator[tuple[str, Json, int]]:
        """Yield the events about objects of a kind after a version."""
        for later in range(version + 1, len(self.states)):
            before, after = self.of_kind(kind, later - 1), self.of_kind(kind, later)
            for key in before.keys() - after.keys():
                yield "DELETED", before[key], later
            for key, manifest in after.items():
                if key not in before:
                    yield "ADDED", manifest, later
                elif before[key] is not manifest:
                    yield "MODIFIED", manifest, later


class Follower:
    """Follows one resource as a client does: a list in pages, then watches."""

    def __init__(self, kind: str, world: World, history: History, random: Random) -> None:
        """Start without a list."""
        self.kind = kind
        self.mirror: Mirror[Json] = Mirror(_target(kind, world))
        self._history = history
        self._random = random
        self._pages: list[list[Json]] = []
        self._reading = -1

    def step(self) -> None:
        """Read a page or some events; now and then a list breaks off, or a version has expired."""
        if self.mirror.complete:
            self._watch()
        elif self._reading < 0 or self._random.random() < 0.1:
            self._begin()
        else:
            self._read_page()

    def _begin(self) -> None:
        self.mirror.begin_list()
        self._reading = len(self._history.states) - 1
        manifests = list(self._history.of_kind(self.kind, self._reading).values())
        self._pages = [manifests[start : start + _PAGE] for start in range(0, len(manifests), _PAGE)]

    def _read_page(self) -> None:
        if self._pages:
            self.mirror.add_page((_name(manifest), manifest) for manifest in self._pages.pop(0))
        else:
            self.mirror.end_list(str(self._reading))
            self._reading = -1

    def _watch(self) -> None:
        version = int(self.mirror.version)
        if version < self._history.oldest:
            self._begin()
            return
        for type_, manifest, later in self._history.events(self.kind, version):
            if self._random.random() < 0.2:
                return
            if type_ == "DELETED":
                self.mirror.remove(_name(manifest), str(later))
            else:
                self.mirror.put(manifest, str(later))
        if self._random.random() < 0.5:
            self.mirror.advance(str(len(self._history.states) - 1))


def _name(manifest: Json) -> ObjectName:
    return ObjectName(manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"])


def _target(kind: str, world: World) -> StoredObjects[Json]:
    names: dict[str, Callable[[], Iterable[ObjectName]]] = {
        "Pod": world.pod_names,
        "Node": world.node_names,
        "Service": world.service_names,
    }
    return StoredObjects(
        lambda manifest: put(world, manifest),
        lambda name: remove(world, kind, *name),
        names.get(kind, lambda: world.workload_names(kind)),
    )


@pytest.mark.parametrize("seed", range(12))
def test_each_state_is_that_of_the_versions_that_the_mirrors_have(seed: int) -> None:
    random, history, world = Random(seed), History(seed), World(Scope(), SYSTEM)
    world.budgets.read = True
    current = CurrentReport(world, CONTEXT, SelectedRules(RULES, Selection()))
    followers = [Follower(kind, world, history, random) for kind in _KINDS]
    compared = 0
    for _ in range(_ROUNDS):
        for _ in range(random.choice((0, 1, 3))):
            history.change()
        if random.random() < 0.1:
            history.oldest = random.randrange(len(history.states))
        for follower in random.sample(followers, random.randint(1, len(followers))):
            for _ in range(random.choice((1, 1, 4))):
                follower.step()
        if all(follower.mirror.complete for follower in followers):
            states: list[dict[Any, Json]] = [
                history.of_kind(follower.kind, int(follower.mirror.version)) for follower in followers
            ]
            objects = [manifest for state in states for manifest in state.values()]
            current.refresh()
            assert structured.json(current.report(CLUSTER)) == fresh(objects, world.scope, schedulers=SYSTEM).json
            compared += 1
    assert compared
