"""Edge cases, in words and as questions; ``vectors/`` has the recorded answers of the real code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tests.builders import (
    HOSTNAME,
    ZONE,
    Json,
    affinity,
    constraint,
    node_json,
    pod_json,
    requirement,
    selector,
    term,
)

R1: Final = {"app": "web", "rev": "r1"}
OLD: Final = {"app": "web", "rev": "old"}
NEW: Final = {"app": "web", "rev": "new"}
WEB: Final = {"app": "web"}
A1, B1, C1 = node_json("a1"), node_json("b1"), node_json("c1")
THREE: Final = (A1, B1, C1)
GPU: Final = {"key": "gpu", "effect": "NoSchedule"}
TAINTED: Final = (A1, B1, node_json("c1", taints=[GPU]))
POOL: Final = (node_json("a1", labels={"pool": "web"}), node_json("b1", labels={"pool": "web"}), C1)
LONG: Final = "k" * 64


def create(*constraints: Json, labels: Mapping[str, str] = R1, **spec: Any) -> Json:
    """Ask for a pod to be created; its labels are ``app=web,rev=r1``."""
    return {"kind": "create", "pod": pod_json(stored=False, labels=labels, constraints=constraints, **spec)}


def own(*keys: str, selects: Json | None = None, **fields: Any) -> Json:
    """Return a constraint with these matchLabelKeys."""
    return constraint(match=keys, selects=selects, **fields)


def template(*constraints: Json, labels: Mapping[str, str] = R1, **spec: Any) -> Json:
    """Ask for a Deployment to be created."""
    pod = {"metadata": {"labels": dict(labels)}, "spec": {"topologySpreadConstraints": list(constraints), **spec}}
    metadata = {"name": "web", "namespace": "default"}
    return {
        "kind": "template",
        "deployment": {"metadata": metadata, "spec": {"selector": {"matchLabels": WEB}, "template": pod}},
    }


def update(*constraints: Json, old: Mapping[str, str], new: Mapping[str, str], **spec: Any) -> Json:
    """Ask for a stored pod's labels to be changed."""
    before, after = (pod_json(labels=labels, constraints=constraints, **spec) for labels in (old, new))
    return {"kind": "update", "old": before, "pod": after}


def place(pod: Json, *others: Json, nodes: Sequence[Json] = THREE) -> Json:
    """Ask where a pod may go."""
    return {"kind": "filter", "pod": pod, "pods": list(others), "nodes": list(nodes)}


def rank(pod: Json, *others: Json, nodes: Sequence[Json] = THREE, feasible: str = "") -> Json:
    """Ask for the scores of nodes; all are feasible by default."""
    names = feasible.split() or [node["metadata"]["name"] for node in nodes]
    return {"kind": "scores", "pod": pod, "pods": list(others), "nodes": list(nodes), "feasible": names}


def attract(
    pod: Json, *others: Json, nodes: Sequence[Json] = THREE, namespaces: Mapping[str, Json] | None = None
) -> Json:
    """Ask where a pod may go by the affinities."""
    named = [{"metadata": {"name": name, "labels": labels}} for name, labels in (namespaces or {"default": {}}).items()]
    return {"kind": "affinity", "pod": pod, "pods": list(others), "nodes": list(nodes), "namespaces": named}


def incoming(*constraints: Json, **fields: Any) -> Json:
    """Return a pending pod; it has one hard zone constraint with maxSkew 1 by default."""
    return pod_json("new", constraints=constraints or [constraint()], **fields)


def running(sizes: str, **fields: Any) -> list[Json]:
    """Return pods on nodes: ``a1=2 b1=1``."""
    pods: list[Json] = []
    for word in sizes.split():
        node, _, number = word.partition("=")
        name = f"{len(pods)}-{node}"
        pods += [pod_json(f"{name}-{index}", node=node, **fields) for index in range(int(number))]
    return pods


def soft(max_skew: int = 1, **fields: Any) -> Json:
    """Return a pending pod with one soft zone constraint."""
    return incoming(constraint(hard=False, max_skew=max_skew), **fields)


def anti(*terms: Json) -> Json:
    """Return the affinity of a pod with required anti-affinity."""
    return affinity("podAntiAffinity", *terms)


def _selecting(name: str, selects: Json | None) -> Json:
    """Return a Service or a controller with a selector."""
    spec = {} if selects is None else {"selector": selects}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def by_default(question: Json, **objects: Any) -> Json:
    """Ask with the system's default constraints and a Service for ``app=web`` by default."""
    return {**question, "systemDefaults": True, "services": [_selecting("web", WEB)], **objects}


_MERGED: Final = own("rev", selects=selector(WEB, requirement("rev", "In", "r1")))
_TERM: Final = term(match=["rev"], mismatch=["tenant"], selects=selector(WEB, requirement("tenant", "Exists")))
_TENANT: Final = {**R1, "tenant": "a"}
_DEFAULT: Final = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
_TERMINATING: Final = {"deletionTimestamp": "2026-09-02T10:00:00Z"}
_STALE: Final = own("rev", selects=selector(WEB, requirement("rev", "In", "old")))
_TWO_REVISIONS: Final = (*running("a1=3", labels=OLD), *running("b1=1", labels=NEW))

MERGE: Final = {
    "a key is appended after matchLabels": create(own("rev")),
    "an empty selector is merged into": create(own("rev", selects={})),
    "a null selector is left alone, and its keys are refused": create(own("rev", selects={}, labelSelector=None)),
    "a key that the pod lacks is skipped": create(own("nope")),
    "keys are appended in their order": create(own("rev", "app", selects={})),
    "keys are appended in their order, the other way round": create(own("app", "rev", selects={})),
    "expressions of the author stay in front": create(own("rev", selects=selector(WEB, requirement("x", "Exists")))),
    "an empty label value is a value": create(own("rev"), labels={**WEB, "rev": ""}),
    "a key listed twice": create(own("rev", "rev")),
    "a key listed twice that the pod lacks": create(own("nope", "nope")),
    "a key in matchLabels": create(own("rev", selects=selector(R1))),
    "a key in matchLabels that the pod lacks": create(own("rev", selects=selector(R1)), labels=WEB),
    "a key in one expression": create(own("rev", selects=selector(WEB, requirement("rev", "Exists")))),
    "a key in one expression that the pod lacks": create(
        own("rev", selects=selector(WEB, requirement("rev", "Exists"))), labels=WEB
    ),
    "a key in two expressions that the pod lacks": create(
        own("rev", selects=selector(WEB, requirement("rev", "Exists"), requirement("rev", "NotIn", "x"))), labels=WEB
    ),
    "a merged pod created again": create(_MERGED),
    "a merged pod created again with another value": create(_MERGED, labels={**WEB, "rev": "r2"}),
    "a merged pod created again without the label": create(_MERGED, labels=WEB),
    "matchLabelKeys go before mismatchLabelKeys": create(labels=_TENANT, affinity=anti(_TERM)),
    "a mismatch key listed twice": create(labels=_TENANT, affinity=anti(term(mismatch=["tenant", "tenant"]))),
    "a merged mismatch created again": create(
        labels={**R1, "tenant": "b"},
        affinity=anti(term(mismatch=["tenant"], selects=selector(WEB, requirement("tenant", "NotIn", "a")))),
    ),
    "a key to match and to mismatch": create(affinity=anti(term(match=["rev"], mismatch=["rev"]))),
    "a key to match and to mismatch that the pod lacks": create(
        labels=WEB, affinity=anti(term(match=["rev"], mismatch=["rev"]))
    ),
    "an overlap in a preferred term": create(
        affinity=affinity(
            "podAntiAffinity", term(), term(key=ZONE), term(match=["rev"], selects=selector(R1)), required=False
        )
    ),
    "all four lists are merged": create(
        affinity={
            name: {
                **affinity(name, term(match=["rev"]))[name],
                **affinity(name, term(match=["rev"]), required=False)[name],
            }
            for name in ("podAffinity", "podAntiAffinity")
        }
    ),
}

VALIDATION: Final = {
    "maxSkew 0": create(constraint(max_skew=0)),
    "maxSkew below 0": create(constraint(max_skew=-1)),
    "minDomains with ScheduleAnyway": create(constraint(hard=False, minDomains=2)),
    "minDomains below 0 with ScheduleAnyway": create(constraint(hard=False, minDomains=-1)),
    "two hard zone constraints": create(constraint(), constraint()),
    "a hard and a soft zone constraint": create(constraint(), constraint(hard=False)),
    "a topologyKey that is not a label name": create(constraint(key="foo bar")),
    "a topologyKey that is not a label name, in a term": create(affinity=anti(term(key="foo bar"))),
    "no topologyKey": create(constraint(key=""), affinity=anti(term(key=""))),
    "null selectors": create(
        constraint(selects={}, labelSelector=None),
        affinity={
            **affinity("podAffinity", term(selects={}, labelSelector=None)),
            **affinity("podAntiAffinity", term(selects={}, labelSelector=None), required=False),
        },
    ),
    "deprecated topology keys": create(constraint(key="failure-domain.beta.kubernetes.io/zone")),
    "an empty prefix": create(own("/simple")),
    "an empty prefix, and a null selector": create(own("/simple", selects={}, labelSelector=None)),
    "two slashes": create(own("a/b/c")),
    "a long key": create(own(LONG)),
    "a long namespace": create(affinity=anti(term(namespaces=["n" * 64, "a.b", "A"]))),
    "a weight out of range": create(
        affinity={
            "podAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 101, "podAffinityTerm": term()}]
            }
        }
    ),
    "policies that do not exist": create(constraint(nodeAffinityPolicy="honor", nodeTaintsPolicy="")),
    "operators and values that do not fit": create(
        constraint(
            selects=selector(
                {"-": "-"},
                requirement("a", "In"),
                requirement("b", "Exists", "x"),
                requirement("c", "Gt", "1"),
                requirement("d", "NotIn", "-"),
            )
        ),
    ),
    "a template whose pods will be refused": template(own("rev", selects=selector(R1))),
    "a template with a key listed twice": template(own("rev", "rev")),
    "a template with a merged selector": template(_MERGED),
    "a template with a key to match and to mismatch": template(affinity=anti(term(match=["rev"], mismatch=["rev"]))),
    "a template with null selectors and keys": template(own("rev", selects={}, labelSelector=None)),
    "a merged pod is relabelled": update(_MERGED, old=R1, new={**WEB, "rev": "r2"}),
    "an unmerged pod is relabelled": update(own("rev"), old=R1, new={**WEB, "rev": "r2"}),
    "a pod that breaks both rules is relabelled": update(
        own("rev", selects=selector(R1, requirement("rev", "Exists"))), old=R1, new=WEB
    ),
    "one merged and one unmerged constraint": update(_MERGED, own("rev", key=HOSTNAME), old=R1, new=WEB),
    "a null selector with keys is relabelled": update(own("rev", selects={}, labelSelector=None), old=R1, new=WEB),
    "a selector that was never valid is relabelled": update(
        constraint(selects=selector({}, requirement("a", "In", "-"), requirement("b", "Weird"))),
        old=R1,
        new=WEB,
        affinity=anti(term(selects=selector({}, requirement("a", "In", "-")))),
    ),
}

COUNTING: Final = {
    "2/2/1": place(incoming(), *running("a1=2 b1=2 c1=1")),
    "1/0/0": place(incoming(), *running("a1=1")),
    "fewer domains than minDomains": place(incoming(constraint(max_skew=2, minDomains=5)), *running("a1=2 b1=2 c1=2")),
    "as many domains as minDomains": place(incoming(constraint(minDomains=3)), *running("a1=2 b1=2 c1=2")),
    "a pod that does not match its own selector": place(incoming(labels={"app": "other"}), *running("a1=2 b1=1")),
    "terminating pods": place(incoming(), *running("a1=1"), *running("a1=3", metadata=_TERMINATING)),
    "another namespace": place(incoming(), *running("a1=5", namespace="elsewhere")),
    "finished pods": place(
        incoming(), *running("a1=2", phase="Succeeded"), *running("a1=1", phase="Failed"), *running("b1=1")
    ),
    "pods on a node without the key": place(
        incoming(), *running("a1=1 d1=9"), nodes=(*THREE, node_json("d1", without=[ZONE]))
    ),
    "a node lacking one of two hard keys": place(
        incoming(constraint(max_skew=5), constraint(key=HOSTNAME, max_skew=5)),
        *running("a1=1 d1=9"),
        nodes=(*THREE, node_json("d1", without=[ZONE])),
    ),
    "a node lacking a soft key": place(
        incoming(constraint(), constraint(key=HOSTNAME, hard=False)),
        *running("a1=1"),
        nodes=(A1, node_json("b1", without=[HOSTNAME])),
    ),
    "a tainted node, taints ignored": place(incoming(), *running("a1=1 b1=1"), nodes=TAINTED),
    "a tainted node, taints honoured": place(
        incoming(constraint(nodeTaintsPolicy="Honor")), *running("a1=1 b1=1 c1=4"), nodes=TAINTED
    ),
    "a tainted node, tolerated": place(
        incoming(constraint(nodeTaintsPolicy="Honor"), tolerations=[{"operator": "Exists"}]),
        *running("a1=1 b1=1"),
        nodes=TAINTED,
    ),
    "PreferNoSchedule": place(
        incoming(constraint(nodeTaintsPolicy="Honor")),
        *running("a1=1 b1=1"),
        nodes=(A1, B1, node_json("c1", taints=[{"key": "gpu", "effect": "PreferNoSchedule"}])),
    ),
    "a cordoned node without its taint": place(
        incoming(constraint(nodeTaintsPolicy="Honor")),
        *running("a1=1 b1=1"),
        nodes=(A1, B1, {**C1, "spec": {"unschedulable": True}}),
    ),
    "a cordoned node": place(
        incoming(constraint(nodeTaintsPolicy="Honor")),
        *running("a1=1 b1=1"),
        nodes=(A1, B1, node_json("c1", taints=[{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}])),
    ),
    "a nodeSelector excludes a zone": place(incoming(nodeSelector={"pool": "web"}), *running("a1=1 b1=1"), nodes=POOL),
    "a nodeSelector, affinity ignored": place(
        incoming(constraint(nodeAffinityPolicy="Ignore"), nodeSelector={"pool": "web"}),
        *running("a1=1 b1=1"),
        nodes=POOL,
    ),
    "a pod that one node only will take": place(
        incoming(
            constraint(key=HOSTNAME),
            affinity={
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchFields": [requirement("metadata.name", "In", "b1")]}]
                    }
                }
            },
        ),
        *running("b1=7 a1=1"),
    ),
    "the empty selector": place(incoming(constraint(selects={})), *running("a1=9")),
    "no selector": place(incoming(constraint(selects={}, labelSelector=None)), *running("a1=9")),
    "a stale selector": place(incoming(_STALE, labels=NEW), *_TWO_REVISIONS),
    "a merged label that is gone": place(incoming(_STALE, labels=WEB), *_TWO_REVISIONS),
    "an unmerged selector": place(incoming(own("rev"), labels=NEW), *_TWO_REVISIONS),
    "a key that the pod lacks": place(incoming(own("rev"), labels=WEB), *_TWO_REVISIONS),
    "a topologyKey of no node": place(incoming(constraint(key="rack")), *running("a1=3")),
    "affinity excludes all nodes": place(incoming(nodeSelector={"pool": "none"}), *running("a1=3")),
    "two nodes in a zone": place(
        incoming(constraint(max_skew=2)), *running("a1=2 a2=2 b1=3"), nodes=(A1, node_json("a2"), B1)
    ),
    "an empty topology value": place(incoming(), *running("a1=1"), nodes=(A1, node_json("x1", zone=""))),
    "a pod on a node that is gone": place(incoming(), *running("gone=4 a1=1")),
    "a zone without nodes": place(incoming(), *running("a1=1 b1=1"), nodes=(A1, B1)),
    "Gt with a number that no label can be": place(
        incoming(
            affinity={
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [requirement("cpu", "Gt", "-3")]}]
                    }
                }
            }
        ),
        nodes=(node_json("a1", labels={"cpu": "007"}),),
    ),
    "Lt as a toleration": place(
        incoming(
            constraint(nodeTaintsPolicy="Honor"),
            tolerations=[{"key": "gpu", "operator": "Lt", "value": "10", "effect": "NoSchedule"}],
        ),
        *running("a1=1 b1=1"),
        nodes=(A1, B1, node_json("c1", taints=[{**GPU, "value": "5"}])),
    ),
}

SCORING: Final = {
    "2/1/0": rank(soft(), *running("a1=2 b1=1")),
    "a larger maxSkew flattens": rank(soft(5), *running("a1=2 b1=1")),
    "zone and hostname, written in the pod": rank(
        incoming(constraint(key=HOSTNAME, hard=False, max_skew=3), constraint(hard=False, max_skew=5)),
        *running("a1=2 x1=2"),
        nodes=(A1, B1, node_json("x1", without=[ZONE])),
    ),
    "no matching pods": rank(soft(5)),
    "hostname ignores the policies": rank(
        incoming(constraint(key=HOSTNAME, hard=False, nodeTaintsPolicy="Honor")), *running("c1=3"), nodes=TAINTED
    ),
    "a zone without feasible nodes": rank(soft(), *running("a1=2 b1=1 c1=3"), feasible="a1 b1"),
    "equal counts": rank(soft(), *running("a1=2 b1=2 c1=2")),
    "the empty selector does not rank": rank(incoming(constraint(selects={}, hard=False)), *running("a1=9")),
}

DEFAULTS: Final = {
    "system defaults, 2/1/0": by_default(rank(pod_json("new"), *running("a1=2 b1=1"))),
    "system defaults, a node without a zone": by_default(
        rank(pod_json("new"), *running("a1=2 x1=2"), nodes=(A1, B1, node_json("x1", without=[ZONE])))
    ),
    "system defaults, no pods, a node without a zone": by_default(
        rank(pod_json("new"), nodes=(A1, B1, node_json("x1", without=[ZONE])))
    ),
    "system defaults do not filter": by_default(place(pod_json("new"), *running("a1=9"))),
    "a ReplicaSet's selector": by_default(
        rank(
            pod_json("new", labels=NEW, owner="ReplicaSet/web"),
            *running("a1=2", labels=OLD),
            *running("b1=1", labels=NEW),
        ),
        services=[],
        replicaSets=[_selecting("web", {"matchLabels": NEW})],
    ),
    "a DaemonSet has no selector": by_default(
        rank(pod_json("new", owner="DaemonSet/web"), *running("a1=2")), services=[]
    ),
    "a pod with a soft constraint has no hard default": by_default(
        place(soft(), *running("a1=9")), systemDefaults=False, defaultConstraints=[_DEFAULT]
    ),
    "a hard default": by_default(
        place(pod_json("new"), *running("a1=1")), systemDefaults=False, defaultConstraints=[_DEFAULT]
    ),
    "a default's matchLabelKeys do nothing": by_default(
        place(pod_json("new", labels=NEW), *_TWO_REVISIONS),
        systemDefaults=False,
        defaultConstraints=[{**_DEFAULT, "matchLabelKeys": ["rev"]}],
    ),
    "a Service without a selector": by_default(
        place(pod_json("new"), *running("a1=1")),
        systemDefaults=False,
        defaultConstraints=[_DEFAULT],
        services=[_selecting("headless", None)],
    ),
    "two Services": by_default(
        place(pod_json("new", labels=NEW), *_TWO_REVISIONS),
        systemDefaults=False,
        defaultConstraints=[_DEFAULT],
        services=[_selecting("web", WEB), _selecting("new", {"rev": "new"})],
    ),
}

AFFINITY: Final = {
    "a running pod repels by its stored selector": attract(
        pod_json("new", labels=OLD),
        pod_json(
            "r",
            node="a1",
            labels=NEW,
            affinity=anti(term(match=["rev"], selects=selector(WEB, requirement("rev", "In", "old")))),
        ),
    ),
    "and not by its label": attract(
        pod_json("new", labels=NEW),
        pod_json(
            "r",
            node="a1",
            labels=NEW,
            affinity=anti(term(match=["rev"], selects=selector(WEB, requirement("rev", "In", "old")))),
        ),
    ),
    "a terminating pod repels": attract(
        pod_json("new"), pod_json("r", node="a1", metadata=_TERMINATING, affinity=anti(term()))
    ),
    "a running pod's node lacks the key": attract(
        pod_json("new"),
        pod_json("r", node="d1", affinity=anti(term(key=ZONE))),
        nodes=(A1, node_json("d1", without=[ZONE])),
    ),
    "a term selects in its own namespace": attract(
        pod_json("new", namespace="other"),
        pod_json("r", node="a1", affinity=anti(term())),
        namespaces={"default": {}, "other": {}},
    ),
    "an empty namespaceSelector selects in all": attract(
        pod_json("new", namespace="other"),
        pod_json("r", node="a1", affinity=anti(term(namespaceSelector={}))),
        namespaces={"default": {}, "other": {}},
    ),
    "the first of a group": attract(
        pod_json("new", affinity=affinity("podAffinity", term(key=ZONE))),
        nodes=(A1, node_json("d1", without=[ZONE])),
    ),
    "not the first of a group": attract(
        pod_json("new", affinity=affinity("podAffinity", term(key=ZONE))), pod_json("r", node="b1")
    ),
    "one pod has to match all terms": attract(
        pod_json("new", labels={}, affinity=affinity("podAffinity", term(), term(selects=selector({"rev": "r1"})))),
        pod_json("r", node="a1"),
        pod_json("s", node="a1", labels={"rev": "r1"}),
    ),
    "a namespaceSelector that empty labels satisfy": attract(
        pod_json("new", affinity=anti(term(namespaceSelector=selector({}, requirement("team", "DoesNotExist"))))),
        pod_json("r", node="a1", namespace="other"),
        namespaces={"default": {}, "other": {"team": "x"}},
    ),
    "a null selector": attract(
        pod_json("new", affinity=anti(term(selects={}, labelSelector=None))), pod_json("r", node="a1")
    ),
    "the empty selector": attract(pod_json("new", affinity=anti(term(selects={}))), pod_json("r", node="a1")),
}

EDGES: Final[Mapping[str, Mapping[str, Json]]] = {
    "merge": MERGE,
    "validation": VALIDATION,
    "counting": COUNTING,
    "scoring": SCORING,
    "defaults": DEFAULTS,
    "affinity": AFFINITY,
}
"""Maps a file of vectors to its cases, by name."""
