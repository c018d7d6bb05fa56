"""Pages in protobuf that no API server sends are a SourceError, and no other error."""

from __future__ import annotations

import random
from typing import Any

import pytest
from google.protobuf.message import DecodeError as ProtobufError

from kubectl_spread.errors import SourceError
from kubectl_spread.kube.api.types import Pod
from kubectl_spread.sources.apiserver.responses import ListDecoder
from kubectl_spread.sources.apiserver.transport import Response
from kubectl_spread.sources.decode.protobuf.decoder import MAGIC, Decoder
from kubectl_spread.sources.decode.resources import PODS, SPARSE_PODS
from tests.fuzz import corpus
from tests.fuzz.wire import Field, encode, parse, varint

PAGE = corpus.pages()["pods"]
FIELDS = parse(PAGE[len(MAGIC) :]) or []


DECODER = Decoder(Pod)
LISTS: tuple[ListDecoder[Any], ...] = (ListDecoder(SPARSE_PODS), ListDecoder(PODS))


def refused(body: bytes) -> bool:
    """Read a page to its end, sparsely and in full; tell whether either way refuses it."""
    outcomes = [refuses(decoder, body) for decoder in LISTS]
    return any(outcomes)


def refuses(decoder: ListDecoder[Any], body: bytes) -> bool:
    """Read a page to its end; tell whether that ends with a SourceError."""
    try:
        for pod in decoder.page(Response(200, "application/vnd.kubernetes.protobuf", body)):
            assert pod.key
    except SourceError as error:
        return str(error).startswith("Server returned an unexpected response: ")
    return False


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


def inside(fields: list[Field], path: tuple[int, ...]) -> Field:
    """Return the first field at ``path``."""
    number, *below = path
    first = next(field for field in fields if field.number == number)
    if not below:
        return first
    assert isinstance(first.value, list)
    return inside(first.value, tuple(below))


def test_unknown_fields_are_ignored() -> None:
    """A newer API server sends fields that are not declared, in any wire type; a list has only metadata and items."""
    for added in OF_ANOTHER_WIRE.values():
        for path in ((2, 1), POD, (*POD, 1), (*POD, 2), (*POD, 2, 33), (*POD, 1, 11)):
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
        with pytest.raises(ProtobufError):
            DECODER.decode_response(body)
    else:
        assert DECODER.decode_response(body).spec.topology_spread_constraints[0].max_skew == max_skew
