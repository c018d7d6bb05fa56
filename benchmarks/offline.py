"""``check -f`` of captures too large for a reader, compared with programs that only read or unpack them, in turn.

Run as ``python -m benchmarks.offline --pods 30000 --yaml-pods 3000``; no cluster is needed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final

import yaml

from benchmarks.load import PODS_A_WORKLOAD, pod
from benchmarks.sidebyside import medians, table

_PLUGIN: Final = str(Path(sys.executable).parent / "kubectl-spread")
_JSON_LOAD: Final = "json.load"
_NODES: Final = 1000
_TIME: Final = "2026-11-01T09:00:00Z"
_STEP: Final = 4


def capture(number: int) -> Iterator[dict[str, Any]]:
    """Yield pods as ``kubectl get pods -A --show-managed-fields`` shows them."""
    for index in range(number):
        workload = index // PODS_A_WORKLOAD
        name, namespace = f"service-{workload}-7c9d8f6b54", f"team-{workload % 20}"
        owner: dict[str, Any] = {"metadata": {"name": name, "namespace": namespace, "uid": _uid(workload)}}
        made_pod = pod(owner, index % PODS_A_WORKLOAD, f"node-{index % _NODES}")
        made_pod["metadata"] |= {"uid": _uid(number + index), "resourceVersion": str(index), "creationTimestamp": _TIME}
        # The letters keep an unquoted checksum from being a number.
        made_pod["metadata"]["annotations"]["checksum/config"] = f"{index:060x}cafe"
        made_pod["metadata"]["managedFields"] = [*made_pod["metadata"].get("managedFields", []), _created(made_pod)]
        yield made_pod | {"status": _status(made_pod["spec"]["containers"])}


def _uid(number: int) -> str:
    return f"0a1b2c3d-0000-4000-8000-{number:012d}"


def _created(mapping: dict[str, Any]) -> dict[str, Any]:
    """Return the managedFields entry of the controller that created a pod."""
    fields = {"f:metadata": _owned(mapping["metadata"]["labels"]), "f:spec": _owned(mapping["spec"])}
    entry = {"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1", "time": _TIME}
    return {**entry, "fieldsType": "FieldsV1", "fieldsV1": fields}


def _owned(value: object) -> dict[str, Any]:
    if isinstance(value, dict):
        return {f"f:{key}": _owned(field) for key, field in value.items()}
    elements = value if isinstance(value, list) else []
    return {f'k:{{"name":"{part["name"]}"}}': {".": {}, **_owned(part)} for part in elements if "name" in part}


def _status(containers: list[dict[str, Any]]) -> dict[str, Any]:
    conditions = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    common = {"ready": True, "restartCount": 0, "started": True, "state": {"running": {"startedAt": _TIME}}}
    return {
        "phase": "Running",
        "podIP": "10.0.0.1",
        "startTime": _TIME,
        "conditions": [
            {"type": name, "status": "True", "lastProbeTime": None, "lastTransitionTime": _TIME} for name in conditions
        ],
        "containerStatuses": [
            {
                **common,
                "name": container["name"],
                "image": container["image"],
                "imageID": f"{container['image']}@sha256:{'0f' * 32}",
            }
            for container in containers
        ],
    }


def _write_json(path: Path, number: int) -> None:
    with path.open("w") as file:
        file.write('{\n    "apiVersion": "v1",\n    "items": [\n')
        _write_items(file, number)
        file.write('\n    ],\n    "kind": "List",\n    "metadata": {\n        "resourceVersion": ""\n    }\n}\n')


def _write_items(file: TextIOWrapper, number: int) -> None:
    for index, manifest in enumerate(capture(number)):
        lines = json.dumps(manifest, indent=_STEP, sort_keys=True).splitlines(keepends=True)
        file.write(",\n" if index else "")
        file.writelines(" " * 2 * _STEP + line for line in lines)


def _write_yaml(path: Path, number: int) -> None:
    with path.open("w") as file:
        file.write("apiVersion: v1\nitems:\n")
        for manifest in capture(number):
            # In a copy no object appears twice, which would be written as an alias.
            file.write(yaml.dump([json.loads(json.dumps(manifest))], Dumper=yaml.CSafeDumper, default_flow_style=False))
        file.write('kind: List\nmetadata:\n  resourceVersion: ""\n')


def _pack(path: Path) -> Path:
    packed = path.with_name(f"{path.name}.gz")
    with path.open("rb") as file, gzip.open(packed, "wb", compresslevel=6) as out:
        while block := file.read(1 << 20):
            out.write(block)
    return packed


def main() -> None:
    """Write captures and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=30_000)
    parser.add_argument("--yaml-pods", type=int, default=3_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    check = [_PLUGIN, "check", "--server-version", "1.37", "-A", "-f"]
    with tempfile.TemporaryDirectory() as directory:
        pods_json, pods_yaml = Path(directory, "pods.json"), Path(directory, "pods.yaml")
        _write_json(pods_json, options.pods)
        _write_yaml(pods_yaml, options.yaml_pods)
        packed = _pack(pods_json)
        for path in (pods_json, packed, pods_yaml):
            print(f"{path.name}: {path.stat().st_size / 1e6:.0f} MB")
        commands = {
            _JSON_LOAD: [sys.executable, "-c", f"import json; json.load(open({str(pods_json)!r}))"],
            "gunzip, wc -c": ["sh", "-c", f"gunzip -c {packed} | wc -c"],
            "check -f pods.json": [*check, str(pods_json)],
            "check -f pods.json.gz": [*check, str(packed)],
            "check -f pods.yaml": [*check, str(pods_yaml)],
        }
        print("\n".join(table(medians(commands, os.environ, options.rounds, _JSON_LOAD), _JSON_LOAD)))


if __name__ == "__main__":
    main()
