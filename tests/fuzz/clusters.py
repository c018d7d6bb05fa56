"""Every command on small clusters that are odd as clusters may be.

Nodes lack labels or there are none, pods wait or have unusual owners, and workloads have no pods. Each object for
itself is what an API server may store, but for a quantity now and then.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from click.testing import CliRunner

from kubectl_spread.cli import cli
from tests.contract import loaded
from tests.fuzz.outcome import Outcome

_HOSTNAME: Final = "kubernetes.io/hostname"
_ZONE: Final = "topology.kubernetes.io/zone"
_KEYS: Final = (
    _HOSTNAME,
    _ZONE,
    _ZONE,
    "topology.kubernetes.io/region",
    "rack",
    "failure-domain.beta.kubernetes.io/zone",
)
_NAMESPACES: Final = ("shop", "shop", "shop", "back")
_GROUPS: Final = {
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
    "ReplicationController": "v1",
    "Rollout": "argoproj.io/v1alpha1",
    "Cassandra": "db.example.com/v1",
    "Node": "v1",
    "Service": "v1",
    "Pod": "v1",
}
_READ: Final = tuple(kind for kind in _GROUPS if kind not in {"Rollout", "Cassandra", "Node", "Service", "Pod"})
_QUANTITIES: Final = ("4", "100m", "2", "0", "4 cores", "0x4", "${CPU}", "-1", "")
_APPS: Final = ("web", "api", "db")
_FORMS: Final = ("table", "wide", "json", "yaml", "name", "sarif", "junit", "github", "markdown", "openmetrics", "html")
_TORN: Final = re.compile(
    r"  |\(\)| [.,;:](?=\s|$)|: ?\.(?=\s|$)|\b(?:zones|regions|domains|keys|nodes of) +(?:[.,]|and|has|have|lack)(?!\S)"
)
"""A part of a sentence whose list or name is missing."""


def capture(chance: random.Random) -> bytes:
    """Return a cluster as a List."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [*_objects(chance)]}).encode()


def _objects(chance: random.Random) -> Iterator[Any]:
    nodes = [_node(f"n{number}", chance) for number in range(chance.choice((0, 1, 2, 2, 3, 4, 6)))]
    yield from nodes
    owners = [_owner(number, chance) for number in range(chance.choice((0, 1, 2, 3, 5)))]
    for owner in owners:
        if owners and chance.random() < 0.5:
            # A cycle, an owner of an unusual kind, or one that was not read.
            owner["metadata"]["ownerReferences"] = _references(owners, chance)
        if owner["kind"] in _READ and chance.random() < 0.85:
            yield owner
    for number in range(chance.choice((0, 1, 2, 4, 8))):
        yield _pod(number, [node["metadata"]["name"] for node in nodes], owners, chance)
    yield from _others(chance)


def _node(name: str, chance: random.Random) -> Any:
    labels = {key: f"{key[0]}{chance.randrange(3)}" for key in _KEYS[1:] if chance.random() < 0.5}
    if chance.random() < 0.8:
        labels[_HOSTNAME] = name
    if chance.random() < 0.1:
        labels[_ZONE] = ""
    spec: Any = {"unschedulable": True} if chance.random() < 0.15 else {}
    if chance.random() < 0.2:
        keys = ("dedicated", "node.kubernetes.io/not-ready", "node.kubernetes.io/unschedulable")
        spec["taints"] = [{"key": chance.choice(keys), "effect": chance.choice(("NoSchedule", "NoExecute"))}]
    status: Any = {"conditions": [{"type": "Ready", "status": chance.choice(("True", "True", "Unknown"))}]}
    if chance.random() < 0.7:
        cpu = chance.choice(_QUANTITIES if chance.random() < 0.2 else _QUANTITIES[:3])
        status["allocatable"] = {"cpu": cpu, "memory": "4Gi", "pods": chance.choice(("110", "1"))}
    return _object("Node", name, {"labels": labels}, spec=spec, status=status)


def _object(kind: str, name: str, metadata: Any, **fields: Any) -> Any:
    return {"apiVersion": _GROUPS.get(kind, "v1"), "kind": kind, "metadata": {"name": name, **metadata}, **fields}


def _owner(number: int, chance: random.Random) -> Any:
    kind, name = chance.choice(tuple(_GROUPS)), f"w{number}"
    metadata = {"namespace": chance.choice(_NAMESPACES), "uid": f"w{number}", "generation": 1}
    labels = {"app": chance.choice(_APPS), **({"pod-template-hash": "h1"} if kind == "ReplicaSet" else {})}
    template = {"metadata": {"labels": labels}, "spec": _spec(chance)}
    spec: Any = {"selector": {"matchLabels": {"app": labels["app"]}}, "template": template}
    if kind == "CronJob":
        spec = {"schedule": "0 * * * *", "jobTemplate": {"spec": {"template": template}}}
    elif kind == "ReplicationController":
        spec["selector"] = {"app": labels["app"]}
    if kind not in {"DaemonSet", "Job", "CronJob"} and chance.random() < 0.8:
        spec["replicas"] = chance.randrange(5)
    status = {"updateRevision": "h2"} if kind == "StatefulSet" and chance.random() < 0.5 else {}
    return _object(kind, name, metadata, spec=spec, status=status)


def _spec(chance: random.Random) -> Any:
    spec: Any = {"containers": [{"name": "c", "image": "i", "resources": _resources(chance)}]}
    if chance.random() < 0.7:
        spec["topologySpreadConstraints"] = [_constraint(key, chance) for key in _some(_KEYS, chance)]
    if chance.random() < 0.3:
        spec["affinity"] = _affinity(chance)
    if chance.random() < 0.15:
        spec["nodeSelector"] = {chance.choice(_KEYS): chance.choice(("t0", "r1", "n0"))}
    if chance.random() < 0.2:
        spec["tolerations"] = [{"operator": "Exists"}]
    if chance.random() < 0.1:
        spec["schedulingGates"] = [{"name": "example.com/wait"}]
    if chance.random() < 0.2:
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": f"c{chance.randrange(3)}"}}]
    return spec


def _resources(chance: random.Random) -> Any:
    if chance.random() < 0.4:
        return {}
    return {"requests": {"cpu": chance.choice(_QUANTITIES if chance.random() < 0.15 else _QUANTITIES[:3])}}


def _some(values: Sequence[str], chance: random.Random) -> list[str]:
    return list(dict.fromkeys(chance.choice(values) for _ in range(chance.randint(1, 3))))


def _constraint(key: str, chance: random.Random) -> Any:
    hard = chance.random() < 0.6
    constraint: Any = {
        "maxSkew": chance.choice((1, 1, 2, 5)),
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
    }
    if chance.random() < 0.95:
        constraint["labelSelector"] = _selector(chance)
        if chance.random() < 0.4:
            constraint["matchLabelKeys"] = [chance.choice(("pod-template-hash", "rev", "absent"))]
    if hard and chance.random() < 0.2:
        constraint["minDomains"] = chance.choice((1, 2, 5))
    for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if chance.random() < 0.3:
            constraint[field] = chance.choice(("Honor", "Ignore"))
    return constraint


def _selector(chance: random.Random) -> Any:
    if chance.random() < 0.1:
        return {}
    selector: Any = {"matchLabels": {"app": chance.choice(_APPS)}}
    if chance.random() < 0.3:
        selector["matchExpressions"] = [{"key": "rev", "operator": "In", "values": [chance.choice(("r1", "r2"))]}]
    return selector


def _affinity(chance: random.Random) -> Any:
    term: Any = {"topologyKey": chance.choice(_KEYS), "labelSelector": _selector(chance)}
    if chance.random() < 0.2:
        term["namespaceSelector"] = {"matchLabels": {"team": "a"}} if chance.random() < 0.5 else {}
    kind = chance.choice(("podAntiAffinity", "podAntiAffinity", "podAffinity"))
    if chance.random() < 0.6:
        return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 9, "podAffinityTerm": term}]}}


def _references(owners: Sequence[Any], chance: random.Random) -> list[Any]:
    references = []
    for _ in range(chance.choice((1, 1, 1, 2))):
        owner = chance.choice(owners)
        missing = {
            "apiVersion": "apps/v1",
            "kind": chance.choice(("ReplicaSet", "StatefulSet")),
            "name": "gone",
            "uid": "g",
        }
        known = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], **owner["metadata"]}
        chosen = known if chance.random() < 0.9 else missing
        names = ("apiVersion", "kind", "name", "uid")
        references.append({**{name: chosen[name] for name in names}, "controller": chance.random() < 0.9})
    return references


def _pod(number: int, nodes: Sequence[str], owners: Sequence[Any], chance: random.Random) -> Any:
    labels = {
        "app": chance.choice(_APPS),
        "rev": chance.choice(("r1", "r2")),
        "pod-template-hash": chance.choice(("h1", "h2")),
    }
    metadata: Any = {"namespace": chance.choice(_NAMESPACES), "uid": f"p{number}", "labels": labels}
    name = f"p{number}"
    spec = _spec(chance)
    if owners and chance.random() < 0.7:
        owner = chance.choice(owners)
        metadata["namespace"] = owner["metadata"]["namespace"]
        metadata["ownerReferences"] = _references([owner], chance)
        if chance.random() < 0.6 and "template" in owner["spec"]:
            spec = json.loads(json.dumps(owner["spec"]["template"]["spec"]))
            labels.update(owner["spec"]["template"]["metadata"]["labels"])
        if owner["kind"] == "StatefulSet":
            name = f"{owner['metadata']['name']}-{number}"
    if chance.random() < 0.1:
        del metadata["uid"]
    if chance.random() < 0.1:
        metadata |= {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    phase = "Pending"
    if nodes and chance.random() < 0.7:
        spec["nodeName"] = chance.choice(nodes) if chance.random() < 0.95 else "unread"
        phase = chance.choice(("Running", "Running", "Running", "Succeeded"))
    return _object("Pod", name, metadata, spec=spec, status={"phase": phase})


def _others(chance: random.Random) -> Iterator[Any]:
    if chance.random() < 0.5:
        limit = {chance.choice(("minAvailable", "maxUnavailable")): chance.choice((0, 1, "50%"))}
        spec = {"selector": {"matchLabels": {"app": chance.choice(_APPS)}}, **limit}
        yield {**_object("PodDisruptionBudget", "b", {"namespace": "shop"}, spec=spec), "apiVersion": "policy/v1"}
    if chance.random() < 0.5:
        yield _object("Namespace", "shop", {"labels": {"team": "a"}})
    for number in range(chance.randrange(3)):
        claim = {"volumeName": f"v{number}"} if chance.random() < 0.8 else {}
        yield _object(
            "PersistentVolumeClaim", f"c{number}", {"namespace": "shop"}, spec=claim, status={"phase": "Bound"}
        )
        expression = {"key": chance.choice(_KEYS), "operator": "In", "values": ["t0"]}
        affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
        yield _object("PersistentVolume", f"v{number}", {}, spec={"nodeAffinity": affinity})


def commands(body: bytes) -> list[tuple[str, ...]]:
    """Return a command line of each command that fits a cluster, in each format."""
    items = json.loads(body)["items"]
    lines: list[tuple[str, ...]] = [("check", "-A", "-o", form) for form in _FORMS]
    lines += [
        ("check", "-A", "--show", "all", "--severity", "info", "--to", "1.38"),
        ("check", "-A", "--defaults", "--recreate", "-o", "json"),
        ("plan", "-A", "--runs", "2", "--soft"),
        ("plan", "-A", "--runs", "2", "-o", "json"),
        ("merge",),
        ("merge", "-o", "json"),
        ("unmerge",),
        ("policy",),
    ]
    for key in (_ZONE, _HOSTNAME, "rack"):
        lines += [
            ("domains", key, "-A"),
            ("domains", key, "-A", "-o", "json"),
            ("domains", key, "t0", "-A", "-o", "wide"),
        ]
    for event in (
        ("--lose", "zone=t0"),
        ("--lose", "n0"),
        ("--delete", "n0,n1"),
        ("--drain", "n0,n1"),
        ("--add", "zone=t1:2"),
        ("--drain", "zone=t1"),
    ):
        lines += [("simulate", *event, "-A", "--runs", "3", "-o", form) for form in ("table", "json")]
    for item in items:
        kind, name, namespace = item["kind"], item["metadata"]["name"], item["metadata"].get("namespace", "")
        if kind in _READ or kind == "Pod":
            forms = ("-o", "json") if kind == "Pod" else ()
            lines.append(("explain", f"{kind.lower()}/{name}", "-n", namespace, "--replicas", "+2", *forms))
        if kind in {"Deployment", "StatefulSet", "DaemonSet"}:
            lines.append(("simulate", "--restart", f"{kind.lower()}/{name}", "-n", namespace, "--runs", "3"))
        if kind in _READ:
            lines.append(
                ("simulate", "--scale", f"{kind.lower()}/{name}=4", "-n", namespace, "--runs", "3", "-o", "json")
            )
            lines.append(("plan", f"{kind.lower()}/{name}", "-n", namespace, "--runs", "2"))
    return lines


def run(body: bytes, chance: random.Random) -> Outcome:
    """Run one of the commands."""
    return outcome_of(chance.choice(commands(body)), body)


def outcome_of(line: Sequence[str], body: bytes) -> Outcome:
    """Run a command on a cluster; JSON that its schema refuses and sentences with a hole are errors too."""
    options = () if line[0] == "policy" else ("-f", "-")
    invocation = CliRunner().invoke(cli, [*line, "-v", *options], input=body)
    error = None if isinstance(invocation.exception, SystemExit) else invocation.exception
    if error is None and "json" in line and line[0] != "merge" and invocation.stdout:
        try:
            _confirm_whole(loaded(invocation.stdout))
        except Exception as refused:  # noqa: BLE001 - a finding
            error = refused
    # merge copies its input, and JUnit indents by tabs.
    copies = line[0] in {"merge", "unmerge"} or line[-1] == "junit"
    return Outcome(
        invocation.exit_code, invocation.stdout_bytes, invocation.stderr_bytes, error, " ".join(line), copies
    )


def _confirm_whole(value: Any, name: str = "") -> None:
    """Raise an error if a sentence of a document has a hole."""
    match value:
        case dict():
            for key, part in value.items():
                _confirm_whole(part, key)
        case list():
            for part in value:
                _confirm_whole(part, name)
        case str() if name in {"message", "fix", "why", "state", "text", "notSimulated"} and _TORN.search(value):
            raise ValueError(f"a sentence with a hole: {value}")
