"""A search may take as long as the first runs of all events; without time for all changes it never says: none helps."""

from __future__ import annotations

import time
from itertools import chain, count

import pytest

from tests.recommend.asked import NINE, SPREAD, command, spread
from tests.simulate.clusters import deployment

_WEB = [*NINE, *deployment("web", SPREAD, topologySpreadConstraints=[spread()])]


@pytest.mark.parametrize(
    ("first", "sentence"),
    [
        (1, "No change that helps was found in time (0 changes tried)."),
        (100, "The smallest change that reaches this: nodeTaintsPolicy: Honor in the constraint on zone;"),
    ],
)
def test_changes_are_tried_as_long_as_the_first_runs_took(
    first: int, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One second passes between two looks at the clock, and ``first`` seconds in the first runs."""
    seconds = chain([0], count(first))
    monkeypatch.setattr(time, "process_time", lambda: float(next(seconds)))
    answer = command(_WEB, "deploy/web", "--runs", "1", "--seconds", "0")
    assert sentence in answer.stdout
    assert "Not reachable with this cluster" not in answer.stdout
    assert ("Not reached so far: lose any zone: 2 pods would wait" in answer.stdout) is (first == 1)
    assert answer.exit_code == 1
