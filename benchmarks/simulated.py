"""The loss of a zone, simulated from a capture, and the same placements by the whole kube-scheduler in one process.

Run as ``python -m benchmarks.simulated --nodes 5000 --pods 500,10000,150000``; Go is needed to build the scheduler.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from benchmarks.sidebyside import medians, table
from tests.builders import HOSTNAME, ZONE, constraint, selector
from tests.conformance.placements.oracles import binary

Json = dict[str, Any]
_PLUGIN: Final = str(Path(sys.executable).parent / "kubectl-spread")
_OF_WORKLOAD: Final = 50
_ZONES: Final = "abc"
_LOST: Final = "a"
_SCHEDULER: Final = "kube-scheduler"


def nodes(number: int) -> Iterator[Json]:
    """Yield nodes in three zones."""
    allocatable = {"cpu": "32", "memory": "128Gi", "pods": "110"}
    for index in range(number):
        name = f"n{index:05}"
        labels = {HOSTNAME: name, ZONE: _ZONES[index % len(_ZONES)]}
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": {},
            "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]},
        }


def workload(index: int, places: int, size: int = _OF_WORKLOAD) -> Iterator[Json]:
    """Yield a Deployment, its ReplicaSet and its pods, which are spread over the zones as their constraints ask."""
    name, replica_set = f"app{index}", f"app{index}-7d4b9c"
    selected = selector({"app": name})
    spec = {"containers": [_container(index)], "schedulerName": "default-scheduler", **_spread(index, selected)}
    labels = {"app": name, "pod-template-hash": "7d4b9c"}
    template = _template({"app": name}, spec)
    yield _object("Deployment", name, index, {"replicas": size, "selector": selected, "template": template})
    replicated = {"replicas": size, "selector": selector(labels), "template": _template(labels, spec)}
    yield _object("ReplicaSet", replica_set, index, replicated, owner=("Deployment", name))
    for number in range(size):
        first = (index * 389 + number * 7) % places
        node = first - first % len(_ZONES) + number % len(_ZONES)
        on = f"n{node if node < places else node - len(_ZONES):05}"
        metadata = {**_metadata(f"{replica_set}-{number}", index, ("ReplicaSet", replica_set)), "labels": labels}
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {**spec, "nodeName": on},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        }


def _container(index: int) -> Json:
    requests = {"cpu": f"{100 + index % 7 * 50}m", "memory": f"{128 + index % 5 * 64}Mi"}
    return {"name": "app", "image": "app", "resources": {"requests": requests}}


def _spread(index: int, selected: Json) -> Json:
    """Return constraints, anti-affinity or neither, as the index says."""
    constraints = [constraint(hard=index % 2 == 0, max_skew=1 + index % 2 * 4, selects=selected)] if index % 5 else []
    term = {"topologyKey": HOSTNAME, "labelSelector": selected}
    affinity: Json = {}
    match index % 10:
        case 1:
            affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        case 2:
            preferred = [{"weight": 100, "podAffinityTerm": term}]
            affinity = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    return {"topologySpreadConstraints": constraints, "affinity": affinity}


def _template(labels: Json, spec: Json) -> Json:
    return {"metadata": {"labels": labels}, "spec": spec}


def _object(kind: str, name: str, index: int, spec: Json, owner: tuple[str, str] | None = None) -> Json:
    metadata = {**_metadata(name, index, owner), "annotations": {"deployment.kubernetes.io/revision": "1"}}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec}


def _metadata(name: str, index: int, owner: tuple[str, str] | None) -> Json:
    metadata: Json = {"name": name, "namespace": f"ns{index % 50}", "uid": f"{name}-{index}", "generation": 1}
    if owner is not None:
        kind, of = owner
        reference = {"apiVersion": "apps/v1", "kind": kind, "name": of, "uid": f"{of}-{index}", "controller": True}
        metadata["ownerReferences"] = [reference]
    return metadata


def write_capture(path: Path, objects: Iterable[Json]) -> None:
    """Write objects as a list."""
    with path.open("w") as file:
        file.write('{"apiVersion": "v1", "kind": "List", "items": [')
        for number, each in enumerate(objects):
            file.write(f"{',' if number else ''}\n{json.dumps(each)}")
        file.write("]}\n")


def _objects(places: int, pods: int) -> Iterator[Json]:
    yield from nodes(places)
    for index in range(pods // _OF_WORKLOAD):
        yield from workload(index, places)


def _write_question(path: Path, places: int, pods: int) -> int:
    """Write the cluster after the loss for the scheduler, with the lost pods in its queue; return their number."""
    question: dict[str, list[Json]] = {"nodes": [], "pods": [], "queue": []}
    lost: set[str] = set()
    for each in _objects(places, pods):
        if each["kind"] == "Node" and each["metadata"]["labels"][ZONE] == _LOST:
            lost.add(each["metadata"]["name"])
        elif each["kind"] == "Node":
            question["nodes"].append(each)
        elif each["kind"] == "Pod" and each["spec"]["nodeName"] in lost:
            del each["spec"]["nodeName"]
            question["queue"].append({**each, "status": {"phase": "Pending"}})
        elif each["kind"] == "Pod":
            question["pods"].append(each)
    path.write_text(f"{json.dumps(question)}\n", encoding="utf-8")
    return len(question["queue"])


def main() -> None:
    """Write captures of each size and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", default="500,10000")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for pods in map(int, options.pods.split(",")):
        with tempfile.TemporaryDirectory() as directory:
            capture, question = Path(directory, "capture.json"), Path(directory, "question.json")
            write_capture(capture, _objects(options.nodes, pods))
            displaced = _write_question(question, options.nodes, pods)
            commands = {
                _SCHEDULER: ["sh", "-c", f"{binary()} < {question}"],
                "simulate": [_PLUGIN, "simulate", "--delete", f"zone={_LOST}", "-A", "--runs", "1", "-f", str(capture)],
            }
            print(f"\n{pods} pods on {options.nodes} nodes, {displaced} displaced\n")
            print("\n".join(table(medians(commands, os.environ, options.rounds, _SCHEDULER), _SCHEDULER)))


if __name__ == "__main__":
    main()
