"""A watched cluster: what is remembered of the API server itself, and when it is requested again."""

from __future__ import annotations

import json
import math
from contextlib import closing
from dataclasses import replace

import pytest

from kubectl_spread.errors import ForbiddenError, SourceError
from kubectl_spread.sources.apiserver.cluster import LiveCluster, ServerVersion
from kubectl_spread.sources.apiserver.watch import WatchedCluster
from kubectl_spread.sources.auth.connection import ConnectionFlags
from kubectl_spread.sources.decode.resources import PODS
from tests.sources.server import Reply, serve, status

OFF = Reply(body=b'kubernetes_feature_enabled{name="A"} 0\n', content_type="text/plain")
NO_PODS = Reply(body=b'{"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": []}')
ON = Reply(body=b'kubernetes_feature_enabled{name="A"} 1\n', content_type="text/plain")

PATIENCE = 10.0


def version(minor: int) -> Reply:
    return Reply(body=json.dumps({"major": "1", "minor": str(minor)}).encode())


UID = Reply(body=b'{"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "kube-system", "uid": "1"}}')


def test_gates_are_read_again_after_some_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(OFF, UID, version(37), UID, version(37), ON) as server:
        cluster = WatchedCluster.connect(ConnectionFlags(server=server.url))
        assert cluster.feature_gates() == {"A": False}
        cluster._version = cluster._version or ServerVersion(1, 37, None, "")
        cluster.look()
        assert cluster.feature_gates() == {"A": False}
        monkeypatch.setattr(cluster, "_gates_until", 0.0)
        cluster.look()
        assert cluster.feature_gates() == {"A": True}
        assert cluster.changed


def test_gates_are_those_of_the_version() -> None:
    with serve(version(36), OFF, UID, version(37), ON) as server:
        cluster = WatchedCluster.connect(ConnectionFlags(server=server.url))
        assert cluster.version().minor == 36
        assert cluster.feature_gates() == {"A": False}
        cluster.look()
        assert cluster.version().minor == 37
        assert cluster.feature_gates() == {"A": True}


def test_a_look_that_finds_nothing_new_is_no_change() -> None:
    with serve(version(37), UID, UID, version(37)) as server:
        cluster = WatchedCluster.connect(ConnectionFlags(server=server.url))
        cluster.version(), cluster.uid()
        assert cluster.reached_etcd_at == -math.inf
        cluster.look()
        assert not cluster.changed
        assert cluster.reached_etcd_at > 0


def test_another_uid_is_another_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    uids = iter(["1", "1", "2"])
    monkeypatch.setattr(LiveCluster, "uid", lambda _: next(uids))
    monkeypatch.setattr(LiveCluster, "version", lambda _: ServerVersion(1, 37, None, ""))
    with serve(NO_PODS, replace(NO_PODS, delay=PATIENCE)) as server:
        cluster = WatchedCluster.connect(ConnectionFlags(server=server.url))
        with closing(cluster):
            assert cluster.uid() == "1"
            followed = cluster.follow(PODS, lambda pod: pod)
            cluster.look()
            assert followed.known_at(math.inf) > 0
            cluster.take_changes()
            cluster.look()
            assert cluster.changed
            assert followed.known_at(math.inf) == -math.inf


def test_an_api_server_that_does_not_answer_stays_suspect() -> None:
    with serve(UID, status(500, "InternalError", "no")) as server:
        cluster = WatchedCluster.connect(ConnectionFlags(server=server.url, request_timeout="1s"))
        with pytest.raises(SourceError):
            cluster.look()
        assert cluster.suspect


def test_a_list_that_may_not_be_watched_ends_the_waiting() -> None:
    with serve(NO_PODS, status(403, "Forbidden", "pods may not be watched")) as server:
        cluster = WatchedCluster.connect(ConnectionFlags(server=server.url))
        with closing(cluster):
            assert cluster.follow(PODS, lambda pod: pod.metadata.name).state().records == []
            with pytest.raises(ForbiddenError, match="pods may not be watched"):
                cluster.wait(PATIENCE)
