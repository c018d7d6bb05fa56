"""Templates that are asked for by the name of their workload or of one of its owners."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.audits import deployment
from tests.builders import Json, constraint
from tests.cli.test_check import JUDGED, check, report, run

REFUSED = constraint(match=["app"])
"""Its key is in the selector too: the API takes the template, and none of its pods."""
ROLLOUT = deployment("web-1", kind="ReplicaSet", owner="Rollout/web", constraints=[REFUSED])
OWNER = deployment("web", constraints=[REFUSED])
OWNED = deployment("web-1", kind="ReplicaSet", owner="Deployment/web", constraints=[REFUSED])
SCALED_DOWN = {**OWNED, "spec": {**OWNED["spec"], "replicas": 0}}
HEALTHY = deployment("web-1", kind="ReplicaSet", owner="Deployment/web", constraints=[constraint()])
QUIET: Json = {**ROLLOUT["metadata"], "annotations": {"kubectl-spread/ignore": "SPR202"}}


def found(*objects: Json, arguments: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return the code and the kind of the object of every finding."""
    return [
        (finding["code"], finding["object"]["kind"]) for finding in report(*objects, arguments=arguments)["findings"]
    ]


@pytest.mark.parametrize(
    ("objects", "argument", "expected"),
    [
        pytest.param([ROLLOUT], "rollout/web", [("SPR202", "Rollout")], id="the owner of a kind of its own"),
        pytest.param([ROLLOUT], "rollouts.argoproj.io/web", [("SPR202", "Rollout")], id="with its group"),
        pytest.param([ROLLOUT], "rs/web-1", [("SPR202", "Rollout")], id="what it owns"),
        pytest.param([OWNER, OWNED], "deploy/web", [("SPR202", "Deployment")], id="a Deployment"),
        pytest.param([OWNER, OWNED], "rs/web-1", [("SPR202", "Deployment")], id="its ReplicaSet"),
        pytest.param([OWNER, OWNED], "rs", [("SPR202", "Deployment")], id="all ReplicaSets"),
        pytest.param([OWNED], "rs/web-1", [("SPR202", "Deployment")], id="a ReplicaSet whose owner was not read"),
        pytest.param([OWNER, OWNED], "deploy,rs", [("SPR202", "Deployment")], id="both tell it once"),
        pytest.param([OWNER, HEALTHY], "rs/web-1", [], id="another revision than that of the owner"),
    ],
)
def test_a_template_is_asked_for_by_every_name(objects: list[Json], argument: str, expected: list[Any]) -> None:
    assert found(*objects, arguments=(argument,)) == expected
    answer = check(*objects, arguments=(argument, "-o", "name"))
    assert (answer.exit_code, answer.stderr) == (1 if expected else 0, JUDGED)


@pytest.mark.parametrize("objects", [[ROLLOUT], [OWNED]])
def test_explain_tells_why_there_are_no_pods(objects: list[Json]) -> None:
    text = "\n".join(json.dumps(manifest) for manifest in objects)
    answer = run("explain", "rs/web-1", "-f", "-", "-o", "json", stdin=text)
    assert answer.exit_code == 0
    assert [finding["code"] for finding in json.loads(answer.stdout)["findings"]] == ["SPR202"]


def test_a_revision_that_wants_no_pods_has_nothing_to_tell() -> None:
    answer = check(OWNER, SCALED_DOWN, arguments=("rs/web-1",))
    assert (answer.exit_code, answer.stdout) == (0, "")
    assert answer.stderr.endswith("No resources found\n")


def test_an_owner_of_a_kind_of_its_own_that_is_scaled_down_exists() -> None:
    scaled_down = {**ROLLOUT, "spec": {**ROLLOUT["spec"], "replicas": 0}}
    answer = check(scaled_down, arguments=("rollout/web",))
    assert (answer.exit_code, answer.stderr) == (0, JUDGED + "No resources found\n")
    assert check(scaled_down, arguments=("rollout/other",)).exit_code == 2


def test_an_owner_that_is_not_named_brings_nothing() -> None:
    other = deployment("other", constraints=[REFUSED])
    assert found(ROLLOUT, other, arguments=("rollout/web",)) == [("SPR202", "Rollout")]


def test_the_annotation_on_an_owner_of_the_template_counts() -> None:
    quiet = deployment("web", annotations={"kubectl-spread/ignore": "SPR202"})
    assert found(quiet, OWNED, arguments=("rs/web-1",)) == []
    assert found({**ROLLOUT, "metadata": QUIET}, arguments=("rollout/web",)) == []
