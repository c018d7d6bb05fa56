"""The index of labelled values selects exactly the values that a selector matches."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import Labelled
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
