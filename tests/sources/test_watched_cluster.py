"""A watched cluster: what is remembered of the API server itself, and when it is requested again."""

from __future__ import annotations

import json
from contextlib import closing

import pytest

from kubectl_spread.errors import ForbiddenError
from kubectl_spread.sources.apiserver.resources import PODS
from kubectl_spread.sources.apiserver.watch import WatchedCluster
from kubectl_spread.sources.auth.connection import ConnectionFlags
from tests.sources.server import Reply, serve, status

OFF = Reply(body=b'kubernetes_feature_enabled{name="A"} 0\n', content_type="text/plain")
NO_PODS = Reply(body=b'{"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": []}')
ON = Reply(body=b'kubernetes_feature_enabled{name="A"} 1\n', content_type="text/plain")

PATIENCE = 10.0


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


def test_a_list_that_may_not_be_watched_ends_the_waiting() -> None:
    with serve(NO_PODS, status(403, "Forbidden", "pods may not be watched")) as server:
        cluster = WatchedCluster.connect(ConnectionFlags(server=server.url))
        with closing(cluster):
            assert (
                cluster.fold(PODS, list[str], lambda names, page: names.extend(pod.metadata.name for pod in page)) == []
            )
            with pytest.raises(ForbiddenError, match="pods may not be watched"):
                cluster.wait(PATIENCE)
