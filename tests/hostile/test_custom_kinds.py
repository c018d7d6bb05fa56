"""Objects of kinds that Kubernetes does not define, which may have any shape."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.builders import Json, constraint
from tests.hostile.commands import refusal, run


def fleet(spec: Any) -> str:
    return json.dumps({"apiVersion": "example.com/v1", "kind": "Fleet", "metadata": {"name": "a"}, "spec": spec})


def template(**spec: Any) -> Json:
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "a"}], **spec}}


def nested(levels: int) -> Any:
    value: Any = {"template": template()}
    for _ in range(levels):
        value = {"a": value}
    return value


def test_an_object_that_is_deeper_than_python_can_follow_is_refused() -> None:
    text = fleet({"containers": 0}).replace(": 0}", ": " + "[" * 100_000 + "]" * 100_000 + "}")
    assert refusal(text).endswith("nested too deeply")


def test_a_template_at_any_depth_is_read() -> None:
    assert run(fleet(nested(700))).exit_code == 0


CONTAINERS: list[Any] = [
    *(None, 1, "a", {}, {"name": "a"}),
    *([], [None], ["a"], [[]], [{}], [{"name": 1}], [{"name": "a"}, 1]),
]


@pytest.mark.parametrize("containers", CONTAINERS, ids=json.dumps)
def test_containers_of_another_form_are_no_template(containers: Any) -> None:
    outcome = run(fleet({"template": {"spec": {"containers": containers}}}))
    assert outcome.exit_code == 0
    assert outcome.stderr.endswith("no pods or pod templates in 1 file (1 object of another kind)\n")


@pytest.mark.parametrize(
    "constraints",
    [None, 1, "a", {}, [], [1], [{}], {"topologyKey": "a"}],
    ids=json.dumps,
)
def test_constraints_of_another_form_are_not_read(constraints: Any) -> None:
    outcome = run(fleet({"topologySpreadConstraints": constraints}))
    assert outcome.exit_code == 0
    assert outcome.stderr.endswith("no pods or pod templates in 1 file (1 object of another kind)\n")


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        ({"initContainers": 5}, 0),
        ({"ephemeralContainers": 5}, 0),
        ({"ephemeralContainers": [5, {"affinity": 1}]}, 1),
        ({"nodeSelector": {"a": 1}}, 0),
        ({"topologySpreadConstraints": 5}, 2),
        ({"affinity": []}, 2),
        ({"topologySpreadConstraints": [{"maxSkew": 1e400}]}, 2),
        ({"topologySpreadConstraints": [{"labelSelector": {"matchLabels": {"a": 1}}}]}, 2),
    ],
    ids=str,
)
def test_values_of_other_types_matter_where_they_are_evaluated(spec: Json, status: int) -> None:
    text = fleet({"template": template(**spec)}).replace("Infinity", "1e400")
    outcome = run(text)
    assert outcome.exit_code == status, outcome.output
    assert "Traceback" not in outcome.output


def test_keys_with_control_characters_are_escaped() -> None:
    pods = {"a\x1b[31m\n": {"pods": template(topologySpreadConstraints=[constraint(max_skew=0)])}}
    outcome = run(fleet(pods))
    assert outcome.exit_code == 1
    assert "\x1b" not in outcome.output


def test_a_manifest_with_other_types_where_pods_have_containers() -> None:
    """The field is not read, and a list of it is searched for misplaced fields."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"ephemeralContainers": 5}}
    assert run(json.dumps(pod)).exit_code == 0
