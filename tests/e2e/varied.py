"""A cluster with each feature that affects the counts of a constraint."""

from __future__ import annotations

from collections.abc import Iterator

from tests.builders import HOSTNAME, ZONE, Json, constraint, requirement, selector
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import REGION
from tests.e2e.manifests import SCHEDULING_GATE, deployment, pod, workload
from tests.e2e.workloads import label, pod_names, pods, scheduled

HASH = "pod-template-hash"
NAMESPACES = ("shop", "lab", "other")
_HOLD = "example.com/hold"
_FAST = {"disk": "ssd"}
_GPU = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}
_CORDONED = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def build(cluster: ControlPlane) -> None:
    """Add nodes and workloads, edit labels, delete pods, and wait until nothing changes any more."""
    _add_nodes(cluster)
    for name in NAMESPACES:
        cluster.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    cluster.apply(list(_workloads()))
    cluster.wait_for(lambda: _settled(cluster), timeout=60, what="every pod is running, or refused by the scheduler")
    # Otherwise a capture would not tell that budgets were read.
    budget = {
        "metadata": {"name": "web", "namespace": NAMESPACES[0]},
        "spec": {"selector": {"matchLabels": {"no": "pod"}}},
    }
    cluster.apply({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", **budget})
    _edit_labels(cluster)
    _end_pods(cluster)


def _add_nodes(cluster: ControlPlane) -> None:
    """Add nodes of zones a, b and c, and tainted and cordoned nodes and nodes without a usual label."""
    cluster.add_nodes(("a", "b", "c"), per_zone=1, labels=_FAST)
    cluster.add_nodes(("a", "b"), per_zone=1)
    cluster.add_nodes(("a",), per_zone=1, taints=[{"key": "busy", "effect": "PreferNoSchedule"}])
    cluster.add_nodes(("c",), per_zone=1, taints=[_GPU])
    cluster.add_nodes(("d",), per_zone=1, taints=[{"key": "maintenance", "effect": "NoExecute"}])
    # Two cordoned nodes; the controller that taints them, too, does not run here.
    cordoned = [*cluster.add_nodes(("b",), per_zone=1), *cluster.add_nodes(("b",), per_zone=1, taints=[_CORDONED])]
    for name in cordoned:
        cluster.api.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True}})
    cluster.add_nodes(("x",), per_zone=1, labels={ZONE: None})
    cluster.add_nodes(("e",), per_zone=1, labels={HOSTNAME: None})
    cluster.add_nodes(("f",), per_zone=1, labels={ZONE: ""})


def _by(name: str) -> Json:
    return selector({"app": name})


def _shop(name: str, *constraints: Json, replicas: int = 3, labels: Json | None = None, **spec: object) -> Json:
    pod_labels = {"app": name, **(labels or {})}
    return deployment(name, constraints, replicas=replicas, labels=pod_labels, namespace="shop", **spec)


def _workloads() -> Iterator[Json]:
    yield from _deployments()
    yield from _other_kinds()
    yield from _bare_pods()


def _deployments() -> Iterator[Json]:
    tolerate_gpu: Json = {"tolerations": [{"key": "dedicated", "operator": "Exists"}]}
    tolerate_all: Json = {"tolerations": [{"operator": "Exists"}]}
    # Zone d is tainted and still counts, so each zone takes one pod, and the other pods wait.
    yield _shop("web", constraint(selects=_by("web"), match=[HASH]), replicas=7)
    yield _shop("api", constraint(selects=_by("api"), max_skew=2, minDomains=9), replicas=12)
    yield _shop("cart", constraint(selects=_by("cart"), nodeTaintsPolicy="Honor"), replicas=6)
    yield _shop("gpu", constraint(selects=_by("gpu"), nodeTaintsPolicy="Honor"), replicas=7, **tolerate_gpu)
    yield _shop("anywhere", constraint(selects=_by("anywhere"), nodeTaintsPolicy="Honor"), replicas=8, **tolerate_all)
    yield _shop(
        "search", constraint(selects=_by("search"), nodeAffinityPolicy="Ignore"), replicas=4, nodeSelector=_FAST
    )
    zone_a: Json = {"nodeSelector": {ZONE: "a"}}
    yield _shop("narrow", constraint(selects=_by("narrow"), nodeAffinityPolicy="Ignore"), replicas=2, **zone_a)
    yield _shop("index", constraint(selects=_by("index")), replicas=4, nodeSelector=_FAST)
    yield _shop("empty", constraint(selects={}))
    yield _shop("null", {key: value for key, value in constraint().items() if key != "labelSelector"})
    yield _shop(
        "strict", constraint(selects=_by("strict"), max_skew=2), constraint(key=HOSTNAME, selects=_by("strict"))
    )
    hard, soft = constraint(selects=_by("mixed"), match=[HASH]), constraint(key=HOSTNAME, hard=False, match=[HASH])
    yield _shop("mixed", hard, soft)
    yield _shop("soft", constraint(hard=False, selects=_by("soft")), replicas=4)
    revised = {"rev": "r1"}
    yield _shop("revised", constraint(selects=_by("revised"), match=["rev"], max_skew=2), replicas=6, labels=revised)
    yield _shop("late", constraint(selects=_by("late"), match=[HASH, "rev"], max_skew=2), replicas=4)
    yield _shop("unproven", constraint(selects=_by("unproven"), match=["rev"], max_skew=2), replicas=4)
    # The selector matches pods of another workload, and not its own pods.
    yield _shop("foreign", constraint(selects=_by("gpu"), max_skew=1))
    yield _shop("rack", constraint(key="example.com/rack", selects=_by("rack")), replicas=2)
    yield _shop("region", constraint(key=REGION, selects=_by("region")))
    yield _shop("bound", constraint(key=HOSTNAME, selects=_by("bound"), match=[ZONE]), replicas=5)
    yield _shop("picky", constraint(selects=_by("picky")), affinity=_nodes(("a", "b"), without="a2"))
    yield _shop("nowhere", constraint(selects=_by("nowhere")), replicas=1, affinity=_nodes(("z",)))
    yield _shop("alien", constraint(selects=_by("alien")), replicas=1, schedulerName="another")
    # Two workloads that count each other, unless by revision.
    color = {"labels": {"app": "color"}, "namespace": "lab"}
    yield deployment("blue", [constraint(selects=_by("color"), match=[HASH], max_skew=3)], replicas=6, **color)
    yield deployment("green", [constraint(selects=_by("color"), max_skew=3)], replicas=3, **color)
    chosen = selector(None, requirement("app", "Exists"), requirement("tier", "NotIn", "old", "older"))
    yield deployment("chosen", [constraint(selects=chosen, max_skew=6)], labels={"app": "chosen"}, namespace="lab")


def _nodes(zones: tuple[str, ...], without: str = "") -> Json:
    """Return a node affinity for zones, without one of their nodes."""
    expressions = [requirement(ZONE, "In", *zones)]
    if without:
        expressions.append(requirement(HOSTNAME, "NotIn", without))
    required = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def _other_kinds() -> Iterator[Json]:
    by_revision = constraint(selects=_by("db"), match=["controller-revision-hash"])
    yield workload("StatefulSet", "db", [by_revision], labels={"app": "db"}, namespace="shop")
    yield workload("DaemonSet", "agent", [constraint(selects=_by("agent"))], labels={"app": "agent"}, namespace="shop")
    by_job = constraint(selects=_by("batch"), match=["batch.kubernetes.io/job-name"])
    spec = pod("batch", [by_job], restartPolicy="Never")["spec"]
    yield {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "batch", "namespace": "shop"},
        "spec": {
            "parallelism": 3,
            "completions": 3,
            "template": {"metadata": {"labels": {"app": "batch"}}, "spec": spec},
        },
    }


def _bare_pods() -> Iterator[Json]:
    """Yield pods put onto nodes by name, and pods that wait at a gate."""
    placed = {
        "uneven": ("a1", "a1", "a2", "b1"),
        "ending": ("a1", "a2", "b1"),
        "done": ("a1", "b1"),
        "lonely": ("b1",),
    }
    for app, nodes in placed.items():
        for number, node in enumerate(nodes):
            held: Json = {"metadata": {"finalizers": [_HOLD]}} if app == "ending" else {}
            by_app = constraint(selects=_by(app))
            yield pod(f"{app}-{number}", [by_app], labels={"app": app}, namespace="shop", nodeName=node, **held)
    for number in range(4):
        by_app = constraint(selects=_by("lonely"))
        yield pod(f"lonely-{number}", [by_app], labels={"app": "lonely"}, namespace="other", nodeName="a1")
    labels = {"app": "revised", "rev": "r1"}
    by_rev = constraint(selects=_by("revised"), match=["rev"])
    yield pod("gated", [by_rev], labels=labels, namespace="shop", **SCHEDULING_GATE)
    # The label is edited while the pod waits, so that no pod can have both values.
    yield pod("gated-stale", [by_rev], labels=labels, namespace="shop", **SCHEDULING_GATE)


def _settled(cluster: ControlPlane) -> bool:
    """Tell whether every pod of the workloads is there, and runs or was refused."""
    agents = cluster.api.get("/apis/apps/v1/namespaces/shop/daemonsets/agent")["status"]
    present = [pod for namespace in NAMESPACES for pod in pods(cluster, namespace)]
    number = sum(map(_pods_of, _workloads())) + agents["desiredNumberScheduled"]
    return "observedGeneration" in agents and len(present) == number and all(map(_at_rest, present))


def _pods_of(manifest: Json) -> int:
    """Return the number of pods that a manifest asks for; 0 for a DaemonSet, for which nodes decide it."""
    spec = manifest["spec"]
    numbers = {"DaemonSet": 0, "Job": spec.get("parallelism"), "Pod": 1}
    number: int = numbers.get(manifest["kind"], spec.get("replicas"))
    return number


def _at_rest(manifest: Json) -> bool:
    if manifest["status"]["phase"] == "Running" or manifest["spec"]["schedulerName"] == "another":
        return True
    return scheduled(manifest).get("reason") in ("Unschedulable", "SchedulingGated")


def _edit_labels(cluster: ControlPlane) -> None:
    """Change labels that were merged."""
    edits = {"revised": (["rev=r2"], ["rev=r2"], ["rev-"]), "late": (["rev=r1"],), "unproven": (["rev=r1"],)}
    names = {app: [name for name in pod_names(cluster, "shop") if name.startswith(f"{app}-")] for app in edits}
    for app, changes in edits.items():
        for name, change in zip(names[app], changes, strict=False):
            label(cluster, "shop", name, *change)
    label(cluster, "shop", "gated-stale", "rev=r2")


def _end_pods(cluster: ControlPlane) -> None:
    """Delete pods that a finalizer holds back, and let one finish."""
    cluster.kubectl("delete", "pod", "ending-0", "ending-1", "-n", "shop", "--wait=false")
    cluster.api.patch("/api/v1/namespaces/shop/pods/done-0/status", {"status": {"phase": "Succeeded"}})
