"""Whether Karpenter or cluster-autoscaler can make a node for a waiting pod, and what refuses first."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kubectl_spread.report.explanation import NewNodes
from tests.audits import audit, engine_of
from tests.builders import (
    HOSTNAME,
    ZONE,
    Json,
    affinity,
    constraint,
    node_class_json,
    node_group,
    node_json,
    node_pool_json,
    pod_json,
    requirement,
    term,
)

TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
ZONES = requirement(ZONE, "In", "a", "b", "c")
FULL = {"cpu": "100"}


def status(*groups: Json) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "status": {"nodeGroups": list(groups)}}


def deleted(pool: Json) -> Json:
    """Return a NodePool that waits for its finalizers."""
    pool["metadata"]["deletionTimestamp"] = "2026-11-28T10:00:00Z"
    return pool


def node_claim(name: str, zone: str) -> Json:
    """Return a NodeClaim of the NodePool ``default``."""
    labels = {"karpenter.sh/nodepool": "default", ZONE: zone}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": name, "labels": labels}}


def event(reason: str, message: str, kind: str = "Pod", name: str = "web-new") -> Json:
    about = {"kind": kind, "name": name, "namespace": "default" if kind == "Pod" else ""}
    return {"apiVersion": "v1", "kind": "Event", "involvedObject": about, "reason": reason, "message": message}


def spread(**fields: object) -> list[Json]:
    """Return two full nodes in each of b and c with a pod each: zone a is gone, and the constraint is hard."""
    rows = [constraint(**fields)]  # type: ignore[arg-type]
    nodes = [node_json(name, taints=[TAINT]) for name in ("b1", "c1")]
    return [
        *nodes,
        *(pod_json(f"web-{node}-{number}", node=node, constraints=rows) for node in ("b1", "c1") for number in (1, 2)),
        pod_json("web-new", constraints=rows),
    ]


def answer(*objects: Json) -> NewNodes | None:
    """Return the answer for the pod ``web-new``."""
    evaluation = audit(*objects)
    [pod] = [pod for pod in evaluation.pods if pod.name == "web-new"]
    return engine_of(evaluation).new_nodes(pod)


def alone(pool: Json, **pod: object) -> NewNodes:
    """Return the answer for a pod that the only node refuses by its taint."""
    found = answer(node_json("b1", taints=[TAINT]), pod_json("web-new", **pod), pool, node_class_json("b", "c"))  # type: ignore[arg-type]
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("pool", "pod", "refusal", "reason"),
    [
        pytest.param(node_pool_json(ready="False"), {}, "ready", "it is not ready", id="not ready"),
        pytest.param(deleted(node_pool_json()), {}, "ready", "it is being deleted", id="being deleted"),
        pytest.param(
            node_pool_json(replicas=3),
            {},
            "static",
            "it is static (replicas 3), so it makes no node for waiting pods",
            id="static",
        ),
        pytest.param(
            node_pool_json(limits=FULL, used={"cpu": "100"}),
            {},
            "limits",
            "its limit of cpu is reached (100 of 100)",
            id="limit reached",
        ),
        pytest.param(
            node_pool_json(limits=FULL, used={"cpu": "96"}),
            {"containers": [{"name": "c", "resources": {"requests": {"cpu": "8"}}}]},
            "limits",
            "its limit of cpu leaves too little for the pod (96 of 100 are used)",
            id="limit too near",
        ),
        pytest.param(
            node_pool_json(taints=[TAINT]),
            {},
            "taints",
            "the pod does not tolerate its taint gpu=yes:NoSchedule",
            id="taint",
        ),
        pytest.param(
            node_pool_json("default", requirement("kubernetes.io/arch", "In", "arm64")),
            {"nodeSelector": {"kubernetes.io/arch": "amd64"}},
            "requirements",
            "its nodes have kubernetes.io/arch arm64, and the pod requires amd64",
            id="requirement",
        ),
        pytest.param(
            node_pool_json(labels={"team": "shop"}),
            {"nodeSelector": {"team": "mail"}},
            "requirements",
            "its nodes have team shop, and the pod requires mail",
            id="template label",
        ),
        pytest.param(
            node_pool_json(),
            {"nodeSelector": {"team": "mail"}},
            "requirements",
            "its nodes have no label team, and the pod requires mail",
            id="no label",
        ),
    ],
)
def test_the_first_refusal_of_a_pool(pool: Json, pod: dict[str, object], refusal: str, reason: str) -> None:
    found = alone(pool, **pod)
    [of_pool] = found.node_pools
    assert (of_pool.filter, of_pool.reason) == (refusal, reason)
    assert found.verdict == "none"
    assert found.summary == f"No NodePool can make a node: NodePool default refuses because {reason}."
    assert len(found.fixes) == 1


@pytest.mark.parametrize(
    ("pool", "pod"),
    [
        pytest.param(node_pool_json(), {}, id="nothing is required"),
        pytest.param(node_pool_json(limits=FULL, used={"cpu": "99"}), {}, id="some cpu is left"),
        pytest.param(node_pool_json(limits={"nvidia.com/gpu": "0"}), {}, id="a limit of what it does not request"),
        pytest.param(node_pool_json(limits={"cpu": "many"}), {}, id="a limit that is not a quantity"),
        pytest.param(
            node_pool_json("default", requirement("size", "In", "2")),
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {"matchExpressions": [requirement("size", "In", "1")]},
                                {"matchExpressions": [requirement("size", "Gt", "1")]},
                            ]
                        }
                    }
                }
            },
            id="one of two terms",
        ),
    ],
)
def test_a_pool_may_make_a_node(pool: Json, pod: dict[str, object]) -> None:
    found = alone(pool, **pod)
    assert found.verdict == "possible"
    assert found.summary == "NodePool default may make a node, if an instance type fits and is available."
    assert (found.reasons, found.fixes) == ([], [])


@pytest.mark.parametrize(
    ("pool", "state"),
    [(node_pool_json(ready="False"), "is not ready"), (deleted(node_pool_json()), "is being deleted")],
)
def test_the_state_of_a_pool_that_karpenter_does_not_use_is_in_the_fix(pool: Json, state: str) -> None:
    assert alone(pool).fixes == [f"See why NodePool default {state}: kubectl describe nodepool default."]


def test_startup_taints_refuse_nothing() -> None:
    pool = node_pool_json()
    pool["spec"]["template"]["spec"]["startupTaints"] = [TAINT]
    assert alone(pool).verdict == "possible"


def test_a_zone_that_a_pool_names_counts_without_nodes() -> None:
    """The nodes of a lost zone are gone, and Karpenter still makes nodes only there."""
    found = answer(*spread(), node_pool_json("default", ZONES))
    assert found is not None
    assert found.summary == (
        "NodePool default may make a node only in zone a, if an instance type fits and is available there."
    )
    assert found.reasons == [
        (
            "Karpenter counts zone a with 0 pods (NodePool default names it), so with maxSkew 1 it makes no node in b "
            "(2 pods) and c (2 pods). No node that counts is in zone a, so kube-scheduler does not count it."
        )
    ]
    assert found.fixes == [
        (
            "If zone a has no capacity: let the requirements of the NodePools name only zones b and c for "
            f"{ZONE}, or make the constraint on zone ScheduleAnyway. nodeTaintsPolicy: Honor does not help."
        )
    ]
    assert [(each.value, each.pods, each.nodes) for each in found.domains] == [("a", 0, 0), ("b", 2, 1), ("c", 2, 1)]
    assert found.node_pools[0].domains == ["a"]


def test_a_subnet_makes_a_zone_count_only_probably() -> None:
    found = answer(*spread(), node_pool_json(), node_class_json("a", "b", "c"))
    assert found is not None
    assert found.verdict == "possible"
    assert found.domains[0].sources == ["EC2NodeClass default has a subnet there"]
    assert found.summary.startswith("NodePool default may make a node probably only in zone a, ")
    assert found.reasons[0].startswith("Karpenter probably counts zone a with 0 pods ")
    assert found.fixes[0].startswith("If zone a has no capacity: remove the subnets of zone a from the EC2NodeClass")


def test_no_pool_can_where_no_zone_that_is_allowed_is_offered() -> None:
    """NodePool names a, b and c; its class has no subnet in a, which counts all the same."""
    found = answer(*spread(), node_pool_json("default", ZONES), node_class_json("b", "c"))
    assert found is not None
    assert found.verdict == "none"
    assert found.node_pools[0].filter == "spread"
    assert found.node_pools[0].reason == (
        "the constraint on zone (maxSkew 1) allows a pod only in zone a (0 pods), and its nodes can only be in zones "
        "b and c"
    )


@pytest.mark.parametrize(
    ("filter_", "fields", "pool", "reason"),
    [
        pytest.param(
            "spread",
            {"minDomains": 3},
            node_pool_json("default", requirement(ZONE, "In", "b", "c")),
            "the constraint on zone (maxSkew 1) allows a pod in no domain that Karpenter counts",
            id="minDomains is not reached",
        ),
        pytest.param(
            "requirements",
            {},
            node_pool_json("default", requirement(ZONE, "In", "a")),
            "its class has no subnet in a zone that its requirements allow",
            id="no subnet in the zone of the pool",
        ),
    ],
)
def test_no_pool_can_where_no_zone_is_allowed(filter_: str, fields: dict[str, object], pool: Json, reason: str) -> None:
    found = answer(*spread(**fields), pool, node_class_json("b", "c"))
    assert found is not None
    assert [(each.filter, each.reason) for each in found.node_pools] == [(filter_, reason)]


def test_zones_of_other_pools_count_too() -> None:
    other = node_pool_json("spot", requirement(ZONE, "In", "a"), taints=[TAINT])
    pool = node_pool_json("default", requirement(ZONE, "In", "b", "c"))
    found = answer(*spread(), pool, other)
    assert found is not None
    assert [each.filter for each in found.node_pools] == ["spread", "taints"]
    honored = answer(*spread(nodeTaintsPolicy="Honor"), pool, other)
    assert honored is not None
    # The nodes of b and c do not count, and nor does a pool whose taints the pod does not tolerate.
    assert [each.value for each in honored.domains] == ["b", "c"]
    assert honored.verdict == "possible"


@pytest.mark.parametrize(
    ("fields", "objects", "domains"),
    [
        pytest.param({}, [node_pool_json()], ["b", "c"], id="nothing names zone a"),
        pytest.param({}, [node_pool_json("default", ZONES, ready="False")], ["b", "c"], id="a pool that is not ready"),
        pytest.param(
            {}, [deleted(node_pool_json("default", ZONES)), node_pool_json("new")], ["b", "c"], id="a pool that goes"
        ),
        pytest.param({}, [node_pool_json(labels={ZONE: "a"})], ["a", "b", "c"], id="a label of the template"),
        pytest.param({"hard": False}, [node_pool_json("default", ZONES)], [], id="a soft constraint"),
        pytest.param({"key": "kubernetes.io/hostname"}, [node_pool_json()], [], id="each node is a new domain"),
    ],
)
def test_the_domains_of_karpenter(fields: dict[str, object], objects: Sequence[Json], domains: list[str]) -> None:
    found = answer(*spread(**fields), *objects)
    assert found is not None
    assert [each.value for each in found.domains] == domains


def test_a_node_claim_shows_that_an_instance_type_is_offered_in_a_zone() -> None:
    found = answer(*spread(), node_pool_json(), *(node_claim(f"default-{name}", "a") for name in "xyz"))
    assert found is not None
    assert found.domains[0].sources == ["NodePool default has NodeClaim default-x there"]
    of_named = answer(*spread(), node_pool_json("default", ZONES), node_claim("default-x", "a"))
    assert of_named is not None
    assert of_named.domains[0].sources == ["NodePool default names it"]


def test_the_node_claims_of_a_pool_are_read_once_for_all_workloads() -> None:
    evaluation = audit(*spread(), node_pool_json(), node_claim("default-x", "a"), node_claim("default-y", ""))
    autoscalers = evaluation.snapshot.node_autoscalers
    claims = autoscalers.claims_in("default", ZONE)
    assert [(zone, claim.metadata.name) for zone, claim in claims.items()] == [("a", "default-x")]
    assert autoscalers.claims_in("default", ZONE) is claims


def test_domains_that_the_pod_may_not_use_refuse_nothing() -> None:
    """Node affinity excludes zone c, so that neither its nodes nor its pods matter for the pod."""
    terms = [{"matchExpressions": [requirement(ZONE, "In", "a", "b")]}]
    required = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    objects = spread()
    objects[-1]["spec"]["affinity"] = required
    found = answer(*objects, node_pool_json("default", ZONES))
    assert found is not None
    assert found.reasons == [
        (
            "Karpenter counts zone a with 0 pods (NodePool default names it), so with maxSkew 1 it makes no node in b "
            "(2 pods). No node that counts is in zone a, so kube-scheduler does not count it."
        )
    ]
    assert found.fixes == [
        (
            f"If zone a has no capacity: let the requirements of the NodePools no longer name zone a for {ZONE}, or "
            "make the constraint on zone ScheduleAnyway. nodeTaintsPolicy: Honor does not help."
        )
    ]


def test_groups_at_their_maximum_and_in_backoff_get_no_node() -> None:
    nodes = spread()
    nodes[0]["metadata"]["labels"]["eks.amazonaws.com/nodegroup"] = "workers"
    nodes[1]["metadata"]["labels"]["eks.amazonaws.com/nodegroup"] = "workers-b"
    groups = [node_group("eks-workers-1f2e", 5, 5), node_group("eks-workers-b-77aa", 0, 5, error="QUOTA_EXCEEDED")]
    found = answer(*nodes, status(*groups))
    assert found is not None
    assert found.verdict == "none"
    assert found.reasons == [
        "Node group eks-workers-1f2e (its nodes are in zone b) has its maximum of 5 nodes.",
        (
            "Node group eks-workers-b-77aa (its nodes are in zone c) is in backoff after a failed scale-up "
            "(QUOTA_EXCEEDED)."
        ),
    ]
    assert found.domains == []


def test_an_empty_group_is_invisible_without_min_domains() -> None:
    groups = [node_group("b", 5, 5), node_group("a", 0, 5)]
    found = answer(*spread(), status(*groups))
    assert found is not None
    assert found.summary == "cluster-autoscaler may add a node to a, if its labels, taints, zone and size fit the pod."
    assert any("unless the constraint has minDomains" in reason for reason in found.reasons)
    with_minimum = answer(*spread(minDomains=3), status(*groups))
    assert with_minimum is not None
    assert not any("minDomains" in reason for reason in with_minimum.reasons)


def test_the_messages_of_autoscalers_are_quoted() -> None:
    events = [
        event("FailedScheduling", "0/2 nodes are available: 2 node(s) had untolerated taints."),
        event("FailedScheduling", "Failed to schedule pod, no instance type has enough resources"),
        event("NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached"),
        event("NoCompatibleInstanceTypes", "NodePool requirements filtered out all types", "NodePool", "default"),
    ]
    found = answer(*spread(), node_pool_json(), *events)
    assert found is not None
    assert found.messages == [
        "Failed to schedule pod, no instance type has enough resources",
        "pod didn't trigger scale-up: 1 max node group size reached",
        "NodePool default: NodePool requirements filtered out all types",
    ]


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param(spread(), id="no autoscaler was read"),
        pytest.param([node_json("b1"), pod_json("web-new"), node_pool_json()], id="a node takes the pod"),
        pytest.param(
            [*spread()[:-1], pod_json("web-new", schedulingGates=[{"name": "g"}]), node_pool_json()], id="gates"
        ),
    ],
)
def test_there_is_no_answer(objects: Sequence[Json]) -> None:
    assert answer(*objects) is None


def with_terms(fields: Json, *objects: Json, pools: Sequence[Json], **pod: object) -> NewNodes:
    """Return the answer for a pod with terms of affinity; the nodes of zones b and c refuse it by their taint."""
    nodes = [node_json(name, taints=[TAINT]) for name in ("b1", "c1")]
    found = answer(*nodes, *objects, pod_json("web-new", affinity=fields, **pod), *pools)  # type: ignore[arg-type]
    assert found is not None
    return found


def named(*zones: str) -> Json:
    """Return a NodePool that names zones."""
    return node_pool_json("default", requirement(ZONE, "In", *zones))


APART = affinity("podAntiAffinity", term(key=ZONE))
TOGETHER = affinity("podAffinity", term(key=ZONE, selects={"matchLabels": {"app": "db"}}))
ALIKE = affinity("podAffinity", term(key=ZONE))
WEB = [pod_json(f"web-{node}", node=node) for node in ("b1", "c1")]
DB = pod_json("db-1", node="b1", labels={"app": "db"})


@pytest.mark.parametrize(
    ("fields", "objects", "zones", "reason"),
    [
        pytest.param(
            APART,
            WEB,
            "bc",
            "pod anti-affinity on zone allows no pod in zones b and c, where its nodes can be",
            id="anti-affinity of the pod",
        ),
        pytest.param(
            {},
            [pod_json("db-1", node="b1", labels={"app": "db"}, affinity=APART)],
            "b",
            "anti-affinity of other pods on zone allows no pod in zone b, where its nodes can be",
            id="anti-affinity of other pods",
        ),
        pytest.param(
            TOGETHER,
            [DB],
            "c",
            "pod affinity on zone allows a pod only in zone b, and its nodes can only be in zone c",
            id="affinity to pods in another zone",
        ),
        pytest.param(TOGETHER, [], "bc", "pod affinity on zone selects no pod that has a node", id="affinity to none"),
        pytest.param(
            affinity("podAffinity", term(key=HOSTNAME)),
            WEB,
            "bc",
            "pod affinity on hostname selects pods that no new node has",
            id="affinity on the host",
        ),
        pytest.param(
            TOGETHER | APART,
            [DB, WEB[0]],
            "bc",
            "pod anti-affinity on zone leaves only zone c, which another constraint or term of affinity refuses",
            id="two terms together",
        ),
    ],
)
def test_pod_affinity_refuses_all_zones_of_a_pool(
    fields: Json, objects: Sequence[Json], zones: str, reason: str
) -> None:
    found = with_terms(fields, *objects, pools=[named(*zones)])
    assert [(each.filter, each.reason) for each in found.node_pools] == [("affinity", reason)]
    assert found.summary == f"No NodePool can make a node: NodePool default refuses because {reason}."
    assert found.fixes == [
        "Let NodePool default and its class offer a domain that pod affinity allows, or prefer it only."
    ]


@pytest.mark.parametrize(
    ("fields", "objects", "zones"),
    [
        pytest.param(APART, WEB, "a", id="anti-affinity leaves the zone without such pods"),
        pytest.param(TOGETHER, [DB], "b", id="affinity leaves the zone with such pods"),
        pytest.param(ALIKE, [WEB[1]], "c", id="affinity to pods like itself"),
    ],
)
def test_pod_affinity_leaves_one_zone(fields: Json, objects: Sequence[Json], zones: str) -> None:
    found = with_terms(fields, *objects, pools=[named("a", "b", "c")])
    assert found.node_pools[0].domains == [*zones]
    assert found.summary == (
        f"NodePool default may make a node only in zone {zones}, if an instance type fits and is available there."
    )


@pytest.mark.parametrize(
    ("fields", "objects"),
    [
        pytest.param(ALIKE, [], id="the first pod with affinity to pods like itself"),
        pytest.param(TOGETHER, [pod_json("db-new", labels={"app": "db"})], id="the pod that it wants waits, too"),
        pytest.param(affinity("podAntiAffinity", term(key=HOSTNAME)), WEB, id="anti-affinity on the host"),
    ],
)
def test_pod_affinity_leaves_all_zones(fields: Json, objects: Sequence[Json]) -> None:
    found = with_terms(fields, *objects, pools=[named("a", "b", "c")])
    assert found.summary == "NodePool default may make a node, if an instance type fits and is available."


def test_zones_that_are_not_known_may_be_without_such_pods() -> None:
    """The pool names no zone, and its class was not read: only affinity to pods with a node refuses it surely."""
    assert with_terms(APART, *WEB, pools=[node_pool_json()]).verdict == "possible"
    assert with_terms(TOGETHER, DB, pools=[node_pool_json()]).node_pools[0].domains == ["b"]
    assert with_terms(TOGETHER, pools=[node_pool_json()]).verdict == "none"


def test_a_constraint_and_affinity_leave_different_zones() -> None:
    """The constraint chooses zone a, which has the fewest pods; the pods that the pod wants are in zone b."""
    found = with_terms(TOGETHER, *WEB, DB, pools=[named("a", "b", "c")], constraints=[constraint()])
    assert found.node_pools[0].reason == (
        "pod affinity on zone leaves only zone b, which another constraint or term of affinity refuses"
    )


def test_affinity_and_a_constraint_that_refuses_its_only_zone_leave_none() -> None:
    """The pool names no zone: the constraint alone might leave one that is not known, and the pod wants zone b."""
    found = with_terms(TOGETHER, WEB[0], DB, pools=[node_pool_json()], constraints=[constraint()])
    assert (found.verdict, found.node_pools[0].filter) == ("none", "affinity")
    assert found.node_pools[0].reason == (
        "pod affinity on zone leaves only zone b, which another constraint or term of affinity refuses"
    )


@pytest.mark.parametrize(
    ("fields", "constraints"),
    [
        pytest.param(
            affinity("podAntiAffinity", term(key=ZONE, selects={"matchLabels": {"app": "db"}})),
            [constraint()],
            id="a constraint and anti-affinity",
        ),
        pytest.param(
            {},
            [constraint(), constraint(selects={"matchLabels": {"app": "db"}})],
            id="two constraints",
        ),
    ],
)
def test_a_zone_that_another_restriction_refuses_is_not_named(fields: Json, constraints: Sequence[Json]) -> None:
    """The constraint on its own pods leaves zone c, where the pods are that the other restriction refuses."""
    others = [pod_json(f"db-{number}", node="c1", labels={"app": "db"}) for number in (1, 2)]
    found = with_terms(fields, WEB[0], *others, pools=[node_pool_json()], constraints=constraints)
    assert (found.verdict, found.node_pools[0].domains) == ("possible", [])
    assert found.summary == (
        "NodePool default may make a node only in a zone that is not known, because the pod's constraints and terms of "
        "affinity refuse all others."
    )


def test_terms_of_node_affinity_are_tried_one_after_another() -> None:
    """Zone b alone is not too full for the constraint, although zone a has fewer pods."""
    terms = [{"matchExpressions": [requirement(ZONE, "In", zone)]} for zone in "ab"]
    required = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    found = with_terms(TOGETHER | required, *WEB, DB, pools=[named("a", "b", "c")], constraints=[constraint()])
    assert found.summary == (
        "NodePool default may make a node only in zone b, if an instance type fits and is available there."
    )


def test_a_pod_for_a_zone_without_subnet_gets_no_node() -> None:
    found = alone(node_pool_json(), nodeSelector={ZONE: "a"})
    assert found.summary == (
        "No NodePool can make a node: NodePool default refuses because its nodes have topology.kubernetes.io/zone b "
        "and c, and the pod requires a."
    )
