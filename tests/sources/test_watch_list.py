"""A list that is followed: an object is identified by its namespace and name, as in etcd."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import pytest

from kubectl_spread.errors import SourceError
from kubectl_spread.kube.api.types import ListMeta, Object, ObjectMeta
from kubectl_spread.sources.apiserver import transport
from kubectl_spread.sources.apiserver.responses import ExpiredError
from kubectl_spread.sources.apiserver.transport import elapsed
from kubectl_spread.sources.apiserver.watch_events import WatchEvent
from kubectl_spread.sources.apiserver.watch_list import FollowedList, Listed, Signals, detached, is_newer
from kubectl_spread.sources.decode.resources import Page
from kubectl_spread.sources.exchange import Again, ConnectionFailedError

PATIENCE = 5.0


def labelled(name: str, uid: str = "", namespace: str = "shop", **labels: str) -> Object:
    return Object(metadata=ObjectMeta(name=name, namespace=namespace, uid=uid, labels=labels))


def listed(*objects: Object) -> Listed[Object]:
    pods: Listed[Object] = Listed(detached)
    pods.add(Page(ListMeta(resource_version="1"), objects, lambda pod: pod))
    return pods


def after(start: list[Object], *events: tuple[str, Object]) -> list[tuple[str, str]]:
    """Return the names and labels of a list after some events."""
    reported = threading.Event()

    @contextmanager
    def follow(_: str) -> Iterator[Iterator[WatchEvent[Object]]]:
        def stream() -> Iterator[WatchEvent[Object]]:
            yield from (
                WatchEvent(kind, watched_object, str(number)) for number, (kind, watched_object) in enumerate(events, 2)
            )
            reported.set()
            threading.Event().wait(PATIENCE)

        yield stream()

    watched = FollowedList(lambda: listed(*start), follow, Signals())
    assert reported.wait(PATIENCE)
    return [(pod.metadata.name, pod.metadata.labels.get("rev", "")) for pod in watched.state().records]


@pytest.mark.parametrize("uid", ["", "1"], ids=["no uid", "one uid for all"])
def test_objects_are_told_apart_by_name(uid: str) -> None:
    """Issue 13, section 8: six pods became one, with no findings."""
    pods = [labelled(f"web-{number}", uid) for number in range(6)]
    assert len(listed(*pods).records) == 6
    added, gone = ("ADDED", labelled("web-6", uid)), ("DELETED", labelled("web-0", uid))
    assert [name for name, _ in after(pods, added, gone)] == [f"web-{number}" for number in range(1, 7)]


def test_one_name_in_two_namespaces() -> None:
    pods = [labelled("web", namespace="one"), labelled("web", namespace="two")]
    assert len(listed(*pods).records) == 2


def test_an_object_that_is_made_again_takes_the_place_of_the_old_one() -> None:
    """A StatefulSet's pod comes back with its name and another uid."""
    again = [("DELETED", labelled("web-0", "1")), ("ADDED", labelled("web-0", "2", rev="r2"))]
    assert after([labelled("web-0", "1", rev="r1")], *again) == [("web-0", "r2")]


def test_a_change_is_kept() -> None:
    assert after([labelled("web-0", rev="r1")], ("MODIFIED", labelled("web-0", rev="r2"))) == [("web-0", "r2")]


def test_a_watch_that_was_regained_waits_as_after_the_first_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """An API server that has started may end its first watches, after many failures to connect."""
    threads: set[int] = set()
    retries_before: list[int] = []
    ended = threading.Event()
    answers = iter([*["lost"] * 5, "empty", "empty", "empty"])

    def backoff(number: int, _: float) -> float:
        if threading.get_ident() in threads:
            retries_before.append(number)
        return 0.0

    @contextmanager
    def follow(_: str) -> Iterator[Iterator[WatchEvent[Object]]]:
        threads.add(threading.get_ident())
        answer = next(answers, None)
        if answer is None:
            ended.set()
            threading.Event().wait(PATIENCE)
        if answer == "lost":
            raise ConnectionFailedError("refused", Again.ALWAYS)
        yield iter(())

    monkeypatch.setattr(transport, "backoff", backoff)
    FollowedList(listed, follow, Signals())
    assert ended.wait(PATIENCE)
    assert retries_before == [0, 1, 2, 3, 4, 0, 1, 2]


def test_a_watch_that_fails_is_lost_until_the_next_one_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    followed_lists: list[FollowedList[Object]] = []
    started, begun = threading.Event(), threading.Event()
    failures = iter([SourceError("no such revision")])
    lost: list[str] = []

    @contextmanager
    def follow(_: str) -> Iterator[Iterator[WatchEvent[Object]]]:
        assert started.wait(PATIENCE)
        for failure in failures:
            raise failure
        lost.append(followed_lists[0].lost)

        def stream() -> Iterator[WatchEvent[Object]]:
            begun.set()
            threading.Event().wait(PATIENCE)
            yield from ()

        yield stream()

    monkeypatch.setattr(transport, "backoff", lambda *_: 0.0)
    followed_lists.append(FollowedList(listed, follow, Signals()))
    started.set()
    assert begun.wait(PATIENCE)
    assert (lost, followed_lists[0].lost) == (["no such revision"], "")


def versions_followed(*streams: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the versions that watches began from, one more than there are streams of types and versions."""
    versions: list[str] = []
    remaining, ended = iter(streams), threading.Event()

    @contextmanager
    def follow(version: str) -> Iterator[Iterator[WatchEvent[Object]]]:
        versions.append(version)
        events = next(remaining, None)
        if events is None:
            ended.set()
            threading.Event().wait(PATIENCE)
        yield (WatchEvent(kind, labelled("web-0"), number) for kind, number in events or ())

    monkeypatch.setattr(transport, "backoff", lambda *_: 0.0)
    lists = iter("1" * (len(streams) + 1))
    FollowedList(lambda: listed(labelled(f"web-{next(lists)}")), follow, Signals())
    assert ended.wait(PATIENCE)
    return versions


def test_a_bookmark_that_an_event_has_overtaken_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    overtaken = [("MODIFIED", "10"), ("BOOKMARK", "9")]
    assert versions_followed(overtaken, [("BOOKMARK", "12")], monkeypatch=monkeypatch) == ["1", "10", "12"]


@pytest.mark.parametrize("again", ["10", "9"], ids=["the same event again", "an earlier event"])
def test_events_out_of_order_make_the_list_be_read_again(again: str, monkeypatch: pytest.MonkeyPatch) -> None:
    out_of_order = [("MODIFIED", "10"), ("DELETED", again), ("ADDED", "11")]
    assert versions_followed(out_of_order, monkeypatch=monkeypatch) == ["1", "1"]


@pytest.mark.parametrize("empty", ["", "0"])
@pytest.mark.parametrize("kind", ["MODIFIED", "BOOKMARK"])
def test_an_event_without_a_version_makes_the_list_be_read_again(
    kind: str, empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = [("MODIFIED", "10"), (kind, empty), ("ADDED", "11")]
    assert versions_followed(broken, monkeypatch=monkeypatch) == ["1", "1"]


@pytest.mark.parametrize("empty", ["", "0"])
def test_a_list_without_a_version_is_an_error(empty: str) -> None:
    def read() -> Listed[Object]:
        pods = listed(labelled("web-0"))
        pods.version = empty
        return pods

    with pytest.raises(SourceError, match="a list without a resourceVersion"):
        FollowedList(read, lambda _: nullcontext(iter(())), Signals())


def test_one_event_and_then_410_waits_as_410_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two API servers of different age behind a balancer; 30 lists in 12 seconds were seen."""
    retries_before: list[int] = []
    ended = threading.Event()

    def backoff(number: int, _: float) -> float:
        retries_before.append(number)
        if len(retries_before) == 5:
            ended.set()
            threading.Event().wait(PATIENCE)
        return 0.0

    @contextmanager
    def follow(version: str) -> Iterator[Iterator[WatchEvent[Object]]]:
        def stream() -> Iterator[WatchEvent[Object]]:
            yield WatchEvent("MODIFIED", labelled("web-0"), str(int(version) + 1))
            raise ExpiredError("too old resource version")

        yield stream()

    monkeypatch.setattr(transport, "backoff", backoff)
    FollowedList(lambda: listed(labelled("web-0")), follow, Signals())
    assert ended.wait(PATIENCE)
    assert retries_before == [0, 1, 2, 3, 4]


def followed_after(*events: tuple[str, str]) -> FollowedList[Object]:
    """Return a list of version 1 after events with these types and versions, long after it was read."""
    reported = threading.Event()

    @contextmanager
    def follow(_: str) -> Iterator[Iterator[WatchEvent[Object]]]:
        def stream() -> Iterator[WatchEvent[Object]]:
            followed_lists[0]._known_at = followed_lists[0]._heard_at = 0.0
            yield from (WatchEvent(kind, labelled("web-0"), version) for kind, version in events)
            reported.set()
            threading.Event().wait(PATIENCE)

        yield stream()

    followed_lists: list[FollowedList[Object]] = []
    begin = threading.Event()

    @contextmanager
    def late(version: str) -> Iterator[Iterator[WatchEvent[Object]]]:
        begin.wait(PATIENCE)
        with follow(version) as stream:
            yield stream

    followed_lists.append(FollowedList(lambda: listed(labelled("web-0")), late, Signals()))
    begin.set()
    assert reported.wait(PATIENCE)
    return followed_lists[0]


def test_a_repeated_bookmark_confirms_only_what_the_server_read_from_etcd() -> None:
    """An API server that is cut off from etcd continues to send them."""
    followed = followed_after(("BOOKMARK", "1"))
    now = elapsed()
    assert followed.known_at(0.0) == 0.0
    assert followed.known_at(5.0) == 5.0
    assert now - PATIENCE < followed.known_at(now + 60) <= now


@pytest.mark.parametrize("kind", ["BOOKMARK", "MODIFIED"])
def test_a_newer_version_confirms_the_state(kind: str) -> None:
    assert followed_after((kind, "2")).known_at(0.0) > elapsed() - PATIENCE


def test_a_silent_watch_is_not_confirmed_by_other_answers() -> None:
    assert followed_after().known_at(elapsed()) == 0.0


def test_a_list_of_another_cluster_is_not_known_until_it_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    lists, ended = iter("ab"), threading.Event()
    goes_on = threading.Event()

    @contextmanager
    def follow(_: str) -> Iterator[Iterator[WatchEvent[Object]]]:
        def stream() -> Iterator[WatchEvent[Object]]:
            goes_on.wait(PATIENCE)
            goes_on.clear()
            yield WatchEvent("MODIFIED", labelled("stranger"), "9")

        yield stream()

    def read() -> Listed[Object]:
        name = next(lists, None)
        if name is None:
            ended.set()
            threading.Event().wait(PATIENCE)
        return listed(labelled(f"web-{name}"))

    monkeypatch.setattr(transport, "backoff", lambda *_: 0.0)
    followed = FollowedList(read, follow, Signals())
    followed.distrust()
    assert followed.known_at(elapsed()) == -math.inf
    goes_on.set()
    deadline = elapsed() + PATIENCE
    while followed.known_at(0.0) == -math.inf and elapsed() < deadline:
        threading.Event().wait(0.01)
    assert [pod.metadata.name for pod in followed.state().records] == ["web-b"]


def test_sleep_of_the_machine_makes_a_state_older(monkeypatch: pytest.MonkeyPatch) -> None:
    if transport._CLOCK is None:
        pytest.skip("this system has one clock")
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)
    first = elapsed()
    threading.Event().wait(0.01)
    assert elapsed() > first


@pytest.mark.parametrize(
    ("version", "than", "newer"),
    [
        ("10", "9", True),
        ("9", "10", False),
        ("9", "9", False),
        ("9" * 5000, "8" * 5000, True),
        ("opaque", "9", True),
        ("010", "9", True),
        ("9", "", True),
    ],
)
def test_versions_are_compared_as_numbers(version: str, than: str, *, newer: bool) -> None:
    assert is_newer(version, than) is newer


def test_after_a_long_silence_the_list_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """An API server that has restarted sends no bookmark while nothing changes."""
    lists, read_again = iter("123"), threading.Event()

    def read() -> Listed[Object]:
        number = next(lists)
        if number == "3":
            read_again.set()
            threading.Event().wait(PATIENCE)
        return listed(labelled("web-0"))

    @contextmanager
    def follow(_: str) -> Iterator[Iterator[WatchEvent[Object]]]:
        yield iter(())

    monkeypatch.setattr(transport, "backoff", lambda *_: 0.0)
    FollowedList(read, follow, Signals(), silence=0.1)
    assert read_again.wait(PATIENCE)
