"""Which change is recommended, and why others are not enough."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import HOSTNAME, Json
from tests.recommend.asked import NINE, SPREAD, changes, command, failing, host, recommended, spread
from tests.simulate.clusters import deployment

HONOR = "nodeTaintsPolicy: Honor in the constraint on zone"
HASH = "matchLabelKeys: [pod-template-hash] in the constraint on zone"
SURVIVED: list[str] = []


@pytest.mark.parametrize(
    ("constraints", "expected"),
    [
        pytest.param([], SURVIVED, id="none: the defaults of the scheduler"),
        pytest.param([host()], SURVIVED, id="host soft"),
        pytest.param([spread(hard=False), host()], SURVIVED, id="zone and host soft"),
        pytest.param([spread()], [HONOR, HASH], id="zone hard"),
        pytest.param([spread(hashed=True)], [HONOR], id="zone hard, hash"),
        pytest.param([spread(hashed=True, honor=True)], SURVIVED, id="zone hard, hash, Honor"),
        pytest.param([spread(hashed=True, honor=True), host(hashed=True)], SURVIVED, id="… and host soft"),
        pytest.param(
            [spread(hashed=True, minDomains=3)],
            [HONOR, "no minDomains in the constraint on zone"],
            id="zone hard, hash, minDomains 3",
        ),
        pytest.param(
            [spread(hashed=True, honor=True, minDomains=3)],
            ["no minDomains in the constraint on zone"],
            id="zone hard, hash, Honor, minDomains 3",
        ),
        pytest.param(
            [spread(), spread(HOSTNAME)],
            [HONOR, HASH],
            id="zone hard, host hard",
        ),
    ],
)
def test_the_ten_recipes_of_guides(constraints: list[Json], expected: list[str]) -> None:
    """Six replicas on nine nodes in three zones, with room everywhere."""
    report = recommended([*NINE, *deployment("web", SPREAD, topologySpreadConstraints=constraints)])
    assert changes(report) == expected
    assert failing(report, "patched") == []
    assert report["notReachable"] == []


def test_nothing_to_change_is_an_answer() -> None:
    cluster = [*NINE, *deployment("web", SPREAD)]
    answer = command(cluster, "deploy/web", "--runs", "1")
    assert answer.exit_code == 0
    assert "Nothing to change: it survives all of these events." in answer.stdout


def test_a_change_is_a_patch_that_tests_what_it_changes() -> None:
    cluster = [*NINE, *deployment("web", SPREAD, topologySpreadConstraints=[spread()])]
    report = recommended(cluster)
    assert command(cluster, "deploy/web", "--runs", "1").exit_code == 1
    path = "/spec/template/spec/topologySpreadConstraints/0"
    operations: list[Any] = report["change"]["patch"]["operations"]
    assert operations == [
        {"op": "test", "path": f"{path}/topologyKey", "value": "topology.kubernetes.io/zone"},
        {"op": "add", "path": f"{path}/nodeTaintsPolicy", "value": "Honor"},
        {"op": "add", "path": f"{path}/matchLabelKeys", "value": ["pod-template-hash"]},
    ]
    assert report["change"]["commands"][0].startswith("kubectl patch deploy/web -n shop --type=json -p ")
