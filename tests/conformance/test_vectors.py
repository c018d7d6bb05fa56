"""kubectl_spread gives the recorded answers of the real code; Go is not needed."""

from __future__ import annotations

import msgspec
import pytest

from tests.conformance import ours, vectors
from tests.conformance.compare import differences
from tests.conformance.edges import EDGES
from tests.conformance.settings import all_settings
from tests.conformance.vectors import Vector

VECTORS = vectors.load()
BEHAVIOURS = {str(setting): setting.behaviour for setting in all_settings()}


@pytest.mark.parametrize(
    "vector",
    [
        pytest.param(vector, id=f"{name}: {vector.name}")
        for name, vectors_of_minor in VECTORS.items()
        for vector in vectors_of_minor
    ],
)
def test_answers_are_those_of_the_real_code(vector: Vector) -> None:
    question = msgspec.json.encode(vector.question)
    for recorded in vector.answers:
        for setting in recorded.settings:
            answer = ours.answer(question, BEHAVIOURS[setting])
            assert not list(differences(vector.question, recorded.answer, answer)), setting


@pytest.mark.parametrize("name", EDGES)
def test_every_edge_case_is_recorded(name: str) -> None:
    assert {vector.name: vector.question for vector in VECTORS[name]} == EDGES[name]
