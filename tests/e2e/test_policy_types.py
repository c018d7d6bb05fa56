"""The policies of each minor are stored by its kube-apiserver, and kube-controller-manager finds no wrong type."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.builders import Json
from tests.controlplane import binaries
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import require_built
from tests.e2e import guarded
from tests.e2e.spread import Plugin

pytestmark = [pytest.mark.e2e, pytest.mark.nightly]

V1_33, V1_34 = binaries.OLDER_APISERVERS
API = "/apis/admissionregistration.k8s.io/v1"
POLICY = "ValidatingAdmissionPolicy"
POLICIES = f"{API}/validatingadmissionpolicies"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Return a control plane whose controllers check the types of the policies that any of its apiservers stores."""
    for version in (V1_33, V1_34):
        require_built(version, ("kube-apiserver",))
    require_built()
    with ControlPlane.start(tmp_path_factory.mktemp("types"), scheduler=False) as control_plane:
        yield control_plane


def test_a_wrong_field_has_a_warning(cluster: ControlPlane) -> None:
    """The check finds a field that Deployments do not have."""
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}
    manifest = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": POLICY,
        "metadata": {"name": "wrong"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "object.spec.templates.size() == 0"}],
        },
    }
    cluster.api.create(manifest)
    (warning,) = _warnings(cluster, "wrong")
    assert "undefined field 'templates'" in warning["warning"]
    cluster.api.request("DELETE", f"{POLICIES}/wrong")


@pytest.mark.parametrize("version", [V1_33, binaries.KUBERNETES_VERSION])
def test_no_expression_has_a_warning(cluster: ControlPlane, plugin: Plugin, version: str) -> None:
    """The apiserver of a minor stores its policies, and kube-controller-manager of 1.37 checks their types."""
    documents = _stored(cluster, plugin, version)
    names = [each["metadata"]["name"] for each in documents if each["kind"] == POLICY]
    assert {name: _warnings(cluster, name) for name in names} == {
        "kubectl-spread-labels": [],
        "kubectl-spread-workloads": [],
    }


def test_the_policies_of_134_are_those_of_137(cluster: ControlPlane, plugin: Plugin) -> None:
    """The apiserver of 1.34 stores them, and their types are those that were checked."""
    older = _stored(cluster, plugin, V1_34)
    newest = guarded.printed(plugin.on(cluster), guarded.DENY, "--for=1.37")
    assert [each["spec"] for each in older] == [each["spec"] for each in newest]


def _stored(cluster: ControlPlane, plugin: Plugin, version: str) -> list[Json]:
    """Replace the stored policies by those of a minor, in an apiserver of that minor, and return them."""
    for resource in (POLICIES, f"{API}/validatingadmissionpolicybindings"):
        cluster.api.request("DELETE", resource)
    newest = version == binaries.KUBERNETES_VERSION
    client = cluster.api if newest else cluster.add_apiserver(version=version).client
    minor = version.removeprefix("v").rpartition(".")[0]
    documents = guarded.printed(plugin.on(cluster), guarded.DENY, f"--for={minor}")
    for document in documents:
        client.create(document, fieldValidation="Strict")
    return documents


def _warnings(cluster: ControlPlane, name: str) -> list[Json]:
    """Wait until the types of a policy are checked, and return the warnings."""

    def checked() -> Json | None:
        policy: Json = cluster.api.get(f"{POLICIES}/{name}")
        is_current = policy.get("status", {}).get("observedGeneration") == policy["metadata"]["generation"]
        return policy if is_current else None

    policy = cluster.wait_for(checked, 180, f"{name} is checked")
    assert policy
    warnings: list[Json] = policy["status"]["typeChecking"].get("expressionWarnings", [])
    return warnings
