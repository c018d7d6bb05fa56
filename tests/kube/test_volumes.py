"""The nodes that PersistentVolumes allow, and the claims of pods."""

from __future__ import annotations

import pytest

from kubectl_spread.kube.api.labels import ascending
from kubectl_spread.kube.api.sparse import alone
from kubectl_spread.kube.api.storage import PersistentVolume, PersistentVolumeClaim
from kubectl_spread.kube.api.types import NodeSelector
from kubectl_spread.kube.api.workloads import Deployment, StatefulSet
from kubectl_spread.kube.scheduler import volumes
from kubectl_spread.kube.scheduler.podtopologyspread.domains import NodeLabels
from kubectl_spread.kube.scheduler.volumes import ClaimedVolumes, Unresolved
from tests.builders import (
    ZONE,
    Json,
    claim_json,
    decode,
    decode_node,
    decode_pod,
    node_json,
    pod_json,
    requirement,
    using_claim,
    volume_json,
)

BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
NAMES = ("a1", "b1", "c1", "none")
NODES = NodeLabels(
    [*(decode_node(node_json(name)) for name in ["a1", "b1", "c1"]), decode_node(node_json("none", without=[ZONE]))]
)
TEMPLATES = ({"metadata": {"name": "data"}}, {"metadata": {"name": "log"}})


def names(bits: int) -> list[str]:
    return [NAMES[number] for number in ascending(bits)]


def volume(*expressions: Json, **labels: str) -> PersistentVolume:
    return decode(volume_json("pv", *expressions, labels=labels), PersistentVolume)


def node_selector(*terms: Json) -> NodeSelector:
    return decode({"nodeSelectorTerms": list(terms)}, NodeSelector)


@pytest.mark.parametrize(
    ("selector", "allowed"),
    [
        pytest.param(None, ["a1", "b1", "c1", "none"], id="no node affinity"),
        pytest.param(
            node_selector({"matchExpressions": [requirement(ZONE, "In", "a", "c")]}), ["a1", "c1"], id="In two zones"
        ),
        pytest.param(
            node_selector({"matchExpressions": [requirement(ZONE, "NotIn", "a")]}), ["b1", "c1", "none"], id="NotIn"
        ),
        pytest.param(
            node_selector(
                {"matchExpressions": [requirement(ZONE, "In", "a")]},
                {"matchExpressions": [requirement("kubernetes.io/hostname", "In", "b1")]},
            ),
            ["a1", "b1"],
            id="one of two terms",
        ),
        pytest.param(node_selector(), [], id="required, but without terms"),
        pytest.param(
            node_selector({"matchFields": [requirement("metadata.name", "In", "a1")]}),
            [],
            id="matchFields: a volume sees no name",
        ),
        pytest.param(
            node_selector({"matchFields": [requirement("metadata.name", "NotIn", "a1")]}),
            ["a1", "b1", "c1", "none"],
            id="matchFields NotIn",
        ),
    ],
)
def test_the_node_affinity_of_a_volume(selector: NodeSelector | None, allowed: list[str]) -> None:
    assert names(volumes.allowed_by_affinity(selector, NODES)) == allowed


@pytest.mark.parametrize(
    ("labels", "allowed"),
    [
        pytest.param({}, ["a1", "b1", "c1", "none"], id="no labels"),
        pytest.param({ZONE: "b"}, ["b1", "none"], id="one zone; a node without any such label is allowed"),
        pytest.param({ZONE: "a__c"}, ["a1", "c1", "none"], id="two zones"),
        pytest.param({ZONE: " a __c"}, ["a1", "c1", "none"], id="white space around a zone"),
        pytest.param({ZONE: "a__"}, ["a1", "b1", "c1", "none"], id="a label with an empty zone is ignored"),
        pytest.param({ZONE: "a,c"}, ["none"], id="commas do not separate zones"),
        pytest.param({BETA_ZONE: "c"}, ["c1", "none"], id="the beta label is compared with the nodes' stable label"),
        pytest.param({REGION: "eu"}, ["none"], id="nodes with a zone but without the region are refused"),
        pytest.param({ZONE: "a", BETA_ZONE: "b"}, ["none"], id="all labels have to match"),
    ],
)
def test_the_zone_labels_of_a_volume(labels: dict[str, str], allowed: list[str]) -> None:
    assert names(volumes.allowed_by_zone(volumes.topology(labels), NODES)) == allowed


def test_a_beta_label_of_a_node_is_preferred_to_its_stable_one() -> None:
    nodes = NodeLabels([decode_node(node_json("a1", labels={BETA_ZONE: "b"}))])
    assert volumes.allowed_by_zone(volumes.topology({BETA_ZONE: "a"}), nodes) == 0
    assert volumes.allowed_by_zone(volumes.topology({BETA_ZONE: "b"}), nodes) == 1


def test_a_claim_leads_to_its_volume_in_its_own_namespace() -> None:
    claimed = ClaimedVolumes()
    claimed.add(decode(claim_json("data", "pv"), PersistentVolumeClaim))
    claimed.add(decode(claim_json("new"), PersistentVolumeClaim))
    claimed.add(decode(claim_json("lost", "gone"), PersistentVolumeClaim))
    claimed.add(volume(requirement(ZONE, "In", "a")))
    data = claimed.volume_of("default", "data")
    assert isinstance(data, PersistentVolume)
    assert volumes.node_selector(data) == node_selector({"matchExpressions": [requirement(ZONE, "In", "a")]})
    assert claimed.volume_of("default", "new") is Unresolved.UNBOUND
    assert claimed.volume_of("default", "lost") is Unresolved.UNREAD
    assert claimed.volume_of("other", "data") is Unresolved.UNREAD
    claimed.complete = True
    assert claimed.volume_of("default", "lost") is Unresolved.NO_VOLUME
    assert claimed.volume_of("other", "data") is Unresolved.NO_CLAIM


def test_a_stateful_set_gives_each_pod_claims_of_its_own() -> None:
    """A claim template replaces the volume of its name, and the claim of an ephemeral volume is not known before."""
    spec = {
        "volumes": [using_claim("old", name="data"), using_claim("assets", name="www"), {"name": "x", "ephemeral": {}}]
    }
    manifest = {"spec": {"volumeClaimTemplates": list(TEMPLATES), "template": {"spec": spec}, "ordinals": {"start": 5}}}
    claims = decode(manifest, StatefulSet).claims
    assert claims.of("db-5") == ("data-db-5", "log-db-5", "assets")
    assert claims.start == 5


def test_the_pods_of_a_deployment_share_claims() -> None:
    spec = {"volumes": [using_claim("assets"), using_claim("assets", name="again"), {"name": "tmp", "emptyDir": {}}]}
    claims = decode({"spec": {"template": {"spec": spec}}}, Deployment).claims
    assert (claims.of("web-1"), bool(claims)) == (("assets",), True)
    assert not decode({"spec": {}}, Deployment).claims


@pytest.mark.parametrize(
    ("node", "claims"),
    [
        pytest.param("", ("assets", "web-1-scratch"), id="pending: also that of its ephemeral volume"),
        pytest.param("a1", ("assets",), id="bound: its replacement gets another ephemeral volume"),
    ],
)
def test_the_claims_of_a_pod(node: str, claims: tuple[str, ...]) -> None:
    ephemeral: Json = {"name": "scratch", "ephemeral": {}}
    volumes = [using_claim("assets"), ephemeral, {"name": "tmp", "emptyDir": {}}]
    assert alone(decode_pod(pod_json(node=node, volumes=volumes))).claims == claims
