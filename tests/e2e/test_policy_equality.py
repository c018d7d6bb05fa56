"""Policies on real API servers refuse what ``check -f`` finds, by the same codes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.conformance.policies.compare import compare
from tests.conformance.policies.servers import VERSIONS, Server, server
from tests.controlplane.fixtures import require_built

pytestmark = [pytest.mark.e2e, pytest.mark.long]

OBJECTS = range(670)
UPDATED = range(150)
PODS = range(300)
LEAST = 3
"""The least number of objects with each code."""
OF_UPDATES = {"SPR101", "SPR102"}


_NEWEST = max(VERSIONS)


def _servers() -> Iterator[ParameterSet]:
    """Yield each minor; CI has the newest."""
    for minor, version in VERSIONS.items():
        yield pytest.param(minor, id=version, marks=() if minor == _NEWEST else pytest.mark.nightly)


@pytest.fixture(scope="module", params=[*_servers()])
def guarded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, int]]:
    """Return an API server with policies, and its minor."""
    minor: int = request.param
    require_built(VERSIONS[minor], ("kube-apiserver",))
    directory: Path = tmp_path_factory.mktemp("guarded")
    with server(directory, minor) as started:
        yield started, minor


def test_objects_are_refused_by_the_codes_of_their_findings(guarded: tuple[Server, int]) -> None:
    started, minor = guarded
    tally = compare(started, minor, "objects", 1, OBJECTS)
    assert tally.disagreements == []
    assert {code: tally.hits[code] for code in started.carried - OF_UPDATES if tally.hits[code] < LEAST} == {}
    assert tally.compared > len(OBJECTS) * 0.85
    assert tally.clean > len(OBJECTS) * 0.25


def test_updates_are_refused_by_the_codes_of_the_findings_in_the_new_object(guarded: tuple[Server, int]) -> None:
    """Updates that change nothing that the rules read pass."""
    started, minor = guarded
    tally = compare(started, minor, "updates", 1, UPDATED)
    assert tally.disagreements == []
    assert tally.compared > len(UPDATED)
    assert tally.hits.total() > len(UPDATED) / 2


def test_changes_of_labels_are_refused_by_the_codes_of_new_findings(guarded: tuple[Server, int]) -> None:
    started, minor = guarded
    tally = compare(started, minor, "relabelling", 1, PODS)
    assert tally.disagreements == []
    assert {code: tally.hits[code] for code in OF_UPDATES if tally.hits[code] < LEAST} == {}
    assert tally.clean > len(PODS)
