"""Values of JSON are text that every output can have."""

from __future__ import annotations

import pytest

from kubectl_spread.sources.decode.json_objects import values


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (rb'"\ud800"', "\ufffd"),
        (rb'"\udc00"', "\ufffd"),
        (b'"\xed\xa0\x80"', "\ufffd"),
        (rb'"\ud83d\ude00"', "\U0001f600"),
        (rb'"\\ud800"', "\\ud800"),
    ],
)
def test_half_of_a_surrogate_pair_is_replaced(text: bytes, value: str) -> None:
    assert values(text) == value
