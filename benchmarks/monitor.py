"""The cost of keeping a report current: processor time for each change of a pod, at several sizes of a cluster.

Run as ``python -m benchmarks.monitor --pods 10000,50000,150000 --constraints 2``; no cluster is needed. Pods are those
of ``benchmarks.load`` in 295 namespaces, thirty on each node, with up to eight spread constraints each. A change is the
deletion of a pod of a random workload, or the creation of its replacement on a random node of the same zone; with
``--hard`` it breaks the constraints on other topologies. Events are applied in batches of one interval, as objects that
were decoded before. What it takes to read an event of a recorded pod in protobuf is measured by itself.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import resource
import time
from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Any, Final, NamedTuple

import msgspec

from benchmarks import load
from benchmarks.clones import Clones
from kubectl_spread.audit.merge.verdicts import ServerFacts
from kubectl_spread.audit.snapshot.scope import Scope
from kubectl_spread.kube.api import sparse
from kubectl_spread.kube.api.types import Node, Pod
from kubectl_spread.kube.api.workloads import KINDS
from kubectl_spread.kube.apiserver import strategy
from kubectl_spread.kube.features import behaviour, gates
from kubectl_spread.monitor.current import CurrentReport
from kubectl_spread.monitor.world import World
from kubectl_spread.rules import RULES
from kubectl_spread.rules.selection import SelectedRules, Selection
from kubectl_spread.sources.apiserver.transport import Response
from kubectl_spread.sources.apiserver.watch_events import EventReader
from kubectl_spread.sources.decode.protobuf.envelope import MAGIC
from tests.fuzz.wire import Field, encode, parse

_CONTEXT: Final = ServerFacts(behaviour(37, gates(37, {})), gates_known=True)
_NAMESPACES: Final = 295
_FURTHER_KEYS: Final = {
    "topology.kubernetes.io/region": 1,
    "example.com/hall": 2,
    "example.com/building": 5,
    "example.com/power": 10,
    "example.com/rack": 20,
    "example.com/row": 50,
}
"""Further topology keys, with the number of their domains."""
_BYTES: Final = 2
"""The wire type of bytes, and the number of the fields of a list and an envelope that have objects."""
_REPLICA_SET: Final = KINDS["apps", "ReplicaSet"]


class Figures(NamedTuple):
    """What was measured for one size."""

    pods: int
    constraints: int
    first: float
    changes: int
    processor: float
    longest: float
    evaluated: int
    relabelled_node: float
    memory: int


class _Churn:
    """A cluster of a size, in which random pods are replaced."""

    def __init__(self, pods: int, constraints: int, *, hard: bool, seed: int) -> None:
        self.random = Random(seed)
        self._constraints = constraints
        self._hard = hard
        self.world = World(Scope())
        self.current = CurrentReport(self.world, _CONTEXT, SelectedRules(RULES, Selection()))
        self.nodes = [f"node-{number:05d}" for number in range(pods // load.PODS_A_NODE)]
        for number, name in enumerate(self.nodes):
            self.world.put_node(_node(name, number))
        self.owners = [
            load.replica_set(number, f"team-{number % _NAMESPACES}") for number in range(pods // load.PODS_A_WORKLOAD)
        ]
        for owner in self.owners:
            owner["metadata"]["uid"] = owner["metadata"]["name"]
            self._constrain(owner["spec"]["template"]["spec"])
            self.world.put_workload("ReplicaSet", msgspec.convert(owner, _REPLICA_SET))
        self._pods: list[list[tuple[str, str]]] = []
        for number, owner in enumerate(self.owners):
            names_and_nodes = []
            for index in range(load.PODS_A_WORKLOAD):
                pod = self._pod(owner, index, self._first_node(number, index))
                names_and_nodes.append((pod.metadata.name, pod.spec.node_name))
                self.world.put_pod(sparse.alone(pod))
            self._pods.append(names_and_nodes)

    def _first_node(self, workload: int, index: int) -> str:
        if workload % 20:
            return self.nodes[(workload * load.PODS_A_WORKLOAD + index) % len(self.nodes)]
        return self.nodes[(index * len(load.ZONES) + workload) % len(self.nodes)]

    def _in_zone_of(self, node: str) -> str:
        """Return a random node of the same zone, as a scheduler that keeps the skew would choose."""
        number, zones = self.nodes.index(node) % len(load.ZONES), len(load.ZONES)
        return self.nodes[self.random.randrange(len(self.nodes) // zones) * zones + number]

    def _constrain(self, spec: dict[str, Any]) -> None:
        """Give a pod spec its number of constraints: the two that it has, and those for other topologies."""
        written = spec["topologySpreadConstraints"]
        also = [{**written[0 if self._hard else 1], "topologyKey": key} for key in _FURTHER_KEYS]
        spec["topologySpreadConstraints"] = [*written, *also][: self._constraints]

    def _pod(self, owner: dict[str, Any], index: int, node: str) -> Pod:
        manifest = load.pod(owner, index, node)
        self._constrain(manifest["spec"])
        manifest["metadata"] |= {"uid": "u", "generation": 1, "creationTimestamp": "2026-11-01T09:00:00Z"}
        manifest["status"] = {"phase": "Running"}
        pod = msgspec.json.decode(msgspec.json.encode(manifest), type=Pod)
        stored = strategy.prepare_for_create(pod.spec, pod.metadata.labels, _CONTEXT.behaviour)
        return msgspec.structs.replace(pod, spec=stored)

    def events(self, number: int) -> Iterator[tuple[str, str, Pod | None]]:
        """Return deletions of random pods, each followed by the creation of a replacement."""
        for _ in range(number // 2):
            workload = self.random.randrange(len(self.owners))
            owner, pods = self.owners[workload], self._pods[workload]
            position = self.random.randrange(len(pods))
            name, node = pods[position]
            yield owner["metadata"]["namespace"], name, None
            pod = self._pod(owner, self.random.randrange(100, 100_000), self._in_zone_of(node))
            pods[position] = pod.metadata.name, pod.spec.node_name
            yield pod.metadata.namespace, pod.metadata.name, pod

    def apply(self, events: Sequence[tuple[str, str, Pod | None]]) -> int:
        """Apply events and evaluate; return the number of evaluated groups."""
        for namespace, name, pod in events:
            if pod is None:
                self.world.remove_pod(namespace, name)
            else:
                self.world.put_pod(sparse.alone(pod))
        return len(self.current.refresh().evaluated)


def _node(name: str, number: int, **labels: str) -> Node:
    topology = {
        "topology.kubernetes.io/zone": load.ZONES[number % len(load.ZONES)],
        "kubernetes.io/hostname": name,
        **{key: f"{number % domains}" for key, domains in _FURTHER_KEYS.items()},
    }
    allocatable = {"cpu": "16", "memory": "64Gi", "pods": "34"}
    manifest = {"metadata": {"name": name, "labels": topology | labels}, "status": {"allocatable": allocatable}}
    return msgspec.convert(manifest, Node)


def measure(pods: int, constraints: int, *, hard: bool, rate: int, interval: float, batches: int) -> Figures:
    """Return the figures of one size."""
    churn = _Churn(pods, constraints, hard=hard, seed=1)
    gc.collect()
    gc.freeze()
    gc.disable()
    began = time.process_time()
    churn.current.refresh()
    first = time.process_time() - began
    times, evaluated, changes = [], 0, 0
    for _ in range(batches):
        events = list(churn.events(int(rate * interval)))
        began = time.process_time()
        evaluated += churn.apply(events)
        times.append(time.process_time() - began)
        changes += len(events)
        gc.collect()
    began = time.process_time()
    churn.world.put_node(_node(churn.nodes[0], 0, pool="other"))
    churn.current.refresh()
    node = time.process_time() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return Figures(pods, constraints, first, changes, sum(times), max(times), evaluated, node, memory)


def event_cost(number: int) -> float:
    """Return the processor time to read one event about a pod, from the bytes of a watch to the object."""
    pods = list(parse_items(Clones(number).pages["pods"]))
    objects = [MAGIC + encode([Field(2, _BYTES, body)]) for body in pods]
    events = [
        encode([Field(1, _BYTES, b"MODIFIED"), Field(2, _BYTES, encode([Field(1, _BYTES, body)]))]) for body in objects
    ]
    stream = [len(event).to_bytes(4, "big") + event for event in events]
    head = Response(200, "application/vnd.kubernetes.protobuf;stream=watch", b"")
    began = time.process_time()
    read = sum(watch_event.object.spec.node_name != "" for watch_event in EventReader(Pod).read(head, stream))
    return (time.process_time() - began) / read


def parse_items(pages: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the bytes of the objects in pages of a list."""
    for page in pages:
        outer = parse(page[len(MAGIC) :]) or []
        (listed,) = [field.value for field in outer if field.number == _BYTES and isinstance(field.value, list)]
        yield from (
            field.value if isinstance(field.value, bytes) else encode(field.value)
            for field in listed
            if field.number == _BYTES and not isinstance(field.value, int)
        )


def main() -> None:
    """Measure each size, and print one row of a table for each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pods", default="10000,50000,150000")
    parser.add_argument("--constraints", default="2", help="spread constraints of each pod, at most 8")
    parser.add_argument("--hard", action="store_true", help="the third and further constraints are DoNotSchedule")
    parser.add_argument("--rate", type=int, default=200)
    parser.add_argument("--interval", type=float, default=2.0)
    parser.add_argument("--batches", type=int, default=10)
    options = parser.parse_args()
    print(f"an event in protobuf: {1e6 * event_cost(2000):.0f} us")
    print("| pods | constraints | first | a change | longest batch | groups a change | cores | a node | peak memory |")
    print("|---" * 9 + "|")
    sizes = itertools.product(options.pods.split(","), options.constraints.split(","))
    for pods, constraints in ((int(pods), int(constraints)) for pods, constraints in sizes):
        figures = measure(
            pods,
            constraints,
            hard=options.hard,
            rate=options.rate,
            interval=options.interval,
            batches=options.batches,
        )
        cost = figures.processor / figures.changes
        print(
            f"| {pods:,} | {constraints} | {figures.first:.2f} s | {1e6 * cost:.0f} us | {figures.longest:.2f} s "
            f"| {figures.evaluated / figures.changes:.2f} | {cost * options.rate:.2f} "
            f"| {figures.relabelled_node:.2f} s | {figures.memory} MiB |"
        )


if __name__ == "__main__":
    main()
