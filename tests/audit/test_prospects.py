"""What the terms of a template without pods will be, and what the API says to them."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_spread.kube.features import Gate
from tests.audits import audit, deployment, explained
from tests.builders import Json, affinity, constraint, pod_json, term

HASH = "pod-template-hash"
WEB = {"matchLabels": {"app": "web"}}
PATH = "spec.template.spec.topologySpreadConstraints[0]"


def requirement(key: str, value: str, operator: str = "In") -> Json:
    return {"key": key, "operator": operator, "values": [value]}


def merged(*requirements: Json) -> Json:
    return {**WEB, "matchExpressions": list(requirements)}


def templates(*objects: Json, **options: Any) -> list[Any]:
    actual_templates: list[Any] = explained(audit(*objects, **options))["templates"]
    return actual_templates


def test_the_value_that_a_controller_sets_is_not_known() -> None:
    (actual,) = templates(deployment(labels={"app": "web", "rev": "1"}, constraints=[constraint(match=["rev", HASH])]))
    assert actual == {
        "path": PATH,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "maxSkew": 1,
        "selector": {"authored": WEB, "merged": merged(requirement("rev", "1"), requirement(HASH, "<value>"))},
        "presumed": [HASH],
        "messages": [],
    }


@pytest.mark.parametrize(
    ("made", "refused", "message"),
    [
        pytest.param(constraint(match=["app"]), "pods", "exists in both matchLabelKeys", id="refuses the pods"),
        pytest.param(constraint(max_skew=0), "workload", "must be greater than zero", id="refuses the workload"),
    ],
)
def test_what_the_api_refuses(made: Json, refused: str, message: str) -> None:
    (actual,) = templates(deployment(constraints=[made]))
    assert actual["refused"] == refused
    assert message in "".join(actual["messages"])


def test_terms_that_carry_keys() -> None:
    anti = affinity("podAntiAffinity", term(mismatch=[HASH]), term())
    (actual,) = templates(deployment(affinity=anti))
    assert actual["path"].endswith("podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]")
    assert actual["selector"]["merged"] == merged(requirement(HASH, "<value>", "NotIn"))
    assert not {"whenUnsatisfiable", "maxSkew", "refused"} & set(actual)


def test_without_the_merge_nothing_is_presumed() -> None:
    gate = Gate.SELECTOR_MERGE
    (actual,) = templates(deployment(constraints=[constraint(match=[HASH])]), overrides={gate: False})
    assert (actual["selector"]["merged"], actual["presumed"]) == (WEB, [])


def test_a_workload_with_pods_is_told_by_its_pods() -> None:
    pod = pod_json("web-1", labels={"app": "web"}, constraints=[constraint()], owner="Deployment/web")
    assert templates(deployment(constraints=[constraint()]), pod) == []


def test_a_term_without_a_selector() -> None:
    made = {key: value for key, value in constraint(match=[HASH]).items() if key != "labelSelector"}
    (actual,) = templates(deployment(constraints=[made]))
    assert actual["presumed"] == []
    assert actual["selector"] == {"authored": None, "merged": None}
