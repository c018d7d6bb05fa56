"""Label selectors: selected labels, texts and parse errors."""

from __future__ import annotations

import pytest

from kubectl_spread.kube.api import labels
from kubectl_spread.kube.api.types import LabelSelectorRequirement
from tests.builders import Json, decode_selector, requirement, selector


@pytest.mark.parametrize(
    ("manifest", "pod_labels", "selected"),
    [
        pytest.param(None, {"app": "web"}, False, id="no selector selects nothing"),
        pytest.param(None, {}, False, id="no selector does not even select a pod without labels"),
        pytest.param({}, {}, True, id="an empty selector selects a pod without labels"),
        pytest.param({}, {"app": "web"}, True, id="an empty selector selects everything"),
        pytest.param(selector({"app": "web"}), {"app": "web", "rev": "r1"}, True, id="equal label"),
        pytest.param(selector({"app": "web"}), {"app": "Web"}, False, id="values are compared with case"),
        pytest.param(selector({"app": "web"}), {"app": "web "}, False, id="values are not trimmed"),
        pytest.param(selector({"app": ""}), {}, False, id='matchLabels with "" does not match an absent label'),
        pytest.param(selector({"app": ""}), {"app": ""}, True, id='matchLabels with "" matches ""'),
        pytest.param(selector(None, requirement("rev", "In", "")), {}, False, id='In [""] does not match absent'),
        pytest.param(selector(None, requirement("rev", "In", "")), {"rev": ""}, True, id='In [""] matches ""'),
        pytest.param(selector(None, requirement("rev", "In", "a", "b")), {"rev": "b"}, True, id="In of several values"),
        pytest.param(selector(None, requirement("rev", "In", "a")), {"rev": "b"}, False, id="In of another value"),
        pytest.param(selector(None, requirement("rev", "NotIn", "a")), {}, True, id="NotIn matches an absent key"),
        pytest.param(selector(None, requirement("rev", "NotIn", "a")), {"rev": "b"}, True, id="NotIn of another value"),
        pytest.param(selector(None, requirement("rev", "NotIn", "a")), {"rev": "a"}, False, id="NotIn of the value"),
        pytest.param(selector(None, requirement("rev", "NotIn", "")), {"rev": ""}, False, id='NotIn [""] refuses ""'),
        pytest.param(selector(None, requirement("rev", "Exists")), {"rev": ""}, True, id='Exists matches ""'),
        pytest.param(selector(None, requirement("rev", "Exists")), {}, False, id="Exists needs the key"),
        pytest.param(selector(None, requirement("rev", "DoesNotExist")), {}, True, id="DoesNotExist of absent key"),
        pytest.param(selector(None, requirement("rev", "DoesNotExist")), {"rev": ""}, False, id='DoesNotExist of ""'),
        pytest.param(
            selector({"app": "web"}, requirement("rev", "In", "a")), {"app": "web"}, False, id="all must hold together"
        ),
        pytest.param(
            selector(None, requirement("rev", "In", "a"), requirement("rev", "In", "b")),
            {"rev": "b"},
            False,
            id="two requirements on one key are ANDed",
        ),
        pytest.param(selector(None, requirement("rev", "in", "a")), {"rev": "a"}, False, id="operators have case"),
        pytest.param(
            selector(None, requirement("rev", "Gt", "1")), {"rev": "2"}, False, id="Gt is not an operator here"
        ),
        pytest.param(selector(None, requirement("rev", "NotIn")), {}, False, id="NotIn of nothing cannot be parsed"),
        pytest.param(selector(None, requirement("rev", "Exists", "a")), {"rev": "a"}, False, id="Exists with values"),
    ],
)
def test_a_selector_selects_labels_that_meet_all_requirements(
    manifest: Json | None, pod_labels: dict[str, str], selected: bool
) -> None:
    assert labels.matches(decode_selector(manifest), pod_labels) is selected


def test_an_unknown_operator_is_never_met() -> None:
    greater = LabelSelectorRequirement(key="rev", operator="Gt", values=("1",))
    assert not labels.satisfies(greater, {"rev": "2"})


@pytest.mark.parametrize(
    ("manifest", "text"),
    [
        pytest.param(None, "<none>", id="no selector"),
        pytest.param({}, "{}", id="the empty selector"),
        pytest.param(
            selector({"b": "2", "a": "1"}, requirement("rev", "In", "r1"), requirement("x", "Exists")),
            "a=1, b=2, rev In [r1], x Exists",
            id="labels by key, then expressions in their order",
        ),
        pytest.param(selector(None, requirement("rev", "NotIn", "", "b")), 'rev NotIn ["", b]', id='"" is quoted'),
    ],
)
def test_the_text_of_a_selector(manifest: Json | None, text: str) -> None:
    assert labels.describe(decode_selector(manifest)) == text


def test_requirements_and_keys_are_those_of_labels_and_expressions() -> None:
    decoded_selector = decode_selector(selector({"b": "2", "a": "1"}, requirement("rev", "Exists")))
    assert decoded_selector is not None
    assert [labels.describe_requirement(part) for part in labels.requirements(decoded_selector)] == [
        "a In [1]",
        "b In [2]",
        "rev Exists",
    ]
    assert labels.keys(decoded_selector) == {"a", "b", "rev"}
    assert not labels.is_empty(decoded_selector)


NAME = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize(
    ("manifest", "error"),
    [
        pytest.param(selector({"app": "web"}), "", id="a valid selector"),
        pytest.param(selector({"app": ""}, requirement("os", "In", "")), "", id="empty values"),
        pytest.param(None, "", id="a nil selector"),
        pytest.param(
            selector(None, requirement("os=linux", "Exists")), f'key: Invalid value: "os=linux": {NAME}', id="key"
        ),
        pytest.param(selector({"app": "a b"}), f'values[0][app]: Invalid value: "a b": {VALUE}', id="value"),
        pytest.param(
            selector({"os=linux": "a b"}),
            f'[key: Invalid value: "os=linux": {NAME}, values[0][os=linux]: Invalid value: "a b": {VALUE}]',
            id="key and value",
        ),
        pytest.param(
            selector(None, requirement("x", "In")),
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
            id="no values",
        ),
        pytest.param(
            selector(None, requirement("x", "Exists", "a", "b")),
            'values: Invalid value: ["a","b"]: values set must be empty for exists and does not exist',
            id="values",
        ),
        pytest.param(
            selector(None, requirement("x", "Gt", "1")), '"Gt" is not a valid label selector operator', id="operator"
        ),
    ],
)
def test_parse_errors_are_those_of_the_scheduler(manifest: Json | None, error: str) -> None:
    """The messages were compared with LabelSelectorAsSelector of k8s.io/apimachinery v0.37.1."""
    decoded = decode_selector(manifest)
    assert labels.parse_error(decoded) == error
    assert error == "" or (
        decoded is not None and not labels.matches(decoded, {"app": "a b", "os=linux": "a b", "x": "1"})
    )
