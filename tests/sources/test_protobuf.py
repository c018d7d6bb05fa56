"""JSON and protobuf of a real apiserver (v1.37.1) decode to the same objects."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_spread.kube.api.types import Message, Pod
from kubectl_spread.kube.api.workloads import Deployment
from kubectl_spread.sources.decode import json_objects
from kubectl_spread.sources.decode.json_objects import ListPage
from kubectl_spread.sources.decode.protobuf.decoder import MAGIC, Decoder
from kubectl_spread.sources.decode.resources import NODES, PODS, WORKLOADS, Page, Resource

RECORDED = Path(__file__).parent / "recorded"
RESOURCES = [resource for resource in (PODS, NODES, *WORKLOADS) if (RECORDED / f"{resource.plural}.pb").exists()]


def page(resource: Resource[Any]) -> Page[Any]:
    return Decoder(resource.type).page((RECORDED / f"{resource.plural}.pb").read_bytes())


def stated(read: Message) -> Message:
    """Return an object as JSON has it: Go writes ``paused`` in protobuf even where it is false."""
    if isinstance(read, Deployment) and not read.spec.paused:
        return replace(read, spec=replace(read.spec, paused=None))
    return read


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.plural)
def test_protobuf_and_json_decode_to_the_same_objects(resource: Resource[Message]) -> None:
    binary = page(resource)
    text = json_objects.page(
        json_objects.decode((RECORDED / f"{resource.plural}.json").read_bytes(), ListPage), resource.type
    )
    assert list(map(stated, binary)) == list(text)
    assert len(binary) == len(text) > 0
    assert binary.metadata == text.metadata
    assert binary.remaining == text.remaining


def test_a_page_has_metadata_and_objects() -> None:
    pods = page(PODS)
    first = next(iter(pods))
    assert pods.resource_version
    assert pods.metadata.continue_
    assert pods.remaining == 2997
    assert first.metadata.owner_references[0].controller
    assert first.metadata.managed_fields[0].fields_v1
    assert first.spec.topology_spread_constraints[0].match_label_keys == ("pod-template-hash",)
    assert first.spec.topology_spread_constraints[0].node_taints_policy == "Ignore"
    assert first.spec.affinity is not None


def test_the_number_of_remaining_objects_is_unknown_with_a_field_selector() -> None:
    text = json_objects.page(json_objects.decode(b'{"metadata":{"continue":"x"},"items":[]}', ListPage), Pod)
    assert text.remaining is None


def test_shared_parts_are_decoded_once() -> None:
    """Pods with equal labels share one dict."""
    pods = page(PODS)
    item, again = next(iter(pods)), next(iter(pods))
    assert item is not again
    assert item.metadata.labels is again.metadata.labels
    assert item.spec.affinity is again.spec.affinity


def field(number: int, value: bytes | int) -> bytes:
    """Encode one field by hand; lengths and numbers below 128."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    return bytes([number << 3 | 2, len(value)]) + value


def decoded_pod(body: bytes) -> Pod:
    return Decoder(Pod).decode_response(MAGIC + field(2, body))


def test_zero_values_of_go_count_as_absent() -> None:
    """Go writes "" and the zero time in protobuf where its JSON writes nothing."""
    pod = decoded_pod(field(1, field(1, b"p") + field(8, b"")) + field(2, b"\x9a\x01\x00"))
    assert pod.metadata.name == "p"
    assert pod.metadata.creation_timestamp is None
    assert pod.spec.scheduler_name == "default-scheduler"
    assert decoded_pod(b"") == Pod()


def test_a_time_has_whole_seconds_in_utc() -> None:
    pod = decoded_pod(field(1, field(8, field(1, 0))))
    assert pod.metadata.creation_timestamp == datetime(1970, 1, 1, tzinfo=UTC)
