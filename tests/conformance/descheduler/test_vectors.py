"""kubectl_spread gives the recorded answers of the real descheduler; Go is not needed."""

from __future__ import annotations

import msgspec
import pytest

from tests.conformance.compare import differences
from tests.conformance.descheduler import ours
from tests.conformance.descheduler.edges import EDGES
from tests.conformance.descheduler.record import Vector, load

VECTORS = load()


@pytest.mark.parametrize("vector", [pytest.param(vector, id=vector.name) for vector in VECTORS])
def test_answers_are_those_of_the_real_descheduler(vector: Vector) -> None:
    answer = ours.answer(msgspec.json.encode(vector.question))
    assert not list(differences(vector.question, vector.answer, answer))


@pytest.mark.parametrize("name", EDGES)
def test_every_edge_case_is_recorded(name: str) -> None:
    assert {vector.name: vector.question for vector in VECTORS}[name] == EDGES[name]
