"""The taints that a toleration tolerates, and the taints that filter nodes."""

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
        pytest.param(Toleration(operator="Exists"), True, id="Exists without key tolerates every taint"),
        pytest.param(Toleration(key="cpu", operator="Exists"), False, id="another key"),
        pytest.param(Toleration(key="gpu", operator="Exists", effect="NoSchedule"), True, id="the effect"),
        pytest.param(Toleration(key="gpu", operator="Exists", effect="NoExecute"), False, id="another effect"),
        pytest.param(Toleration(value="yes"), True, id="an empty key matches every key"),
        pytest.param(Toleration(key="gpu", operator="exists"), False, id="operators have case"),
    ],
)
def test_key_value_and_effect_decide(toleration: Toleration, tolerated: bool) -> None:
    assert taints.tolerates(toleration, GPU, comparison_operators=False) is tolerated


@pytest.mark.parametrize(
    ("value", "operator", "limit", "tolerated"),
    [
        pytest.param("5", "Lt", "10", True, id="Lt tolerates a taint value below its own"),
        pytest.param("10", "Lt", "10", False, id="Lt does not tolerate an equal value"),
        pytest.param("11", "Gt", "10", True, id="Gt tolerates a taint value above its own"),
        pytest.param("10", "Gt", "10", False, id="Gt does not tolerate an equal value"),
        pytest.param("-5", "Lt", "0", True, id="negative numbers are numbers"),
        pytest.param("007", "Lt", "10", False, id="007 is not canonical"),
        pytest.param("5", "Lt", "010", False, id="010 is not canonical"),
        pytest.param("-0", "Lt", "10", False, id="-0 is not canonical"),
        pytest.param("+5", "Lt", "10", False, id="+5 is not canonical"),
        pytest.param("1_0", "Lt", "100", False, id="1_0 is not a number"),
        pytest.param("", "Lt", "10", False, id='"" is not a number'),
        pytest.param("٣", "Lt", "10", False, id="Arabic digits are not numbers"),
        pytest.param("0", "Lt", str(MAX), True, id="2^63-1 fits"),
        pytest.param("0", "Lt", str(MAX + 1), False, id="2^63 does not fit"),
        pytest.param("0", "Gt", str(-MAX - 1), True, id="-2^63 fits"),
        pytest.param("0", "Gt", str(-MAX - 2), False, id="-2^63-1 does not fit"),
        pytest.param("0", "Lt", "9" * 5000, False, id="5000 digits do not fit"),
    ],
)
def test_comparison_operators_compare_canonical_numbers(value: str, operator: str, limit: str, tolerated: bool) -> None:
    toleration = Toleration(key="k", operator=operator, value=limit)
    taint = Taint(key="k", value=value, effect="NoSchedule")
    assert taints.tolerates(toleration, taint, comparison_operators=True) is tolerated
    assert not taints.tolerates(toleration, taint, comparison_operators=False)


@pytest.mark.parametrize(
    ("effect", "filters"),
    [("NoSchedule", True), ("NoExecute", True), ("PreferNoSchedule", False), ("", False)],
)
def test_only_no_schedule_and_no_execute_filter_nodes(effect: str, filters: bool) -> None:
    taint = Taint(key="gpu", effect=effect)
    assert taints.find_untolerated([taint], [], comparison_operators=False) == (taint if filters else None)


def test_the_first_untolerated_taint_is_returned() -> None:
    node_taints = [GPU, Taint(key="a", effect="NoExecute"), Taint(key="b", effect="NoSchedule")]
    tolerations = [Toleration(key="gpu", operator="Exists"), Toleration(key="b", operator="Exists")]
    assert taints.find_untolerated(node_taints, tolerations, comparison_operators=False) == node_taints[1]
