"""The scanner of JSON accepts the same texts as msgspec, whole or in parts, and reports where a text is wrong."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_spread.sources.decode.json_grammar import Fault, Scanner

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
DAMAGE = ["", '"', "\\", "{", "}", "[", "]", ",", ":", "0", "-", ".", "e", "\x01", "\\u12", "\\ud800", "\\udc00", "tru"]


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Return values as JSON, some of them damaged at one place."""
    text = json.dumps(draw(VALUES), indent=draw(st.none() | st.just(2)), ensure_ascii=draw(st.booleans()))
    place = draw(st.integers(0, len(text)))
    return text[:place] + draw(st.sampled_from(DAMAGE)) + text[place + draw(st.integers(0, 1)) :]


def scanned(text: bytes, part: int) -> int | Fault:
    """Return the end of the first value of a text, to which ``part`` bytes are appended at a time."""
    scanner, body = Scanner(), bytearray()
    for start in range(0, len(text), part):
        body += text[start : start + part]
        end = scanner.reaches_end(body, 0, is_all=False)
        if end:
            return end if isinstance(end, Fault) else scanner.size
    end = scanner.reaches_end(body, 0, is_all=True)
    return end if isinstance(end, Fault) else scanner.size


def is_json(text: bytes) -> bool:
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except msgspec.DecodeError:
        return False
    return True


@given(texts(), st.integers(1, 50))
def test_a_value_ends_where_msgspec_says(text: str, part: int) -> None:
    body = text.encode(errors="surrogatepass")
    end = scanned(body, part)
    if isinstance(end, Fault):
        assert not is_json(body)
        assert 0 <= end.offset <= len(body)
    else:
        assert is_json(body[:end])
        assert is_json(body) == (not body[end:].strip(b" \t\r\n"))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"a": 1', Fault("input data was truncated", 7)),
        ('{"a": "b', Fault("input data was truncated", 8)),
        ("[tru", Fault("input data was truncated", 4)),
        ("[1,]", Fault("trailing comma in array", 3)),
        ('{"a": 1,}', Fault("trailing comma in object", 8)),
        ("{1: 2}", Fault("object keys must be strings", 1)),
        ('{"a" 1}', Fault("expected ':'", 5)),
        ('{"a": 1 "b"', Fault("expected ',' or '}'", 8)),
        ("[1 2]", Fault("expected ',' or ']'", 3)),
        ("[1}", Fault("expected ',' or ']'", 2)),
        ("[01]", Fault("invalid number", 1)),
        ('{"a": x}', Fault("invalid character", 6)),
        ('["a\nb"]', Fault("invalid character", 3)),
        ('["a\\qb, and so much more"]', Fault("invalid escaped character", 3)),
    ],
)
@pytest.mark.parametrize("part", [1, 1000])
def test_a_fault_has_a_problem_and_an_offset(text: str, fault: Fault, part: int) -> None:
    assert scanned(text.encode(), part) == fault


def test_the_end_of_a_value_is_the_beginning_of_the_next() -> None:
    assert scanned(b'{"a": [1, {}]} {"b"', 3) == len('{"a": [1, {}]}')
    assert scanned(b"12 3", 1) == 2
