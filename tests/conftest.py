"""Golden files hold the output of the program, and are reviewed as output."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# A test of a property fails by its result alone, however slow the machine is.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

Golden = Callable[[Path, str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--update-golden``."""
    parser.addoption("--update-golden", action="store_true", help="Write golden files instead of comparing them.")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Return a function that compares a text with the golden file of a path, or writes that file."""

    def compare(path: Path, text: str) -> None:
        if request.config.getoption("--update-golden"):
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path.name} is missing: run pytest --update-golden and review it"
        assert text == path.read_text(encoding="utf-8")

    return compare
