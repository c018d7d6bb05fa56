"""The counts of whole scheduling decisions: pods and nodes, and one pending pod."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from kubectl_spread.kube.api import sparse
from tests.audits import as_json, audit, row, snapshot
from tests.builders import HOSTNAME, ZONE, Json, constraint, decode_pod, node_json, pod_json, requirement, selector

A1, B1, C1 = node_json("a1"), node_json("b1"), node_json("c1")
THREE = (A1, B1, C1)
GPU = {"key": "gpu", "effect": "NoSchedule"}
WEB = {"app": "web"}
OLD, NEW = {"app": "web", "rev": "old"}, {"app": "web", "rev": "new"}


def running(sizes: str, **fields: Any) -> list[Json]:
    """Return pods on nodes: ``a1=2 b1=1``."""
    manifests = []
    for size in sizes.split():
        node, _, number = size.partition("=")
        name = fields.get("phase", "") + fields.get("namespace", "") + node
        manifests += [pod_json(f"{name}-{index}", node=node, **fields) for index in range(int(number))]
    return manifests


def row_of(pod: Json, *others: Json, nodes: Sequence[Json] = THREE, minor: int = 37) -> Any:
    """Return the row of the pending pod's first constraint."""
    return row(audit(pod, *others, *nodes, minor=minor))


def incoming(*constraints: Json, **fields: Any) -> Json:
    return pod_json("new", constraints=constraints or [constraint()], **fields)


def counts_of(constraint_row: Any) -> tuple[str, int, str]:
    """Return domains with their counts, the minimum, and the domains that may take the pod."""
    counts = " ".join(f"{domain['value'] or repr('')}={domain['matchNum']}" for domain in constraint_row["domains"])
    return counts, constraint_row["minMatchNum"], " ".join(value or "''" for value in constraint_row["next"]["allowed"])


TERMINATING = {"deletionTimestamp": "2026-09-02T10:00:00Z", "uid": "u"}


@pytest.mark.parametrize(
    ("pod", "others", "answer"),
    [
        pytest.param(incoming(), running("a1=2 b1=2 c1=1"), ("a=2 b=2 c=1", 1, "c"), id="2/2/1 leaves c"),
        pytest.param(incoming(), running("a1=1"), ("a=1 b=0 c=0", 0, "b c"), id="1/0/0 leaves b and c"),
        pytest.param(
            incoming(constraint(max_skew=2, minDomains=5)),
            running("a1=2 b1=2 c1=2"),
            ("a=2 b=2 c=2", 0, ""),
            id="fewer domains than minDomains make the minimum 0",
        ),
        pytest.param(
            incoming(constraint(minDomains=3)),
            running("a1=2 b1=2 c1=2"),
            ("a=2 b=2 c=2", 2, "a b c"),
            id="as many domains as minDomains",
        ),
        pytest.param(
            incoming(labels={"app": "other"}),
            running("a1=2 b1=1"),
            ("a=2 b=1 c=0", 0, "b c"),
            id="a pod that does not match its own selector",
        ),
        pytest.param(
            incoming(),
            [*running("a1=1"), *running("a1=3", namespace="default", metadata=TERMINATING)],
            ("a=1 b=0 c=0", 0, "b c"),
            id="terminating pods do not count",
        ),
        pytest.param(
            incoming(), running("a1=5", namespace="elsewhere"), ("a=0 b=0 c=0", 0, "a b c"), id="another namespace"
        ),
        pytest.param(
            incoming(),
            [*running("a1=2", phase="Succeeded"), *running("a1=1", phase="Failed"), *running("b1=1")],
            ("a=0 b=1 c=0", 0, "a c"),
            id="finished pods do not count",
        ),
        pytest.param(
            incoming(), running("a1=1", labels={"app": "webby"}), ("a=0 b=0 c=0", 0, "a b c"), id="other labels do not"
        ),
        pytest.param(
            incoming(),
            running("a1=1", metadata={"annotations": {"kubernetes.io/config.mirror": "x"}}),
            ("a=1 b=0 c=0", 0, "b c"),
            id="mirror pods count",
        ),
        pytest.param(
            incoming(), running("a1=1", phase="Unknown"), ("a=1 b=0 c=0", 0, "b c"), id="pods of unknown phase count"
        ),
        pytest.param(
            incoming(),
            running("a1=1", schedulerName="mine"),
            ("a=1 b=0 c=0", 0, "b c"),
            id="pods of another scheduler count",
        ),
        pytest.param(incoming(), [pod_json("p2")], ("a=0 b=0 c=0", 0, "a b c"), id="pending pods do not count"),
        pytest.param(
            incoming(constraint(selects={})), running("a1=9"), ("a=0 b=0 c=0", 0, "a b c"), id="the empty selector"
        ),
        pytest.param(
            incoming(constraint(labelSelector=None)), running("a1=9"), ("a=0 b=0 c=0", 0, "a b c"), id="no selector"
        ),
        pytest.param(
            incoming(constraint(match=["rev"], selects=selector(WEB, requirement("rev", "In", "old"))), labels=NEW),
            [*running("a1=3", labels=OLD), *running("b1=1", labels=NEW)],
            ("a=0 b=0 c=0", 0, "a b c"),
            id="a stale selector switches the constraint off",
        ),
        pytest.param(
            incoming(constraint(match=["rev"], selects=selector(WEB, requirement("rev", "In", "old"))), labels=WEB),
            [*running("a1=3", labels=OLD), *running("b1=1", labels=NEW)],
            ("a=3 b=0 c=0", 0, "b c"),
            id="a removed label counts the old group without the pod itself",
        ),
        pytest.param(
            incoming(constraint(match=["rev"], selects=selector(WEB)), labels=NEW),
            [*running("a1=3", labels=OLD), *running("b1=1", labels=NEW)],
            ("a=0 b=1 c=0", 0, "a c"),
            id="an unmerged selector gets the current value",
        ),
        pytest.param(
            incoming(constraint(match=["rev"], selects=selector(WEB)), labels=WEB),
            [*running("a1=3", labels=OLD), *running("b1=1", labels=NEW)],
            ("a=3 b=1 c=0", 0, "c"),
            id="an absent key counts all revisions",
        ),
        pytest.param(incoming(), running("gone=4 a1=1"), ("a=1 b=0 c=0", 0, "b c"), id="a deleted node"),
    ],
)
def test_pods_are_counted_in_three_zones_as_the_scheduler_counts(
    pod: Json, others: list[Json], answer: tuple[str, int, str]
) -> None:
    assert counts_of(row_of(pod, *others)) == answer


TAINTED = (A1, B1, node_json("c1", taints=[GPU]))


@pytest.mark.parametrize(
    ("pod", "others", "nodes", "answer"),
    [
        pytest.param(
            incoming(),
            running("a1=1 b1=1"),
            TAINTED,
            ("a=1 b=1 c=0", 0, "c"),
            id="a tainted node sets the minimum where taints are ignored",
        ),
        pytest.param(
            incoming(constraint(nodeTaintsPolicy="Honor")),
            running("a1=1 b1=1 c1=4"),
            TAINTED,
            ("a=1 b=1", 1, "a b"),
            id="not where they are honoured",
        ),
        pytest.param(
            incoming(constraint(nodeTaintsPolicy="Honor"), tolerations=[{"operator": "Exists"}]),
            running("a1=1 b1=1"),
            TAINTED,
            ("a=1 b=1 c=0", 0, "c"),
            id="unless they are tolerated",
        ),
        pytest.param(
            incoming(constraint(nodeTaintsPolicy="Honor")),
            running("a1=1 b1=1"),
            (A1, B1, node_json("c1", taints=[{"key": "gpu", "effect": "PreferNoSchedule"}])),
            ("a=1 b=1 c=0", 0, "c"),
            id="PreferNoSchedule excludes no node",
        ),
        pytest.param(
            incoming(constraint(nodeTaintsPolicy="Honor")),
            running("a1=1 b1=1"),
            (A1, B1, {**C1, "spec": {"unschedulable": True}}),
            ("a=1 b=1 c=0", 0, "c"),
            id="a cordoned node without its taint counts",
        ),
        pytest.param(
            incoming(constraint(nodeTaintsPolicy="Honor")),
            running("a1=1 b1=1"),
            (A1, B1, node_json("c1", taints=[{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}])),
            ("a=1 b=1", 1, "a b"),
            id="with its taint it does not",
        ),
        pytest.param(
            incoming(nodeSelector={"pool": "web"}),
            running("a1=1 b1=1"),
            (node_json("a1", labels={"pool": "web"}), node_json("b1", labels={"pool": "web"}), C1),
            ("a=1 b=1", 1, "a b"),
            id="nodeSelector excludes a zone",
        ),
        pytest.param(
            incoming(constraint(nodeAffinityPolicy="Ignore"), nodeSelector={"pool": "web"}),
            running("a1=1 b1=1"),
            (node_json("a1", labels={"pool": "web"}), node_json("b1", labels={"pool": "web"}), C1),
            ("a=1 b=1 c=0", 0, "c"),
            id="not where affinity is ignored",
        ),
        pytest.param(
            incoming(constraint(max_skew=2)),
            running("a1=2 a2=2 b1=3"),
            (A1, node_json("a2"), B1),
            ("a=4 b=3", 3, "a b"),
            id="the nodes of a zone count together",
        ),
        pytest.param(
            incoming(),
            running("a1=1"),
            (A1, node_json("x1", zone="")),
            ("''=0 a=1", 0, "''"),
            id='89: "" is a domain',
        ),
        pytest.param(incoming(), running("a1=1 b1=1"), (A1, B1), ("a=1 b=1", 1, "a b"), id="a zone without nodes"),
        pytest.param(
            incoming(nodeSelector={"pool": "none"}), running("a1=3"), THREE, ("", 0, ""), id="affinity excludes all"
        ),
        pytest.param(incoming(constraint(key="rack")), running("a1=3"), THREE, ("", 0, ""), id="a key of no node"),
    ],
)
def test_domains_are_made_of_nodes_as_the_scheduler_makes_them(
    pod: Json, others: list[Json], nodes: Sequence[Json], answer: tuple[str, int, str]
) -> None:
    assert counts_of(row_of(pod, *others, nodes=nodes)) == answer


def answered(*objects: Json) -> Any:
    (group,) = as_json(audit(*objects))["groups"]
    return group["nodes"]


def test_a_node_without_the_key_is_no_domain_and_takes_no_pod() -> None:
    """Nine matching pods there count nowhere."""
    nodes = (A1, B1, C1, node_json("d1", without=[ZONE]))
    others = running("a1=1 d1=9")
    assert counts_of(row_of(incoming(), *others, nodes=nodes)) == ("a=1 b=0 c=0", 0, "b c")
    assert answered(incoming(), *others, *nodes) == {"total": 4, "feasible": 2, "notMatching": 1, "missingLabel": 1}


def test_pods_of_two_namespaces_are_counted_apart() -> None:
    pods = [
        pod_json("w1", node="a1", constraints=[constraint()]),
        pod_json("w2", node="b1", constraints=[constraint()], namespace="other"),
    ]
    rows = as_json(audit(*pods, *THREE))["constraints"]
    assert {each["namespace"]: counts_of(each)[0] for each in rows} == {
        "default": "a=1 b=0 c=0",
        "other": "a=0 b=1 c=0",
    }


def test_a_terminating_pod_does_not_count_although_it_is_like_a_running_pod() -> None:
    cluster_snapshot = snapshot(*THREE)
    pod = sparse.alone(decode_pod(pod_json("w1", node="a1")))
    cluster_snapshot.add_sparse(pod)
    cluster_snapshot.add_sparse(msgspec.structs.replace(pod, name="w2", node_name="b1", terminating=True))
    assert [per_node for _, per_node in cluster_snapshot.population("default")] == [{"a1": 1}]
    assert [per_node for _, per_node in cluster_snapshot.population("default", terminating=True)] == [{"b1": 1}]


def test_a_node_lacking_one_hard_key_counts_for_no_hard_constraint() -> None:
    """Node d1 lacks a zone, so that its pods do not count by hostname either."""
    pod = incoming(constraint(max_skew=5), constraint(key=HOSTNAME, max_skew=5))
    objects = (pod, *running("a1=1 d1=9"), A1, B1, node_json("d1", without=[ZONE]))
    constraints = as_json(audit(*objects))["constraints"]
    assert [counts_of(constraint)[0] for constraint in constraints] == ["a=1 b=0", "a1=1 b1=0"]


def test_a_node_lacking_a_soft_key_counts_for_hard_constraints() -> None:
    """Hard and soft constraints are counted separately."""
    pod = incoming(constraint(), constraint(key=HOSTNAME, hard=False))
    objects = (pod, *running("a1=1"), A1, node_json("b1", without=[HOSTNAME]))
    hard, soft = as_json(audit(*objects))["constraints"]
    assert counts_of(hard) == ("a=1 b=0", 0, "b")
    assert counts_of(soft) == ("a1=1", 1, "a1")


def test_a_topology_key_on_no_node_is_missing_on_all() -> None:
    """Every node is refused, but none because of its skew."""
    pod = incoming(constraint(key="rack"))
    assert answered(pod, *THREE) == {"total": 3, "feasible": 0, "notMatching": 0, "missingLabel": 3}


def test_without_eligible_domains_no_node_is_refused() -> None:
    """Other plugins refuse the nodes."""
    pod = incoming(nodeSelector={"pool": "none"})
    assert answered(pod, *running("a1=3"), *THREE) == {"total": 3, "feasible": 3, "notMatching": 0, "missingLabel": 0}


def test_an_excluded_node_is_filtered_like_any_other_node() -> None:
    """Node c1 is not a domain, its count is 0, and 0 + 1 - 1 is not a skew."""
    pod = incoming(constraint(nodeTaintsPolicy="Honor"))
    objects = (pod, *running("a1=1 b1=1 c1=4"), *TAINTED)
    assert answered(*objects) == {"total": 3, "feasible": 3, "notMatching": 0, "missingLabel": 0}


def test_a_pod_affine_to_one_node_counts_that_node_alone() -> None:
    """A nodeSelector has the same effect; pods that are pinned by name have no counts at all."""
    pod = incoming(constraint(key=HOSTNAME), nodeSelector={HOSTNAME: "b1"})
    assert counts_of(row_of(pod, *running("b1=7 a1=1"))) == ("b1=7", 7, "b1")


@pytest.mark.parametrize(
    ("minor", "answer"),
    [
        pytest.param(27, ("a=0 b=1 c=0", 0, "a c"), id="1.27"),
        pytest.param(33, ("a=0 b=1 c=0", 0, "a c"), id="1.33"),
        pytest.param(34, ("a=0 b=1 c=0", 0, "a c"), id="1.34"),
        pytest.param(37, ("a=0 b=1 c=0", 0, "a c"), id="1.37"),
    ],
)
def test_the_scheduler_of_every_minor_adds_the_current_label(minor: int, answer: tuple[str, int, str]) -> None:
    pod = incoming(constraint(match=["rev"]), labels=NEW)
    others = [*running("a1=3", labels=OLD), *running("b1=1", labels=NEW)]
    assert counts_of(row_of(pod, *others, minor=minor)) == answer
