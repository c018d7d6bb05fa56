"""The texts of label selectors and field selectors."""

from __future__ import annotations

import pytest

from kubectl_spread.kube.api import labels
from kubectl_spread.kube.api.labels import describe_requirement


@pytest.mark.parametrize(
    ("text", "requirements"),
    [
        pytest.param("", [], id="the empty text has no requirements"),
        pytest.param("app=web", ["app In [web]"], id="equal"),
        pytest.param("app==web", ["app In [web]"], id="equal, written twice"),
        pytest.param("app!=web", ["app NotIn [web]"], id="not equal is NotIn"),
        pytest.param("app=", ['app In [""]'], id='no value is ""'),
        pytest.param("app", ["app Exists"], id="a key alone must exist"),
        pytest.param("!app", ["app DoesNotExist"], id="a key with ! must not exist"),
        pytest.param("app in (a, b)", ["app In [a, b]"], id="in a set"),
        pytest.param("app in(a)", ["app In [a]"], id="in, without a space"),
        pytest.param("app notin (a,b)", ["app NotIn [a, b]"], id="not in a set"),
        pytest.param("app in ()", ['app In [""]'], id='the empty set has the value ""'),
        pytest.param("app in (a,)", ['app In [a, ""]'], id='an empty member is ""'),
        pytest.param(
            " a = b , c.io/d != e,!f ,g in (h)",
            ["a In [b]", "c.io/d NotIn [e]", "f DoesNotExist", "g In [h]"],
            id="spaces are ignored",
        ),
        pytest.param("notin notin (in)", ["notin NotIn [in]"], id="words of the grammar may be keys and values"),
    ],
)
def test_a_label_selector_is_parsed_as_by_kubectl(text: str, requirements: list[str]) -> None:
    assert [describe_requirement(requirement) for requirement in labels.parse_labels(text)] == requirements


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("=web", id="no key"),
        pytest.param("app=web,", id="comma at the end"),
        pytest.param(",app=web", id="comma at the start"),
        pytest.param("a,,b", id="nothing between commas"),
        pytest.param("app=web rev=r1", id="no comma"),
        pytest.param("app in (a", id="open set"),
        pytest.param("app in a", id="set without brackets"),
        pytest.param("appin (a)", id="no space before in"),
        pytest.param("!app=web", id="two negations of different kinds"),
        pytest.param("a!b", id="! inside"),
        pytest.param("app=(web)", id="brackets in a value"),
        pytest.param("!", id="! alone"),
    ],
)
def test_a_text_that_is_not_a_label_selector_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="unable to parse"):
        labels.parse_labels(text)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        pytest.param("", (), id="the empty text has no requirements"),
        pytest.param("status.phase=Running", (("status.phase", "Running", True),), id="equal"),
        pytest.param("status.phase==Running", (("status.phase", "Running", True),), id="equal, written twice"),
        pytest.param("spec.nodeName!=", (("spec.nodeName", "", False),), id="not empty"),
        pytest.param("a=b,c!=d", (("a", "b", True), ("c", "d", False)), id="several"),
        pytest.param("a=b,", (("a", "b", True),), id="a comma at the end is ignored, as fields.ParseSelector does"),
    ],
)
def test_a_field_selector_is_parsed_as_by_kubectl(text: str, values: tuple[tuple[str, str, bool], ...]) -> None:
    assert labels.parse_fields(text) == values


@pytest.mark.parametrize("text", ["a", "=b", "a=b=c", "a>b"])
def test_a_text_that_is_not_a_field_selector_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="invalid field selector"):
        labels.parse_fields(text)


@pytest.mark.parametrize("text", ["app=/bad", "a/b/c", "app in (ok,-no)"], ids=["a value", "a key", "one of many"])
def test_names_that_the_api_refuses_are_errors(text: str) -> None:
    """No object can have these labels, so the selector would silently select nothing."""
    with pytest.raises(ValueError, match="unable to parse label selector"):
        labels.parse_labels(text)
