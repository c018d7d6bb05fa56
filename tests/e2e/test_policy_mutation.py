"""``--mutate`` gives new revisions of Deployments the key, and starts no rollout by itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import pytest

from tests.builders import HOSTNAME, Json, constraint
from tests.controlplane import binaries
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import require_built
from tests.e2e import guarded
from tests.e2e.manifests import deployment
from tests.e2e.spread import Plugin, Spread
from tests.e2e.workloads import roll_out, wait_for_rollout

pytestmark = pytest.mark.e2e

V1_34 = binaries.OLDER_APISERVERS[1]
KEY = "pod-template-hash"
POLICIES = "/apis/admissionregistration.k8s.io"


def _without_key(name: str, namespace: str) -> Json:
    """Return a Deployment with one constraint that selects its pods, without matchLabelKeys."""
    keys = [constraint(selects={"matchLabels": {"app": name}})]
    return deployment(name, keys, replicas=2, labels={"app": name}, namespace=namespace)


def _mutating(spread: Spread, *arguments: str) -> list[Json]:
    """Return the policy that changes Deployments, and its binding."""
    documents = guarded.printed(spread, "--mutate", *arguments)
    return [each for each in documents if each["kind"].startswith("Mutating")]


@pytest.fixture(scope="module")
def shop(control_plane: ControlPlane, spread: Spread) -> Iterator[str]:
    """Return a namespace with the policy, and with the Deployment ``earlier``, which was there before."""
    with control_plane.namespace("shop") as namespace:
        roll_out(control_plane, _without_key("earlier", namespace))
        documents = _mutating(spread, f"--namespace-selector=kubernetes.io/metadata.name={namespace}")
        control_plane.apply(documents)
        try:
            probe = _without_key("probe", namespace)
            control_plane.wait_for(
                lambda: _keys(control_plane.api.create(probe, dryRun="All")) == [[KEY]], 60, "active"
            )
            yield namespace
        finally:
            content = {"apiVersion": "v1", "kind": "List", "items": documents}
            control_plane.kubectl("delete", "-f", "-", input=json.dumps(content))


def _keys(stored: Json) -> list[list[str]]:
    """Return the matchLabelKeys of the constraints of a Deployment."""
    return [each.get("matchLabelKeys", []) for each in stored["spec"]["template"]["spec"]["topologySpreadConstraints"]]


def _stored(cluster: ControlPlane, name: str, namespace: str) -> Json:
    stored: Json = cluster.api.get(f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}")
    return stored


def _revisions(cluster: ControlPlane, name: str, namespace: str) -> int:
    path = f"/apis/apps/v1/namespaces/{namespace}/replicasets"
    return len(cluster.api.get(path, labelSelector=f"app={name}")["items"])


def test_only_constraints_without_a_revision_get_the_key(control_plane: ControlPlane, shop: str) -> None:
    """A constraint keeps its own keys, its selection of one revision, and its selection of nothing."""
    by_revision = {"matchExpressions": [{"key": KEY, "operator": "Exists"}]}
    constraints = [
        constraint(),
        constraint(key=HOSTNAME, match=["app"], selects={"matchLabels": {"tier": "x"}}),
        constraint(hard=False, selects=by_revision),
        constraint(key=HOSTNAME, hard=False, selects={}),
        constraint(key="example.com/rack", labelSelector=None),
    ]
    stored = control_plane.api.create(deployment("several", constraints, namespace=shop), dryRun="All")
    assert _keys(stored) == [[KEY], ["app"], [], [], []]


def test_nothing_rolls_out_by_the_policy(control_plane: ControlPlane, shop: str) -> None:
    """The key comes with the next change of the template."""
    before = _stored(control_plane, "earlier", shop)
    control_plane.kubectl("scale", "deploy/earlier", "-n", shop, "--replicas=3")
    control_plane.kubectl("annotate", "deploy/earlier", "-n", shop, "example.com/note=yes")
    control_plane.kubectl("label", "deploy/earlier", "-n", shop, "tier=one")
    control_plane.apply(_without_key("earlier", shop))
    wait_for_rollout(control_plane, "deploy/earlier", shop)
    after = _stored(control_plane, "earlier", shop)
    assert after["spec"]["template"] == before["spec"]["template"]
    assert (_keys(after), _revisions(control_plane, "earlier", shop)) == ([[]], 1)
    control_plane.kubectl("set", "image", "deploy/earlier", "app=registry.example/app:2", "-n", shop)
    wait_for_rollout(control_plane, "deploy/earlier", shop)
    assert _keys(_stored(control_plane, "earlier", shop)) == [[KEY]]
    assert _revisions(control_plane, "earlier", shop) == 2


@pytest.mark.parametrize("command", [["apply"], ["apply", "--server-side"], ["replace"]], ids=" ".join)
def test_the_same_manifest_again_changes_nothing(
    control_plane: ControlPlane, shop: str, command: Sequence[str]
) -> None:
    """The manifest has no matchLabelKeys, and the stored object has the key of the policy."""
    name = "-".join(part.strip("-") for part in command)
    manifest = json.dumps(_without_key(name, shop))
    create = "create" if command == ["replace"] else command[0]
    control_plane.kubectl(create, *command[1:], "-f", "-", input=manifest)
    wait_for_rollout(control_plane, f"deploy/{name}", shop)
    before = _stored(control_plane, name, shop)["spec"]
    control_plane.kubectl(*command, "-f", "-", input=manifest)
    after = _stored(control_plane, name, shop)
    assert after["spec"] == before
    assert _keys(after) == [[KEY]]
    wait_for_rollout(control_plane, f"deploy/{name}", shop)
    assert _revisions(control_plane, name, shop) == 1


@pytest.mark.nightly
def test_the_beta_api_of_134(tmp_path_factory: pytest.TempPathFactory, plugin: Plugin) -> None:
    """kube-apiserver of 1.34 serves it with a feature gate and a flag."""
    require_built(V1_34, ("kube-apiserver",))
    with ControlPlane.start(
        tmp_path_factory.mktemp("beta"),
        version=V1_34,
        feature_gates={"MutatingAdmissionPolicy": True},
        extra_flags=["--runtime-config=admissionregistration.k8s.io/v1beta1=true"],
        scheduler=False,
        controllers=False,
    ) as cluster:
        cluster.apply(_mutating(plugin.on(cluster), "--for=1.34"))
        probe = _without_key("probe", "default")
        cluster.wait_for(lambda: _keys(cluster.api.create(probe, dryRun="All")) == [[KEY]], 60, "the policy is active")
