"""The messages of policies, word by word, with which a real API server refuses requests."""

from __future__ import annotations

from functools import partial

import pytest

from tests.builders import Json, constraint
from tests.controlplane.cluster import ControlPlane
from tests.e2e.guarded import refusal, try_create, try_label
from tests.e2e.manifests import workload

pytestmark = pytest.mark.e2e

UNSPREAD = "They do not count themselves, so they may all be placed together."


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (
            workload("StatefulSet", "db", [constraint(match=["pod-template-hash"])]),
            (
                "SPR107 absent-key: matchLabelKeys lists pod-template-hash, but pods of a StatefulSet never have that "
                "label, so the key is ignored. Use controller-revision-hash instead of pod-template-hash."
            ),
        ),
        (
            workload("Deployment", "web", [constraint(match=["tenant", "team", "rev"])]),
            (
                "SPR107 absent-key: matchLabelKeys lists tenant, team and rev, but the pods do not have those labels, "
                "so the keys are ignored. List a label that the pods have, or set this one in the pod template."
            ),
        ),
        (
            workload("Deployment", "web", [constraint(match=["app"])]),
            (
                "SPR202 pods-refused: kube-apiserver accepts the template and refuses every pod of it: app exists in "
                "both matchLabelKeys and labelSelector. Name each key once, in matchLabelKeys or in labelSelector."
            ),
        ),
        (
            workload("Deployment", "web", [constraint(match=["rev", "rev"])], labels={"app": "web", "rev": "r1"}),
            (
                "SPR202 pods-refused: kube-apiserver accepts the template and refuses every pod of it: rev is listed "
                "twice in matchLabelKeys. Name each key once, in matchLabelKeys or in labelSelector."
            ),
        ),
        (
            workload("Deployment", "web", [constraint(selects={"matchLabels": {"app": "wbe"}})]),
            (
                f"SPR206 self-mismatch: The selector requires app=wbe, but the pods have app=web. {UNSPREAD} Make "
                "labelSelector and the labels of the pod template agree."
            ),
        ),
    ],
    ids=["never", "several keys", "in both", "twice", "unmet"],
)
def test_a_message_says_what_is_wrong_and_what_to_do(
    guarded_cluster: ControlPlane, manifest: Json, message: str
) -> None:
    assert refusal(partial(try_create, guarded_cluster, manifest)) == message


@pytest.mark.parametrize(
    ("name", "labels", "message"),
    [
        (
            "merged",
            {"rev": "r2"},
            (
                "SPR101 stale-label: Label rev changed from r1 to r2 after creation. Its selector keeps the old value, "
                "and pods that select the old value no longer count it. Keep the old value here, and change the label "
                "in the pod template, so that new pods are created with it."
            ),
        ),
        (
            "stale",
            {"rev": None},
            (
                "SPR102 removed-label: Label rev was removed after creation, but the selector still requires rev=r1. "
                "Pods that select the label no longer count it. Keep the label here, and remove it from the pod "
                "template, so that new pods are created without it."
            ),
        ),
        (
            "authored",
            {"job-name": "api"},
            (
                "SPR101 stale-label: Label job-name was added with the value api, but the selector requires "
                "job-name=web. The selector is merged only when a pod is created. Leave the label out, or give it the "
                "value web."
            ),
        ),
        ("authored", {"job-name": "web"}, ""),
    ],
    ids=["changed", "removed", "added", "added with the value of the selector"],
)
def test_the_guard_names_the_value_in_the_selector(
    guarded_cluster: ControlPlane, name: str, labels: Json, message: str
) -> None:
    """The pod ``stale`` has ``rev=r2``, and its selector requires ``rev=r1``; ``authored`` never had a ``job-name``."""
    assert refusal(partial(try_label, guarded_cluster, name, labels)) == message
