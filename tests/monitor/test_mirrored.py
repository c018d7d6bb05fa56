"""A followed list that is mirrored into the world, over watches that end, expire and begin again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kubectl_spread.app.monitoring.mirrored import MirrorStore, nodes_of, pods_of
from kubectl_spread.audit.snapshot.scope import Scope
from kubectl_spread.kube.api import sparse
from kubectl_spread.kube.api.sparse import SparsePod
from kubectl_spread.kube.api.types import ListMeta, Node, Pod
from kubectl_spread.monitor.world import World
from kubectl_spread.sources.apiserver import retries
from kubectl_spread.sources.apiserver.responses import ExpiredError
from kubectl_spread.sources.apiserver.watch_events import WatchEvent
from kubectl_spread.sources.apiserver.watch_list import FollowedList, Signals
from kubectl_spread.sources.decode.page import Page
from tests.builders import Json, decode_node, decode_pod, node_json, pod_json

PATIENCE = 5.0
Watch = list[tuple[str, Json]] | None
"""The events of one watch; None: the version has expired."""


def nodes_of_pods(lists: list[list[Json]], watches: list[Watch], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return the node of each pod in the world after all lists and watches."""
    world, lock, finished = World(Scope()), threading.Lock(), threading.Event()
    store = MirrorStore(pods_of(world), lock)
    versions = iter(range(10, 1000, 10))
    reads, streams = iter(lists), list(reversed(watches))

    def read() -> MirrorStore[SparsePod]:
        store.begin()
        version = ListMeta(resource_version=str(next(versions)))
        for manifest in next(reads):
            store.add(Page(version, [manifest], lambda listed: sparse.alone(decode_pod(listed))))
        store.end()
        return store

    @contextmanager
    def follow(version: str) -> Iterator[Iterator[WatchEvent[Pod]]]:
        events = streams.pop() if streams else []
        if not streams and not events:
            finished.set()
            threading.Event().wait(PATIENCE)
        if events is None:
            raise ExpiredError("too old resource version")
        yield (
            WatchEvent(type_, decode_pod(manifest), str(int(version) + number))
            for number, (type_, manifest) in enumerate(events, 1)
        )

    monkeypatch.setattr(retries, "backoff", lambda *_: 0.0)
    FollowedList(read, follow, Signals())
    assert finished.wait(PATIENCE)
    assert store.mirror.complete
    return {name: pod.record.node for name, pod in world.namespaces["default"].pods.items()}


def test_events_change_the_pods_of_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    watch: Watch = [
        ("MODIFIED", pod_json("p1", node="b1")),
        ("DELETED", pod_json("p2", node="a1")),
        ("BOOKMARK", pod_json("")),
        ("ADDED", pod_json("p3", node="c1")),
    ]
    pods = [pod_json("p1"), pod_json("p2", node="a1")]
    assert nodes_of_pods([pods], [watch, []], monkeypatch) == {"p1": "b1", "p3": "c1"}


def test_after_an_expired_version_the_new_list_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """One pod is gone, one was made again with the same name, one is new."""
    first = [pod_json("p1", node="a1"), pod_json("p2", node="a1")]
    second = [pod_json("p2", node="b1", metadata={"uid": "another"}), pod_json("p3", node="c1")]
    assert nodes_of_pods([first, second], [None, []], monkeypatch) == {"p2": "b1", "p3": "c1"}


def test_a_pod_that_is_made_again_takes_the_place_of_the_old_one(monkeypatch: pytest.MonkeyPatch) -> None:
    again: Watch = [("DELETED", pod_json("p1", node="a1")), ("ADDED", pod_json("p1", metadata={"uid": "another"}))]
    assert nodes_of_pods([[pod_json("p1", node="a1")]], [again, []], monkeypatch) == {"p1": ""}


def test_watches_that_end_go_on_where_they_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    watches: list[Watch] = [
        [("ADDED", pod_json("p1"))],
        [("MODIFIED", pod_json("p1", node="a1"))],
        [("MODIFIED", pod_json("p1", node="a1", phase="Succeeded"))],
        [],
    ]
    pods = [pod_json("p0", node="z1")]
    assert nodes_of_pods([pods], watches, monkeypatch) == {"p0": "z1", "p1": "a1"}


def test_a_bookmark_with_the_same_version_tells_that_the_state_is_current(monkeypatch: pytest.MonkeyPatch) -> None:
    world, told_again = World(Scope()), threading.Event()
    store = MirrorStore(pods_of(world), threading.Lock())

    def read() -> MirrorStore[SparsePod]:
        store.begin()
        store.add(Page(ListMeta(resource_version="7"), [], lambda listed: sparse.alone(decode_pod(listed))))
        store.end()
        store.known_at = 0.0
        return store

    @contextmanager
    def follow(_: str) -> Iterator[Iterator[WatchEvent[Pod]]]:
        if store.known_at:
            told_again.set()
            threading.Event().wait(PATIENCE)
        yield iter([WatchEvent("BOOKMARK", decode_pod(pod_json("")), "7")])

    monkeypatch.setattr(retries, "backoff", lambda *_: 0.0)
    FollowedList(read, follow, Signals())
    assert told_again.wait(PATIENCE)


def event(type_: str, name: str, version: str) -> WatchEvent[Node]:
    return WatchEvent(type_, decode_node(node_json(name)), version)


def holding(world: World) -> MirrorStore[Node]:
    """Return a store that holds events, after a list of one node."""
    store = MirrorStore(nodes_of(world), threading.Lock(), holds=True)
    listed(store, "7", "a1")
    return store


def listed(store: MirrorStore[Node], version: str, *names: str) -> None:
    store.begin()
    store.add(Page(ListMeta(resource_version=version), [node_json(name) for name in names], decode_node))
    store.end()


def names_of(world: World) -> list[str]:
    return sorted(name.name for name in world.node_names())


def test_held_events_change_the_world_when_they_are_released() -> None:
    """Until then the state is that of before, and so are its version and its time."""
    world = World(Scope())
    store = holding(world)
    told_at = store.known_at
    for each in (event("ADDED", "b1", "8"), event("DELETED", "a1", "9"), event("BOOKMARK", "-", "12")):
        store.apply(each)
    assert (names_of(world), store.mirror.version, store.known_at) == (["a1"], "7", told_at)
    assert store.version == "12"
    assert store.release()
    assert (names_of(world), store.mirror.version) == (["b1"], "12")
    assert store.known_at > told_at
    assert not store.release()


def test_a_bookmark_is_held_only_behind_a_held_event() -> None:
    store = holding(World(Scope()))
    store.apply(event("BOOKMARK", "-", "8"))
    assert store.mirror.version == "8"
    assert not store.release()


def test_a_list_takes_the_place_of_held_events() -> None:
    world = World(Scope())
    store = holding(world)
    store.apply(event("DELETED", "a1", "8"))
    listed(store, "9", "a1", "c1")
    assert not store.release()
    assert (names_of(world), store.mirror.version, store.version) == (["a1", "c1"], "9", "9")
