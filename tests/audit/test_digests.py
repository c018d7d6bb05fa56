"""Digests are equal for equal values, in any series of values."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubectl_spread.audit.snapshot.records import Digests, digest

VALUES = st.lists(st.dictionaries(st.sampled_from("ab"), st.sampled_from(["x", "y", ""])), max_size=8)


@given(VALUES)
def test_the_digest_of_a_value_does_not_depend_on_the_value_before_it(values: list[dict[str, str]]) -> None:
    digests = Digests()
    assert [digests.of(value) for value in values] == [digest(value) for value in values]


def test_mappings_have_equal_digests_in_any_order() -> None:
    assert digest({"a": "x", "b": "y"}) == digest({"b": "y", "a": "x"})


def test_different_values_have_different_digests() -> None:
    values = [None, {}, {"a": ""}, {"a": "x"}, {"b": "x"}, ("a", "x"), ("ax",), "", 0, False]
    assert len({digest(value) for value in values}) == len(values)
