"""A watched cluster: what is remembered of the API server itself, and when it is requested again."""

from __future__ import annotations

import json

import pytest

from kubectl_spread.sources.apiserver.watch import WatchedCluster
from kubectl_spread.sources.auth.connection import ConnectionFlags
from tests.sources.server import Reply, serve

OFF = Reply(body=b'kubernetes_feature_enabled{name="A"} 0\n', content_type="text/plain")
ON = Reply(body=b'kubernetes_feature_enabled{name="A"} 1\n', content_type="text/plain")


def version(minor: int) -> Reply:
    return Reply(body=json.dumps({"major": "1", "minor": str(minor)}).encode())


def test_gates_are_requested_again_after_some_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(OFF, ON) as server:
        cluster = WatchedCluster.connect(ConnectionFlags(server=server.url))
        assert cluster.feature_gates() == {"A": False}
        assert cluster.feature_gates() == {"A": False}
        monkeypatch.setattr(cluster, "_gates_until", 0.0)
        assert cluster.feature_gates() == {"A": True}


def test_gates_are_those_of_the_version() -> None:
    with serve(version(36), OFF, version(37), ON) as server:
        cluster = WatchedCluster.connect(ConnectionFlags(server=server.url))
        assert cluster.version().minor == 36
        assert cluster.feature_gates() == {"A": False}
        cluster.forget_version()
        assert cluster.version().minor == 37
        assert cluster.feature_gates() == {"A": True}
