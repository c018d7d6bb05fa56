"""The counts of each domain, and what is lost with one, with literals for each number."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest

from kubectl_spread.audit.evaluation import domains
from kubectl_spread.audit.evaluation.domains import BudgetLoss, CountedDomain, CountedDomains, ResourceUse
from kubectl_spread.kube.api.labels import parse_labels
from kubectl_spread.kube.disruption import PodDisruptionBudget
from tests.audits import deployment, snapshot
from tests.builders import HOSTNAME, ZONE, Json, node_json, pod_json


def node(name: str, *, ready: str = "True", cordoned: bool = False, cpu: str = "4", **fields: object) -> Json:
    manifest = node_json(name, **fields)  # type: ignore[arg-type]
    return {
        **manifest,
        "spec": {"unschedulable": cordoned},
        "status": {
            "allocatable": {"cpu": cpu, "memory": "8Gi"},
            "conditions": [{"type": "MemoryPressure", "status": "True"}, {"type": "Ready", "status": ready}],
        },
    }


def pods(name: str, nodes: str, **fields: object) -> list[Json]:
    """Return the pods of a StatefulSet, each on the node that a word names; ``-`` is pending."""
    return [
        pod_json(
            f"{name}-{index}",
            node="" if word == "-" else word,
            owner=f"StatefulSet/{name}",
            labels={"app": name},
            **fields,  # type: ignore[arg-type]
        )
        for index, word in enumerate(nodes.split())
    ]


def requesting(cpu: str, memory: str = "1Gi") -> list[Json]:
    return [{"name": "app", "resources": {"requests": {"cpu": cpu, "memory": memory}}}]


def counted(*objects: Json, key: str = ZONE, labels: str = "") -> CountedDomains:
    return domains.count(snapshot(*objects), key, parse_labels(labels))


def numbers(domain: CountedDomain) -> tuple[int, ...]:
    return (domain.pods, domain.workloads, domain.only_here, domain.half_here)


ABC = (node("a1"), node("b1"), node("c1"))


def test_nodes_that_are_not_ready_or_cordoned_are_counted() -> None:
    unknown = node_json("a5")
    domains = counted(
        node("a1"),
        node("a2", ready="False"),
        node("a3", ready="Unknown"),
        node("a4", cordoned=True),
        unknown,
        node("b1"),
    ).domains
    assert [(domain.value, domain.nodes, domain.ready, domain.cordoned) for domain in domains] == [
        ("a", ["a1", "a2", "a3", "a4", "a5"], 2, 1),
        ("b", ["b1"], 1, 0),
    ]


def test_nodes_without_the_key_are_last_and_the_empty_value_is_a_domain() -> None:
    domains = counted(node("x", without=[ZONE]), node("a1"), node("y", zone=""), *pods("web", "x y a1 x")).domains
    assert [(domain.value, domain.nodes, domain.pods) for domain in domains] == [
        ("", ["y"], 1),
        ("a", ["a1"], 1),
        (None, ["x"], 2),
    ]


def test_half_is_at_least_half_and_includes_everything() -> None:
    a, b, c = counted(*ABC, *pods("two", "a1 b1"), *pods("all", "b1 b1"), *pods("three", "a1 b1 c1")).domains
    assert numbers(a) == (2, 2, 0, 1)
    assert numbers(b) == (4, 3, 1, 2)
    assert numbers(c) == (1, 1, 0, 0)


def test_a_workload_with_one_pod_runs_only_here() -> None:
    a, b, c = counted(*ABC, *pods("web", "b1"), pod_json("alone", node="b1")).domains
    assert numbers(b) == (2, 2, 2, 2)
    assert numbers(a) == numbers(c) == (0, 0, 0, 0)


def test_bare_pods_of_one_kind_are_workloads_of_their_own() -> None:
    counts = counted(*ABC, *(pod_json(f"alone-{zone}", node=f"{zone}1") for zone in "ab"))
    assert [numbers(domain) for domain in counts.domains] == [(1, 1, 1, 1), (1, 1, 1, 1), (0, 0, 0, 0)]
    assert sorted(workload.name for workload in counts.workloads) == ["alone-a", "alone-b"]


def test_no_pods() -> None:
    counts = counted(*ABC)
    assert (counts.pods, counts.pending, counts.terminating, counts.workloads) == (0, 0, 0, {})
    assert [numbers(domain) for domain in counts.domains] == [(0, 0, 0, 0)] * 3


def test_pending_terminating_and_finished_pods_do_not_run() -> None:
    terminating = pods("old", "a1", metadata={"deletionTimestamp": "2026-11-01T10:00:00Z"})
    finished = pods("job", "a1", phase="Succeeded")
    mirror = pod_json("etcd", node="a1", metadata={"annotations": {"kubernetes.io/config.mirror": "x"}})
    counts = counted(*ABC, *pods("web", "a1 - -"), *terminating, *finished, mirror)
    assert (counts.pods, counts.pending, counts.terminating) == (1, 2, 1)
    assert (numbers(counts.domains[0]), counts.domains[0].terminating) == ((1, 1, 1, 1), 1)
    assert [workload.name for workload in counts.workloads] == ["web"]


def test_pods_on_nodes_that_are_not_listed_run_elsewhere() -> None:
    counts = counted(*ABC, *pods("web", "a1 a1 z1 z1 z2"))
    assert (counts.pods, counts.unlisted) == (5, {"z1": 2, "z2": 1})
    assert numbers(counts.domains[0]) == (2, 1, 0, 0)


def test_equal_names_in_two_namespaces_are_two_workloads() -> None:
    counts = counted(*ABC, *pods("web", "a1", namespace="one"), *pods("web", "b1", namespace="two"))
    assert [numbers(domain) for domain in counts.domains] == [(1, 1, 1, 1), (1, 1, 1, 1), (0, 0, 0, 0)]


def test_labels_choose_the_pods() -> None:
    counts = counted(*ABC, *pods("web", "a1 b1"), *pods("db", "a1"), labels="app=web")
    assert (counts.pods, next(numbers(domain) for domain in counts.domains)) == (2, (1, 1, 0, 1))


def test_pods_of_two_revisions_are_one_workload() -> None:
    owner = deployment("web-1", kind="ReplicaSet", owner="Deployment/web")
    newer = deployment("web-2", kind="ReplicaSet", owner="Deployment/web")
    old = pod_json("web-1-a", node="a1", owner="ReplicaSet/web-1", labels={"app": "web", "rev": "1"})
    new = pod_json("web-2-b", node="b1", owner="ReplicaSet/web-2", labels={"app": "web", "rev": "2"})
    counts = counted(*ABC, owner, newer, deployment("web"), old, new)
    ((workload, places),) = counts.workloads.items()
    assert (workload.kind, workload.name, places) == ("Deployment", "web", {0: 1, 1: 1})


def test_requests_of_all_pods_are_compared_with_what_the_nodes_allow() -> None:
    """Those of pods that are left out are among them, because the node serves them too."""
    a, b, _ = counted(
        *ABC,
        node("a2"),
        *pods("web", "a1 a2 b1", containers=requesting("500m")),
        *pods("db", "a1", containers=requesting("1")),
        labels="app=web",
    ).domains
    assert (a.use.cpu, a.use.memory) == (ResourceUse(2000, 8000), ResourceUse(3 << 30, 16 << 30))
    assert (b.use.cpu, b.use.memory, b.use.unknown) == (ResourceUse(500, 4000), ResourceUse(1 << 30, 8 << 30), 0)


def test_requests_that_cannot_be_read_make_a_lower_bound() -> None:
    unreadable = pods("web", "a1 a1", containers=requesting("x"))
    a, *_ = counted(*ABC, *unreadable, *pods("db", "a1", containers=requesting("1"))).domains
    assert a.use.unknown == 2
    assert a.use.cpu == ResourceUse(1000, 4000)


def test_one_node_without_allocatable_makes_the_sum_unknown() -> None:
    a, b, _ = counted(*ABC, node_json("a2")).domains
    assert (a.use.cpu, a.use.memory) == (ResourceUse(0, None), ResourceUse(0, None))
    assert b.use.cpu == ResourceUse(0, 4000)


def budget(name: str, namespace: str = "default", selects: Json | None = None, **spec: object) -> PodDisruptionBudget:
    manifest = {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"matchLabels": {"app": name}} if selects is None else selects, **spec},
    }
    return msgspec.json.decode(msgspec.json.encode(manifest), type=PodDisruptionBudget)


Loss = tuple[str, int, int, tuple[BudgetLoss, ...] | None]


def lost(
    *objects: Json, budgets: Iterable[PodDisruptionBudget] | None = (), place: int = 0, labels: str = ""
) -> list[Loss]:
    cluster = snapshot(*objects)
    counts = domains.count(cluster, ZONE, parse_labels(labels))
    for each in budgets or ():
        cluster.budgets.put(each)
    cluster.budgets.read = budgets is not None
    losses = domains.losses(counts, place, cluster)
    return [(loss.workload.name, loss.here, loss.left, loss.budgets) for loss in losses]


def test_the_worst_is_first() -> None:
    objects = [
        *ABC,
        *pods("fifth", "a1 b1 c1"),
        *pods("fourth", "a1 b1"),
        *pods("third", "a1 a1 b1 b1"),
        *pods("second", "a1 b1 b1 b1"),
        *pods("first", "a1"),
        *pods("absent", "b1"),
    ]
    assert [
        (name, here, left) for name, here, left, _ in lost(*objects, budgets=[budget("second", minAvailable=4)])
    ] == [
        ("first", 1, 0),
        ("second", 1, 3),
        ("third", 2, 2),
        ("fourth", 1, 1),
        ("fifth", 1, 2),
    ]


def workload(path: str, replicas: int, owner: str = "") -> Json:
    """Return a workload of ``apps`` with this number of replicas; ``path`` and ``owner`` are written ``Kind/name``."""
    (kind, name), (owner_kind, _, owner_name) = path.split("/"), owner.partition("/")
    reference = {"apiVersion": "apps/v1", "kind": owner_kind, "name": owner_name, "controller": True}
    metadata = {"name": name, "namespace": "default", **({"ownerReferences": [reference]} if owner else {})}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": {"replicas": replicas}}


def test_a_budget_with_a_number() -> None:
    two_left = (*ABC, *pods("web", "a1 b1 c1"))
    assert lost(*two_left, budgets=[budget("web", minAvailable=2)])[0][3] == (BudgetLoss("web", 2, 2),)
    ((_, _, _, budgets),) = lost(*two_left, budgets=[budget("web", minAvailable=3)])
    assert budgets is not None
    assert (budgets, budgets[0].below) == ((BudgetLoss("web", 3, 2),), True)


def test_a_budget_with_a_percentage_needs_the_replicas_of_the_owner() -> None:
    """Of five replicas two are pending; 50% of five are three, rounded up."""
    three_run = pods("web", "a1 b1 c1 - -")
    known, unknown = (
        lost(*ABC, *three_run, workload("StatefulSet/web", 5), budgets=[budget("web", minAvailable="50%")]),
        lost(*ABC, *three_run, budgets=[budget("web", minAvailable="50%")]),
    )
    assert known[0][3] == (BudgetLoss("web", 3, 2),)
    assert unknown[0][3] == (BudgetLoss("web", None, 2),)


def test_max_unavailable_needs_the_replicas_of_the_deployment() -> None:
    owner = workload("ReplicaSet/web-1", 3, "Deployment/web")
    running = [pod_json(f"web-1-{zone}", node=f"{zone}1", owner="ReplicaSet/web-1") for zone in "abc"]
    budgets = [budget("web", maxUnavailable=1)]
    assert lost(*ABC, owner, workload("Deployment/web", 4), *running, budgets=budgets)[0][3] == (
        BudgetLoss("web", 3, 2),
    )
    assert lost(*ABC, owner, *running, budgets=budgets)[0][3] == (BudgetLoss("web", None, 2),)


def test_a_replica_set_of_another_owner_has_replicas_of_its_own() -> None:
    owner = workload("ReplicaSet/web-1", 3, "Rollout/web")
    running = [pod_json(f"web-1-{zone}", node=f"{zone}1", owner="ReplicaSet/web-1") for zone in "abc"]
    assert lost(*ABC, owner, *running, budgets=[budget("web", maxUnavailable="34%")])[0][3] == (
        BudgetLoss("web", 1, 2),
    )


def test_two_budgets_and_one_that_several_workloads_share() -> None:
    everything = budget("all", selects={}, minAvailable=4)
    objects = (*ABC, *pods("db", "a1 b1"), *pods("web", "a1 b1 c1"))
    assert lost(*objects, budgets=[everything, budget("web", minAvailable=1)]) == [
        ("db", 1, 1, (BudgetLoss("all", 4, 3),)),
        ("web", 1, 2, (BudgetLoss("all", 4, 3), BudgetLoss("web", 1, 2))),
    ]


def test_the_replicas_of_all_owners_are_added_and_pods_without_owner_left_out() -> None:
    objects = (
        *ABC,
        *pods("db", "a1 b1"),
        *pods("web", "a1 b1 c1"),
        workload("StatefulSet/db", 2),
        workload("StatefulSet/web", 3),
    )
    alone = pod_json("alone", node="a1")
    losses = lost(*objects, alone, budgets=[budget("all", selects={}, maxUnavailable=1)])
    assert {budgets for _, _, _, budgets in losses} == {(BudgetLoss("all", 4, 3),)}


@pytest.mark.parametrize("kind", ["DaemonSet", "Job", "CloneSet"])
def test_other_owners_have_no_replicas_that_the_controller_reads(kind: str) -> None:
    running = [pod_json(f"web-{zone}", node=f"{zone}1", owner=f"{kind}/web") for zone in "ab"]
    assert lost(*ABC, *running, budgets=[budget("web", maxUnavailable=1)])[0][3] == (BudgetLoss("web", None, 1),)


@pytest.mark.parametrize(
    "other",
    [
        budget("web", namespace="elsewhere", minAvailable=9),
        budget("web", selects={"matchLabels": {"app": "db"}}, minAvailable=9),
        budget("web", selects={"matchExpressions": [{"key": "app", "operator": "Near"}]}, minAvailable=9),
        msgspec.json.decode(b'{"metadata": {"name": "web", "namespace": "default"}}', type=PodDisruptionBudget),
    ],
)
def test_budgets_that_select_none_of_the_pods(other: PodDisruptionBudget) -> None:
    assert lost(*ABC, *pods("web", "a1 b1"), budgets=[other])[0][3] == ()


def test_a_budget_of_pods_elsewhere_is_left_out() -> None:
    """It selects by a label that only the pod in another zone has."""
    red = pod_json("web-9", node="b1", owner="StatefulSet/web", labels={"app": "web", "color": "red"})
    selects = {"matchLabels": {"color": "red"}}
    assert lost(*ABC, *pods("web", "a1"), red, budgets=[budget("red", selects=selects, minAvailable=1)])[0][3] == ()


def test_budgets_select_among_all_pods_whatever_labels_are_counted() -> None:
    objects = (*ABC, *pods("db", "a1 b1"), *pods("web", "a1 b1 c1"))
    assert lost(*objects, budgets=[budget("all", selects={}, minAvailable=4)], labels="app=db") == [
        ("db", 1, 1, (BudgetLoss("all", 4, 3),)),
    ]


def test_budgets_that_were_not_read_are_unknown() -> None:
    assert lost(*ABC, *pods("web", "a1"), budgets=None) == [("web", 1, 0, None)]


def test_each_node_is_a_domain_of_the_host_name() -> None:
    domains = counted(*ABC, *pods("web", "a1 a1 b1"), key=HOSTNAME).domains
    assert [(domain.value, domain.pods) for domain in domains] == [("a1", 2), ("b1", 1), ("c1", 0)]
