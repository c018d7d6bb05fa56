"""The merge, as kube-apiserver does it when a pod is created."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kubectl_spread.kube.api.types import PodSpec
from kubectl_spread.kube.apiserver.strategy import merged_selector, prepare_for_create
from kubectl_spread.kube.features import Gate, behaviour, gates
from tests.builders import (
    Json,
    affinity,
    constraint,
    decode_pod,
    decode_selector,
    pod_json,
    requirement,
    selector,
    term,
)

WEB = {"app": "web"}
R1 = {"app": "web", "rev": "r1"}
X_EXISTS = requirement("x", "Exists")
REV_IN_R1 = requirement("rev", "In", "r1")


@pytest.mark.parametrize(
    ("manifest", "own", "match", "merged"),
    [
        pytest.param(selector(WEB), R1, ["rev"], selector(WEB, REV_IN_R1), id="1: matchLabels are kept"),
        pytest.param({}, R1, ["rev"], selector(None, REV_IN_R1), id="2: the empty selector is merged into"),
        pytest.param(None, R1, ["rev"], None, id="3: no selector stays none"),
        pytest.param(selector(WEB), R1, ["nope"], selector(WEB), id="4: an absent label changes nothing"),
        pytest.param(
            {}, R1, ["rev", "app"], selector(None, REV_IN_R1, requirement("app", "In", "web")), id="5: in key order"
        ),
        pytest.param(
            {}, R1, ["app", "rev"], selector(None, requirement("app", "In", "web"), REV_IN_R1), id="5: nothing sorted"
        ),
        pytest.param(
            selector(None, X_EXISTS),
            R1,
            ["rev"],
            selector(None, X_EXISTS, REV_IN_R1),
            id="6: the user's own come first",
        ),
        pytest.param({}, {"rev": ""}, ["rev"], selector(None, requirement("rev", "In", "")), id='7: "" is a value'),
        pytest.param({}, R1, ["rev", "rev"], selector(None, REV_IN_R1, REV_IN_R1), id="8: a key twice is merged twice"),
        pytest.param({}, R1, ["nope", "nope"], {}, id="9: an absent key twice changes nothing"),
        pytest.param(
            selector({"rev": "r1"}),
            R1,
            ["rev"],
            selector({"rev": "r1"}, REV_IN_R1),
            id="10: what stands there already is not looked at",
        ),
        pytest.param(
            selector(WEB, REV_IN_R1),
            {"app": "web", "rev": "r2"},
            ["rev"],
            selector(WEB, REV_IN_R1, requirement("rev", "In", "r2")),
            id="16: nor an earlier merge with another value",
        ),
        pytest.param(selector(WEB, REV_IN_R1), {}, ["rev"], selector(WEB, REV_IN_R1), id="17: without labels nothing"),
        pytest.param(selector(WEB), R1, [], selector(WEB), id="no keys, no change"),
    ],
)
def test_merged_selector(manifest: Json | None, own: dict[str, str], match: Sequence[str], merged: Json | None) -> None:
    assert merged_selector(decode_selector(manifest), own, match) == decode_selector(merged)


TENANT_EXISTS = requirement("tenant", "Exists")
NOT_A = requirement("tenant", "NotIn", "a")
NOT_B = requirement("tenant", "NotIn", "b")


@pytest.mark.parametrize(
    ("items", "tenant", "mismatch", "merged"),
    [
        pytest.param(
            [TENANT_EXISTS],
            "a",
            ["tenant"],
            [TENANT_EXISTS, REV_IN_R1, NOT_A],
            id="18: In before NotIn, after the user's",
        ),
        pytest.param([], "a", ["tenant", "tenant"], [REV_IN_R1, NOT_A, NOT_A], id="19: NotIn twice"),
        pytest.param([NOT_A], "b", ["tenant"], [NOT_A, REV_IN_R1, NOT_B], id="20: merged again with another value"),
    ],
)
def test_merged_selector_with_keys_to_mismatch(
    items: list[Json], tenant: str, mismatch: Sequence[str], merged: list[Json]
) -> None:
    own = {"rev": "r1", "tenant": tenant}
    result = merged_selector(decode_selector(selector(None, *items)), own, ["rev"], mismatch)
    assert result == decode_selector(selector(None, *merged))


def prepared(pod: Json, minor: int, **overrides: bool) -> PodSpec:
    decoded = decode_pod(pod)
    served = behaviour(minor, gates(minor, {Gate[name]: value for name, value in overrides.items()}))
    return prepare_for_create(decoded.spec, decoded.metadata.labels, served)


SPREAD = pod_json(labels=R1, constraints=[constraint(match=["rev"], selects=selector(WEB))])


@pytest.mark.parametrize(
    ("minor", "overrides", "merges", "keys"),
    [
        pytest.param(37, {}, True, ("rev",), id="1.37 merges and keeps the keys"),
        pytest.param(34, {}, True, ("rev",), id="so does 1.34"),
        pytest.param(33, {}, False, ("rev",), id="1.33 stores as written"),
        pytest.param(34, {"SELECTOR_MERGE": False}, False, ("rev",), id="23: merge off, stored as written"),
        pytest.param(34, {"MATCH_LABEL_KEYS": False}, False, (), id="24: base gate off, the field is dropped"),
    ],
)
def test_prepare_for_create_spread(minor: int, overrides: dict[str, bool], merges: bool, keys: tuple[str, ...]) -> None:
    (actual,) = prepared(SPREAD, minor, **overrides).topology_spread_constraints
    assert actual.label_selector == decode_selector(selector(WEB, REV_IN_R1) if merges else selector(WEB))
    assert actual.match_label_keys == keys


TERM = term(selects=selector(WEB), match=["rev"], mismatch=["app"])


@pytest.mark.parametrize(
    ("minor", "overrides", "merges"),
    [
        pytest.param(37, {}, True, id="1.37 merges"),
        pytest.param(31, {}, True, id="1.31 is the first by default"),
        pytest.param(30, {}, False, id="25: 1.30 drops both fields"),
        pytest.param(30, {"AFFINITY_KEYS": True}, True, id="1.30 with the gate on merges"),
        pytest.param(28, {}, False, id="1.28 does not know the fields"),
    ],
)
@pytest.mark.parametrize("field", ["podAffinity", "podAntiAffinity"])
@pytest.mark.parametrize("required", [True, False])
def test_prepare_for_create_affinity(
    minor: int, overrides: dict[str, bool], merges: bool, field: str, required: bool
) -> None:
    """All four lists of terms are alike."""
    spec = prepared(pod_json(labels=R1, affinity=affinity(field, TERM, required=required)), minor, **overrides)
    assert spec.affinity is not None
    terms = spec.affinity.pod_affinity if field == "podAffinity" else spec.affinity.pod_anti_affinity
    assert terms is not None
    actual = (
        terms.required_during_scheduling_ignored_during_execution[0]
        if required
        else terms.preferred_during_scheduling_ignored_during_execution[0].pod_affinity_term
    )
    tail = [REV_IN_R1, requirement("app", "NotIn", "web")] if merges else []
    assert actual.label_selector == decode_selector(selector(WEB, *tail))
    assert (actual.match_label_keys, actual.mismatch_label_keys) == ((("rev",), ("app",)) if merges else ((), ()))


def test_prepare_for_create_drops_what_disabled_gates_guard() -> None:
    pod = pod_json(constraints=[constraint(minDomains=3, nodeTaintsPolicy="Honor", nodeAffinityPolicy="Ignore")])
    (actual,) = prepared(pod, 29, MIN_DOMAINS=False, NODE_INCLUSION_POLICY=False).topology_spread_constraints
    assert actual.min_domains is None
    assert (actual.node_affinity_policy, actual.node_taints_policy) == ("Honor", "Ignore")


def test_prepare_for_create_leaves_a_pod_without_constraints_alone() -> None:
    assert prepared(pod_json(), 37) == decode_pod(pod_json()).spec
