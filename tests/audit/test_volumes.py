"""The volumes of pods: the nodes that they refuse, and the answers that depend on them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubectl_spread.audit.evaluation import volumes
from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.audit.evaluation.obstacles import Obstacle, ObstacleKind
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.diagnosis.needs import claims_decide
from tests.audits import as_json, audit, deployment, explained
from tests.builders import (
    ZONE,
    Json,
    claim_json,
    constraint,
    node_json,
    pod_json,
    requirement,
    using_claim,
    volume_json,
)

NODES = [node_json(name) for name in ("a1", "b1", "c1")]
NODE_AFFINITY = Obstacle(ObstacleKind.VOLUME, "the node affinity of a PersistentVolume does not match")
OTHER_ZONE = Obstacle(ObstacleKind.VOLUME, "the zone of a PersistentVolume does not match")


def stateful_set(name: str = "db", **spec: object) -> Json:
    workload = deployment(name, kind="StatefulSet", constraints=[constraint()])
    workload["spec"] |= {"volumeClaimTemplates": [{"metadata": {"name": "data"}}], **spec}
    return workload


def db(ordinal: int, node: str = "a1") -> Json:
    claim = using_claim(f"data-db-{ordinal}")
    return pod_json(f"db-{ordinal}", node=node, owner="StatefulSet/db", constraints=[constraint()], volumes=[claim])


def softened(manifest: Json) -> Json:
    """Return a manifest whose constraints are ScheduleAnyway."""
    softer: Json = json.loads(json.dumps(manifest).replace("DoNotSchedule", "ScheduleAnyway"))
    return softer


def without_volumes(pod: Json) -> Json:
    return {**pod, "spec": {**pod["spec"], "volumes": []}}


def check(*objects: Json) -> Audit:
    """Return an audit of pods that were not read in detail."""
    return audit(*NODES, *objects, detailed=False)


def claim_of(storage_class: str) -> Json:
    """Return a claim that is not bound, of a class."""
    claim = claim_json("data-db-0")
    return {**claim, "spec": {"storageClassName": storage_class}}


def zonal(name: str, zone: str) -> Json:
    return volume_json(name, requirement(ZONE, "In", zone))


def bound(ordinal: int, zone: str) -> list[Json]:
    """Return the claim of a StatefulSet's pod, and the volume in a zone that it is bound to."""
    return [claim_json(f"data-db-{ordinal}", f"pv-{ordinal}"), zonal(f"pv-{ordinal}", zone)]


def record(evaluation: Audit, name: str) -> PodRecord:
    (pod,) = [pod for pod in evaluation.pods if pod.name == name]
    return pod


def obstacles(evaluation: Audit, name: str) -> list[Obstacle | None]:
    answer = evaluation.volumes.of(record(evaluation, name))
    return [answer.obstacle(node["metadata"]["name"]) for node in NODES]


def test_the_volume_of_a_stateful_sets_pod_keeps_it_in_its_zone() -> None:
    evaluation = check(stateful_set(), db(0), db(1, "b1"), *bound(0, "a"), *bound(1, "b"))
    assert obstacles(evaluation, "db-0") == [None, NODE_AFFINITY, NODE_AFFINITY]
    assert obstacles(evaluation, "db-1") == [NODE_AFFINITY, None, NODE_AFFINITY]
    assert evaluation.volumes.of(record(evaluation, "db-0")).unknown == ""


def test_a_zone_label_keeps_pods_in_its_zones() -> None:
    labelled = volume_json("pv-0", labels={ZONE: "a__b"})
    evaluation = check(stateful_set(), db(0), claim_json("data-db-0", "pv-0"), labelled)
    assert obstacles(evaluation, "db-0") == [None, None, OTHER_ZONE]


def test_node_affinity_is_asked_before_zone_labels() -> None:
    both = volume_json("pv-0", requirement(ZONE, "In", "a"), labels={ZONE: "b"})
    evaluation = check(stateful_set(), db(0), claim_json("data-db-0", "pv-0"), both)
    assert obstacles(evaluation, "db-0") == [OTHER_ZONE, NODE_AFFINITY, NODE_AFFINITY]


def test_a_pod_of_a_capture_without_its_volumes_has_the_claims_of_its_template() -> None:
    evaluation = audit(*NODES, *unconstrained(*bound(0, "a"), *bound(1, "a")))
    assert obstacles(evaluation, "db-0") == [None, NODE_AFFINITY, NODE_AFFINITY]


def test_pods_with_equal_answers_share_one() -> None:
    evaluation = audit(
        *NODES, stateful_set(), db(0), db(1), db(2, "b1"), *bound(0, "a"), *bound(1, "a"), *bound(2, "b")
    )
    first, second, third = (evaluation.volumes.of(record(evaluation, f"db-{ordinal}")) for ordinal in range(3))
    assert first is second
    assert first is not third


@pytest.mark.parametrize(
    ("objects", "unknown"),
    [
        pytest.param([], volumes.UNREAD, id="nothing was read"),
        pytest.param([claim_json("data-db-0", "pv-0")], volumes.UNREAD, id="the volume was not read"),
        pytest.param([claim_of("disk")], volumes.UNBOUND, id="the claim is not bound, and its class was not read"),
        pytest.param([claim_json("data-db-0", "pv-0"), volume_json("pv-0")], "", id="a volume for all nodes"),
    ],
)
def test_what_is_not_known_refuses_no_node(objects: list[Json], unknown: str) -> None:
    evaluation = check(stateful_set(), db(0), *objects)
    answer = evaluation.volumes.of(record(evaluation, "db-0"))
    assert (answer.refusals, answer.unknown) == ((), unknown)


def test_a_claim_that_has_to_be_bound_first_refuses_all_nodes() -> None:
    """A claim without a class waits for a volume, whatever classes there are."""
    evaluation = check(stateful_set(), db(0), claim_json("data-db-0"))
    assert {each.text for each in obstacles(evaluation, "db-0") if each} == {
        "pod has unbound immediate PersistentVolumeClaims"
    }


def test_objects_that_do_not_exist() -> None:
    """A StatefulSet creates a missing claim again. Nothing creates a claim that a template names, or a volume."""
    workload = stateful_set()
    workload["spec"]["template"]["spec"]["volumes"] = [using_claim("assets", name="www")]
    evaluation = check(workload, db(0), db(1), claim_json("assets", "pv"), claim_json("data-db-1", "gone"))
    evaluation.snapshot.volumes.complete = True
    assert {each.text for each in obstacles(evaluation, "db-1") if each} == {
        "a claim is bound to a PersistentVolume that does not exist"
    }
    only_template = check(stateful_set(), db(0))
    only_template.snapshot.volumes.complete = True
    assert only_template.volumes.of(record(only_template, "db-0")).unknown == volumes.UNBOUND
    without_claim = audit(*NODES, pod_json(volumes=[using_claim("assets")]))
    without_claim.snapshot.volumes.complete = True
    assert {each.text for each in obstacles(without_claim, "web-1") if each} == {
        'persistentvolumeclaim "assets" not found'
    }


@pytest.mark.parametrize("detailed", [False, True])
def test_pods_without_a_known_template_have_their_own_claims(detailed: bool) -> None:
    """One more pod may have others, unless these pods use none."""
    evaluation = audit(*NODES, db(0), *bound(0, "a"), pod_json("bare", node="a1"), detailed=detailed)
    assert obstacles(evaluation, "db-0") == [None, NODE_AFFINITY, NODE_AFFINITY]
    assert evaluation.volumes.of_next(record(evaluation, "db-0")).unknown == volumes.UNKNOWN_CLAIMS
    assert evaluation.volumes.of_next(record(evaluation, "bare")).unknown == ""


def test_several_pods_are_kept_from_the_nodes_that_refuse_them_all() -> None:
    evaluation = check(stateful_set(), db(0), db(1), db(2), *bound(0, "a"), *bound(1, "b"), *bound(2, "a"))
    pods = [record(evaluation, f"db-{ordinal}") for ordinal in range(3)]
    answer = evaluation.volumes.of_any(pods)
    assert [answer.obstacle(node["metadata"]["name"]) for node in NODES] == [None, None, NODE_AFFINITY]
    both_in_a = evaluation.volumes.of_any([pods[0], pods[2]])
    assert [both_in_a.obstacle(name) for name in ("a1", "b1")] == [None, NODE_AFFINITY]


def test_the_next_pod_of_a_stateful_set_has_the_lowest_free_ordinal() -> None:
    """Its claim is still bound where an earlier pod of this ordinal ran; a new claim is not bound yet."""
    objects = [stateful_set(), db(0), db(2), *bound(0, "a"), *bound(2, "a")]
    evaluation = check(*objects, *bound(1, "c"))
    answer = evaluation.volumes.of_next(record(evaluation, "db-0"))
    assert [answer.obstacle(name) for name in ("a1", "b1", "c1")] == [NODE_AFFINITY, NODE_AFFINITY, None]
    new = check(*objects)
    new.snapshot.volumes.complete = True
    assert new.volumes.of_next(record(new, "db-0")).unknown == volumes.UNBOUND
    later = check(stateful_set(ordinals={"start": 2}), db(2), *bound(2, "a"), *bound(3, "b"))
    answer = later.volumes.of_next(record(later, "db-2"))
    assert [answer.obstacle(name) for name in ("a1", "b1")] == [NODE_AFFINITY, None]


def test_the_next_pod_of_a_deployment_uses_the_same_claim() -> None:
    workload = deployment(constraints=[constraint()], volumes=[using_claim("assets")])
    replica_set = deployment("web-1", kind="ReplicaSet", owner="Deployment/web", volumes=[using_claim("assets")])
    pod = pod_json(node="a1", owner="ReplicaSet/web-1", constraints=[constraint()])
    evaluation = check(workload, replica_set, pod, claim_json("assets", "pv"), zonal("pv", "a"))
    answer = evaluation.volumes.of_next(record(evaluation, "web-1"))
    assert [answer.obstacle(name) for name in ("a1", "b1")] == [None, NODE_AFFINITY]


def test_explain_names_the_nodes_that_volumes_refuse() -> None:
    """Pending pods of one template differ by their volumes; the spread constraint is asked after these."""
    objects = [*NODES, stateful_set(), *(db(ordinal, "") for ordinal in range(2)), *bound(0, "a"), *bound(1, "b")]
    (first, second) = explained(audit(*objects))["waiting"]
    assert (first["pods"], first["allowed"], second["pods"], second["allowed"]) == (["db-0"], ["a1"], ["db-1"], ["b1"])
    assert first["refused"] == [{"filter": "volumes", "reason": NODE_AFFINITY.text, "nodes": ["b1", "c1"]}]


def test_explain_says_that_volumes_were_not_read() -> None:
    (only,) = explained(audit(*NODES, stateful_set(), db(0, "")))["waiting"]
    assert only["unknown"] == [volumes.UNREAD]


def exposed(*objects: Json) -> list[tuple[str, str, str]]:
    """Return the code, the severity and the last sentence of each finding about pods in one domain."""
    return [
        (finding["code"], finding["severity"], finding["message"].split(". ", 1)[1])
        for finding in as_json(check(*objects))["findings"]
        if finding["code"] in ("SPR501", "SPR502", "SPR503")
    ]


def unconstrained(*volumes: Json) -> list[Json]:
    """Return a StatefulSet without constraints, and its two pods on node a1."""
    workload = deployment("db", kind="StatefulSet", labels={"app": "db"}, replicas=2)
    workload["spec"] |= {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}
    pods = [pod_json(f"db-{n}", node="a1", owner="StatefulSet/db", labels={"app": "db"}) for n in range(2)]
    return [workload, *pods, *volumes]


def on_deleted_nodes() -> list[Json]:
    """Return two more pods of that StatefulSet, on nodes that no longer exist."""
    return [pod_json(f"db-{n + 2}", node=f"gone{n}", owner="StatefulSet/db", labels={"app": "db"}) for n in range(2)]


def completing() -> list[Json]:
    """Return two more pods of that StatefulSet, which do not stand in for the others, in another zone."""
    pods = [pod_json(f"db-{n + 2}", node="b1", owner="StatefulSet/db", labels={"app": "db"}) for n in range(2)]
    return [{**pod, "spec": {**pod["spec"], "restartPolicy": "Never"}} for pod in pods]


def with_claims_in_one_pod() -> list[Json]:
    """Return a Deployment with a pod of each of two revisions on node a1, of which one uses a claim."""
    assets = [using_claim("assets")]
    sets = [
        deployment("old", kind="ReplicaSet", owner="Deployment/web"),
        deployment("new", kind="ReplicaSet", owner="Deployment/web", volumes=assets),
    ]
    pods = [pod_json(f"web-{name}", node="a1", owner=f"ReplicaSet/{name}") for name in ("old", "new")]
    return [deployment("web", volumes=assets), *sets, *pods]


def test_pods_whose_volumes_keep_them_on_a_node_are_a_note() -> None:
    kept = "No other node is known to take one (2 nodes: the node affinity of a PersistentVolume does not match)."
    assert exposed(*unconstrained(*bound(0, "a"), *bound(1, "a"))) == [("SPR501", "info", kept)]


def test_volumes_that_were_not_read_are_a_note() -> None:
    unknown = f"No other node is known to take one (2 nodes: {volumes.UNREAD})."
    assert exposed(*unconstrained()) == [("SPR501", "info", unknown)]


@pytest.mark.parametrize("owner", ["StatefulSet/gone", "Broker/db"])
def test_pods_whose_template_is_not_known_are_kept_by_their_own_claims(owner: str) -> None:
    """The owner is of a custom kind, or it is gone."""
    pods = [
        pod_json(f"db-{n}", node="a1", owner=owner, labels={"app": "db"}, volumes=[using_claim(f"data-db-{n}")])
        for n in range(2)
    ]
    kept = "No other node is known to take one (2 nodes: the node affinity of a PersistentVolume does not match)."
    assert exposed(*pods, *bound(0, "a"), *bound(1, "a")) == [("SPR501", "info", kept)]
    assert [found[:2] for found in exposed(*map(without_volumes, pods))] == [("SPR501", "warning")]


def test_one_pod_whose_volume_allows_another_node_is_enough_for_a_warning() -> None:
    anywhere = [claim_json("data-db-1", "nfs"), volume_json("nfs")]
    assert exposed(*unconstrained(*bound(0, "a"), *anywhere)) == [("SPR501", "warning", "Node b1 could take one.")]
    assert exposed(*unconstrained(*anywhere)) == [("SPR501", "warning", "Node b1 could take one.")]


def majority(*volumes: Json) -> list[tuple[str, str, str]]:
    """Return the findings about four pods in zone a and one in zone b; two have to move for an even spread."""
    workload = deployment("db", kind="StatefulSet", labels={"app": "db"}, replicas=5)
    workload["spec"] |= {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}
    nodes = ["a1", "a1", "a1", "a1", "b1"]
    pods = [
        pod_json(f"db-{number}", node=node, owner="StatefulSet/db", labels={"app": "db"})
        for number, node in enumerate(nodes)
    ]
    return exposed(workload, *pods, *volumes)


def test_a_majority_that_volumes_keep_is_no_finding() -> None:
    """As many pods have to be able to move as are too many."""
    nfs = volume_json("nfs")
    anywhere = [claim_json(f"data-db-{number}", "nfs") for number in range(5)]
    assert [code for code, _, _ in majority(nfs, *anywhere)] == ["SPR503"]
    assert [code for code, _, _ in majority(nfs, *anywhere[:2], *bound(2, "a"), *bound(3, "a"))] == ["SPR503"]
    assert majority(nfs, *anywhere[:1], *bound(1, "a"), *bound(2, "a"), *bound(3, "a")) == []
    assert majority() == []


def skewed(*objects: Json) -> Any:
    """Return the finding about three pods in zone a."""
    (finding,) = [
        finding
        for finding in as_json(check(stateful_set(replicas=3), *(db(ordinal) for ordinal in range(3)), *objects))[
            "findings"
        ]
        if finding["code"] == "SPR301"
    ]
    return finding


def test_a_skew_that_volumes_keep_cannot_be_closed() -> None:
    finding = skewed(*bound(0, "a"), *bound(1, "a"), *bound(2, "a"))
    assert finding["severity"] == "info"
    assert f"No node of a lower domain takes a pod (2 nodes: {NODE_AFFINITY.text})." in finding["message"]
    assert "commands" not in finding


def test_pods_whose_volumes_were_not_read_are_not_deleted() -> None:
    finding = skewed()
    assert finding["severity"] == "warning"
    assert "its claims and volumes were not read, so its replacement may have to stay where it is" in finding["fix"]
    assert "commands" not in finding


def test_pods_that_can_move_are_deleted_and_others_are_not() -> None:
    """Two of the three claims are bound to volumes that every node reaches, and one of these pods goes first."""
    anywhere = [claim_json("data-db-1", "nfs"), claim_json("data-db-2", "nfs"), volume_json("nfs")]
    finding = skewed(*bound(0, "a"), *anywhere)
    assert finding["severity"] == "warning"
    assert finding["commands"] == ["kubectl delete pod -n default db-1"]


def test_explain_names_volumes_as_the_cause_of_a_skew() -> None:
    objects = [*NODES, stateful_set(), *(db(ordinal) for ordinal in range(3)), *bound(0, "a"), *bound(1, "a")]
    (cause,) = [each for each in explained(audit(*objects, *bound(2, "a")))["causes"] if each["cause"] == "volumes"]
    assert cause["confidence"] == "certain"


@pytest.mark.parametrize(
    ("objects", "in_question"),
    [
        pytest.param([stateful_set(), db(0), db(1)], True, id="an uneven StatefulSet with claims"),
        pytest.param(
            [stateful_set(volumeClaimTemplates=[]), *map(without_volumes, (db(0), db(1)))], False, id="it has no claims"
        ),
        pytest.param([stateful_set(), db(0), db(1, "b1"), db(2, "c1")], True, id="an even one with a hard constraint"),
        pytest.param(
            [*map(softened, (stateful_set(), db(0), db(1, "b1"), db(2, "c1")))], True, id="even with a soft one"
        ),
        pytest.param([db(0), db(1)], True, id="pods without a known template"),
        pytest.param(unconstrained(), True, id="a StatefulSet on one node"),
        pytest.param([*unconstrained(), *on_deleted_nodes()], True, id="its other pods are on nodes that are gone"),
        pytest.param([*unconstrained(), *completing()], True, id="its other pods run to completion"),
        pytest.param(with_claims_in_one_pod(), True, id="only one of its pods uses a claim"),
    ],
)
def test_volumes_are_read_only_if_a_pod_uses_claims(objects: list[Json], *, in_question: bool) -> None:
    assert claims_decide(check(*objects)) is in_question
