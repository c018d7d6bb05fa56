"""Digests are equal for equal values, and differ for others."""

from __future__ import annotations

from kubectl_spread.audit.snapshot.records import digest


def test_mappings_have_equal_digests_in_any_order() -> None:
    assert digest({"a": "x", "b": "y"}) == digest({"b": "y", "a": "x"})


def test_different_values_have_different_digests() -> None:
    values = [None, {}, {"a": ""}, {"a": "x"}, {"b": "x"}, ("a", "x"), ("ax",), "", 0, False]
    assert len({digest(value) for value in values}) == len(values)
