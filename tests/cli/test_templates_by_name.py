"""Templates in the scope of a name: that of their workload or of one of its owners."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.audits import deployment
from tests.builders import Json, constraint
from tests.cli.test_check import JUDGED, check, report, run

REFUSED = constraint(match=["app"])
"""A constraint with its key in the selector too: the API accepts the template and refuses its pods."""
ROLLOUT = deployment("web-1", kind="ReplicaSet", owner="Rollout/web", constraints=[REFUSED])
OWNER = deployment("web", constraints=[REFUSED])
OWNED = deployment("web-1", kind="ReplicaSet", owner="Deployment/web", constraints=[REFUSED])
SCALED_DOWN = {**OWNED, "spec": {**OWNED["spec"], "replicas": 0}}
HEALTHY = deployment("web-1", kind="ReplicaSet", owner="Deployment/web", constraints=[constraint()])
QUIET: Json = {**ROLLOUT["metadata"], "annotations": {"kubectl-spread/ignore": "SPR202"}}


def findings(*objects: Json, arguments: tuple[str, ...]) -> list[tuple[str, str]]:
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
def test_a_template_is_found_by_its_name_and_those_of_its_owners(
    objects: list[Json], argument: str, expected: list[Any]
) -> None:
    assert findings(*objects, arguments=(argument,)) == expected
    outcome = check(*objects, arguments=(argument, "-o", "name"))
    assert (outcome.exit_code, outcome.stderr) == (1 if expected else 0, JUDGED)


@pytest.mark.parametrize("objects", [[ROLLOUT], [OWNED]])
def test_explain_says_why_there_are_no_pods(objects: list[Json]) -> None:
    text = "\n".join(json.dumps(manifest) for manifest in objects)
    outcome = run("explain", "rs/web-1", "-f", "-", "-o", "json", stdin=text)
    assert outcome.exit_code == 0
    assert [finding["code"] for finding in json.loads(outcome.stdout)["findings"]] == ["SPR202"]


def test_a_revision_that_is_scaled_to_0_has_no_findings() -> None:
    outcome = check(OWNER, SCALED_DOWN, arguments=("rs/web-1",))
    assert (outcome.exit_code, outcome.stdout) == (0, "")
    assert outcome.stderr.endswith("No resources found\n")


def test_a_scaled_down_custom_owner_exists() -> None:
    scaled_down = {**ROLLOUT, "spec": {**ROLLOUT["spec"], "replicas": 0}}
    outcome = check(scaled_down, arguments=("rollout/web",))
    assert (outcome.exit_code, outcome.stderr) == (0, "No resources found\n")
    assert check(scaled_down, arguments=("rollout/other",)).exit_code == 2


def test_an_owner_that_is_not_named_adds_no_templates() -> None:
    workload = deployment("other", constraints=[REFUSED])
    assert findings(ROLLOUT, workload, arguments=("rollout/web",)) == [("SPR202", "Rollout")]


def test_the_annotation_on_an_owner_of_the_template_counts() -> None:
    quiet = deployment("web", annotations={"kubectl-spread/ignore": "SPR202"})
    assert findings(quiet, OWNED, arguments=("rs/web-1",)) == []
    assert findings({**ROLLOUT, "metadata": QUIET}, arguments=("rollout/web",)) == []
