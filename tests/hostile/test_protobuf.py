"""Pages in protobuf that no apiserver sends: an error of the source, and never anything else."""

from __future__ import annotations

import random

import pytest

from kubectl_spread.errors import SourceError
from kubectl_spread.kube.model import Pod
from kubectl_spread.sources import answers
from kubectl_spread.sources.protobuf import MAGIC, Decoder
from kubectl_spread.sources.transport import Answer
from tests.fuzz import corpus
from tests.fuzz.wire import Field, encode, parse, varint

PAGE = corpus.pages()["pods"]
FIELDS = parse(PAGE[len(MAGIC) :]) or []


DECODER = Decoder(Pod)


def refused(body: bytes) -> bool:
    """Read a page to its end; tell whether it was refused as what it is, an error of the source."""
    try:
        list(answers.page(Answer(200, "application/vnd.kubernetes.protobuf", body), DECODER, Pod))
    except SourceError as error:
        return str(error).startswith("Server returned an unexpected response: ")
    return False


def test_the_page_is_read_as_it_is() -> None:
    assert not refused(PAGE)
    assert not refused(MAGIC + encode(FIELDS))


def test_a_page_that_ends_early_is_refused() -> None:
    """At any byte; behind the list stand only fields of its envelope."""
    behind = len(PAGE) - len(encode([field for field in FIELDS if field.number > 2]))
    assert all(refused(PAGE[:end]) for end in range(behind))


def test_a_byte_that_is_wrong_is_refused_or_harmless() -> None:
    chance = random.Random(1)
    for _ in range(2000):
        index = chance.randrange(len(MAGIC), len(PAGE))
        refused(PAGE[:index] + chance.randbytes(1) + PAGE[index + 1 :])


def test_bytes_by_chance_are_refused() -> None:
    chance = random.Random(1)
    assert all(refused(MAGIC + chance.randbytes(chance.randrange(200))) for _ in range(500))


@pytest.mark.parametrize("length", [2**31 - 1, 2**31, 2**32, 2**63, 2**64 - 1])
def test_a_length_beyond_the_end_is_refused(length: int) -> None:
    assert refused(MAGIC + b"\x12" + varint(length) + PAGE[len(MAGIC) :])


@pytest.mark.parametrize("wire", [0, 1, 3, 4, 5, 6, 7])
def test_another_wire_type_is_refused(wire: int) -> None:
    """Of the list; a group without its end, and types that there are not."""
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
