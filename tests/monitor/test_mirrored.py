"""A followed list that is mirrored into the world, over watches that end, expire and begin again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kubectl_spread.app.monitoring.mirrored import MirrorStore, pods_of
from kubectl_spread.audit.snapshot.scope import Scope
from kubectl_spread.kube.api import sparse
from kubectl_spread.kube.api.sparse import SparsePod
from kubectl_spread.kube.api.types import ListMeta, Pod
from kubectl_spread.monitor.world import World
from kubectl_spread.sources.apiserver import retries
from kubectl_spread.sources.apiserver.responses import ExpiredError
from kubectl_spread.sources.apiserver.watch_events import WatchEvent
from kubectl_spread.sources.apiserver.watch_list import FollowedList, Signals
from kubectl_spread.sources.decode.page import Page
from tests.builders import Json, decode_pod, pod_json

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
