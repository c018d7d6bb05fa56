"""The preview of the terms of a template without pods, and the refusals of the API server."""

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


def test_a_label_that_a_controller_sets_has_a_presumed_value() -> None:
    (preview,) = templates(deployment(labels={"app": "web", "rev": "1"}, constraints=[constraint(match=["rev", HASH])]))
    assert preview == {
        "path": PATH,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "maxSkew": 1,
        "selector": {"authored": WEB, "merged": merged(requirement("rev", "1"), requirement(HASH, "<value>"))},
        "presumed": [HASH],
        "messages": [],
    }


@pytest.mark.parametrize(
    ("template_constraint", "refused", "message"),
    [
        pytest.param(constraint(match=["app"]), "pods", "exists in both matchLabelKeys", id="refuses the pods"),
        pytest.param(constraint(max_skew=0), "workload", "must be greater than zero", id="refuses the workload"),
    ],
)
def test_the_preview_of_a_template_has_the_refusal_of_the_api_server(
    template_constraint: Json, refused: str, message: str
) -> None:
    (preview,) = templates(deployment(constraints=[template_constraint]))
    assert preview["refused"] == refused
    assert message in "".join(preview["messages"])


def test_the_preview_of_an_affinity_term_has_its_merged_keys() -> None:
    anti = affinity("podAntiAffinity", term(mismatch=[HASH]), term())
    (preview,) = templates(deployment(affinity=anti))
    assert preview["path"].endswith("podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]")
    assert preview["selector"]["merged"] == merged(requirement(HASH, "<value>", "NotIn"))
    assert not {"whenUnsatisfiable", "maxSkew", "refused"} & set(preview)


def test_without_the_merge_no_label_is_presumed() -> None:
    gate = Gate.SELECTOR_MERGE
    (preview,) = templates(deployment(constraints=[constraint(match=[HASH])]), overrides={gate: False})
    assert (preview["selector"]["merged"], preview["presumed"]) == (WEB, [])


def test_a_workload_with_pods_has_no_template_preview() -> None:
    pod = pod_json("web-1", labels={"app": "web"}, constraints=[constraint()], owner="Deployment/web")
    assert templates(deployment(constraints=[constraint()]), pod) == []


def test_the_preview_of_a_term_without_selector_has_no_selector() -> None:
    without_selector = {key: value for key, value in constraint(match=[HASH]).items() if key != "labelSelector"}
    (preview,) = templates(deployment(constraints=[without_selector]))
    assert preview["presumed"] == []
    assert preview["selector"] == {"authored": None, "merged": None}
