"""Which taints a toleration covers, and which taints filter a node out."""

from __future__ import annotations

import pytest

from kubectl_spread.kube.api.types import Taint, Toleration
from kubectl_spread.kube.scheduler import taints

GPU = Taint(key="gpu", value="yes", effect="NoSchedule")
MAX = 2**63 - 1


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        pytest.param(Toleration(key="gpu", value="yes"), True, id="no operator compares values"),
        pytest.param(Toleration(key="gpu", operator="Equal", value="yes"), True, id="Equal with the value"),
        pytest.param(Toleration(key="gpu", operator="Equal", value="no"), False, id="Equal with another value"),
        pytest.param(Toleration(key="gpu"), False, id='a missing value is ""'),
        pytest.param(Toleration(key="gpu", operator="Exists"), True, id="Exists ignores the value"),
        pytest.param(Toleration(operator="Exists"), True, id="Exists without key covers everything"),
        pytest.param(Toleration(key="cpu", operator="Exists"), False, id="another key"),
        pytest.param(Toleration(key="gpu", operator="Exists", effect="NoSchedule"), True, id="the effect"),
        pytest.param(Toleration(key="gpu", operator="Exists", effect="NoExecute"), False, id="another effect"),
        pytest.param(Toleration(value="yes"), True, id="an empty key covers every key"),
        pytest.param(Toleration(key="gpu", operator="exists"), False, id="operators have case"),
    ],
)
def test_tolerates(toleration: Toleration, tolerated: bool) -> None:
    assert taints.tolerates(toleration, GPU, comparison_operators=False) is tolerated


@pytest.mark.parametrize(
    ("taint", "operator", "limit", "tolerated"),
    [
        pytest.param("5", "Lt", "10", True, id="Lt tolerates a taint value below its own"),
        pytest.param("10", "Lt", "10", False, id="Lt does not tolerate an equal one"),
        pytest.param("11", "Gt", "10", True, id="Gt tolerates a taint value above its own"),
        pytest.param("10", "Gt", "10", False, id="Gt does not tolerate an equal one"),
        pytest.param("-5", "Lt", "0", True, id="negative numbers are numbers"),
        pytest.param("007", "Lt", "10", False, id="007 is not canonical"),
        pytest.param("5", "Lt", "010", False, id="nor is 010"),
        pytest.param("-0", "Lt", "10", False, id="nor is -0"),
        pytest.param("+5", "Lt", "10", False, id="nor is +5"),
        pytest.param("1_0", "Lt", "100", False, id="1_0 is not a number"),
        pytest.param("", "Lt", "10", False, id='"" is not a number'),
        pytest.param("٣", "Lt", "10", False, id="Arabic digits are not numbers"),
        pytest.param("0", "Lt", str(MAX), True, id="2^63-1 fits"),
        pytest.param("0", "Lt", str(MAX + 1), False, id="2^63 does not fit"),
        pytest.param("0", "Gt", str(-MAX - 1), True, id="-2^63 fits"),
        pytest.param("0", "Gt", str(-MAX - 2), False, id="-2^63-1 does not fit"),
        pytest.param("0", "Lt", "9" * 5000, False, id="a number of 5000 digits does not fit either"),
    ],
)
def test_tolerates_by_comparison(taint: str, operator: str, limit: str, tolerated: bool) -> None:
    toleration = Toleration(key="k", operator=operator, value=limit)
    actual_taint = Taint(key="k", value=taint, effect="NoSchedule")
    assert taints.tolerates(toleration, actual_taint, comparison_operators=True) is tolerated
    assert not taints.tolerates(toleration, actual_taint, comparison_operators=False)


@pytest.mark.parametrize(
    ("effect", "filters"),
    [("NoSchedule", True), ("NoExecute", True), ("PreferNoSchedule", False), ("", False)],
)
def test_find_untolerated_looks_at_filtering_effects_only(effect: str, filters: bool) -> None:
    taint = Taint(key="gpu", effect=effect)
    assert taints.find_untolerated([taint], [], comparison_operators=False) == (taint if filters else None)


def test_find_untolerated_returns_the_first_that_no_toleration_covers() -> None:
    node_taints = [GPU, Taint(key="a", effect="NoExecute"), Taint(key="b", effect="NoSchedule")]
    tolerations = [Toleration(key="gpu", operator="Exists"), Toleration(key="b", operator="Exists")]
    assert taints.find_untolerated(node_taints, tolerations, comparison_operators=False) == node_taints[1]
