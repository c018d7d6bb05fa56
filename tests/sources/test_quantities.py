"""Maps of quantities become maps of text, from JSON and from protobuf."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubectl_spread.kube.api.types import Node, Pod
from kubectl_spread.kube.scheduler import resources
from kubectl_spread.sources.decode import json_objects
from kubectl_spread.sources.decode.json_objects import ListPage, MalformedFieldError
from kubectl_spread.sources.decode.protobuf.decoder import MAGIC, Decoder

RECORDED = Path(__file__).parent / "recorded"


def field(number: int, value: bytes) -> bytes:
    """Encode one field by hand; a length below 128."""
    key, rest = number << 3 | 2, b""
    if key >= 128:
        key, rest = key & 0x7F | 0x80, bytes([key >> 7])
    return bytes([key]) + rest + bytes([len(value)]) + value


def entry(name: str, quantity: str | None) -> bytes:
    value = b"" if quantity is None else field(1, quantity.encode())
    return field(1, name.encode()) + field(2, value)


def binary(spec: bytes) -> Pod:
    return Decoder(Pod).decode_response(MAGIC + field(2, field(2, spec)))


def text(spec: Any) -> Pod:
    return json_objects.decode(msgspec.json.encode({"spec": spec}), Pod)


REQUESTS = field(2, entry("cpu", "100m")) + field(2, entry("memory", "1Gi"))
LIMITS = field(1, entry("memory", "2Gi"))
ASKED = {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"memory": "2Gi"}}


@pytest.mark.parametrize(
    ("wire", "written"),
    [
        pytest.param(field(2, field(8, REQUESTS + LIMITS)), {"containers": [{"resources": ASKED}]}, id="containers"),
        pytest.param(
            field(20, field(1, b"log") + field(8, REQUESTS + LIMITS) + field(24, b"Always")),
            {"initContainers": [{"name": "log", "resources": ASKED, "restartPolicy": "Always"}]},
            id="a sidecar",
        ),
        pytest.param(field(2, field(1, b"web") + field(8, b"")), {"containers": [{"name": "web"}]}, id="nothing asked"),
        pytest.param(field(32, entry("cpu", "250m")), {"overhead": {"cpu": "250m"}}, id="overhead"),
        pytest.param(field(40, REQUESTS), {"resources": {"requests": ASKED["requests"]}}, id="of the pod as a whole"),
        pytest.param(field(32, entry("cpu", None)), {"overhead": {"cpu": None}}, id="null is zero"),
        pytest.param(field(32, entry("cpu", "0")), {"overhead": {"cpu": "0"}}, id="zero"),
    ],
)
def test_protobuf_and_json_decode_to_the_same_quantities(wire: bytes, written: Any) -> None:
    assert binary(wire) == text(written)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param("0.5", "0.5", id="text"),
        pytest.param(2, "2", id="an integer"),
        pytest.param(0.5, "0.5", id="a fraction"),
        pytest.param(1e21, "1000000000000000000000", id="with an exponent"),
        pytest.param(None, "0", id="null"),
    ],
)
def test_numbers_become_text(written: object, expected: str) -> None:
    assert text({"overhead": {"cpu": written}}).spec.overhead == {"cpu": expected}


@pytest.mark.parametrize(
    ("written", "got"),
    [pytest.param(True, "boolean", id="a boolean"), pytest.param(["1"], "array", id="an array")],
)
def test_an_error_names_the_field_of_an_invalid_quantity(written: object, got: str) -> None:
    with pytest.raises(MalformedFieldError) as caught:
        text({"containers": [{"resources": {"requests": {"example.com/gpu": written}}}]})
    assert str(caught.value) == f"spec.containers[0].resources.requests[example.com/gpu]: expected string, got {got}"


def test_equal_requirements_are_decoded_once() -> None:
    container = field(2, field(8, REQUESTS))
    first, second = binary(container + container).spec.containers
    assert first is not second
    assert first.resources is second.resources


def test_recorded_pods_have_the_same_requests_in_both_forms() -> None:
    pods = list(Decoder(Pod).page((RECORDED / "pods.pb").read_bytes()))
    from_json = list(json_objects.page(json_objects.decode((RECORDED / "pods.json").read_bytes(), ListPage), Pod))
    assert pods
    assert pods == from_json
    assert all(pod.spec.containers for pod in pods)
    assert all(resources.pod_requests(pod.spec)["pods"] == 1 for pod in pods)


def test_recorded_nodes_have_the_same_allocatable_resources_in_both_forms() -> None:
    nodes = list(Decoder(Node).page((RECORDED / "nodes.pb").read_bytes()))
    from_json = list(json_objects.page(json_objects.decode((RECORDED / "nodes.json").read_bytes(), ListPage), Node))
    assert nodes
    assert nodes == from_json
    assert all(resources.allocatable(node.status.allocatable)["pods"] > 0 for node in nodes)
