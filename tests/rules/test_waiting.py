"""SPR315: the reasons and the advice about pods that wait."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kubectl_spread.report.model import Finding
from kubectl_spread.rules.model import Selection
from tests.audits import audit, deployment, reported
from tests.builders import (
    Json,
    claim_json,
    constraint,
    node_json,
    pod_json,
    requirement,
    selector,
    term,
    using_claim,
    volume_json,
)

NODES = [node_json("a1"), node_json("b1")]
CREATED = datetime(2026, 1, 1, tzinfo=UTC)


def refused(message: str, **spec: Any) -> Json:
    """Return a pod that its scheduler refused with a message."""
    pod = pod_json("waits", node="", **spec)
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    pod["status"] = {"phase": "Pending", "conditions": [condition]}
    return pod


def waiting(*objects: Json, minutes: int = 0, nodes: bool = True) -> list[Finding]:
    """Return the findings about pods that wait; with ``minutes`` it is known how old they are."""
    evaluation = audit(*(NODES if nodes else []), *objects)
    evaluation.snapshot.volumes.complete = evaluation.snapshot.volumes.classes_complete = True
    if minutes:
        evaluation.snapshot.read_at = CREATED + timedelta(minutes=minutes)
    return [finding for finding in reported(evaluation).findings if finding.code == "SPR315"]


@pytest.mark.parametrize(
    ("objects", "message", "why", "fix"),
    [
        pytest.param(
            [claim_json("data", "pv"), volume_json("pv", requirement("topology.kubernetes.io/zone", "In", "x"))],
            "0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity.",
            "2 nodes: the node affinity of a PersistentVolume does not match",
            "Give the pod a volume that its nodes can reach: give up the claim, or add nodes there.",
            id="a volume elsewhere",
        ),
        pytest.param(
            [],
            '0/2 nodes are available: persistentvolumeclaim "data" not found. not found',
            '2 nodes: persistentvolumeclaim "data" not found',
            "Create the claim data, or correct its name in the pod.",
            id="no claim",
        ),
        pytest.param(
            [claim_json("data", "gone")],
            '0/2 nodes are available: persistentvolume "gone" not found. not found',
            "2 nodes: a claim is bound to a PersistentVolume that does not exist",
            "Restore the PersistentVolume, or let the pod use another claim.",
            id="no volume",
        ),
        pytest.param(
            [claim_json("data")],
            "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found",
            "2 nodes: pod has unbound immediate PersistentVolumeClaims",
            "See why the claim data is not bound (kubectl describe pvc data -n default): the scheduler waits for that.",
            id="a claim that is not bound",
        ),
    ],
)
def test_the_reason_agrees_with_the_scheduler_and_has_its_own_advice(
    objects: list[Json], message: str, why: str, fix: str
) -> None:
    (finding,) = waiting(refused(message, volumes=[using_claim("data")]), *objects)
    assert (finding.message, finding.fix) == (f"No node takes the pending pod: {why}.", fix)


def test_equal_pods_have_the_causes_of_their_own_claims() -> None:
    """Both are kept from all nodes, one by a claim that does not exist and one by a claim that is not bound."""
    pods = [refused("", volumes=[using_claim(claim)]) for claim in ("gone", "unbound")]
    for pod in pods:
        pod["metadata"] |= {"name": pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"]}
    findings = waiting(*pods, claim_json("unbound"))
    assert {(finding.object.name, finding.message.partition(": ")[2]) for finding in findings} == {
        ("gone", '2 nodes: persistentvolumeclaim "gone" not found.'),
        ("unbound", "2 nodes: pod has unbound immediate PersistentVolumeClaims."),
    }


def test_the_other_pod_of_an_exclusive_claim_is_named() -> None:
    claim = {**claim_json("data", "pv"), "spec": {"volumeName": "pv", "accessModes": ["ReadWriteOncePod"]}}
    user = pod_json("user", node="a1", volumes=[using_claim("data")])
    message = "0/2 nodes are available: 2 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access"
    (finding,) = waiting(refused(message, volumes=[using_claim("data")]), user, claim, volume_json("pv"))
    assert finding.message == "No node takes the pending pod: its claim data is ReadWriteOncePod, and pod user uses it."
    assert finding.fix == (
        "Let pod user go first (in a Deployment: strategy Recreate), or use a claim of another access mode."
    )


def test_a_node_that_an_affinity_names_and_that_does_not_exist() -> None:
    terms = [{"matchFields": [requirement("metadata.name", "In", "gone")]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    message = "0/2 nodes are available: 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    (finding,) = waiting(refused(message, affinity=affinity))
    assert (finding.message, finding.fix) == (
        "No node takes the pending pod: its node affinity names node gone, and no node has this name.",
        "Correct the name of the node, or add a node that has it.",
    )


def test_required_affinity_to_pods_that_do_not_run() -> None:
    apart = term(key="topology.kubernetes.io/zone", selects={"matchLabels": {"app": "cache"}})
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    message = "0/2 nodes are available: 2 node(s) didn't match pod affinity rules."
    (finding,) = waiting(refused(message, affinity=affinity))
    assert finding.fix == "Start pods that the affinity term selects, correct its selector, or make it preferred."


@pytest.mark.parametrize(("minutes", "number"), [(0, 0), (4, 0), (6, 1)])
@pytest.mark.parametrize("scheduler", ["default-scheduler", "other"])
def test_a_pod_without_a_word_of_its_scheduler_is_reported_after_minutes(
    scheduler: str, minutes: int, number: int
) -> None:
    pod = pod_json("waits", node="", schedulerName=scheduler)
    pod["metadata"]["creationTimestamp"] = CREATED.isoformat()
    findings = waiting(pod, minutes=minutes)
    assert [finding.message for finding in findings] == number * [
        f"{scheduler} has neither placed nor refused the pending pod: it has waited for more than 5 minutes."
    ]


def test_another_scheduler_is_quoted() -> None:
    (finding,) = waiting(refused("queue default is full", schedulerName="volcano{x}"))
    assert (finding.message, finding.fix) == (
        "The scheduler refused the pending pod: queue default is full.",
        "See what volcano{x} says: its rules are not known.",
    )


def test_where_only_opening_a_zone_helps_nothing_else_is_advised() -> None:
    """Without the cordoned zone, the constraint would still refuse zone b; so the policy is not an alternative."""
    cordoned = node_json("a1")
    cordoned["spec"] = {"unschedulable": True}
    owned: dict[str, Any] = {"owner": "ReplicaSet/web", "constraints": [constraint(max_skew=2)]}
    on = ["a1", "b1", "b1", "b1", "c1", "c1"]
    pods = [pod_json(f"web-{number}", node=node, **owned) for number, node in enumerate(on)]
    replica_set = deployment(kind="ReplicaSet", constraints=owned["constraints"], owner="Deployment/web")
    web = deployment(constraints=owned["constraints"])
    findings = reported(audit(cordoned, node_json("b1"), node_json("c1"), web, replica_set, *pods)).findings
    (finding,) = [each for each in findings if each.code == "SPR307"]
    assert finding.fix == "Open zone a: uncordon its nodes."
    assert not finding.has_alternative


def test_a_pod_whose_volumes_were_not_read_is_not_sent_to_other_filters() -> None:
    evaluation = audit(*NODES, refused("0/2 nodes are available.", volumes=[using_claim("data")]))
    (finding,) = [each for each in reported(evaluation).findings if each.code == "SPR315"]
    assert "Not known: volumes: the pods' PersistentVolumeClaims and PersistentVolumes were not read" in finding.message
    assert finding.fix == "See what the message names, and what is not known: it may keep the pods from these nodes."


def test_nodes_in_a_zone_that_another_constraint_refuses_are_no_fix() -> None:
    """The API refuses such pods; those of a capture are evaluated all the same."""
    both = [constraint(), constraint(selects=selector({"tier": "back"}))]
    labels = {"app": "web", "tier": "back"}
    pods = [
        *(pod_json(f"web-{name}", node=name, labels=labels, constraints=both) for name in ("a1", "b1")),
        *(pod_json(f"other-{number}", node="c1", labels={"tier": "back"}) for number in (1, 2)),
        pod_json("web-new", labels=labels, constraints=both),
    ]
    report = reported(audit(*(node_json(name) for name in ("a1", "b1", "c1")), *pods))
    (fix,) = {finding.fix for finding in report.findings if finding.code == "SPR308"}
    assert fix.startswith("Set whenUnsatisfiable: ScheduleAnyway in their constraint on zone. Tried in a simulation")


def test_a_pod_that_is_deleted_before_it_has_a_node_does_not_wait() -> None:
    """The scheduler does not try it, however long a finalizer keeps it."""
    taint = {"key": "gpu", "effect": "NoSchedule"}
    spread = [constraint()]
    running = [pod_json(f"web-{node}", node=node, owner="ReplicaSet/web", constraints=spread) for node in ("a1", "b1")]
    deleted = pod_json(
        "web-x",
        owner="ReplicaSet/web",
        constraints=spread,
        metadata={"deletionTimestamp": "2026-09-01T11:00:00Z", "finalizers": ["example.com/x"]},
    )
    evaluation = audit(*NODES, node_json("c1", taints=[taint]), *running, deleted)
    for code in ("SPR303", "SPR307"):
        findings = reported(evaluation, Selection(select=(code,))).findings
        assert [str(finding.severity) for finding in findings] == ["warning"]


def test_a_pod_that_its_controller_removes_needs_no_fix() -> None:
    """Any change would look as if it helped, because the pod is gone afterwards."""
    owner = deployment("web", kind="ReplicaSet")
    owner["spec"]["replicas"] = 1
    spread = [constraint(), constraint(key="example.com/rack", minDomains=2)]
    pods = [pod_json(f"web-{node}", node=node, owner="ReplicaSet/web", constraints=spread) for node in ("a1", "")]
    racked = [node_json(name, labels={"example.com/rack": "r1"}) for name in ("a1", "b1")]
    (finding,) = reported(audit(*racked, owner, *pods), Selection(select=("SPR303",))).findings
    assert finding.fix == "Make the constraint ScheduleAnyway, or raise its maxSkew."
