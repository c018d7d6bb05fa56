"""Texts that look like other types are read as texts, by readers of YAML 1.1 and of 1.2."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from kubectl_spread.render.yaml_text import dump

NUMBERS = ["1e3", "1.37", "012", "0o14", "0x1f", "1_000", "1:30", ".5", "+1", "-", "1e+3", ".inf", ".nan"]
OTHERS = [
    "no",
    "No",
    "y",
    "ON",
    "true",
    "null",
    "~",
    "",
    "2026-01-01",
    "2026-01-01T10:00:00Z",
    "=",
    "<<",
    "- a",
    "a: b",
    "#",
]


def as_1_2(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


@pytest.mark.parametrize("text", [*NUMBERS, *OTHERS])
def test_texts_that_look_like_other_types_are_quoted(text: str) -> None:
    """Readers parse numbers differently, so that loading the text with one of them would prove little."""
    assert dump({"name": text}) == f"name: '{text}'\n"


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"]))
    )
)
def test_texts_come_back(texts: dict[str, str]) -> None:
    text = dump(texts)
    assert text.isascii()
    assert yaml.safe_load(text) == texts


@given(st.lists(st.sampled_from([*NUMBERS, *OTHERS, "web", "a b", "\x1b[31m", "ö", "\u202e", "\n"])))
def test_texts_come_back_from_a_reader_of_1_2(texts: list[str]) -> None:
    assert as_1_2(dump(texts)) == texts


def test_repeated_values_have_no_anchors() -> None:
    twice = ["a"]
    assert dump({"one": twice, "other": twice}) == "one:\n- a\nother:\n- a\n"


def test_other_scalars_are_not_quoted() -> None:
    assert dump({"a": 1, "b": True, "c": None, "d": []}) == "a: 1\nb: true\nc: null\nd: []\n"
