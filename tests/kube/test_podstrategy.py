"""The merge that kube-apiserver does when a pod is created."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kubectl_spread.kube.api.types import PodSpec
from kubectl_spread.kube.apiserver import merged_selector, prepare_for_create
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
    ("manifest", "labels", "match", "merged"),
    [
        pytest.param(selector(WEB), R1, ["rev"], selector(WEB, REV_IN_R1), id="1: matchLabels are unchanged"),
        pytest.param({}, R1, ["rev"], selector(None, REV_IN_R1), id="2: the empty selector is merged into"),
        pytest.param(None, R1, ["rev"], None, id="3: a nil selector stays nil"),
        pytest.param(selector(WEB), R1, ["nope"], selector(WEB), id="4: an absent label changes nothing"),
        pytest.param(
            {},
            R1,
            ["rev", "app"],
            selector(None, REV_IN_R1, requirement("app", "In", "web")),
            id="5: keys are appended in their order",
        ),
        pytest.param(
            {},
            R1,
            ["app", "rev"],
            selector(None, requirement("app", "In", "web"), REV_IN_R1),
            id="5: keys are not sorted",
        ),
        pytest.param(
            selector(None, X_EXISTS),
            R1,
            ["rev"],
            selector(None, X_EXISTS, REV_IN_R1),
            id="6: the requirements of the user come first",
        ),
        pytest.param({}, {"rev": ""}, ["rev"], selector(None, requirement("rev", "In", "")), id='7: "" is a value'),
        pytest.param({}, R1, ["rev", "rev"], selector(None, REV_IN_R1, REV_IN_R1), id="8: a key twice is merged twice"),
        pytest.param({}, R1, ["nope", "nope"], {}, id="9: an absent key twice changes nothing"),
        pytest.param(
            selector({"rev": "r1"}),
            R1,
            ["rev"],
            selector({"rev": "r1"}, REV_IN_R1),
            id="10: a key in matchLabels is appended",
        ),
        pytest.param(
            selector(WEB, REV_IN_R1),
            {"app": "web", "rev": "r2"},
            ["rev"],
            selector(WEB, REV_IN_R1, requirement("rev", "In", "r2")),
            id="16: a key that was merged with another value is appended",
        ),
        pytest.param(
            selector(WEB, REV_IN_R1), {}, ["rev"], selector(WEB, REV_IN_R1), id="17: without labels nothing is appended"
        ),
        pytest.param(selector(WEB), R1, [], selector(WEB), id="without keys nothing is appended"),
    ],
)
def test_the_merge_appends_the_labels_of_match_label_keys(
    manifest: Json | None, labels: dict[str, str], match: Sequence[str], merged: Json | None
) -> None:
    assert merged_selector(decode_selector(manifest), labels, match) == decode_selector(merged)


TENANT_EXISTS = requirement("tenant", "Exists")
NOT_A = requirement("tenant", "NotIn", "a")
NOT_B = requirement("tenant", "NotIn", "b")


@pytest.mark.parametrize(
    ("requirements", "tenant", "mismatch", "merged"),
    [
        pytest.param(
            [TENANT_EXISTS],
            "a",
            ["tenant"],
            [TENANT_EXISTS, REV_IN_R1, NOT_A],
            id="18: In and NotIn are appended to the requirements of the user",
        ),
        pytest.param(
            [], "a", ["tenant", "tenant"], [REV_IN_R1, NOT_A, NOT_A], id="19: a duplicated key is appended twice"
        ),
        pytest.param(
            [NOT_A],
            "b",
            ["tenant"],
            [NOT_A, REV_IN_R1, NOT_B],
            id="20: a key that was merged with another value is appended",
        ),
    ],
)
def test_keys_to_mismatch_are_appended_after_keys_to_match(
    requirements: list[Json], tenant: str, mismatch: Sequence[str], merged: list[Json]
) -> None:
    labels = {"rev": "r1", "tenant": tenant}
    appended = merged_selector(decode_selector(selector(None, *requirements)), labels, ["rev"], mismatch)
    assert appended == decode_selector(selector(None, *merged))


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
        pytest.param(33, {}, False, ("rev",), id="1.33 does not merge"),
        pytest.param(
            34, {"SELECTOR_MERGE": False}, False, ("rev",), id="23: with the merge gate off nothing is merged"
        ),
        pytest.param(34, {"MATCH_LABEL_KEYS": False}, False, (), id="24: with the base gate off the keys are dropped"),
    ],
)
def test_spread_constraints_are_merged_by_minor_and_gates(
    minor: int, overrides: dict[str, bool], merges: bool, keys: tuple[str, ...]
) -> None:
    (stored,) = prepared(SPREAD, minor, **overrides).topology_spread_constraints
    assert stored.label_selector == decode_selector(selector(WEB, REV_IN_R1) if merges else selector(WEB))
    assert stored.match_label_keys == keys


TERM = term(selects=selector(WEB), match=["rev"], mismatch=["app"])


@pytest.mark.parametrize(
    ("minor", "overrides", "merges"),
    [
        pytest.param(37, {}, True, id="1.37 merges"),
        pytest.param(31, {}, True, id="1.31 is the first minor that merges by default"),
        pytest.param(30, {}, False, id="25: 1.30 drops both fields"),
        pytest.param(30, {"AFFINITY_KEYS": True}, True, id="1.30 with the gate on merges"),
        pytest.param(28, {}, False, id="1.28 does not have the fields"),
    ],
)
@pytest.mark.parametrize("field", ["podAffinity", "podAntiAffinity"])
@pytest.mark.parametrize("required", [True, False])
def test_all_four_lists_of_affinity_terms_are_merged_by_minor_and_gates(
    minor: int, overrides: dict[str, bool], merges: bool, field: str, required: bool
) -> None:
    spec = prepared(pod_json(labels=R1, affinity=affinity(field, TERM, required=required)), minor, **overrides)
    assert spec.affinity is not None
    terms = spec.affinity.pod_affinity if field == "podAffinity" else spec.affinity.pod_anti_affinity
    assert terms is not None
    stored = (
        terms.required_during_scheduling_ignored_during_execution[0]
        if required
        else terms.preferred_during_scheduling_ignored_during_execution[0].pod_affinity_term
    )
    tail = [REV_IN_R1, requirement("app", "NotIn", "web")] if merges else []
    assert stored.label_selector == decode_selector(selector(WEB, *tail))
    assert (stored.match_label_keys, stored.mismatch_label_keys) == ((("rev",), ("app",)) if merges else ((), ()))


def test_the_fields_of_disabled_gates_are_dropped() -> None:
    pod = pod_json(constraints=[constraint(minDomains=3, nodeTaintsPolicy="Honor", nodeAffinityPolicy="Ignore")])
    (stored,) = prepared(pod, 29, MIN_DOMAINS=False, NODE_INCLUSION_POLICY=False).topology_spread_constraints
    assert stored.min_domains is None
    assert (stored.node_affinity_policy, stored.node_taints_policy) == ("Honor", "Ignore")


def test_a_pod_without_constraints_is_unchanged() -> None:
    assert prepared(pod_json(), 37) == decode_pod(pod_json()).spec
