"""Retained pods: the same pod in a list and in an event."""

from __future__ import annotations

from kubectl_spread.audit.snapshot.scope import Scope
from kubectl_spread.kube.api import sparse
from kubectl_spread.kube.scheduler.configuration import WITHOUT_DEFAULTS
from kubectl_spread.monitor.retained import PodReader
from kubectl_spread.sources.apiserver import responses
from kubectl_spread.sources.apiserver.resources import PODS, SPARSE_PODS
from kubectl_spread.sources.apiserver.transport import Response
from tests.fuzz import corpus


def test_a_pod_of_a_list_is_that_of_an_event() -> None:
    """Lists are decoded sparsely. Pods of one class would otherwise count as pods of two."""
    recorded = Response(200, "application/vnd.kubernetes.protobuf", corpus.pages()["pods"])
    listed = responses.page(recorded, responses.list_decoder(SPARSE_PODS.type), SPARSE_PODS)
    decoded = responses.page(recorded, responses.list_decoder(PODS.type), PODS)
    reader = PodReader(Scope(), WITHOUT_DEFAULTS)
    assert [reader.read(pod) for pod in listed] == [reader.read(sparse.alone(pod)) for pod in decoded]
