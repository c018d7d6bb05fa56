"""Pages in protobuf that no API server sends are a SourceError, and no other error."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kubectl_spread.errors import SourceError
from kubectl_spread.kube.api.types import Pod
from kubectl_spread.sources.apiserver import responses
from kubectl_spread.sources.apiserver.resources import PODS, SPARSE_PODS, Resource
from kubectl_spread.sources.apiserver.transport import Response
from kubectl_spread.sources.decode.protobuf.decoder import Decoder
from kubectl_spread.sources.decode.protobuf.envelope import MAGIC
from kubectl_spread.sources.decode.protobuf.sparse_pods import SparsePods
from tests.fuzz import corpus
from tests.fuzz.wire import Field, encode, parse, varint

PAGE = corpus.pages()["pods"]
FIELDS = parse(PAGE[len(MAGIC) :]) or []


DECODER = Decoder(Pod)
SPARSE = SparsePods()


def refused(body: bytes) -> bool:
    """Read a page to its end, sparsely and in full; tell whether both ways refuse it as malformed."""
    sparse = refusal(body, SPARSE, SPARSE_PODS)
    assert (sparse == "") == (refusal(body, DECODER, PODS) == "")
    return sparse.startswith("Server returned an unexpected response: ")


def refusal(body: bytes, decoder: Any, resource: Resource[Any]) -> str:
    """Read a page to its end; return the SourceError, or ""."""
    try:
        for pod in responses.page(Response(200, "application/vnd.kubernetes.protobuf", body), decoder, resource):
            assert pod.key
    except SourceError as error:
        return str(error)
    return ""


def test_the_recorded_page_is_read() -> None:
    assert not refused(PAGE)
    assert not refused(MAGIC + encode(FIELDS))


def test_a_page_that_ends_early_is_refused() -> None:
    """It may end at any byte up to the end of the list; the bytes behind it belong to the envelope."""
    behind = len(PAGE) - len(encode([field for field in FIELDS if field.number > 2]))
    assert all(refused(PAGE[:end]) for end in range(behind))


def test_a_byte_that_is_wrong_is_refused_or_harmless() -> None:
    """Some bytes are text, which may change; any other change is a SourceError."""
    chance = random.Random(1)
    refusals = 0
    for _ in range(2000):
        index = chance.randrange(len(MAGIC), len(PAGE))
        refusals += refused(PAGE[:index] + chance.randbytes(1) + PAGE[index + 1 :])
    assert 0 < refusals < 2000


def test_random_bytes_are_refused() -> None:
    chance = random.Random(1)
    assert all(refused(MAGIC + chance.randbytes(chance.randrange(200))) for _ in range(500))


@pytest.mark.parametrize("length", [2**31 - 1, 2**31, 2**32, 2**63, 2**64 - 1])
def test_a_length_beyond_the_end_is_refused(length: int) -> None:
    assert refused(MAGIC + b"\x12" + varint(length) + PAGE[len(MAGIC) :])


@pytest.mark.parametrize("wire", [0, 1, 3, 4, 5, 6, 7])
def test_another_wire_type_is_refused(wire: int) -> None:
    """The types of the list's field include a group without its end, and types that do not exist."""
    value = 1 if wire == 0 else b"\x00" * 8
    assert refused(MAGIC + encode([Field(2, wire, value)]))


def test_deep_nesting_is_refused() -> None:
    body = b""
    for _ in range(10_000):
        body = encode([Field(2, 2, body)])
    assert refused(MAGIC + body)


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param([Field(1, 2, b"\xff\xfe")], id="a name that is not UTF-8"),
        pytest.param([Field(8, 2, encode([Field(1, 0, 2**62)]))], id="a time that is too late"),
        pytest.param([Field(8, 2, encode([Field(1, 0, 2**63)]))], id="a time that is too early"),
        pytest.param([Field(11, 2, encode([Field(1, 2, b"\xc0\x80")]))], id="a label that is not UTF-8"),
    ],
)
def test_a_pod_that_python_cannot_hold_is_refused(metadata: list[Field]) -> None:
    pod = encode([Field(1, 2, encode(metadata))])
    page = encode([Field(1, 2, encode([Field(2, 2, b"1")])), Field(2, 2, pod)])
    assert refused(MAGIC + encode([Field(2, 2, page)]))


def inside(fields: list[Field], path: tuple[int, ...]) -> Field:
    """Return the first field at ``path``."""
    number, *below = path
    first = next(field for field in fields if field.number == number)
    if not below:
        return first
    assert isinstance(first.value, list)
    return inside(first.value, tuple(below))


def changed(fields: list[Field], path: tuple[int, ...], *replacement: Field) -> list[Field]:
    """Return fields with the first one at ``path`` replaced."""
    number, *below = path
    index = next(index for index, field in enumerate(fields) if field.number == number)
    value = fields[index].value
    if below:
        assert isinstance(value, list)
        replacement = (Field(number, fields[index].wire, changed(value, tuple(below), *replacement)),)
    return [*fields[:index], *replacement, *fields[index + 1 :]]


POD = (2, 2)
OF_ANOTHER_WIRE = {
    0: [Field(0, 0, 1)],
    1: [Field(0, 1, bytes(8))],
    2: [Field(0, 2, b"\x08\x01")],
    3: [Field(0, 3, b""), Field(0, 4, b"")],
    5: [Field(0, 5, bytes(4))],
}
PLACES = {
    "the list": ((2,), 2),
    "metadata of the list": ((2, 1), 2),
    "revision of the list": ((2, 1, 2), 2),
    "remainingItemCount": ((2, 1, 4), 0),
    "items": ((2, 2), 2),
    "metadata": ((*POD, 1), 2),
    "spec": ((*POD, 2), 2),
    "status": ((*POD, 3), 2),
    "name": ((*POD, 1, 1), 2),
    "generation": ((*POD, 1, 7), 0),
    "creationTimestamp": ((*POD, 1, 8), 2),
    "seconds": ((*POD, 1, 8, 1), 0),
    "labels": ((*POD, 1, 11), 2),
    "the key of a label": ((*POD, 1, 11, 1), 2),
    "the value of a label": ((*POD, 1, 11, 2), 2),
    "ownerReferences": ((*POD, 1, 13), 2),
    "controller": ((*POD, 1, 13, 6), 0),
    "managedFields": ((*POD, 1, 17), 2),
    "manager": ((*POD, 1, 17, 1), 2),
    "containers": ((*POD, 2, 2), 2),
    "resources": ((*POD, 2, 2, 8), 2),
    "nodeName": ((*POD, 2, 10), 2),
    "hostNetwork": ((*POD, 2, 11), 0),
    "affinity": ((*POD, 2, 18), 2),
    "tolerations": ((*POD, 2, 22), 2),
    "topologySpreadConstraints": ((*POD, 2, 33), 2),
    "maxSkew": ((*POD, 2, 33, 1), 0),
    "matchLabelKeys": ((*POD, 2, 33, 8), 2),
    "phase": ((*POD, 3, 1), 2),
}


@pytest.mark.parametrize(
    ("place", "wire"),
    [(place, wire) for place, (_, right) in PLACES.items() for wire in OF_ANOTHER_WIRE if wire != right],
)
@pytest.mark.parametrize("pods", [1, 40], ids=["one pod", "many pods"])
def test_a_field_with_a_wrong_wire_type_is_refused(place: str, wire: int, pods: int) -> None:
    """Parsers of protobuf skip such a field like an unknown one, and the pod would have no constraints."""
    path, _ = PLACES[place]
    wrong = [Field(path[-1], field.wire, field.value) for field in OF_ANOTHER_WIRE[wire]]
    right = [inside(FIELDS, POD)] * (pods - 1)
    # The pod with the wrong field is the last.
    fields = changed(FIELDS, path, *wrong)
    if path[: len(POD)] == POD:
        fields = changed(fields, POD, *right, inside(fields, POD))
    assert refused(MAGIC + encode(fields))


def test_unknown_fields_are_ignored() -> None:
    """A newer API server sends fields that are not declared, in any wire type."""
    for added in OF_ANOTHER_WIRE.values():
        for path in ((2,), (2, 1), POD, (*POD, 1), (*POD, 2), (*POD, 2, 33), (*POD, 1, 11)):
            extended = FIELDS
            for number in (500, 501):
                value = inside(extended, path).value
                assert isinstance(value, list)
                more = [Field(number, field.wire, field.value) for field in added]
                extended = changed(extended, path, Field(path[-1], 2, [*value, *more]))
            assert not refused(MAGIC + encode(extended))


@pytest.mark.parametrize(
    ("encoded", "max_skew"),
    [
        pytest.param(varint(2**32 + 3), 3, id="beyond 32 bits"),
        pytest.param(varint(2**31), -(2**31), id="beyond the greatest"),
        pytest.param(varint(2**64 - 1), -1, id="all bits"),
        pytest.param(b"\x83" + b"\x80" * 8 + b"\x00", 3, id="longer than it has to be"),
        pytest.param(b"\xff" * 9 + b"\x7f", -1, id="bits beyond 64"),
        pytest.param(b"\x80" * 10 + b"\x01", None, id="eleven bytes"),
    ],
)
def test_integers_of_32_bits_wrap_as_in_the_api_server(encoded: bytes, max_skew: int | None) -> None:
    """Source: kubernetes v1.37.1 k8s.io/api/core/v1/generated.pb.go, TopologySpreadConstraint.Unmarshal."""
    constraint = Field(33, 2, b"\x08" + encoded)
    pod = encode([Field(1, 2, encode([Field(1, 2, b"p")])), Field(2, 2, encode([constraint]))])
    body = MAGIC + encode([Field(2, 2, pod)])
    if max_skew is None:
        with pytest.raises(ValueError, match="malformed"):
            DECODER.decode_response(body)
    else:
        assert DECODER.decode_response(body).spec.topology_spread_constraints[0].max_skew == max_skew
