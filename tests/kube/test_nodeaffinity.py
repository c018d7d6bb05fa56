"""nodeSelector and required node affinity."""

from __future__ import annotations

import msgspec
import pytest

from kubectl_spread.kube.api.types import Affinity, Node
from kubectl_spread.kube.scheduler import nodeaffinity
from kubectl_spread.kube.scheduler.podtopologyspread.domains import NodeLabels
from tests.builders import Json, decode_node, node_json, requirement

NODE = decode_node(node_json("a1", labels={"disk": "ssd", "cpus": "8", "empty": ""}))


def matches(node: Node, node_selector: dict[str, str], affinity: Affinity | None) -> bool:
    """Tell whether a node fits; in the index it is between two nodes without labels."""
    nodes = [Node(), node, Node()]
    return bool(NodeLabels(nodes).fitting(node_selector, affinity) & 2)


def affinity(*terms: Json) -> Affinity:
    required = {"nodeSelectorTerms": list(terms)}
    return msgspec.convert({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}, Affinity)


def expressions(*requirements: Json) -> Json:
    return {"matchExpressions": list(requirements)}


def fields(*requirements: Json) -> Json:
    return {"matchFields": list(requirements)}


NO_DISK = expressions(requirement("disk", "DoesNotExist"))


@pytest.mark.parametrize(
    ("node_selector", "fits"),
    [
        pytest.param({}, True, id="no nodeSelector"),
        pytest.param({"disk": "ssd", "cpus": "8"}, True, id="all labels are equal"),
        pytest.param({"disk": "ssd", "cpus": "9"}, False, id="one label differs"),
        pytest.param({"absent": ""}, False, id='"" does not match an absent label'),
        pytest.param({"empty": ""}, True, id='"" matches ""'),
    ],
)
def test_a_node_selector_needs_all_labels(node_selector: dict[str, str], fits: bool) -> None:
    assert matches(NODE, node_selector, None) is fits


@pytest.mark.parametrize(
    ("terms", "fits"),
    [
        pytest.param([expressions(requirement("disk", "In", "hdd", "ssd"))], True, id="In one of the values"),
        pytest.param([expressions(requirement("absent", "In", ""))], False, id='In [""] needs the key'),
        pytest.param([expressions(requirement("disk", "NotIn", "ssd"))], False, id="NotIn the value"),
        pytest.param([expressions(requirement("disk", "NotIn", "hdd"))], True, id="NotIn another value"),
        pytest.param([expressions(requirement("absent", "NotIn", "x"))], True, id="NotIn matches an absent key"),
        pytest.param(
            [expressions(requirement("absent", "NotIn"))], False, id="NotIn without values is not a requirement"
        ),
        pytest.param([expressions(requirement("empty", "Exists"))], True, id='Exists matches ""'),
        pytest.param([expressions(requirement("absent", "Exists"))], False, id="Exists needs the key"),
        pytest.param([expressions(requirement("disk", "Exists", "ssd"))], False, id="Exists takes no values"),
        pytest.param([expressions(requirement("absent", "DoesNotExist"))], True, id="DoesNotExist"),
        pytest.param([NO_DISK], False, id="DoesNotExist of a key that the node has"),
        pytest.param([expressions(requirement("absent", "DoesNotExist", "x"))], False, id="DoesNotExist of values"),
        pytest.param([expressions(requirement("disk", "Is", "ssd"))], False, id="an unknown operator"),
        pytest.param([], False, id="no term matches nothing"),
        pytest.param([{}], False, id="an empty term matches nothing"),
        pytest.param(
            [{}, expressions(requirement("disk", "Exists"))], True, id="an empty term does not affect other terms"
        ),
        pytest.param([NO_DISK, expressions(requirement("disk", "Exists"))], True, id="terms are ORed"),
        pytest.param(
            [expressions(requirement("disk", "Exists"), requirement("cpus", "In", "9"))], False, id="a term is ANDed"
        ),
        pytest.param([fields(requirement("metadata.name", "In", "a1"))], True, id="the node's name"),
        pytest.param([fields(requirement("metadata.name", "In", "b1"))], False, id="another node's name"),
        pytest.param([fields(requirement("metadata.name", "NotIn", "b1"))], True, id="not another node"),
        pytest.param([fields(requirement("metadata.name", "NotIn", "a1"))], False, id="not this node"),
        pytest.param([fields(requirement("metadata.name", "In", "a1", "b1"))], False, id="a field takes one value"),
        pytest.param([fields(requirement("metadata.name", "Exists"))], False, id="a field takes In and NotIn"),
        pytest.param([fields(requirement("metadata.name", "Is", "a1"))], False, id="a field and an unknown operator"),
        pytest.param([fields(requirement("metadata.uid", "In", "a1"))], False, id="no other field"),
        pytest.param(
            [{**expressions(requirement("disk", "Exists")), **fields(requirement("metadata.name", "In", "b1"))}],
            False,
            id="expressions and fields are ANDed",
        ),
    ],
)
def test_a_node_must_match_one_of_the_terms(terms: list[Json], fits: bool) -> None:
    assert matches(NODE, {}, affinity(*terms)) is fits


def test_a_node_must_match_both_node_selector_and_affinity() -> None:
    assert not matches(NODE, {"disk": "hdd"}, affinity(expressions(requirement("disk", "Exists"))))


@pytest.mark.parametrize(
    ("label", "operator", "value", "fits"),
    [
        pytest.param("8", "Gt", "7", True, id="8 is greater than 7"),
        pytest.param("8", "Gt", "8", False, id="8 is not greater than 8"),
        pytest.param("8", "Lt", "9", True, id="8 is less than 9"),
        pytest.param("8", "Lt", "8", False, id="8 is not less than 8"),
        pytest.param("10", "Gt", "9", True, id="numbers, not strings, are compared"),
        pytest.param("007", "Lt", "8", True, id="007 is 7"),
        pytest.param("8", "Gt", "+7", False, id="+7 is not a label value, and so no limit"),
        pytest.param("-1", "Lt", "0", True, id="-1 is below 0"),
        pytest.param("1_0", "Gt", "1", False, id="1_0 is not a number"),
        pytest.param("8", "Gt", "1_0", False, id="1_0 is not a limit"),
        pytest.param("1.5", "Gt", "1", False, id="1.5 is not a number"),
        pytest.param("", "Gt", "1", False, id='"" is not a number'),
        pytest.param("abc", "Lt", "9", False, id="abc is not a number"),
        pytest.param(" 8", "Lt", "9", False, id="space is not part of a number"),
        pytest.param("8", "Lt", str(2**63 - 1), True, id="2^63-1 is a number"),
        pytest.param("8", "Lt", str(2**63), False, id="2^63 is not a number"),
        pytest.param("8", "Lt", "9" * 5000, False, id="5000 digits are not a number"),
        pytest.param("8", "Gt", "0" * 62 + "7", True, id="leading zeros are ignored"),
    ],
)
def test_numbers_are_read_as_in_go(label: str, operator: str, value: str, fits: bool) -> None:
    node = decode_node(node_json("a1", labels={"cpus": label}))
    assert matches(node, {}, affinity(expressions(requirement("cpus", operator, value)))) is fits


@pytest.mark.parametrize("operator", ["Gt", "Lt"])
@pytest.mark.parametrize("values", [[], ["1", "9"]])
def test_a_comparison_needs_exactly_one_value(operator: str, values: list[str]) -> None:
    assert not matches(NODE, {}, affinity(expressions(requirement("cpus", operator, *values))))


def test_a_comparison_needs_the_label() -> None:
    assert not matches(NODE, {}, affinity(expressions(requirement("absent", "Lt", "9"))))


ON_A1 = requirement("metadata.name", "In", "a1")


@pytest.mark.parametrize(
    ("terms", "pinned"),
    [
        pytest.param([fields(ON_A1)], "a1", id="one term with one name"),
        pytest.param([fields(ON_A1), fields(ON_A1)], "a1", id="two terms with the same name"),
        pytest.param([{**fields(ON_A1), **NO_DISK}], "a1", id="further expressions do not matter"),
        pytest.param([fields(ON_A1), fields(requirement("metadata.name", "In", "b1"))], None, id="two names"),
        pytest.param([fields(ON_A1), NO_DISK], None, id="a term without a name"),
        pytest.param([fields(requirement("metadata.name", "NotIn", "a1"))], None, id="all but one"),
        pytest.param([], None, id="no term"),
    ],
)
def test_a_pod_is_pinned_by_the_one_name_in_all_terms(terms: list[Json], pinned: str | None) -> None:
    assert nodeaffinity.pinned_node(affinity(*terms)) == pinned


@pytest.mark.parametrize("affinity", [None, Affinity(), msgspec.convert({"nodeAffinity": {}}, Affinity)])
def test_without_required_affinity_every_node_fits(affinity: Affinity | None) -> None:
    assert nodeaffinity.required(affinity) is None
    assert nodeaffinity.pinned_node(affinity) is None
    assert matches(NODE, {}, affinity)
