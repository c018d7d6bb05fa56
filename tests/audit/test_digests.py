"""Digests are equal for equal values, whichever came before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubectl_spread.audit.snapshot.digests import Digests, digest

VALUES = st.lists(st.dictionaries(st.sampled_from("ab"), st.sampled_from(["x", "y", ""])), max_size=8)


@given(VALUES)
def test_the_last_value_makes_no_difference(values: list[dict[str, str]]) -> None:
    digests = Digests()
    assert [digests.of(value) for value in values] == [digest(value) for value in values]


def test_order_makes_no_difference() -> None:
    assert digest({"a": "x", "b": "y"}) == digest({"b": "y", "a": "x"})


def test_different_values_have_different_digests() -> None:
    values = [None, {}, {"a": ""}, {"a": "x"}, {"b": "x"}, ("a", "x"), ("ax",), "", 0, False]
    assert len({digest(value) for value in values}) == len(values)
