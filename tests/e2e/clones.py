"""Pending clones: one more pod of each group, compared between the report and the real scheduler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from tests.builders import ZONE, Json, requirement
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import REGION
from tests.e2e.manifests import SCHEDULING_GATE, WITHOUT_GATE
from tests.e2e.scheduler_log import Decision, Refusal, SchedulerLog
from tests.e2e.spread import Report, named
from tests.e2e.workloads import owner_reference

_AT_BINDING = (ZONE, REGION)
_CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


@dataclass(frozen=True)
class Expectation:
    """The answer of the report: the nodes that the spread plugin refuses, with reasons, and the feasible nodes."""

    refusals: frozenset[Refusal]
    feasible: frozenset[str]
    everywhere: Mapping[str, int]


@dataclass(frozen=True)
class Comparison:
    """One group: whether its clone was stored like its pod, the expectation, and the decision of the scheduler."""

    group: str
    stored_alike: bool
    expected: Expectation
    decision: Decision
    answer: Json

    @property
    def agrees(self) -> bool:
        """Whether the scheduler refused the blocked nodes with the same numbers, and chose an allowed node."""
        chosen = self.decision.node in self.expected.feasible if self.expected.feasible else not self.decision.node
        return (
            self.stored_alike
            and self.expected.refusals == self.decision.refusals
            and len(self.expected.feasible) == self.decision.feasible
            and chosen
        )


def compare(cluster: ControlPlane, report: Report) -> list[Comparison]:
    """Let the scheduler decide on one clone of every group, one after another, and compare.

    Pods pinned to a node and those of other schedulers have no answer in the report, and no clone.
    """
    nodes = cluster.api.get("/api/v1/nodes")["items"]
    log = SchedulerLog(cluster)
    numbers = count(1)
    owners = {name: _owner(cluster, name) for name in sorted({group["namespace"] for group in report["groups"]})}
    comparisons = []
    for group in report["groups"]:
        if "nodes" not in group:
            continue
        namespace, name = group["namespace"], group["pods"][0]
        pod = cluster.api.get(f"/api/v1/namespaces/{namespace}/pods/{name}")
        rows = [_as_for(pod, _row(report, group, index, pod), report) for index in range(len(_constraints(pod)))]
        clone = _clone(pod, rows, report, f"clone-{next(numbers)}", owners[namespace])
        alike, decision = _schedule(cluster, log, clone, pod)
        label = f"{namespace} {named(group['workload'])} {name}"
        comparisons.append(Comparison(label, alike, expect(pod, rows, nodes), decision, group["nodes"]))
    return comparisons


def _constraints(pod: Json) -> list[Json]:
    topology_spread_constraints: list[Json] = pod["spec"]["topologySpreadConstraints"]
    return topology_spread_constraints


def _row(report: Report, group: Json, index: int, pod: Json) -> Json:
    """Return the row of one constraint of a group's pod: the same stored selector, and the pod's labels effective."""
    constraint = _constraints(pod)[index]
    labels = _labels_now(pod)
    current = [requirement(key, "In", labels[key]) for key in constraint.get("matchLabelKeys", []) if key in labels]
    rows = [
        row
        for row in report.rows(named(group["workload"]), f"spec.topologySpreadConstraints[{index}]")
        if row["namespace"] == group["namespace"]
        and _plain(row["selector"]["stored"]) == _plain(_stored(constraint))
        and all(expected in _expressions(row) for expected in current)
    ]
    return min(rows, key=lambda row: len(_expressions(row)))


def _expressions(row: Json) -> list[Json]:
    """Return the matchExpressions of a row's effective selector."""
    effective = row["selector"]["effective"] or {}
    expressions: list[Json] = effective.get("matchExpressions", [])
    return expressions


def _as_for(pod: Json, row: Json, report: Report) -> Json:
    """Return a row as it is for one of its pods.

    A row shows the selfMatchNum of most of its pods, and one that lost a merged label no longer matches.
    """
    lost = {
        (entry["namespace"], entry["name"], entry["path"])
        for entry in report["pods"]
        if entry["verdict"] == "removed-label"
    }
    if (row["namespace"], pod["metadata"]["name"], row["path"]) not in lost:
        return row
    blocked = [domain["value"] for domain in row["domains"] if domain["matchNum"] - row["minMatchNum"] > row["maxSkew"]]
    return {**row, "selfMatchNum": 0, "next": {"blocked": blocked}}


def _stored(constraint: Json) -> Json | None:
    return constraint.get("labelSelector")


def _plain(selector: Json | None) -> object:
    """Return a selector without empty parts, which the API leaves out."""
    return None if selector is None else {part: value for part, value in selector.items() if value}


def _owner(cluster: ControlPlane, namespace: str) -> Json:
    """Return a reference to an owner of the clones; a ReplicaSet would adopt pods that have none."""
    metadata = {"name": "clones", "namespace": namespace}
    created = cluster.api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    return owner_reference(created)


def _clone(pod: Json, rows: Sequence[Json], report: Report, name: str, owner: Json) -> Json:
    """Return a manifest that the apiserver merges as it merged ``pod``: labels as they were then, selectors authored.

    It waits at a gate, so that its labels can be brought to what they are now before the scheduler sees it.
    """
    spec = {key: value for key, value in pod["spec"].items() if key not in ("nodeName", "schedulingGates")}
    constraints = []
    for constraint, row in zip(_constraints(pod), rows, strict=True):
        authored = row["selector"]["authored"]
        constraints.append({**constraint, "labelSelector": authored} if authored is not None else constraint)
    spec |= {"topologySpreadConstraints": constraints, **SCHEDULING_GATE}
    metadata = {
        "name": name,
        "namespace": pod["metadata"]["namespace"],
        "labels": _labels_at_creation(pod, report),
        "ownerReferences": [owner],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _labels_at_creation(pod: Json, report: Report) -> dict[str, str]:
    """Return the labels without the changes since creation that the report names."""
    metadata = pod["metadata"]
    labels = _labels_now(pod)
    for entry in report["pods"]:
        if (entry["namespace"], entry["name"]) != (metadata["namespace"], metadata["name"]):
            continue
        for key in entry["keys"]:
            if "stored" in key:
                labels[key["key"]] = key["stored"]
            elif key["verdict"] in ("late-label", "unmerged"):
                labels.pop(key["key"])
    return labels


def _labels_now(pod: Json) -> dict[str, str]:
    """Return the labels without those that are written at binding."""
    return {key: value for key, value in pod["metadata"]["labels"].items() if key not in _AT_BINDING}


def _schedule(cluster: ControlPlane, log: SchedulerLog, clone: Json, pod: Json) -> tuple[bool, Decision]:
    """Create the clone, bring its labels up to date, lift the gate, await the decision, and delete it again.

    Returns:
        Whether its selectors are stored as those of ``pod`` are, and the decision.
    """
    metadata = clone["metadata"]
    full_name = f"{metadata['namespace']}/{metadata['name']}"
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
    created = cluster.api.create(clone)
    alike = [_plain(_stored(constraint)) for constraint in _constraints(created)] == [
        _plain(_stored(constraint)) for constraint in _constraints(pod)
    ]
    now, then = _labels_now(pod), metadata["labels"]
    cluster.api.patch(path, {"metadata": {"labels": {**dict.fromkeys(then), **now}}})
    cluster.api.patch(path, WITHOUT_GATE)
    decision = log.decision(full_name)
    cluster.api.request("DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})
    log.wait_until_forgotten(full_name)
    return alike, decision


def expect(pod: Json, rows: Sequence[Json], nodes: Sequence[Json]) -> Expectation:
    """Return the expectation for every node from the rows of a pod's hard constraints, in the order of the pod.

    The spread plugin does not see nodes that a plugin before it refuses.
    """
    hard = [row for row in rows if row["whenUnsatisfiable"] == "DoNotSchedule"]
    answers = {node["metadata"]["name"]: _first_refusal(node, hard) for node in nodes}
    usable = [node["metadata"]["name"] for node in nodes if _usable(node, pod)]
    refused = [answer for answer in answers.values() if answer is not None]
    everywhere = {
        "total": len(nodes),
        "feasible": len(nodes) - len(refused),
        "notMatching": sum(refusal.match_num is not None for refusal in refused),
        "missingLabel": sum(refusal.match_num is None for refusal in refused),
    }
    refusals = frozenset(refusal for name in usable if (refusal := answers[name]) is not None)
    return Expectation(refusals, frozenset(name for name in usable if answers[name] is None), everywhere)


def _first_refusal(node: Json, hard: Sequence[Json]) -> Refusal | None:
    name, labels = node["metadata"]["name"], node["metadata"]["labels"]
    for row in hard:
        key = row["topologyKey"]
        if key not in labels:
            return Refusal(name, key)
        match_nums = {domain["value"]: domain["matchNum"] for domain in row["domains"]}
        value = labels[key]
        numbers = (match_nums.get(value, 0), row["selfMatchNum"], row["minMatchNum"], row["maxSkew"])
        # A domain that is not eligible is in neither list; the formula holds for it with a matchNum of 0.
        uncounted = value not in match_nums and row["selfMatchNum"] - row["minMatchNum"] > row["maxSkew"]
        if value in row["next"]["blocked"] or uncounted:
            return Refusal(name, key, *numbers)
    return None


def _usable(node: Json, pod: Json) -> bool:
    """Tell whether no plugin that filters before the spread plugin refuses the node: cordon, taints, node affinity."""
    spec, tolerations = node["spec"], pod["spec"].get("tolerations", [])
    taints = [taint for taint in spec.get("taints", []) if taint["effect"] != "PreferNoSchedule"]
    if spec.get("unschedulable"):
        taints.append(_CORDON)
    return all(any(_tolerates(toleration, taint) for toleration in tolerations) for taint in taints) and _fits(
        node, pod
    )


def _tolerates(toleration: Json, taint: Json) -> bool:
    """Tell whether a toleration with operator Exists, the only one used here, covers a taint."""
    return toleration.get("key") in (None, taint["key"]) and toleration.get("effect") in (None, taint["effect"])


def _fits(node: Json, pod: Json) -> bool:
    """Tell whether nodeSelector and a single required node selector term of In and NotIn allow the node."""
    labels, spec = node["metadata"]["labels"], pod["spec"]
    if any(labels.get(key) != value for key, value in spec.get("nodeSelector", {}).items()):
        return False
    affinity = spec.get("affinity", {}).get("nodeAffinity", {})
    terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms", [{}])
    return all(
        (labels.get(expression["key"]) in expression["values"]) == (expression["operator"] == "In")
        for expression in terms[0].get("matchExpressions", [])
    )
