"""Mutating admission runs before the merge: its labels are merged, and its expressions are refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.builders import Json, constraint
from tests.controlplane.client import ApiError
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import SCHEDULING_GATE, pod
from tests.e2e.spread import Spread
from tests.e2e.verdicts import ABSENT, MERGED, STALE, edit, look, pod_verdicts
from tests.e2e.workloads import pods

pytestmark = pytest.mark.e2e

POLICIES = "admissionregistration.k8s.io/v1"
SETS_A_LABEL: Json = {
    "patchType": "ApplyConfiguration",
    "applyConfiguration": {"expression": 'Object{metadata: Object.metadata{labels: {"rev": "policy"}}}'},
}
WRITES_THE_EXPRESSION: Json = {
    "patchType": "JSONPatch",
    "jsonPatch": {
        "expression": """[JSONPatch{
            op: "add",
            path: "/spec/topologySpreadConstraints/0/labelSelector/matchExpressions",
            value: [Object.spec.topologySpreadConstraints.labelSelector.matchExpressions{
                key: "rev", operator: "In", values: [object.metadata.labels["rev"]]
            }]
        }]"""
    },
}
REFUSED = 'spec.topologySpreadConstraints[0][0]: Invalid value: "rev": exists in both matchLabelKeys and labelSelector'


@contextmanager
def _policy(cluster: ControlPlane, namespace: str, mutation: Json, labels: Json) -> Iterator[None]:
    """Let a policy change the pods created in a namespace, in effect from the first line of the ``with`` block."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    namespace_selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    specs = {
        "MutatingAdmissionPolicy": {
            "matchConstraints": {"namespaceSelector": namespace_selector, "resourceRules": [rule]},
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "mutations": [mutation],
        },
        "MutatingAdmissionPolicyBinding": {"policyName": namespace},
    }
    for kind, spec in specs.items():
        cluster.api.create({"apiVersion": POLICIES, "kind": kind, "metadata": {"name": namespace}, "spec": spec})
    try:
        probe = pod("probe", [constraint()], labels=labels, namespace=namespace)
        cluster.wait_for(lambda: _changes(cluster, probe), what="the policy is in effect")
        yield
    finally:
        for plural in ("mutatingadmissionpolicybindings", "mutatingadmissionpolicies"):
            cluster.api.request("DELETE", f"/apis/{POLICIES}/{plural}/{namespace}")


def _changes(cluster: ControlPlane, manifest: Json) -> bool:
    """Tell whether the API server would change a pod without matchLabelKeys."""
    path = f"/api/v1/namespaces/{manifest['metadata']['namespace']}/pods?dryRun=All"
    stored = cluster.api.request("POST", path, manifest)
    (clause,) = stored["spec"]["topologySpreadConstraints"]
    expressions = "matchExpressions" in clause["labelSelector"]
    return expressions or bool(stored["metadata"]["labels"] != manifest["metadata"]["labels"])


def test_a_label_set_by_a_policy_is_merged(control_plane: ControlPlane, namespace: str, spread: Spread) -> None:
    """The policy's value is stored and merged, whether the label is new or replaces the user's value."""
    keys = [constraint(match=["rev"])]
    by_user: Json = {"app": "web", "rev": "r1"}
    # Created before the policy, for comparison.
    control_plane.api.create(pod("earlier", keys, labels=by_user, namespace=namespace, **SCHEDULING_GATE))
    control_plane.api.create(pod("earlier-bare", keys, namespace=namespace, **SCHEDULING_GATE))
    with _policy(control_plane, namespace, SETS_A_LABEL, by_user):
        for name in ("overwritten", "relabelled", "put-back"):
            control_plane.api.create(pod(name, keys, labels=by_user, namespace=namespace, **SCHEDULING_GATE))
        control_plane.api.create(pod("added", keys, namespace=namespace, **SCHEDULING_GATE))
    edit(control_plane, namespace, {"rev=r1": ["relabelled", "put-back"], "rev=policy": ["put-back"]})
    report = look(spread, namespace)
    assert pod_verdicts(report) == {
        "earlier": MERGED,
        "earlier-bare": ABSENT,
        "overwritten": MERGED,
        "added": MERGED,
        # The user's value is back, but the value of the policy was merged.
        "relabelled": STALE,
        "put-back": MERGED,
    }
    stored = {pod["metadata"]["name"]: _stored(pod) for pod in pods(control_plane, namespace)}
    assert stored.pop("earlier") == ["r1"]
    assert stored.pop("earlier-bare") is None
    assert set(map(str, stored.values())) == {"['policy']"}
    (key,) = report.verdict_of("relabelled")["keys"]
    assert (key["stored"], key["label"]) == ("policy", "r1")


def _stored(manifest: Json) -> list[str] | None:
    (clause,) = manifest["spec"]["topologySpreadConstraints"]
    expressions = clause["labelSelector"].get("matchExpressions", [])
    values: list[str] | None = expressions[0]["values"] if expressions else None
    return values


def test_an_expression_written_by_a_policy_is_refused(
    control_plane: ControlPlane, namespace: str, spread: Spread
) -> None:
    """The policy writes the same expression as the merge; a pod without the key in matchLabelKeys is accepted."""
    labels: Json = {"app": "web", "rev": "r1"}
    twice = pod("twice", [constraint(match=["rev"])], labels=labels, namespace=namespace, **SCHEDULING_GATE)
    with _policy(control_plane, namespace, WRITES_THE_EXPRESSION, labels):
        with pytest.raises(ApiError) as refused:
            control_plane.api.create(twice)
        control_plane.api.create(pod("once", [constraint()], labels=labels, namespace=namespace, **SCHEDULING_GATE))
    message = json.loads(str(refused.value).partition(": ")[2])["message"]
    assert message == f'Pod "twice" is invalid: {REFUSED}'
    report = look(spread, namespace)
    (row,) = report["constraints"]
    assert row["workload"]["name"] == "once"
    assert (row["verdicts"], report["pods"]) == ({}, [])
    assert _stored(pods(control_plane, namespace)[0]) == ["r1"]
