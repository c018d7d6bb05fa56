"""The minimum of a PodDisruptionBudget, with literals; ``tests/e2e/test_domains.py`` asks the real controller."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kubectl_spread.kube import disruption
from kubectl_spread.kube.api.types import ObjectMeta, OwnerReference
from kubectl_spread.kube.disruption import Budgets, PodDisruptionBudget
from kubectl_spread.sources.decode import json_objects
from kubectl_spread.sources.decode.json_objects import MalformedFieldError
from kubectl_spread.sources.decode.protobuf.decoder import Decoder


def budget(**spec: object) -> PodDisruptionBudget:
    manifest = {"metadata": {"name": "web", "namespace": "shop"}, "spec": spec}
    return json_objects.decode(msgspec.json.encode(manifest), PodDisruptionBudget)


@pytest.mark.parametrize(
    ("spec", "scale", "minimum"),
    [
        ({"minAvailable": 2}, None, 2),
        ({"minAvailable": 0}, None, 0),
        ({"minAvailable": 9}, 3, 9),
        ({"minAvailable": "50%"}, 5, 3),
        ({"minAvailable": "100%"}, 3, 3),
        ({"minAvailable": "0%"}, 3, 0),
        ({"minAvailable": "1%"}, 200, 2),
        ({"minAvailable": "50%"}, None, None),
        ({"minAvailable": "half"}, 5, None),
        ({"maxUnavailable": 1}, 5, 4),
        ({"maxUnavailable": 9}, 5, 0),
        ({"maxUnavailable": 0}, 5, 5),
        ({"maxUnavailable": "25%"}, 5, 3),
        ({"maxUnavailable": "100%"}, 5, 0),
        ({"maxUnavailable": 1}, None, None),
        ({"maxUnavailable": "x%"}, 5, None),
        ({"maxUnavailable": 1, "minAvailable": 4}, 5, 4),
        ({}, None, 0),
        ({"minAvailable": None}, None, 0),
    ],
)
def test_the_minimum(spec: dict[str, Any], scale: int | None, minimum: int | None) -> None:
    assert budget(**spec).desired_healthy(scale) == minimum


@pytest.mark.parametrize(
    ("spec", "needs_scale"),
    [
        ({"minAvailable": 2}, False),
        ({"minAvailable": "50%"}, True),
        ({"maxUnavailable": 1}, True),
        ({"maxUnavailable": "50%"}, True),
        ({}, False),
    ],
)
def test_which_budgets_depend_on_replicas(spec: dict[str, Any], *, needs_scale: bool) -> None:
    assert budget(**spec).needs_scale is needs_scale


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"intVal": 1}, "spec.minAvailable: expected integer, got object"),
        (True, "spec.minAvailable: expected integer, got boolean"),
        (1.5, "spec.minAvailable: expected integer, got number"),
        (1 << 31, "spec.minAvailable: integer is out of the range of int32"),
    ],
)
def test_neither_a_number_nor_a_text(value: object, problem: str) -> None:
    with pytest.raises(MalformedFieldError) as raised:
        budget(minAvailable=value)
    assert str(raised.value) == problem


def test_a_whole_number_with_a_point_is_that_number() -> None:
    assert budget(minAvailable=2.0).spec.min_available == 2


@pytest.mark.parametrize(
    ("encoded", "decoded"),
    [
        (b"\x08\x00\x10\x03\x1a\x00", 3),
        (b"\x08\x00\x10\x00\x1a\x00", 0),
        (b"\x08\x01\x10\x00\x1a\x0350%", "50%"),
        (b"\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", -1),
    ],
)
def test_protobuf_has_a_message_with_both(encoded: bytes, decoded: int | str) -> None:
    spec = b"\x0a" + bytes([len(encoded)]) + encoded
    message = Decoder(PodDisruptionBudget).decode(b"\x12" + bytes([len(spec)]) + spec)
    assert message.spec.min_available == decoded
    assert message.spec.max_unavailable is None


@pytest.mark.parametrize(
    ("api_version", "kind", "is_read"),
    [
        ("apps/v1", "StatefulSet", True),
        ("apps.kruise.io/v1beta1", "StatefulSet", False),
        ("v1", "StatefulSet", False),
        ("apps/v1", "ReplicaSet", False),
    ],
)
def test_a_controller_is_known_by_its_group_and_kind(api_version: str, kind: str, *, is_read: bool) -> None:
    owner = OwnerReference(api_version=api_version, kind=kind, name="db")
    assert disruption.is_of(owner, "StatefulSet") is is_read


@pytest.mark.parametrize(
    ("generation", "status", "allowed"),
    [
        (2, None, None),
        (2, {"observedGeneration": 1, "disruptionsAllowed": 1}, None),
        (2, {"observedGeneration": 2, "disruptionsAllowed": 1}, 1),
        (2, {"observedGeneration": 2}, 0),
        (0, {}, None),
    ],
)
def test_a_status_of_an_older_spec_is_not_current(
    generation: int, status: dict[str, Any] | None, allowed: int | None
) -> None:
    manifest = {"metadata": {"name": "web", "generation": generation}, "status": status}
    current = json_objects.decode(msgspec.json.encode(manifest), PodDisruptionBudget).current
    assert (None if current is None else current.disruptions_allowed) == allowed


def test_budgets_select_pods_of_their_namespace() -> None:
    budgets = Budgets()
    all_pods, none, web = budget(selector={}), budget(), budget(selector={"matchLabels": {"app": "web"}})
    for name, each in (("all", all_pods), ("none", none), ("web", web)):
        budgets.put(msgspec.structs.replace(each, metadata=ObjectMeta(name=name, namespace="shop")))
    assert [each.metadata.name for each in budgets.of("shop", {"app": "web"})] == ["all", "web"]
    assert [each.metadata.name for each in budgets.of("shop", {})] == ["all"]
    assert budgets.of("other", {}) == ()
