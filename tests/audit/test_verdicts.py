"""The verdict on each key, and its confidence."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from kubectl_spread.kube.features import Gate
from tests.audits import as_json, audit, deployment, verdicts, without
from tests.builders import HOSTNAME, ZONE, Json, affinity, constraint, node_json, pod_json, requirement, selector, term

S = "spec.topologySpreadConstraints[0]"
A = "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
WEB = {"app": "web"}
R1 = {"app": "web", "rev": "r1"}
R2 = {"app": "web", "rev": "r2"}
REV_IN_R1 = requirement("rev", "In", "r1")
REGION = "topology.kubernetes.io/region"


def spread_pod(
    *expressions: Json, labels: Mapping[str, str] = R1, match: tuple[str, ...] = ("rev",), **kw: Any
) -> Json:
    return pod_json(labels=labels, constraints=[constraint(match=match, selects=selector(WEB, *expressions))], **kw)


def term_pod(*expressions: Json, labels: Mapping[str, str] = R1, match: tuple[str, ...] = ("rev",), **kw: Any) -> Json:
    mismatch = kw.pop("mismatch", ())
    affinity_term = term(match=match, mismatch=mismatch, selects=selector(WEB, *expressions))
    return pod_json(labels=labels, affinity=affinity("podAntiAffinity", affinity_term), **kw)


def judged(pod: Json, *others: Json, **options: Any) -> tuple[str, str]:
    """Return verdict and confidence on the pod's only term."""
    report = as_json(audit(pod, *others, **options))
    (row,) = report["constraints"]
    if not report["pods"]:
        assert row["verdicts"] in ({}, {"merged": 1})
        return next(iter(row["verdicts"]), "-"), "certain"
    (entry,) = report["pods"]
    assert row["verdicts"] == {entry["verdict"]: 1}
    return entry["verdict"], entry["confidence"]


ON_A1 = {"node": "a1"}


@pytest.mark.parametrize(
    ("pod", "minor", "verdict", "confidence"),
    [
        pytest.param(spread_pod(REV_IN_R1), 37, "merged", "certain", id="the current value"),
        pytest.param(spread_pod(REV_IN_R1, labels=R2), 37, "stale-label", "certain", id="another value"),
        pytest.param(spread_pod(REV_IN_R1, labels=WEB), 37, "removed-label", "likely", id="the label is gone"),
        pytest.param(
            without(spread_pod(), "metadata", "generation"), 37, "pre-upgrade", "certain", id="generation absent"
        ),
        pytest.param(
            pod_json(
                labels=R1,
                constraints=[constraint(match=["rev", "app"], selects=selector(None, requirement("app", "In", "web")))],
            ),
            37,
            "late-label",
            "certain",
            id="another key of the pod is merged",
        ),
        pytest.param(
            spread_pod(labels={**WEB, ZONE: "a"}, match=(ZONE,), **ON_A1),
            37,
            "bind-label",
            "certain",
            id="at binding",
        ),
        pytest.param(
            spread_pod(labels={**WEB, REGION: "a"}, match=(REGION,), **ON_A1),
            37,
            "bind-label",
            "certain",
            id="region",
        ),
        pytest.param(
            spread_pod(labels={**WEB, HOSTNAME: "a"}, match=(HOSTNAME,), **ON_A1),
            37,
            "unmerged",
            "unknown",
            id="no other label is written at binding",
        ),
        pytest.param(
            spread_pod(labels={**WEB, ZONE: "a"}, match=(ZONE,)), 37, "unmerged", "unknown", id="nor on a pending pod"
        ),
        pytest.param(
            spread_pod(requirement(ZONE, "In", "x"), labels={**WEB, ZONE: "y"}, match=(ZONE,), **ON_A1),
            37,
            "stale-label",
            "certain",
            id="binding overwrote the user's value",
        ),
        pytest.param(spread_pod(requirement("rev", "In", "r1", "r2")), 37, "authored", "certain", id="two values"),
        pytest.param(spread_pod(REV_IN_R1, requirement("x", "Exists")), 37, "authored", "certain", id="not at the end"),
        pytest.param(spread_pod(requirement("rev", "Exists")), 37, "authored", "certain", id="Exists is the author's"),
        pytest.param(
            pod_json(labels=R1, constraints=[constraint(match=["rev"], selects=selector(R1))]),
            37,
            "authored",
            "certain",
            id="so is matchLabels",
        ),
        pytest.param(spread_pod(), 33, "scheduler-merged", "certain", id="1.33 stores nothing by design"),
        pytest.param(spread_pod(REV_IN_R1), 33, "merged", "certain", id="merged, and then downgraded"),
        pytest.param(spread_pod(REV_IN_R1, labels=R2), 33, "stale-label", "certain", id="stale, and then downgraded"),
        pytest.param(term_pod(), 34, "late-label", "certain", id="an affinity term is never older than the merge"),
        pytest.param(term_pod(), 33, "late-label", "certain", id="on 1.33 neither"),
        pytest.param(
            without(term_pod(), "metadata", "generation"), 37, "late-label", "certain", id="however old the pod is"
        ),
        pytest.param(
            term_pod(
                requirement("tenant", "NotIn", "a"), labels={**WEB, "tenant": "b"}, match=(), mismatch=("tenant",)
            ),
            37,
            "stale-label",
            "certain",
            id="a stale mismatch",
        ),
        pytest.param(
            term_pod(
                requirement("tenant", "NotIn", "a"),
                requirement("tenant", "NotIn", "b"),
                labels={**WEB, "tenant": "b"},
                match=(),
                mismatch=("tenant",),
            ),
            37,
            "merged",
            "certain",
            id="of two NotIn the last is evaluated",
        ),
        pytest.param(
            term_pod(
                requirement("tenant", "NotIn", "a"),
                requirement("x", "Exists"),
                labels={**WEB, "tenant": "a"},
                match=(),
                mismatch=("tenant",),
            ),
            37,
            "authored",
            "certain",
            id="a NotIn that is not at the end is the author's",
        ),
        pytest.param(
            spread_pod(requirement("rev", "In", ""), labels={**WEB, "rev": ""}), 37, "merged", "certain", id='54: ""'
        ),
        pytest.param(spread_pod(requirement("rev", "In", "")), 37, "stale-label", "certain", id='54: "" and then r1'),
        pytest.param(
            spread_pod(requirement("rev", "In", ""), labels=WEB), 37, "removed-label", "likely", id='54: "" and absent'
        ),
        pytest.param(spread_pod(labels=WEB), 37, "absent-key", "certain", id="no such label"),
        pytest.param(spread_pod(labels=WEB), 33, "absent-key", "certain", id="no such label, on 1.33"),
        pytest.param(spread_pod(REV_IN_R1, REV_IN_R1), 37, "duplicate", "certain", id="a key twice"),
        pytest.param(
            pod_json(labels=R1, constraints=[constraint(match=["rev"], selects=selector(R1, REV_IN_R1))]),
            37,
            "duplicate",
            "certain",
            id="a key in matchLabels and at the end",
        ),
        pytest.param(
            pod_json(labels=R1, constraints=[constraint(match=["rev"], labelSelector=None)]),
            37,
            "no-selector",
            "certain",
            id="no selector with keys",
        ),
        pytest.param(
            pod_json(constraints=[constraint(labelSelector=None)]),
            37,
            "no-selector",
            "certain",
            id="no selector at all",
        ),
        pytest.param(pod_json(constraints=[constraint()]), 37, "-", "certain", id="no keys, no verdict"),
        pytest.param(spread_pod(), 37, "unmerged", "unknown", id="nothing proves why"),
    ],
)
def test_a_key_has_the_verdict_and_confidence_that_the_evidence_allows(
    pod: Json, minor: int, verdict: str, confidence: str
) -> None:
    assert judged(pod, minor=minor) == (verdict, confidence)


def at(**metadata: object) -> Json:
    return spread_pod(metadata=metadata)


CREATION = {
    "manager": "kube-controller-manager",
    "operation": "Update",
    "time": "2026-09-01T10:00:00Z",
    "fieldsV1": {"f:metadata": {"f:labels": {"f:rev": {}}}, "f:spec": {"f:topologySpreadConstraints": {}}},
}
LABELLED = {
    "manager": "kubectl-label",
    "operation": "Update",
    "time": "2026-09-01T10:31:00Z",
    "fieldsV1": {"f:metadata": {"f:labels": {"f:rev": {}}}},
}


@pytest.mark.parametrize(
    ("pod", "others", "options", "verdict", "confidence"),
    [
        pytest.param(
            at(creationTimestamp="2025-08-26T23:59:59Z"), (), {}, "pre-upgrade", "certain", id="older than 1.34.0"
        ),
        pytest.param(
            at(creationTimestamp="2025-08-27T00:00:00Z"), (), {}, "unmerged", "unknown", id="not older than 1.34.0"
        ),
        pytest.param(
            at(),
            (),
            {"merge_since": datetime(2026, 9, 1, 10, 0, 1, tzinfo=UTC)},
            "pre-upgrade",
            "certain",
            id="older than --merge-since",
        ),
        pytest.param(
            at(),
            (),
            {"merge_since": datetime(2026, 9, 1, 10, tzinfo=UTC)},
            "unmerged",
            "unknown",
            id="not older than --merge-since",
        ),
        pytest.param(
            at(managedFields=[CREATION]),
            (),
            {},
            "unmerged",
            "unknown",
            id="the creator may have labelled the pod in the second of its creation",
        ),
        pytest.param(at(managedFields=[LABELLED]), (), {}, "unmerged", "unknown", id="owned since later"),
        pytest.param(at(managedFields=[]), (), {}, "unmerged", "unknown", id="managedFields emptied"),
        pytest.param(
            spread_pod(owner="Deployment/web"),
            (deployment(labels=R1),),
            {},
            "pre-upgrade",
            "likely",
            id="the owner's template has the label",
        ),
        pytest.param(
            spread_pod(owner="StatefulSet/db", metadata={"managedFields": [LABELLED]}),
            (deployment("db", kind="StatefulSet", labels=R1),),
            {},
            "unmerged",
            "unknown",
            id="a StatefulSet's template may have got the label as late as the pod",
        ),
        pytest.param(
            spread_pod(owner="ReplicaSet/web-1", metadata={"managedFields": [LABELLED]}),
            (deployment("web-1", kind="ReplicaSet", labels=R1),),
            {},
            "pre-upgrade",
            "likely",
            id="a ReplicaSet's has not, whoever changed the label since",
        ),
        pytest.param(
            spread_pod(owner="ReplicaSet/web-1"),
            (deployment("web-1", kind="ReplicaSet", labels=WEB, owner="Deployment/web"), deployment(labels=R1)),
            {},
            "unmerged",
            "unknown",
            id="the root owner's may have changed since",
        ),
        pytest.param(
            spread_pod(owner="Deployment/web"), (deployment(labels=WEB),), {}, "unmerged", "unknown", id="it does not"
        ),
        pytest.param(
            spread_pod(labels={**WEB, "pod-template-hash": "abc"}, match=("pod-template-hash",)),
            (),
            {},
            "pre-upgrade",
            "likely",
            id="controllers set the revision label at creation",
        ),
        pytest.param(
            at(creationTimestamp="2025-01-01T00:00:00Z"),
            (),
            {"overrides": {Gate.SELECTOR_MERGE: False}},
            "merge-off",
            "likely",
            id="the gate is known to be off",
        ),
        pytest.param(
            without(spread_pod(), "metadata", "creationTimestamp"), (), {}, "unmerged", "unknown", id="no creation time"
        ),
    ],
)
def test_a_missing_requirement_has_the_cause_that_can_be_proven(
    pod: Json, others: tuple[Json, ...], options: Any, verdict: str, confidence: str
) -> None:
    assert judged(pod, *others, **options) == (verdict, confidence)


def test_a_disabled_gate_makes_no_difference_on_a_server_that_cannot_merge() -> None:
    overrides = {Gate.MATCH_LABEL_KEYS: True}
    assert judged(spread_pod(), minor=33, overrides=overrides) == ("scheduler-merged", "certain")


def test_the_manager_of_a_binding_label_proves_nothing() -> None:
    """The creator stays owner of a zone label that binding has overwritten."""
    fields = {"f:metadata": {"f:labels": {f"f:{ZONE}": {}}}, "f:spec": {"f:topologySpreadConstraints": {}}}
    pod = spread_pod(
        labels={**WEB, ZONE: "a"}, match=(ZONE,), metadata={"managedFields": [{**CREATION, "fieldsV1": fields}]}
    )
    assert judged(pod) == ("unmerged", "unknown")


def test_a_creation_merges_all_keys_or_none() -> None:
    """A requirement that the hard constraint has and the soft one lacks was not merged."""
    evaluation = audit(
        pod_json(
            labels=R1,
            constraints=[
                constraint(match=["rev"], selects=selector(WEB, REV_IN_R1)),
                constraint(match=["rev"], hard=False),
            ],
        )
    )
    assert verdicts(evaluation) == {f"web-1 {S}": "authored", "web-1 spec.topologySpreadConstraints[1]": "late-label"}


def test_a_merged_affinity_term_proves_that_the_label_was_there() -> None:
    """The spread merge was therefore off."""
    anti = affinity("podAntiAffinity", term(match=["rev"], selects=selector(WEB, REV_IN_R1)))
    report = as_json(audit(spread_pod(affinity=anti)))
    (entry,) = report["pods"]
    assert (entry["path"], entry["verdict"], entry["confidence"]) == (S, "pre-upgrade", "likely")


def test_a_term_has_the_worst_verdict_of_its_keys() -> None:
    pod = spread_pod(REV_IN_R1, labels=R2, match=("rev", "nope"))
    (entry,) = as_json(audit(pod))["pods"]
    assert entry["verdict"] == "stale-label"
    assert [(key["key"], key["operator"], key["verdict"]) for key in entry["keys"]] == [
        ("rev", "In", "stale-label"),
        ("nope", "In", "absent-key"),
    ]


def changed_by(*entries: object, labels: Mapping[str, str] = R2, **metadata: object) -> Any:
    pod = spread_pod(REV_IN_R1, labels=labels, metadata={"managedFields": list(entries), **metadata})
    (entry,) = as_json(audit(pod))["pods"]
    (key,) = entry["keys"]
    return key.get("changedBy")


OTHERS = {**LABELLED, "time": "2026-09-01T11:00:00Z", "fieldsV1": {"f:metadata": {"f:labels": {"f:app": {}}}}}
TWO_HOURS_EAST = {**LABELLED, "time": "2026-09-01T12:31:00+02:00"}


@pytest.mark.parametrize(
    ("entries", "labels", "changed"),
    [
        pytest.param(
            [CREATION, LABELLED],
            R2,
            {"manager": "kubectl-label", "time": "2026-09-01T10:31:00Z", "bound": "atOrBefore"},
            id="by kubectl label, at or before",
        ),
        pytest.param(
            [TWO_HOURS_EAST],
            R2,
            {"manager": "kubectl-label", "time": "2026-09-01T10:31:00Z", "bound": "atOrBefore"},
            id="times are reported in UTC",
        ),
        pytest.param([CREATION], R2, None, id="by nobody who can be named"),
        pytest.param([OTHERS], R2, None, id="the owner of another label"),
        pytest.param([LABELLED], WEB, None, id="a removal leaves no trace"),
        pytest.param([], R2, None, id="no managedFields"),
        pytest.param([{**LABELLED, "time": None}], R2, None, id="an entry without time says nothing"),
        pytest.param(
            [LABELLED, {**LABELLED, "manager": "late", "time": "2026-09-01T10:32:00Z"}, {**LABELLED, "manager": "z"}],
            R2,
            {"manager": "late", "time": "2026-09-01T10:32:00Z", "bound": "atOrBefore"},
            id="of several the last",
        ),
    ],
)
def test_the_last_manager_that_changed_a_label_is_named(
    entries: list[Json], labels: Mapping[str, str], changed: Any
) -> None:
    assert (
        changed_by(*[without(entry, "time") if entry["time"] is None else entry for entry in entries], labels=labels)
        == changed
    )


def test_a_label_that_was_changed_back_is_merged() -> None:
    """No metadata records the first change."""
    assert judged(spread_pod(REV_IN_R1, metadata={"managedFields": [LABELLED]})) == ("merged", "certain")


def test_a_controller_that_relabels_is_named() -> None:
    """The DaemonSet controller does so when it dedups revisions."""
    key = "controller-revision-hash"
    owned: Json = {"f:metadata": {"f:labels": {f"f:{key}": {}}}}
    entry = {**LABELLED, "manager": "kube-controller-manager", "fieldsV1": owned}
    pod = spread_pod(
        requirement(key, "In", "old"),
        labels={**WEB, key: "new"},
        match=(key,),
        owner="DaemonSet/web",
        metadata={"managedFields": [entry]},
    )
    (pod_verdict,) = as_json(audit(pod))["pods"]
    assert pod_verdict["verdict"] == "stale-label"
    assert pod_verdict["keys"][0]["changedBy"]["manager"] == "kube-controller-manager"
    assert (pod_verdict["keys"][0]["stored"], pod_verdict["keys"][0]["label"]) == ("old", "new")


def test_the_evidence_distinguishes_a_binding_from_an_edit() -> None:
    """Binding leaves no manager in managedFields."""
    pod = spread_pod(requirement(ZONE, "In", "x"), labels={**WEB, ZONE: "a"}, match=(ZONE,), node="a1")
    (entry,) = as_json(audit(pod, node_json("a1")))["pods"]
    assert entry["keys"][0]["evidence"] == ["binding the pod overwrote the label with its node's value"]


@pytest.mark.parametrize(
    ("labels", "verdict"),
    [pytest.param(R1, "merged", id="admitted: stored as merged"), pytest.param(WEB, "absent-key", id="no label")],
)
def test_the_verdict_on_a_manifest_is_that_on_the_merged_pod(labels: Mapping[str, str], verdict: str) -> None:
    assert judged(spread_pod(labels=labels, stored=False)) == (verdict, "certain")


@pytest.mark.parametrize("labels", [R1, R2, WEB], ids=["r1", "r2", "no label"])
@pytest.mark.parametrize("minor", [33, 37])
def test_the_author_of_a_manifest_wrote_all_of_its_selector(labels: Mapping[str, str], minor: int) -> None:
    """A manifest was never merged, so no label of it changed or was removed."""
    assert judged(spread_pod(REV_IN_R1, labels=labels, stored=False), minor=minor) == ("authored", "certain")


@pytest.mark.parametrize(
    ("labels", "verdict"),
    [(WEB, "authored"), ({**WEB, "tenant": "b"}, "merged")],
    ids=["no label", "merged behind the author's"],
)
def test_a_mismatch_in_a_manifest_is_its_authors(labels: Mapping[str, str], verdict: str) -> None:
    pod = term_pod(requirement("tenant", "NotIn", "a"), labels=labels, match=(), mismatch=("tenant",), stored=False)
    assert judged(pod) == (verdict, "certain")


def owned(kind: str, labels: Mapping[str, str], *expressions: Json) -> tuple[Json, Json]:
    """Return a stored pod without the label that its selector requires, and its owner."""
    keyed = constraint(match=["rev"], selects=selector(WEB, *expressions))
    owner = deployment("web-1", kind=kind, labels=labels, constraints=[keyed])
    return spread_pod(REV_IN_R1, labels=WEB, owner=f"{kind}/web-1"), owner


@pytest.mark.parametrize(
    ("objects", "verdict", "confidence"),
    [
        pytest.param(owned("ReplicaSet", R1), "removed-label", "certain", id="the template has the label"),
        pytest.param(owned("ReplicaSet", WEB, REV_IN_R1), "authored", "certain", id="the template has the requirement"),
        pytest.param(owned("ReplicaSet", WEB), "removed-label", "likely", id="the template has neither"),
        pytest.param(owned("StatefulSet", R1), "removed-label", "likely", id="the template may be newer than the pod"),
        pytest.param(
            owned("StatefulSet", WEB, REV_IN_R1), "removed-label", "likely", id="so may be the requirement in it"
        ),
        pytest.param(owned("ReplicaSet", R1)[:1], "removed-label", "likely", id="the owner was not read"),
    ],
)
def test_the_owner_tells_a_removed_label_from_an_authored_requirement(
    objects: tuple[Json, ...], verdict: str, confidence: str
) -> None:
    assert judged(*objects) == (verdict, confidence)


def test_a_label_that_the_controller_sets_was_removed() -> None:
    key = "controller-revision-hash"
    pod = spread_pod(requirement(key, "In", "a"), labels=WEB, match=(key,), owner="DaemonSet/web")
    assert judged(pod, deployment("web", kind="DaemonSet", labels=WEB)) == ("removed-label", "certain")


@pytest.mark.parametrize("pod", [spread_pod(stored=False), term_pod(stored=False)])
def test_missing_metadata_of_a_manifest_proves_nothing(pod: Json) -> None:
    """A missing generation is not proof of age, and on 1.33 the scheduler does the merge."""
    assert judged(pod, minor=37) == ("merged", "certain")


@pytest.mark.parametrize("first", [1, 2])
def test_a_term_shares_a_row_whatever_constraints_are_before_it(first: int) -> None:
    """Revisions of one owner may differ in the number of their spread constraints."""
    anti = affinity("podAntiAffinity", term(match=["rev"], selects=selector(WEB, REV_IN_R1)))
    constraints = (constraint(), constraint(key=HOSTNAME))
    pods = [
        pod_json(f"web-{number}", owner="ReplicaSet/web", labels=R1, constraints=constraints[:number], affinity=anti)
        for number in (first, 3 - first)
    ]
    rows = [row for row in as_json(audit(*pods))["constraints"] if row["path"] == A]
    assert [(row["podCount"], row["verdicts"]) for row in rows] == [(1, {"merged": 1})] * 2


def test_a_term_without_keys_has_no_row() -> None:
    report = as_json(audit(pod_json(affinity=affinity("podAntiAffinity", term()))))
    assert report["constraints"] == []
    assert report["groups"] == []
    assert report["summary"]["pods"] == 1
    assert verdicts(audit(term_pod(REV_IN_R1, labels=R2))) == {f"web-1 {A}": "stale-label"}
