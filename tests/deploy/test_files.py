"""The files of ``deploy``, read without helm and kubectl."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft7Validator

from kubectl_spread import __version__
from release import image
from tests.deploy.objects import BASE, CHART, DEPLOY, KUSTOMIZE, VALUES, load
from tests.generated import ROOT
from tests.rbac import permissions_of

READS = {"get", "list", "watch"}


@pytest.fixture(scope="module")
def schema() -> Any:
    return json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def validator(schema: Any) -> Draft7Validator:
    Draft7Validator.check_schema(schema)
    return Draft7Validator(schema)


def test_chart_base_and_plugin_have_one_version() -> None:
    chart, base = load(CHART / "Chart.yaml"), load(BASE / "kustomization.yaml")
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)
    assert [tag["newTag"] for tag in base["images"]] == [__version__]
    assert [label["pairs"]["app.kubernetes.io/version"] for label in base["labels"]] == [__version__]


@pytest.mark.parametrize("path", [CHART / "values.yaml", *VALUES], ids=lambda path: path.name)
def test_values_are_valid_for_their_schema(validator: Draft7Validator, path: Any) -> None:
    assert [error.message for error in validator.iter_errors(load(path))] == []


def test_the_schema_has_the_values_of_the_chart_and_no_others(schema: Any) -> None:
    """Helm itself adds ``global``."""
    assert set(schema["properties"]) == {"global", *load(CHART / "values.yaml")}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        pytest.param({"replica": 2}, "'replica' was unexpected", id="a misspelt value"),
        pytest.param({"image": {"sha": "sha256:1"}}, "does not match", id="a digest with its algorithm"),
        pytest.param({"namespaces": "shop"}, "is not of type 'array'", id="namespaces as text"),
        pytest.param({"prometheus": {"monitor": {"http": {"interval": 30}}}}, "is not of type 'string'", id="seconds"),
    ],
)
def test_the_schema_refuses_what_the_chart_would_misread(validator: Draft7Validator, values: Any, message: str) -> None:
    (error,) = validator.iter_errors(values)
    assert message in error.message


def test_alerts_select_the_job_of_the_service_monitor() -> None:
    """The operator takes the job from a label of the Service, which has the labels of all objects of the base."""
    job_label = load(KUSTOMIZE / "service-monitor" / "service-monitor.yaml")["spec"]["jobLabel"]
    (labels,) = load(BASE / "kustomization.yaml")["labels"]
    selector = f"""monitorSelector: 'job="{labels["pairs"][job_label]}"'"""
    assert selector in (ROOT / "mixin" / "config.libsonnet").read_text(encoding="utf-8")


def test_the_chart_has_the_alerts_and_the_dashboard_of_the_mixin() -> None:
    """``make mixin`` copies them; they name the pages of this version."""
    for name in ("alerts.yaml", "dashboard.json"):
        text = (CHART / "files" / name).read_text(encoding="utf-8")
        assert text == (ROOT / "mixin" / "rendered" / name).read_text(encoding="utf-8")
        assert f"/blob/v{__version__}/docs/alerts.md" in text


def test_the_base_may_only_read() -> None:
    verbs = {permission.verb for permission in permissions_of([load(BASE / "cluster-role.yaml")])}
    assert verbs == READS


def test_the_image_runs_the_program_as_the_user_of_the_pod() -> None:
    lines = (DEPLOY / "Containerfile").read_text(encoding="utf-8").splitlines()
    pod = load(BASE / "deployment.yaml")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert f'ENTRYPOINT ["{image.PROGRAM}"]' in lines
    assert f"USER {image.USER}:{image.USER}" in lines
    assert f"CMD {json.dumps(container['args'])}" in lines
    assert pod["securityContext"]["runAsUser"] == pod["securityContext"]["runAsGroup"] == image.USER
