"""Requirements of NodePools and pods: what they allow together."""

from __future__ import annotations

import msgspec
import pytest

from kubectl_spread.kube.api.types import NodeSelectorRequirement
from kubectl_spread.kube.noderequirements import AllowedValues, allowed_values, combined, conflict
from tests.builders import ZONE, requirement


def expression(key: str, operator: str, *values: str) -> NodeSelectorRequirement:
    return msgspec.convert(requirement(key, operator, *values), NodeSelectorRequirement)


@pytest.mark.parametrize(
    ("pool", "pod", "agree"),
    [
        pytest.param(("In", "a", "b"), ("In", "b", "c"), True, id="In and In share b"),
        pytest.param(("In", "a"), ("In", "b"), False, id="In and In share none"),
        pytest.param(("In", "a"), ("NotIn", "a"), False, id="NotIn leaves nothing"),
        pytest.param(("In", "a", "b"), ("NotIn", "a"), True, id="NotIn leaves b"),
        pytest.param(("NotIn", "a"), ("NotIn", "b"), True, id="NotIn twice leaves all others"),
        pytest.param(("Exists",), ("In", "a"), True, id="Exists allows any value"),
        pytest.param(("DoesNotExist",), ("In", "a"), False, id="DoesNotExist allows no value"),
        pytest.param(("DoesNotExist",), ("NotIn", "a"), True, id="an absent label is not in any values"),
        pytest.param(("DoesNotExist",), ("Exists",), False, id="absent and present"),
        pytest.param(("In", "3", "5"), ("Gt", "4"), True, id="Gt 4 leaves 5"),
        pytest.param(("In", "3", "4"), ("Gt", "4"), False, id="Gt 4 refuses 4"),
        pytest.param(("In", "3", "4"), ("Gte", "4"), True, id="Gte 4 allows 4"),
        pytest.param(("In", "4"), ("Lt", "4"), False, id="Lt 4 refuses 4"),
        pytest.param(("In", "4"), ("Lte", "4"), True, id="Lte 4 allows 4"),
        pytest.param(("Gt", "4"), ("Lt", "5"), False, id="no whole number is between 4 and 5"),
        pytest.param(("Gt", "4"), ("Lt", "6"), True, id="5 is between 4 and 6"),
        pytest.param(("In", "many"), ("Gt", "4"), False, id="a text is not above a number"),
    ],
)
def test_the_values_that_both_allow(pool: tuple[str, ...], pod: tuple[str, ...], *, agree: bool) -> None:
    def requirements(of: tuple[str, ...]) -> object:
        return combined([expression("size", *of)], {})

    refusing = conflict(requirements(pool), requirements(pod))  # type: ignore[arg-type]
    assert refusing == ("" if agree else "size")


@pytest.mark.parametrize(
    ("pod", "refusing"),
    [
        pytest.param(expression("team", "In", "shop"), "team", id="nodes lack a label of the user's"),
        pytest.param(expression("team", "NotIn", "shop"), "", id="which NotIn allows"),
        pytest.param(expression(ZONE, "In", "a"), "", id="the provider sets the zone"),
        pytest.param(expression("karpenter.azure.com/sku-cpu", "Gt", "4"), "", id="the provider sets sizes"),
    ],
)
def test_a_label_that_a_pool_does_not_name(pod: NodeSelectorRequirement, refusing: str) -> None:
    assert conflict({}, combined([pod], {})) == refusing


def test_requirements_on_one_label_hold_together() -> None:
    [allowed] = combined([expression("n", "In", "1", "2"), expression("n", "Gt", "1")], {}).values()
    assert allowed.listed == frozenset({"2"})
    pool = combined([expression("n", "Near", "1"), expression("n", "Gt", "x")], {})
    assert pool == {"n": AllowedValues()}
    assert conflict(pool, combined([expression("n", "In", "9")], {})) == ""


@pytest.mark.parametrize(
    ("requires", "text"),
    [
        (expression("n", "In", "a", "b"), "a and b"),
        (expression("n", "NotIn", "a"), "not a"),
        (expression("n", "Exists"), "any value"),
        (expression("n", "DoesNotExist"), "absent"),
        (expression("n", "Gt", "4"), "at least 5"),
        (expression("n", "Lte", "4"), "at most 4"),
    ],
)
def test_values_in_words(requires: NodeSelectorRequirement, text: str) -> None:
    allowed = allowed_values(requires)
    assert allowed is not None
    assert allowed.text == text
