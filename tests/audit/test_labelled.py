"""The indices of labelled values, and of values that select labels, find exactly those that match."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import ANYWHERE, Labelled, Selecting
from kubectl_spread.kube.api.types import LabelSelector, LabelSelectorRequirement

KEYS = st.sampled_from(["a", "b", "c"])
VALUES = st.sampled_from(["1", "2", "3"])
LABELS = st.dictionaries(KEYS, VALUES)
REQUIREMENTS = st.builds(
    LabelSelectorRequirement,
    key=KEYS,
    operator=st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Is"]),
    values=st.lists(VALUES, max_size=3).map(tuple),
)
SELECTORS = st.builds(
    LabelSelector, match_labels=LABELS, match_expressions=st.lists(REQUIREMENTS, max_size=3).map(tuple)
)


def labelled(all_labels: list[dict[str, str]]) -> Labelled[int]:
    things = Labelled[int]()
    for number, labels in enumerate(all_labels):
        things.add(labels, number)
    return things


@given(st.lists(LABELS, max_size=9), SELECTORS)
def test_exactly_the_values_whose_labels_match_are_selected(
    all_labels: list[dict[str, str]], some: LabelSelector
) -> None:
    expected = [number for number, labels in enumerate(all_labels) if labelselectors.matches(some, labels)]
    assert [number for _, number in labelled(all_labels).selected(some)] == expected


def test_values_may_be_added_after_a_selection() -> None:
    things = labelled([{"a": "1"}])
    every = LabelSelector()
    assert len(list(things.selected(every))) == 1
    things.add({}, 1)
    assert [number for _, number in things.selected(every)] == [0, 1]


@given(st.lists(st.tuples(st.sampled_from(["", "shop", "web"]), SELECTORS), max_size=9), LABELS)
def test_values_are_found_by_the_labels_that_they_select(
    selectors: list[tuple[str, LabelSelector]], labels: dict[str, str]
) -> None:
    index = Selecting[int]()
    for number, (namespace, selector) in enumerate(selectors):
        index.add(namespace, selector, number)
    matching = {number for number, (_, selector) in enumerate(selectors) if labelselectors.matches(selector, labels)}
    expected = {number for number in matching if selectors[number][0] in (ANYWHERE, "shop")}
    assert matching.intersection(index.that_may_select("shop", labels)) == expected


def test_what_selects_nothing_is_not_found() -> None:
    index = Selecting[int]()
    index.add("shop", None, 1)
    assert not [*index.that_may_select("shop", {"a": "1"})]
