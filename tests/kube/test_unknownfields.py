"""Fields about spread and affinity that the API does not have, and the fields that their authors intended."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubectl_spread.kube.api.field import POD_SPEC, FieldPath
from kubectl_spread.kube.api.unknownfields import unknown_fields

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
TEMPLATE = FieldPath.parse("spec.template.spec")
SPREAD = "topologySpreadConstraints"


def of_pod(spec: dict[str, Any]) -> list[tuple[str, str]]:
    fields = unknown_fields({"metadata": {"name": "p"}, "spec": spec}, POD_SPEC)
    return [(str(field.path), str(field.intended)) for field in fields]


def constraint(**fields: Any) -> dict[str, Any]:
    return {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **fields}


@pytest.mark.parametrize(
    ("fields", "key", "intended"),
    [
        pytest.param({"matchLabelkeys": []}, "matchLabelkeys", "matchLabelKeys", id="case"),
        pytest.param({"maxskew": 1}, "maxskew", "maxSkew", id="case of maxSkew"),
        pytest.param({"whenUnsatisfied": ""}, "whenUnsatisfied", "whenUnsatisfiable", id="another form"),
        pytest.param({"minDomain": 1}, "minDomain", "minDomains", id="singular"),
        pytest.param({"nodeTaintPolicy": ""}, "nodeTaintPolicy", "nodeTaintsPolicy", id="a policy"),
        pytest.param({"matchLabels": {}}, "matchLabels", "labelSelector.matchLabels", id="one level too high"),
        pytest.param({"namespaces": []}, "namespaces", "", id="a field without a similar one"),
        pytest.param({"mismatchLabelKeys": []}, "mismatchLabelKeys", "", id="a field of affinity terms only"),
    ],
)
def test_an_unknown_field_of_a_constraint(fields: dict[str, Any], key: str, intended: str) -> None:
    path = f"spec.{SPREAD}[1]"
    expected = (f"{path}.{key}", f"{path}.{intended}" if intended else "")
    assert of_pod({SPREAD: [constraint(), constraint(**fields)]}) == [expected]


@pytest.mark.parametrize(
    ("selector", "path", "intended"),
    [
        pytest.param({"matchlabels": {}}, "labelSelector.matchlabels", "labelSelector.matchLabels", id="case"),
        pytest.param({"maxSkew": 1}, "labelSelector.maxSkew", "maxSkew", id="one level too deep"),
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "In", "value": ["b"]}]},
            "labelSelector.matchExpressions[0].value",
            "labelSelector.matchExpressions[0].values",
            id="in a requirement",
        ),
    ],
)
def test_an_unknown_field_of_a_selector(selector: dict[str, Any], path: str, intended: str) -> None:
    root = f"spec.{SPREAD}[0]"
    assert of_pod({SPREAD: [constraint(labelSelector=selector)]}) == [(f"{root}.{path}", f"{root}.{intended}")]


@pytest.mark.parametrize(
    ("affinity", "path", "intended"),
    [
        pytest.param({"podAntiAfinity": {}}, "podAntiAfinity", "podAntiAffinity", id="misspelt"),
        pytest.param({SPREAD: []}, SPREAD, f"../{SPREAD}", id="constraints one level too deep"),
        pytest.param(
            {"podAffinity": {"requiredDuringScheduling": []}},
            "podAffinity.requiredDuringScheduling",
            f"podAffinity.{REQUIRED}",
            id="a list that is cut short",
        ),
        pytest.param(
            {"podAffinity": {REQUIRED: [{"topologykey": "zone"}]}},
            f"podAffinity.{REQUIRED}[0].topologykey",
            f"podAffinity.{REQUIRED}[0].topologyKey",
            id="in a required term",
        ),
        pytest.param(
            {"podAntiAffinity": {PREFERRED: [{"weight": 1, "topologyKey": "zone"}]}},
            f"podAntiAffinity.{PREFERRED}[0].topologyKey",
            f"podAntiAffinity.{PREFERRED}[0].podAffinityTerm.topologyKey",
            id="a preferred term without podAffinityTerm",
        ),
        pytest.param(
            {"podAntiAffinity": {PREFERRED: [{"podAffinityTerm": {"weight": 1}}]}},
            f"podAntiAffinity.{PREFERRED}[0].podAffinityTerm.weight",
            f"podAntiAffinity.{PREFERRED}[0].weight",
            id="a weight inside the term",
        ),
    ],
)
def test_an_unknown_field_of_affinity(affinity: dict[str, Any], path: str, intended: str) -> None:
    intended_path = (
        f"spec.{intended.removeprefix('../')}" if intended.startswith("../") else f"spec.affinity.{intended}"
    )
    assert of_pod({"affinity": affinity}) == [(f"spec.affinity.{path}", intended_path)]


@pytest.mark.parametrize(
    ("manifest", "path", "intended"),
    [
        pytest.param({"spec": {SPREAD: []}}, f"spec.{SPREAD}", SPREAD, id="spec of the workload"),
        pytest.param({"spec": {"template": {SPREAD: []}}}, f"spec.template.{SPREAD}", SPREAD, id="template"),
        pytest.param({SPREAD: []}, SPREAD, SPREAD, id="top level"),
        pytest.param({"metadata": {SPREAD: []}}, f"metadata.{SPREAD}", SPREAD, id="metadata"),
        pytest.param(
            {"spec": {"template": {"metadata": {SPREAD: []}}}},
            f"spec.template.metadata.{SPREAD}",
            SPREAD,
            id="metadata of the template",
        ),
        pytest.param({"spec": {"affinity": {}}}, "spec.affinity", "affinity", id="affinity"),
        pytest.param(
            {"spec": {"template": {"spec": {"topologySpreadConstraint": []}}}},
            f"{TEMPLATE}.topologySpreadConstraint",
            SPREAD,
            id="singular",
        ),
        pytest.param(
            {"spec": {"template": {"spec": {"topologyspreadconstraints": []}}}},
            f"{TEMPLATE}.topologyspreadconstraints",
            SPREAD,
            id="case",
        ),
        pytest.param(
            {"spec": {"template": {"spec": {"podAntiAffinity": {}}}}},
            f"{TEMPLATE}.podAntiAffinity",
            "affinity.podAntiAffinity",
            id="pod anti-affinity without affinity",
        ),
        pytest.param(
            {"spec": {"template": {"spec": {"nodeAffinity": {}}}}},
            f"{TEMPLATE}.nodeAffinity",
            "affinity.nodeAffinity",
            id="node affinity without affinity",
        ),
        pytest.param(
            {"spec": {"template": {"spec": {"containers": [{}, {SPREAD: []}]}}}},
            f"{TEMPLATE}.containers[1].{SPREAD}",
            SPREAD,
            id="in a container",
        ),
    ],
)
def test_a_field_of_the_pod_spec_in_another_place(manifest: dict[str, Any], path: str, intended: str) -> None:
    assert unknown_fields(manifest, TEMPLATE) == ((FieldPath.parse(path), FieldPath.parse(f"{TEMPLATE}.{intended}")),)


@pytest.mark.parametrize("name", [SPREAD, "affinity", "podAffinity", "podAntiAffinity"])
@pytest.mark.parametrize(
    ("manifest", "path"),
    [
        pytest.param({"spec": {"templat": {"spec": "HERE"}}}, "spec.templat.spec", id="misspelt template"),
        pytest.param({"spec": {"template": {"specs": "HERE"}}}, "spec.template.specs", id="misspelt pod spec"),
        pytest.param({"spce": {"template": {"spec": "HERE"}}}, "spce.template.spec", id="misspelt spec"),
        pytest.param(
            {"spec": {"jobTemplate": {"spec": {"template": {"spec": "HERE"}}}}},
            "spec.jobTemplate.spec.template.spec",
            id="template of another kind",
        ),
        pytest.param(
            {"spec": {"template": {"spec": {"securityContext": "HERE"}}}}, f"{TEMPLATE}.securityContext", id="deeper"
        ),
        pytest.param(
            {"spec": {"template": {"spec": {"nonsense": [1, "HERE"]}}}}, f"{TEMPLATE}.nonsense[1]", id="in a list"
        ),
    ],
)
def test_a_field_of_the_pod_spec_below_an_unknown_field(manifest: dict[str, Any], path: str, name: str) -> None:
    value: Any = [constraint()] if name == SPREAD else {"podAffinity": {}}
    placed = json.loads(json.dumps(manifest).replace('"HERE"', json.dumps({name: value})))
    [field] = unknown_fields(placed, TEMPLATE)
    assert str(field.path) == f"{path}.{name}"
    assert str(field.intended) in (f"{TEMPLATE}.{name}", f"{TEMPLATE}.affinity.{name}")


def test_a_misplaced_field_is_reported_once() -> None:
    manifest = {"spec": {SPREAD: [constraint()], "template": {"spec": {"containers": [{SPREAD: [constraint()]}]}}}}
    paths = [str(field.path) for field in unknown_fields(manifest, TEMPLATE)]
    assert paths == [f"spec.{SPREAD}", f"{TEMPLATE}.containers[0].{SPREAD}"]


def test_known_fields_and_other_unknown_fields_are_not_reported() -> None:
    spec: dict[str, Any] = {
        SPREAD: [constraint(labelSelector={"matchLabels": {"affinity": "x", SPREAD: "y"}})],
        "affinity": {"nodeAffinity": {"nonsense": 1}, "podAffinity": {REQUIRED: [{"topologyKey": "zone"}]}},
        "nodeSelector": {"affinity": "x"},
        "nonsense": {SPREAD: []},
        "containers": None,
    }
    assert of_pod(spec) == []
    assert of_pod({SPREAD: None, "affinity": None}) == []
    assert unknown_fields({"metadata": None, "spec": None}, TEMPLATE) == ()
    assert unknown_fields({"metadata": {"labels": {SPREAD: "x"}}}, TEMPLATE) == ()


def test_managed_fields_are_not_misspelt_fields() -> None:
    """They have the names of all fields that a manager owns, each after ``f:``."""
    owned: dict[str, Any] = {
        "f:spec": {"f:template": {"f:spec": {f"f:{SPREAD}": {"k:{}": {}}, "f:affinity": {"f:podAffinity": {}}}}}
    }
    manifest = {"metadata": {"managedFields": [{"fieldsV1": owned}]}, "spec": {"template": {"spec": {}}}}
    assert unknown_fields(manifest, TEMPLATE) == ()
