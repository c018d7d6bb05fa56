"""What users change in policies, on a real API server: the action, exempt users, silenced rules, namespaces."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytest
import yaml

from tests.builders import Json, constraint, selector
from tests.controlplane.client import ApiClient, ApiError
from tests.controlplane.cluster import ControlPlane
from tests.e2e.guarded import ABSENT, DENY, printed, refusal
from tests.e2e.manifests import pod, workload
from tests.e2e.spread import Plugin, Spread

pytestmark = pytest.mark.e2e

AGENT = "system:serviceaccount:mesh:agent"
VIOLATION = "validation.policy.admission.k8s.io/validation_failure"


@pytest.fixture(scope="module")
def cluster(own_control_plane: ControlPlane) -> ControlPlane:
    """Return a cluster with two namespaces and two pods whose label ``rev`` is merged."""
    api = own_control_plane.api
    for name in ("chosen", "other"):
        namespace = {"name": name, "labels": {"policies": name}}
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": namespace})
    for name, silencing in (("plain", {}), ("silenced", {"kubectl-spread/ignore": "SPR101"})):
        metadata = {"annotations": silencing}
        labels = {"app": "web", "rev": "r1"}
        api.create(pod(name, [constraint(match=["rev"])], labels=labels, namespace="chosen", metadata=metadata))
    return own_control_plane


@pytest.fixture(scope="module")
def spread(plugin: Plugin, cluster: ControlPlane) -> Spread:
    """Return ``kubectl spread`` on that cluster."""
    return plugin.on(cluster)


def relabel(api: ApiClient, name: str) -> None:
    """Change the merged label of a pod, without storing it."""
    path = f"/api/v1/namespaces/chosen/pods/{name}?dryRun=All"
    api.patch(path, {"metadata": {"labels": {"rev": "r2"}}})


def create(api: ApiClient, namespace: str) -> None:
    """Create a Deployment that SPR107 is about, without storing it."""
    api.create(workload("Deployment", "web", [ABSENT], namespace=namespace), dryRun="All")


def apply(cluster: ControlPlane, documents: Sequence[Json]) -> None:
    """Install policies in deny, and wait until they refuse a relabelled pod and a workload."""
    cluster.apply(documents)
    for send in (partial(relabel, cluster.api, "plain"), partial(create, cluster.api, "chosen")):
        cluster.wait_for(partial(refusal, send), 60, "the policies are in effect")


def test_a_user_who_is_added_to_the_file_may_relabel_and_others_may_not(cluster: ControlPlane, spread: Spread) -> None:
    """As docs/policy.md says about operators and service meshes."""
    text = spread("policy", DENY).stdout
    last = '"system:serviceaccount:kube-system:statefulset-controller"'
    assert last in text
    apply(cluster, list(yaml.safe_load_all(text.replace(last, f'{last},\n        "{AGENT}"'))))
    with (
        cluster.client_of(AGENT, ["system:masters"]) as agent,
        cluster.client_of("someone", ["system:masters"]) as user,
    ):
        relabel(agent, "plain")
        assert refusal(partial(relabel, user, "plain")).startswith("SPR101 stale-label: ")
        assert refusal(partial(create, agent, "chosen")).startswith("SPR107 absent-key: ")


def test_the_annotation_on_a_pod_silences_the_rule(cluster: ControlPlane, spread: Spread) -> None:
    apply(cluster, printed(spread, DENY))
    assert refusal(partial(relabel, cluster.api, "plain"))
    relabel(cluster.api, "silenced")


def test_excluded_namespaces_are_left_alone(cluster: ControlPlane, spread: Spread) -> None:
    apply(cluster, printed(spread, DENY))
    assert refusal(partial(create, cluster.api, "other"))
    apply(cluster, printed(spread, DENY, "--exclude-namespace=other,1234"))

    def is_left_alone() -> bool:
        try:
            create(cluster.api, "other")
        except ApiError:
            return False
        return True

    cluster.wait_for(is_left_alone, 60, "the exclusion of the namespace is in effect")
    assert refusal(partial(create, cluster.api, "chosen"))


def test_a_requirement_on_a_label_of_the_controller_is_met(cluster: ControlPlane, spread: Spread) -> None:
    """SPR206 knows which labels the controller will set, and not their values."""
    apply(cluster, printed(spread, DENY))
    for requirement in (
        {"key": "pod-template-hash", "operator": "Exists"},
        {"key": "pod-template-hash", "operator": "In", "values": ["5d9c7b7f5"]},
    ):
        selects = {**selector({"app": "web"}), "matchExpressions": [requirement]}
        send = partial(cluster.api.create, dryRun="All")
        send(workload("Deployment", "web", [constraint(selects=selects)], namespace="chosen"))
        on_stateful_set = workload("StatefulSet", "web", [constraint(selects=selects)], namespace="chosen")
        assert refusal(partial(send, on_stateful_set)).startswith("SPR206 self-mismatch: ")


def test_audit_accepts_in_silence_and_writes_the_violation_to_the_log(cluster: ControlPlane, spread: Spread) -> None:
    cluster.apply(printed(spread, "--action=audit"))

    def violations() -> list[str]:
        # An earlier policy may still refuse it.
        refusal(partial(create, cluster.api, "chosen"))
        return [text for event in cluster.audited() if (text := event.get("annotations", {}).get(VIOLATION))]

    found = cluster.wait_for(violations, 60, "a violation in the audit log")
    assert "SPR107 absent-key: matchLabelKeys lists absent" in found[-1]
    web = workload("Deployment", "web", [ABSENT], namespace="chosen")
    answer = cluster.api.answer("POST", cluster.api.collection(web), web)
    assert (answer.refused, answer.warnings) == (False, ())
