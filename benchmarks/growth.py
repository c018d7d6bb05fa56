"""How the cost of a check or a simulation grows with each shape of input: the exponents of processor time and memory.

Run as ``python -m benchmarks.growth``, with names of shapes as arguments to measure only these; no cluster is needed.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from benchmarks.sidebyside import Run, run

Object = dict[str, Any]

_PLUGIN: Final = str(Path(sys.executable).parent / "kubectl-spread")
_ZONE: Final = "topology.kubernetes.io/zone"
_HOSTNAME: Final = "kubernetes.io/hostname"
_NODES: Final = 500
_ZONES: Final = 3
_DRAINED: Final = 60
_REPLICAS: Final = 5
_NOISE_SECONDS: Final = 0.05
_NOISE_MEBIBYTES: Final = 8
"""Smaller costs differ from run to run."""


def growth_pod(
    number: int,
    *,
    labels: dict[str, str] | None = None,
    constraints: Sequence[Object] = (),
    owner: Object | None = None,
    namespace: str = "default",
    nodes: int = _NODES,
    **spec: object,
) -> Object:
    """Return a pod that is bound to one of so many nodes, more often to a node of the first zone; 0: to no node."""
    name = f"pod-{number}"
    references = [{**_reference(owner), "controller": True}] if owner else []
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "generation": 1,
            "creationTimestamp": "2026-11-01T09:00:00Z",
            "labels": {"app": "web"} if labels is None else labels,
            "ownerReferences": references,
        },
        "spec": {
            "nodeName": _node_name(_uneven(number) % nodes) if nodes else "",
            "containers": [{"name": "app", "image": "app"}],
            "topologySpreadConstraints": list(constraints),
            **spec,
        },
        "status": {"phase": "Running" if nodes else "Pending"},
    }


def _uneven(number: int) -> int:
    return number - number % _ZONES if number % 2 else number


def _reference(owner: Object) -> Object:
    name = owner["metadata"]["name"]
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": name, "uid": f"uid-{name}"}


def _workload(number: int, *, kind: str = "ReplicaSet", owner: Object | None = None, **spec: object) -> Object:
    group = {"Job": "batch/v1"}.get(kind, "apps/v1")
    metadata: Object = {"name": f"web-{number}", "namespace": "default", "uid": f"uid-web-{number}"}
    if owner is not None:
        metadata["ownerReferences"] = [{**_reference(owner), "controller": True}]
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "app", "image": "app"}], **spec},
    }
    selector = {"matchLabels": {"app": "web"}}
    return {
        "apiVersion": group,
        "kind": kind,
        "metadata": metadata,
        "spec": {"selector": selector, "template": template},
    }


def _constraint(*expressions: Object, labels: dict[str, str] | None = None, **fields: object) -> Object:
    selector = {"matchLabels": {"app": "web"} if labels is None else labels, "matchExpressions": list(expressions)}
    hard = {"maxSkew": 1, "topologyKey": _ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    return {**hard, "labelSelector": selector, **fields}


def _requirement(key: str, operator: str, *values: str) -> Object:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def _node_name(number: int) -> str:
    return f"node-{number:06}"


def _node(number: int, labels: dict[str, str] | None = None, **spec: object) -> Object:
    name = _node_name(number)
    topology = {_ZONE: f"zone-{number % _ZONES}", _HOSTNAME: name}
    metadata = {"name": name, "labels": {**topology, **(labels or {})}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec}


def _nodes(number: int = _NODES) -> Iterator[Object]:
    return map(_node, range(number))


def _merged_values(size: int) -> Iterator[Object]:
    yield from _nodes()
    for number in range(size):
        merged = _requirement("rev", "In", f"r{number}")
        labels = {"app": "web", "rev": f"r{number}"}
        yield growth_pod(number, labels=labels, constraints=[_constraint(merged, matchLabelKeys=["rev"])])


def _distinct_apps(size: int) -> Iterator[Object]:
    yield from _nodes()
    for number in range(size):
        labels = {"app": f"web-{number}"}
        yield growth_pod(number, labels=labels, constraints=[_constraint(labels=labels)])


def _nodes_alone(size: int) -> Iterator[Object]:
    """Run one uneven workload of some pods on many nodes."""
    yield from _nodes(size)
    yield from (growth_pod(number, constraints=[_constraint()], nodes=size) for number in range(12))


def _daemonset(size: int) -> Iterator[Object]:
    """Run a pod of a DaemonSet on each node, which its node affinity names."""
    yield from _nodes(size)
    owner = _workload(0, kind="DaemonSet", topologySpreadConstraints=[_constraint()])
    yield owner
    for number in range(size):
        terms = [{"matchFields": [_requirement("metadata.name", "In", _node_name(number))]}]
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
        yield growth_pod(
            number, constraints=[_constraint()], owner=owner, affinity=affinity, nodeName=_node_name(number)
        )


def _node_names(size: int) -> Iterator[Object]:
    """Choose one node by its hostname for each pod, on which it is."""
    yield from _nodes(size)
    for number in range(size):
        name = _node_name(number)
        yield growth_pod(number, constraints=[_constraint()], nodeSelector={_HOSTNAME: name}, nodeName=name)


def _pending_requests(size: int) -> Iterator[Object]:
    """Leave pods pending that ask for distinct amounts, on as many nodes, with a skew."""
    for number in range(size):
        yield {**_node(number), "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}}
    for number in range(size):
        container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": f"{1000 + number}m"}}}
        bound = 0 if number % 2 else size
        yield growth_pod(number, nodes=bound, constraints=[_constraint()], containers=[container])


def _domains(size: int) -> Iterator[Object]:
    """Spread one workload over as many hosts."""
    yield from _nodes(size)
    owner = _workload(0, topologySpreadConstraints=[_constraint(topologyKey=_HOSTNAME)])
    yield owner
    for number in range(size):
        yield growth_pod(number, nodes=size, constraints=[_constraint(topologyKey=_HOSTNAME)], owner=owner)


def _anti_affinity(size: int) -> Iterator[Object]:
    yield from _nodes()
    for number in range(size):
        labels = {"app": "web", "rev": f"r{number}"}
        term = {"topologyKey": _HOSTNAME, "labelSelector": {"matchLabels": labels}, "matchLabelKeys": ["rev"]}
        affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        yield growth_pod(number, labels=labels, affinity=affinity)


def _namespaces(size: int) -> Iterator[Object]:
    yield from _nodes()
    for number in range(size):
        namespace = f"team-{number}"
        selects = {
            "labelSelector": {"matchLabels": {"app": "web"}},
            "namespaceSelector": {"matchLabels": {"team": "a"}},
        }
        term = {"topologyKey": _HOSTNAME, "matchLabelKeys": ["app"], **selects}
        affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": {"team": "a"}}}
        yield growth_pod(number, namespace=namespace, constraints=[_constraint()], affinity=affinity)


def _sharing(size: int) -> Iterator[Object]:
    """Let workloads with one pod each share a selector."""
    yield from _nodes()
    for number in range(size):
        owner = _workload(number, topologySpreadConstraints=[_constraint()])
        yield owner
        yield growth_pod(number, constraints=[_constraint()], owner=owner)


def _sharing_hosts(size: int) -> Iterator[Object]:
    """Let workloads with one pod each share a soft constraint on hosts."""
    yield from _nodes()
    constraint = _constraint(topologyKey=_HOSTNAME, whenUnsatisfiable="ScheduleAnyway")
    for number in range(size):
        owner = _workload(number, topologySpreadConstraints=[constraint])
        yield owner
        yield growth_pod(number, constraints=[constraint], owner=owner)


def _sharing_templates(size: int) -> Iterator[Object]:
    for number in range(size):
        yield _workload(number, kind="Deployment", topologySpreadConstraints=[_constraint()])


def _held_templates(size: int) -> Iterator[Object]:
    """Put templates into one object of a kind that Kubernetes does not define."""
    template = {"metadata": {"labels": {"app": "web"}}, "spec": _workload(0)["spec"]["template"]["spec"]}
    template["spec"]["topologySpreadConstraints"] = [_constraint()]
    groups = [{"name": f"g{number}", "template": template} for number in range(size)]
    yield {
        "apiVersion": "example.com/v1",
        "kind": "Fleet",
        "metadata": {"name": "fleet", "namespace": "default"},
        "spec": {"groups": groups},
    }


def _exposed(size: int) -> Iterator[Object]:
    """Put both pods of each workload on one node of the first zone; the nodes of the other zones are cordoned."""
    yield from (_node(number, unschedulable=number % _ZONES != 0) for number in range(size))
    for number in range(size):
        labels = {"app": f"app-{number}"}
        owner = _workload(number)
        owner["spec"]["template"]["metadata"]["labels"] = labels
        yield owner
        for index in (0, 1):
            pod = growth_pod(2 * number + index, labels=labels, owner=owner, nodes=size)
            pod["spec"]["nodeName"] = _node_name(number - number % _ZONES)
            yield pod


def _exposed_apart(size: int) -> Iterator[Object]:
    """Require anti-affinity of the pods of workloads that are in one zone."""
    for item in _exposed(size):
        if item["kind"] == "Pod":
            selector = {"matchLabels": item["metadata"]["labels"]}
            term = {"topologyKey": _HOSTNAME, "labelSelector": selector}
            required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
            item["spec"]["affinity"] = {"podAntiAffinity": required}
        yield item


def _uneven_hosts(size: int) -> Iterator[Object]:
    """Put the pods of each workload on hosts of the first zone, with hard constraints on zones and hosts."""
    yield from _nodes(size)
    for number in range(size):
        labels = {"app": f"app-{number}"}
        constraints = [_constraint(labels=labels), _constraint(labels=labels, topologyKey=_HOSTNAME)]
        owner = _workload(number, topologySpreadConstraints=constraints)
        owner["spec"]["template"]["metadata"]["labels"] = labels
        yield owner
        for index in range(4):
            pod = growth_pod(4 * number + index, labels=labels, constraints=constraints, owner=owner, nodes=size)
            pod["spec"]["nodeName"] = _node_name(_ZONES * ((number + index) % (size // _ZONES)))
            yield pod


def _bare(size: int) -> Iterator[Object]:
    yield from _nodes()
    for number in range(size):
        yield growth_pod(number, constraints=[_constraint()])


def _jobs(size: int) -> Iterator[Object]:
    """Merge the name of each Job next to a label that all of them share."""
    key = "batch.kubernetes.io/job-name"
    yield from _nodes()
    for number in range(size):
        labels = {"app": "web", key: f"web-{number}"}
        owner = _workload(number, kind="Job", topologySpreadConstraints=[_constraint(matchLabelKeys=[key])])
        yield owner
        merged = _constraint(_requirement(key, "In", f"web-{number}"), matchLabelKeys=[key])
        for replica in range(2):
            yield growth_pod(2 * number + replica, labels=labels, constraints=[merged], owner=owner)


def _services(size: int) -> Iterator[Object]:
    """Run workloads without constraints, each with a Service of its own."""
    yield from _nodes(_ZONES)
    for number in range(size):
        labels = {"app": f"app-{number}"}
        metadata = {"name": f"service-{number}", "namespace": "default"}
        yield {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"selector": labels}}
        owner = _workload(number)
        yield owner
        yield growth_pod(number, labels=labels, nodes=_ZONES, owner=owner)


def _revisions(size: int) -> Iterator[Object]:
    """Run one pod of each revision of a Deployment."""
    yield from _nodes()
    deployment = _workload(0, kind="Deployment", topologySpreadConstraints=[_constraint()])
    yield deployment
    for number in range(size):
        owner = _workload(number + 1, owner=deployment)
        owner["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": str(number + 1)}
        yield owner
        labels = {"app": "web", "pod-template-hash": f"h{number}"}
        yield growth_pod(number, labels=labels, constraints=[_constraint()], owner=owner)


def _terminating(size: int) -> Iterator[Object]:
    yield from _nodes()
    for number in range(size):
        labels = {"app": "web", "rev": f"r{number}"}
        pod = growth_pod(number, labels=labels, constraints=[_constraint()])
        if number % 2:
            pod["metadata"]["deletionTimestamp"] = "2026-11-01T10:00:00Z"
        yield pod


def _no_nodes(size: int) -> Iterator[Object]:
    """Count without a node list."""
    for number in range(size):
        labels = {"app": "web", _ZONE: f"zone-{number % _ZONES}", "rev": f"r{number}"}
        yield growth_pod(number, labels=labels, constraints=[_constraint()], nodes=size)


def _manifests(size: int) -> Iterator[Object]:
    """Read manifests of pods that are not stored."""
    for number in range(size):
        pod = growth_pod(number, nodes=0, labels={"app": "web", "rev": f"r{number}"}, constraints=[_constraint()])
        for name in ("uid", "generation", "creationTimestamp"):
            del pod["metadata"][name]
        del pod["spec"]["nodeName"], pod["status"]
        yield pod


def _drained(size: int, kind: str = "ReplicaSet") -> Iterator[Object]:
    """Run workloads of five pods that are spread over zones, with a budget each, on few large nodes."""
    for number in range(_DRAINED):
        amounts = {"cpu": "400", "memory": "800Gi", "pods": "11000"}
        yield {**_node(number), "status": {"allocatable": amounts}}
    for number in range(size):
        labels = {"app": f"app-{number}"}
        constraints = [_constraint(labels=labels)]
        owner = _workload(number, kind=kind)
        owner["spec"]["replicas"] = _REPLICAS
        owner["spec"]["selector"] = {"matchLabels": labels}
        owner["spec"]["template"]["metadata"]["labels"] = labels
        owner["spec"]["template"]["spec"]["topologySpreadConstraints"] = constraints
        yield owner
        budget = {"maxUnavailable": 1, "selector": {"matchLabels": labels}}
        metadata = {"name": f"web-{number}", "namespace": "default"}
        yield {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": budget}
        for index in range(_REPLICAS):
            pod = growth_pod(_REPLICAS * number + index, labels=labels, constraints=constraints, owner=owner)
            pod["spec"]["nodeName"] = _node_name((number * _ZONES + index) % _DRAINED)
            pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
            yield pod


@dataclass(frozen=True, slots=True)
class Shape:
    """Input whose size is a number.

    Attributes:
        summary: The input of size N in words.
        objects: Returns the objects of the input.
        sizes: The smaller and the larger size.
        baseline: Whether ``--baseline`` has the findings of the same input.
        flags: Further flags.
        command: The command that reads the input.
    """

    summary: str
    objects: Callable[[int], Iterable[Object]]
    sizes: tuple[int, int]
    baseline: bool = False
    flags: tuple[str, ...] = ()
    command: str = "check"


SHAPES: Final[Mapping[str, Shape]] = {
    "merged-values": Shape("N pods with distinct merged values of one key", _merged_values, (1000, 4000)),
    "distinct-apps": Shape("N pods with distinct labels and selectors", _distinct_apps, (2000, 8000)),
    "node-names": Shape("N pods with distinct nodeSelectors on N nodes", _node_names, (500, 2000)),
    "pending-requests": Shape(
        "N pods, half pending, with distinct requests on N nodes", _pending_requests, (500, 2000)
    ),
    "nodes": Shape("one uneven workload on N nodes", _nodes_alone, (5000, 20_000)),
    "daemonset": Shape("one DaemonSet with a pod on each of N nodes", _daemonset, (2000, 8000)),
    "domains": Shape("one workload of N pods on N hosts", _domains, (2000, 8000)),
    "anti-affinity": Shape("N pods with distinct anti-affinity terms with keys", _anti_affinity, (2000, 8000)),
    "namespaces": Shape("N namespaces with a namespaceSelector in each", _namespaces, (2000, 8000)),
    "sharing": Shape("N workloads of one pod that share a selector", _sharing, (500, 2000)),
    "sharing-hosts": Shape("N workloads that share a soft constraint on hosts", _sharing_hosts, (750, 3000)),
    "sharing-templates": Shape("N templates that share a selector", _sharing_templates, (1000, 4000)),
    "held-templates": Shape("one object with N pod templates", _held_templates, (2000, 8000)),
    "exposed": Shape("N workloads on one node each of N nodes", _exposed, (500, 2000)),
    "exposed-apart": Shape("N such workloads with required anti-affinity", _exposed_apart, (500, 2000)),
    "uneven-hosts": Shape(
        "N workloads in one zone, with hard constraints on zones and N hosts", _uneven_hosts, (500, 2000)
    ),
    "bare": Shape("N equal pods without owner", _bare, (2000, 8000)),
    "jobs": Shape("N Jobs that merge their name next to a shared label", _jobs, (500, 2000)),
    "services": Shape(
        "N workloads with default constraints and a Service each", _services, (1000, 4000), flags=("--defaults",)
    ),
    "revisions": Shape("one Deployment with pods of N revisions", _revisions, (1000, 4000)),
    "terminating": Shape("N pods, half of them terminating", _terminating, (2000, 8000)),
    "no-nodes": Shape("N pods and no node list", _no_nodes, (2000, 8000)),
    "manifests": Shape("N manifests of pods that are not stored", _manifests, (2000, 8000)),
    "baseline": Shape("N findings in --baseline", _exposed, (500, 2000), baseline=True),
    "drain": Shape(
        "the drain of a zone with N workloads of five pods with budgets",
        _drained,
        (200, 800),
        flags=("--drain", f"{_ZONE}=zone-0", "--runs", "1"),
        command="simulate",
    ),
    "outage": Shape(
        "the outage of a zone with N Deployments of five pods, and its fixes",
        partial(_drained, kind="Deployment"),
        (200, 800),
        flags=("--lose", f"{_ZONE}=zone-0", "--runs", "1"),
        command="simulate",
    ),
}


@dataclass(frozen=True, slots=True)
class Growth:
    """The cost of a shape at two sizes, and the exponents of its cost beyond that of a check of one pod."""

    small: Run
    large: Run
    processor: float
    memory: float


def measure(shape: Shape, directory: Path, tries: int, least: Run) -> Growth:
    """Return how the cost of a shape grows: the least of several tries at each size, in turn.

    Args:
        shape: The shape.
        directory: A directory for files.
        tries: How often each size is measured.
        least: The cost of a check of one pod.
    """
    commands = [_command(shape, size, directory) for size in shape.sizes]
    runs = [[run(command, _environment(directory)) for command in commands] for _ in range(tries)]
    small, large = (_least(of_size) for of_size in zip(*runs, strict=True))
    factor = math.log(shape.sizes[1] / shape.sizes[0])

    def exponent(less: float, more: float, base: float, noise: float) -> float:
        return math.log(max(more - base, noise) / max(less - base, noise)) / factor

    return Growth(
        small,
        large,
        exponent(small.processor, large.processor, least.processor, _NOISE_SECONDS),
        exponent(small.memory, large.memory, least.memory, _NOISE_MEBIBYTES),
    )


def least_run(directory: Path, tries: int) -> Run:
    """Return the least cost of a check of one pod."""
    command = _command(SHAPES["bare"], 1, directory)
    return _least([run(command, _environment(directory)) for _ in range(tries)])


def _least(runs: Sequence[Run]) -> Run:
    return Run(*(min(getattr(measured, name) for measured in runs) for name in ("wall", "processor", "memory")))


def _environment(directory: Path) -> Mapping[str, str]:
    """Return an environment in which modules are compiled once, as installed ones are."""
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(directory / "compiled")}


def _command(shape: Shape, size: int, directory: Path) -> list[str]:
    path = directory / f"{size}.json"
    items = list(shape.objects(size))
    path.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items}))
    command = [_PLUGIN, shape.command, "-A", "--server-version", "1.37", "-o", "json", "-f", str(path), *shape.flags]
    if not shape.baseline:
        return command
    report = directory / f"{size}-report.json"
    with report.open("wb") as file:
        subprocess.run(command, stdout=file, check=False)
    return [*command, "--baseline", str(report)]


def main() -> None:
    """Measure shapes and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", help=", ".join(SHAPES))
    parser.add_argument("--tries", type=int, default=1)
    options = parser.parse_args()
    print("| shape | sizes | processor | exponent | peak memory | exponent |", "|---|---|---|---|---|---|", sep="\n")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        least = least_run(directory, max(2, options.tries))
        for shape in options.shapes or SHAPES:
            print(_row(SHAPES[shape], measure(SHAPES[shape], directory, options.tries, least)), flush=True)


def _row(shape: Shape, growth: Growth) -> str:
    small, large = growth.small, growth.large
    sizes = " to ".join(f"{size:,}" for size in shape.sizes)
    processor = f"{small.processor:.2f} to {large.processor:.2f} s | {growth.processor:.2f}"
    memory = f"{small.memory:.0f} to {large.memory:.0f} MiB | {growth.memory:.2f}"
    return f"| {shape.summary} | {sizes} | {processor} | {memory} |"


if __name__ == "__main__":
    main()
