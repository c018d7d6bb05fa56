"""The list of mutants fits the code: each can be applied, and its tests exist."""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from tests.generated import ROOT
from tests.mutants.mutants import AREAS, MUTANTS, Mutant

FEWEST = 30
FEWEST_OF_AN_AREA = 2


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_changes_one_place_of_its_module(mutant: Mutant) -> None:
    text = (ROOT / mutant.file).read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1
    assert ast.dump(ast.parse(mutant.applied(text))) != ast.dump(ast.parse(text))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_tests_of_a_mutant_exist(mutant: Mutant) -> None:
    assert mutant.tests
    for test in mutant.tests:
        path, _, function = test.partition("::")
        text = (ROOT / path).read_text(encoding="utf-8")
        assert f"def {function or 'test_'}" in text


def test_each_area_of_the_core_has_mutants() -> None:
    numbers = Counter(mutant.area for mutant in MUTANTS)
    assert set(numbers) == set(AREAS)
    assert all(number >= FEWEST_OF_AN_AREA for number in numbers.values())
    assert numbers.total() >= FEWEST


def test_no_two_mutants_have_one_name() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
