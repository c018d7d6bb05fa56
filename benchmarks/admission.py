"""What the policies of ``kubectl spread policy`` add to requests to one real apiserver.

Each request is sent to a namespace without the policies and to one with them, in turn. Nothing is stored. Other
work on the machine delays some requests, so the fastest tenth of them says more about the policies than the median.

Run as ``python -m benchmarks.admission --requests 2000``.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from benchmarks.load import template
from tests.controlplane.client import ApiClient, ApiError
from tests.controlplane.cluster import ControlPlane

WITHOUT: Final = "without"
WITH: Final = "with"
_HASH: Final = "pod-template-hash"
_Send: TypeAlias = Callable[[str], Any]
"""Sends a request to a namespace."""


def main() -> None:
    """Install the policies for one of two namespaces, and measure each request in both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=2000)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as directory,
        ControlPlane.start(Path(directory), scheduler=False, controllers=False) as cluster,
    ):
        for namespace in (WITHOUT, WITH):
            cluster.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
            cluster.api.create(_pod("stored", namespace))
            cluster.api.create(_deployment("stored", namespace))
        _install(cluster)
        names = [
            "request",
            *(f"{part}, {namespace}" for part in ("fastest tenth", "median") for namespace in (WITHOUT, WITH)),
        ]
        print(f"| {' | '.join(names)} |", "|---" * len(names) + "|", sep="\n")
        for name, send in _requests(cluster.api).items():
            without, guarded = _measure(send, options.requests)
            times = (function(each) for function in (_fastest_tenth, statistics.median) for each in (without, guarded))
            columns = (f"{seconds * 1000:.2f} ms" for seconds in times)
            print(f"| {name} | {' | '.join(columns)} |", flush=True)


def _install(cluster: ControlPlane) -> None:
    """Install the policies, and wait until they refuse what they should."""
    plugin = str(Path(sys.executable).parent / "kubectl-spread")
    command = [plugin, "policy", "--action=deny", f"--exclude-namespace={WITHOUT}"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    cluster.kubectl("apply", "-f", "-", input=printed)
    pod, deployment = _pod("probe", WITH), _deployment("probe", WITH)
    for spec in (pod["spec"], deployment["spec"]["template"]["spec"]):
        spec["topologySpreadConstraints"][0]["matchLabelKeys"] = ["absent"]
    probes = [
        partial(cluster.api.create, pod, dryRun="All"),
        partial(cluster.api.create, deployment, dryRun="All"),
        partial(_patch, cluster.api, "/api/v1", "pods/stored", {"metadata": {"labels": {_HASH: None}}}, WITH),
    ]
    for probe in probes:
        cluster.wait_for(partial(_refused, probe), 60, "a policy is in effect")


def _refused(probe: Callable[[], Any]) -> bool:
    try:
        probe()
    except ApiError:
        return True
    return False


def _requests(api: ApiClient) -> Mapping[str, _Send]:
    """Return the requests by their names; the policies accept them."""
    tier = {"spec": {"template": {"metadata": {"labels": {"tier": "one"}}}}}
    status = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    return {
        "create a pod": lambda namespace: api.create(_pod("new", namespace), dryRun="All"),
        "change another label of a pod": partial(_patch, api, "/api/v1", "pods/stored", _labelled("tier")),
        "report the status of a pod": partial(_patch, api, "/api/v1", "pods/stored/status", status),
        "create a Deployment": lambda namespace: api.create(_deployment("new", namespace), dryRun="All"),
        "change labels of a Deployment's template": partial(_patch, api, "/apis/apps/v1", "deployments/stored", tier),
        "label a Deployment": partial(_patch, api, "/apis/apps/v1", "deployments/stored", _labelled("tier")),
    }


def _labelled(key: str) -> Mapping[str, Any]:
    return {"metadata": {"labels": {key: "one"}}}


def _patch(api: ApiClient, group: str, resource: str, change: Mapping[str, Any], namespace: str) -> Any:
    return api.patch(f"{group}/namespaces/{namespace}/{resource}?dryRun=All", change)


def _pod(name: str, namespace: str) -> dict[str, Any]:
    body = template(name)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**body["metadata"], "name": name, "namespace": namespace},
        "spec": body["spec"],
    }


def _deployment(name: str, namespace: str) -> dict[str, Any]:
    body = template(name)
    labels = body["metadata"]["labels"]
    del labels[_HASH]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 3, "selector": {"matchLabels": dict(labels)}, "template": body},
    }


def _measure(send: _Send, requests: int) -> tuple[list[float], list[float]]:
    """Return the seconds of each request without and with the policies."""
    without: list[float] = []
    guarded: list[float] = []
    for number in range(requests):
        # Whichever is second finds warmer caches.
        for namespace in (WITHOUT, WITH) if number % 2 else (WITH, WITHOUT):
            begin = time.perf_counter()
            send(namespace)
            (guarded if namespace == WITH else without).append(time.perf_counter() - begin)
    return without, guarded


def _fastest_tenth(seconds: Sequence[float]) -> float:
    """Return the time within which a tenth of the requests were answered."""
    return statistics.quantiles(seconds, n=10)[0]


if __name__ == "__main__":
    main()
