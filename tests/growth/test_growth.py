"""The cost of checks and simulations grows with their input, and not with its square: ``benchmarks.growth``.

Only ratios of processor time and memory are compared, so that the speed of the machine does not matter.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from benchmarks import growth
from benchmarks.sidebyside import Run

pytestmark = pytest.mark.growth

_MOST: Final = 1.3
_MOST_OF_SIMULATIONS: Final = 1.13
"""An exponent with which twice the size costs less than 2.2 times as much."""
_TRIES: Final = (1, 3, 5)


@pytest.fixture(scope="module")
def least(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """What a check of one pod takes."""
    return growth.least_run(tmp_path_factory.mktemp("least"), 3)


@pytest.mark.parametrize("shape", growth.SHAPES)
def test_cost_grows_with_the_input(shape: str, least: Run, tmp_path: Path) -> None:
    exponents = []
    most = _MOST if growth.SHAPES[shape].command == "check" else _MOST_OF_SIMULATIONS
    for tries in _TRIES:
        measured = growth.measure(growth.SHAPES[shape], tmp_path, tries, least)
        exponents.append((measured.processor, measured.memory))
        if max(exponents[-1]) < most:
            return
    assert max(min(of_try) for of_try in zip(*exponents, strict=True)) < most, exponents
