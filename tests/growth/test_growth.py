"""The cost of a check grows with its input and not with its square, in each shape of ``benchmarks.growth``.

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
_TRIES: Final = (1, 3, 5)


@pytest.fixture(scope="module")
def least(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """What a check of one pod takes."""
    return growth.least_run(tmp_path_factory.mktemp("least"), 3)


@pytest.mark.parametrize("shape", growth.SHAPES)
def test_cost_grows_with_the_input(shape: str, least: Run, tmp_path: Path) -> None:
    exponents = []
    for tries in _TRIES:
        measured = growth.measure(growth.SHAPES[shape], tmp_path, tries, least)
        exponents.append((measured.processor, measured.memory))
        if max(exponents[-1]) < _MOST:
            return
    assert max(min(of_try) for of_try in zip(*exponents, strict=True)) < _MOST, exponents
