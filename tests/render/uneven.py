"""Explanations, among them one of a Deployment during a rollout, with a cordoned zone, pending and terminating pods."""

from __future__ import annotations

from kubectl_spread.audit.snapshot.scope import Scope, Target
from kubectl_spread.explain.explanation import Explanation, explain
from kubectl_spread.kube.api.objects import ObjectRef
from tests.audits import audit, deployment, engine_of, reported
from tests.builders import HOSTNAME, Json, affinity, constraint, node_json, pod_json, requirement, selector, term

WEB = {"app": "web"}
DEPLOYMENT = ObjectRef("default", "Deployment", "web")
KEYED = constraint(key=HOSTNAME, match=["rev"], selects=selector(WEB, requirement("rev", "In", "r1")))
REFUSED = (
    "0/6 nodes are available: 2 node(s) were unschedulable, 4 node(s) didn't match pod topology spread constraints. "
    "preemption: 0/6 nodes are available: 6 Preemption is not helpful for scheduling."
)


def replica_set(name: str, revision: int) -> Json:
    workload = deployment(name, kind="ReplicaSet", owner="Deployment/web")
    workload["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": str(revision)}
    return workload


def web(name: str, node: str, *, constraints: list[Json] | None = None, **labels: str) -> Json:
    owner = "web-6d5f" if name.startswith("new") else "web-58c9"
    own = {**WEB, "pod-template-hash": owner.removeprefix("web-"), "rev": "r1", **labels}
    spread_constraints = [constraint()] if constraints is None else constraints
    return pod_json(
        f"{owner}-{name}", node=node, labels=own, owner=f"ReplicaSet/{owner}", constraints=spread_constraints
    )


def terminating(pod: Json) -> Json:
    return {**pod, "metadata": {**pod["metadata"], "deletionTimestamp": "2026-09-01T11:00:00Z"}}


def event(pod: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{pod}.1", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "name": pod, "namespace": "default"},
        "reason": "FailedScheduling",
        "message": REFUSED,
        "count": 4,
        "lastTimestamp": "2026-09-01T10:31:00Z",
    }


def uneven() -> Explanation:
    """Return an explanation in which every section has text."""
    cordoned = [node_json(name) for name in ("c1", "c2")]
    for node in cordoned:
        node["spec"]["unschedulable"] = True
    anti = affinity("podAntiAffinity", term(selects=selector({"app": "load"}), key=HOSTNAME))
    evaluation = audit(
        deployment("web"),
        replica_set("web-58c9", 1),
        replica_set("web-6d5f", 2),
        *(node_json(name) for name in ("a1", "a2", "b1", "b2")),
        *cordoned,
        *(web(f"old{number}", node) for number, node in enumerate(("a1", "b1"))),
        *(web(f"new{number}", node) for number, node in enumerate(("a1", "a2"))),
        terminating(web("old-9", "c1")),
        web("new-8", ""),
        web("new-9", "", constraints=[KEYED], rev="r2"),
        pod_json("load-1", node="b1", labels={"app": "load", "job": "x"}, owner="Job/load", affinity=anti),
        pod_json("load-2", node="b2", owner="Job/load"),
        event("web-6d5f-new-8"),
        scope=Scope(targets=(Target("Deployment", "web"),)),
    )
    return explain(evaluation, reported(evaluation), DEPLOYMENT, engine_of(evaluation))


def crowded() -> Explanation:
    """Return the explanation of a Deployment with all pods in one zone."""
    nodes = [node_json(name) for name in ("a1", "a2", "b1", "c1")]
    spread_constraints = [constraint(minDomains=3)]
    pods = [web(f"new-{number}", f"a{1 + number % 2}", constraints=spread_constraints) for number in range(4)]
    evaluation = audit(deployment("web"), replica_set("web-6d5f", 1), *nodes, *pods)
    return explain(evaluation, reported(evaluation), DEPLOYMENT, engine_of(evaluation), replicas=3)


def unmade() -> Explanation:
    """Return the explanation of a Deployment without pods."""
    spread_constraints = [constraint(match=["pod-template-hash"]), constraint(key=HOSTNAME, hard=False, match=["app"])]
    evaluation = audit(deployment("web", constraints=spread_constraints))
    return explain(evaluation, reported(evaluation), DEPLOYMENT, engine_of(evaluation))
