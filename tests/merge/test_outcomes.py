"""Outcomes for one object: errors and warnings of the API, appended requirements, and requirements that stay."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from kubectl_spread.audit.merge.merging import Change, Outcome, applied, judge_workload, merge_pod, unmerge_pod
from kubectl_spread.kube.api.field import FieldPath
from kubectl_spread.kube.api.labels import describe_requirement
from kubectl_spread.kube.api.workloads import KINDS
from kubectl_spread.kube.features import behaviour, gates
from tests.builders import (
    HOSTNAME,
    ZONE,
    Json,
    affinity,
    constraint,
    decode_pod,
    pod_json,
    requirement,
    selector,
    term,
)

R1 = {"app": "web", "rev": "r1"}
R2 = {"app": "web", "rev": "r2"}
SPREAD = "spec.topologySpreadConstraints[0]"
OVERLAP = 'Invalid value: "rev": exists in both matchLabelKeys and labelSelector'
NULL = "a null labelSelector results in matching no pod"
REV_R1 = requirement("rev", "In", "r1")
X_EXISTS = requirement("x", "Exists")


def merge(pod: Json, minor: int = 37, **overrides: bool) -> Outcome:
    return merge_pod(decode_pod(pod), behaviour(minor, gates(minor, overrides)))


def unmerge(pod: Json, minor: int = 37) -> Outcome:
    return unmerge_pod(decode_pod(pod), behaviour(minor, gates(minor, {})))


def spread(*expressions: Json, match: Sequence[str] = ("rev",), labels: dict[str, str] | None = None) -> Json:
    merging = constraint(match=match, selects=selector({"app": "web"}, *expressions))
    return pod_json(labels=R1 if labels is None else labels, constraints=[merging])


def workload(kind: str, template: Json, minor: int = 37) -> Outcome:
    spec = {key: value for key, value in template["spec"].items() if value}
    owner_spec: Json = {"template": {"metadata": {"labels": template["metadata"]["labels"]}, "spec": spec}}
    match kind:
        case "CronJob":
            owner_spec = {"jobTemplate": {"spec": owner_spec}}
    body = owner_spec if kind == "PodTemplate" else {"spec": owner_spec}
    type_ = next(type_ for (_, name), type_ in KINDS.items() if name == kind)
    decoded = msgspec.json.decode(msgspec.json.encode({"metadata": {"name": "web"}, **body}), type=type_)
    return judge_workload(kind, decoded, behaviour(minor, gates(minor, {})))


def messages(outcome: Outcome) -> list[str]:
    return [error.message for error in outcome.errors]


def appended(outcome: Outcome) -> dict[str, list[str]]:
    return {
        str(change.path): [describe_requirement(requirement) for requirement in change.appended]
        for change in outcome.changes
    }


class TestMerge:
    """Creation of a pod."""

    def test_it_appends_to_the_selectors_of_all_constraints_and_terms(self) -> None:
        pod = spread()
        pod["spec"]["affinity"] = affinity("podAntiAffinity", term(match=["rev"], mismatch=["app"]), required=False)
        weighted = "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm"
        assert appended(merge(pod)) == {
            SPREAD: ["rev In [r1]"],
            weighted: ["rev In [r1]", "app NotIn [web]"],
        }

    def test_before_1_34_it_appends_nothing_to_constraints(self) -> None:
        assert merge(spread(), 33) == Outcome(())

    def test_a_refused_pod_is_not_changed_and_has_no_warnings(self) -> None:
        pod = spread(REV_R1)
        pod["spec"]["topologySpreadConstraints"].append(constraint(key=HOSTNAME, labelSelector=None))
        outcome = merge(pod)
        assert messages(outcome) == [f"{SPREAD}[0]: {OVERLAP}"]
        assert (outcome.changes, outcome.warnings) == ((), ())

    def test_errors_are_repeated_and_ordered_as_by_the_api(self) -> None:
        """Errors of affinity come first, and a key that is there three times is refused twice."""
        pod = spread(REV_R1, X_EXISTS, requirement("rev", "In", "r0"))
        pod["spec"]["affinity"] = affinity("podAffinity", term(key=""))
        where = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey"
        outcome = merge(pod)
        assert [str(error.path) for error in outcome.errors][:1] == [where]
        assert messages(outcome)[-2:] == [f"{SPREAD}[0]: {OVERLAP}"] * 2

    def test_fields_of_disabled_gates_are_dropped(self) -> None:
        outcome = merge(spread(), 33, MatchLabelKeysInPodTopologySpread=False)
        assert outcome.changes == (Change(FieldPath.parse(SPREAD), dropped=("matchLabelKeys",)),)
        assert outcome.notes == (f"{SPREAD}.matchLabelKeys: dropped, as its feature gate is off",)

    @pytest.mark.parametrize(("minor", "warned"), [(27, False), (28, True), (37, True)])
    def test_a_null_selector_has_a_warning(self, minor: int, warned: bool) -> None:
        null = term(labelSelector=None)
        terms = {
            field: affinity(field, null)[field] | affinity(field, null, required=False)[field]
            for field in ("podAntiAffinity", "podAffinity")
        }
        pod = pod_json(
            constraints=[constraint(selects={}), constraint(key=HOSTNAME, labelSelector=None)], affinity=terms
        )
        paths = [
            "topologySpreadConstraints[1]",
            *(
                f"affinity.{field}.{part}"
                for field in ("podAffinity", "podAntiAffinity")
                for part in (
                    "requiredDuringSchedulingIgnoredDuringExecution[0]",
                    "preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm",
                )
            ),
        ]
        expected = [f"spec.{path}.labelSelector: {NULL}" for path in paths]
        assert list(merge(pod, minor).warnings) == (expected if warned else [])

    def test_a_deprecated_topology_key_has_a_warning(self) -> None:
        key = "failure-domain.beta.kubernetes.io/zone"
        deprecated = f'{key} is deprecated since v1.17; use "{ZONE}" instead'
        assert merge(pod_json(constraints=[constraint(key=key)])).warnings == (f"{SPREAD}.topologyKey: {deprecated}",)


class TestWorkloads:
    """Creation of workloads."""

    @pytest.mark.parametrize(
        ("kind", "path", "labels"),
        [
            ("Deployment", "spec.template.spec", ("pod-template-hash",)),
            ("CronJob", "spec.jobTemplate.spec.template.spec", None),
            ("PodTemplate", "template.spec", ()),
        ],
    )
    def test_errors_of_a_template_have_the_path_in_its_workload(
        self, kind: str, path: str, labels: tuple[str, ...] | None
    ) -> None:
        outcome = workload(kind, pod_json(constraints=[constraint(max_skew=0)]))
        where = f"{path}.topologySpreadConstraints[0].maxSkew"
        assert messages(outcome) == [f"{where}: Invalid value: 0: must be greater than zero"]
        assert outcome.pods is not None
        assert [str(error.path) for error in outcome.pods.errors] == [f"{SPREAD}.maxSkew"]
        assert labels is None or outcome.pods.presumed_labels == labels

    def test_the_api_may_accept_a_template_and_refuse_its_pods(self) -> None:
        """An overlap is accepted in a template and refused in every pod."""
        outcome = workload("Deployment", spread(REV_R1))
        assert outcome.errors == ()
        assert outcome.pods is not None
        assert [error.message for error in outcome.pods.errors] == [f"{SPREAD}[0]: {OVERLAP}"]

    def test_labels_that_the_controller_adds_are_presumed(self) -> None:
        twice = ("pod-template-hash", "pod-template-hash")
        outcome = workload("Deployment", spread(match=twice))
        assert outcome.pods is not None
        assert [str(error.path) for error in outcome.pods.errors] == [f"{SPREAD}[1]"]
        assert workload("ReplicaSet", spread(match=twice)).pods is not None

    def test_before_1_34_the_template_is_refused(self) -> None:
        outcome = workload("Deployment", spread(REV_R1), 33)
        assert messages(outcome) == [f"spec.template.{SPREAD}.matchLabelKeys[0]: {OVERLAP}"]

    def test_a_null_selector_has_a_warning(self) -> None:
        outcome = workload("StatefulSet", pod_json(constraints=[constraint(labelSelector=None)]))
        assert outcome.warnings == (f"spec.template.{SPREAD}.labelSelector: {NULL}",)


BY_HAND = "rev In [r1] stays: written by hand"
AGAIN = "a re-creation would store"


@pytest.mark.parametrize(
    ("pod", "removed", "notes"),
    [
        pytest.param(spread(REV_R1), (0,), [], id="the merged requirement goes"),
        pytest.param(spread(X_EXISTS, REV_R1), (1,), [], id="the author's stays"),
        pytest.param(spread(X_EXISTS), (), [f"{AGAIN} rev In [r1], which is not there now"], id="missing"),
        pytest.param(spread(REV_R1, labels=R2), (0,), [f"{AGAIN} rev In [r2] instead of rev In [r1]"], id="stale goes"),
        pytest.param(
            spread(REV_R1, labels={"app": "web"}),
            (),
            ["rev In [r1] stays: the pod has no label rev, so it may be the author's"],
            id="a label that is gone",
        ),
        pytest.param(
            spread(REV_R1, REV_R1),
            (),
            ["rev In [r1] stays: rev appears 2 times in the selector, which no merge leaves behind"],
            id="duplicated",
        ),
        pytest.param(
            spread(REV_R1, X_EXISTS),
            (),
            [f"{BY_HAND} (what the merge appends stands last, in the order of the keys)"],
            id="in front of another",
        ),
        pytest.param(spread(requirement("rev", "In", "r1", "r2")), (), [], id="two values are plainly the author's"),
        pytest.param(
            spread(requirement("tenant", "In", "a"), REV_R1, match=["tenant", "rev"]),
            (1,),
            ["tenant In [a] stays: the pod has no label tenant, so it may be the author's"],
            id="each key by itself",
        ),
    ],
)
def test_unmerge(pod: Json, removed: tuple[int, ...], notes: list[str]) -> None:
    outcome = unmerge(pod)
    assert [change.removed for change in outcome.changes] == ([removed] if removed else [])
    assert list(outcome.notes) == [f"{SPREAD}: {note}" for note in notes]


def test_a_requirement_was_written_by_hand_if_another_constraint_lacks_it() -> None:
    """A creation merges a key into all selectors or into none."""
    pod = spread(REV_R1)
    pod["spec"]["topologySpreadConstraints"].append(constraint(key=HOSTNAME, match=["rev"]))
    outcome = unmerge(pod)
    assert outcome.changes == ()
    assert outcome.notes[0] == (
        f"{SPREAD}: {BY_HAND} (another constraint or term of this pod names the key and lacks it)"
    )
    assert messages(outcome) == [f"{SPREAD}[0]: {OVERLAP}"], "it cannot be created again"


def test_unmerge_removes_only_the_last_requirement_of_a_mismatch_key() -> None:
    """A pod that was created again with another tenant has two of them."""
    pod = pod_json(
        labels={"tenant": "b"},
        affinity=affinity(
            "podAffinity",
            term(
                mismatch=["tenant"],
                selects=selector(None, *(requirement("tenant", "NotIn", tenant) for tenant in "ab")),
            ),
        ),
    )
    outcome = unmerge(pod)
    assert [change.removed for change in outcome.changes] == [(1,)]
    assert outcome.notes == ()


def test_unmerge_removes_the_requirements_for_a_server_that_does_not_merge() -> None:
    """On 1.33 the pod can only be created without the merged requirement, and then stays without it."""
    outcome = unmerge(spread(REV_R1), 33)
    assert [change.removed for change in outcome.changes] == [(0,)]
    assert outcome.notes == (f"{SPREAD}: a re-creation would not store rev In [r1]",)
    assert outcome.errors == ()


def test_unmerge_does_not_change_a_manifest() -> None:
    assert unmerge(pod_json(labels=R1, constraints=[constraint(match=["rev"])], stored=False)) == Outcome(())


def test_a_label_that_binding_adds_would_be_merged_by_a_creation() -> None:
    pod = pod_json(node="a1", labels={"app": "web", ZONE: "a"}, constraints=[constraint(match=[ZONE])])
    assert unmerge(pod).notes == (f"{SPREAD}: {AGAIN} {ZONE} In [a], which is not there now",)


def test_applied_changes_share_the_other_fields_with_the_manifest() -> None:
    pod = spread(REV_R1)
    after = applied(pod, unmerge(pod).changes)
    assert after["metadata"] is pod["metadata"]
    assert after["spec"]["topologySpreadConstraints"][0]["labelSelector"] == {"matchLabels": {"app": "web"}}
    assert pod["spec"]["topologySpreadConstraints"][0]["labelSelector"]["matchExpressions"] == [REV_R1]
