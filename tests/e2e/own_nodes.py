"""Random cases on nodes of their own: several at the same time on a real cluster without other nodes."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol, TypeVar

from urllib3.exceptions import HTTPError

from tests.builders import Json, selector
from tests.controlplane import nodes
from tests.controlplane.client import ApiError
from tests.controlplane.cluster import ControlPlane, KubectlError
from tests.e2e.spread import Plugin, Program
from tests.e2e.volumes import zonal_claim
from tests.e2e.workloads import pods, rests

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

RACK: Final = "rack"
"""A label of nodes with few values, each in several zones."""
_QUIET: Final = 3.0
"""The seconds without a change after which nothing changes."""
_TOGETHER: Final = 4
"""The cases that run at the same time."""
_OF_CORDONS: Final[Json] = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
"""The taint that the node lifecycle controller adds to cordoned nodes; the control plane of tests runs without it."""
_OWNERS: Final = ("deployments", "replicasets", "statefulsets", "daemonsets")


class OnOwnNodes:
    """One case, in a namespace and on nodes with a label of its own."""

    def __init__(self, cluster: ControlPlane, spread: Program, namespace: str, label: str) -> None:
        """Play in ``namespace``, on nodes whose label ``case`` is ``label``."""
        self.cluster, self.spread, self.namespace = cluster, spread, namespace
        self._label = label
        self._claims: list[str] = []

    def add(self, slots: Mapping[str, int], taints: Sequence[Json] = ()) -> None:
        """Add nodes with some cpu each, in the zones that their names begin with."""
        added = []
        for name, cpu in slots.items():
            rack = f"r{int(name.rpartition('-')[2]) % 2}"
            node = nodes.node(name, zone_of(name), {"case": self._label, RACK: rack})
            node["status"]["allocatable"] = {**node["status"]["allocatable"], "cpu": str(cpu)}
            added.append(node)
        nodes.add(self.cluster.api, added, taints)

    def claim(self, zones: Mapping[str, str]) -> None:
        """Create claims by name, each with a volume that only the nodes of one zone reach."""
        pairs = [zonal_claim(name, self.namespace, zone) for name, zone in zones.items()]
        self.cluster.api.create_all([each for pair in pairs for each in pair])
        self._claims += zones

    def apply(self, objects: Sequence[Json]) -> None:
        """Apply objects in the namespace, and wait until nothing changes any more."""
        self.cluster.apply([in_namespace(each, self.namespace) for each in objects])
        self.settle()

    def settle(self) -> None:
        """Wait until controllers have seen the workloads, no pod is on its way, and nothing has changed for a time."""
        since, last = time.monotonic(), self._state()

        def settled() -> bool:
            nonlocal since, last
            if (now := self._state()) != last:
                since, last = time.monotonic(), now
            silent = self.cluster.kubelet.silent
            stored = pods(self.cluster, self.namespace)
            resting = all(rests(pod) for pod in stored if pod["spec"].get("nodeName") not in silent)
            return self._observed() and resting and time.monotonic() - since > _QUIET

        self.cluster.wait_for(settled, timeout=120, what=f"nothing changes any more in case {self._label}")

    def clean(self) -> None:
        """Delete the workloads, volumes and nodes; the namespace is deleted by who made it."""
        api = self.cluster.api
        for kind in _OWNERS:
            api.request("DELETE", self._path(kind))
        api.request("DELETE", f"/apis/batch/v1/namespaces/{self.namespace}/jobs?propagationPolicy=Background")
        api.request("DELETE", f"/api/v1/namespaces/{self.namespace}/pods?gracePeriodSeconds=0")
        for name in self._claims:
            api.request("DELETE", f"/api/v1/persistentvolumes/{self.namespace}-{name}")
        for node in api.get(f"/api/v1/nodes?labelSelector=case={self._label}")["items"]:
            api.request("DELETE", f"/api/v1/nodes/{node['metadata']['name']}")

    def _state(self) -> list[tuple[str, str, str]]:
        return sorted(
            (pod["metadata"]["uid"], pod["spec"].get("nodeName", ""), pod["status"].get("phase", ""))
            for pod in pods(self.cluster, self.namespace)
        )

    def _observed(self) -> bool:
        stored = [each for kind in _OWNERS for each in self.cluster.api.get(self._path(kind))["items"]]
        return all(each["status"].get("observedGeneration", 0) >= each["metadata"]["generation"] for each in stored)

    def _path(self, kind: str) -> str:
        return f"/apis/apps/v1/namespaces/{self.namespace}/{kind}"


def in_namespace(manifest: Json, namespace: str) -> Json:
    """Return an object in a namespace."""
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}


def zone_of(node: str) -> str:
    """Return the zone of a node: its name without its number."""
    return node.rpartition("-")[0]


def cordon(cluster: ControlPlane, name: str) -> None:
    """Cordon a node, with the taint that a controller adds."""
    stored = cluster.api.get(f"/api/v1/nodes/{name}")["spec"].get("taints", [])
    taints = stored if _OF_CORDONS in stored else [*stored, _OF_CORDONS]
    cluster.api.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True, "taints": taints}})


def workload(kind: str, name: str, replicas: int, pod_spec: Json, **fields: object) -> Json:
    """Return a workload of the group ``apps``, without a namespace."""
    template = {"metadata": {"labels": {"app": name}}, "spec": pod_spec}
    spec = {"replicas": replicas, "selector": selector({"app": name}), "template": template, **fields}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def budget(name: str, limit: Json) -> Json:
    """Return a PodDisruptionBudget of the pods of a workload."""
    spec = {"selector": selector({"app": name}), **limit}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec}


class Playable(Protocol[T_co]):
    """A case to play."""

    def play(self) -> T_co:
        """Play it, and return what was seen."""
        ...

    def clean(self) -> None:
        """Delete what it made."""
        ...


def play(cluster: ControlPlane, seeds: Sequence[int], case_of: Callable[[int, str], Playable[T]]) -> list[T]:
    """Play the cases of some seeds, each in a namespace; leave out those that could not be played."""

    def one(seed: int) -> list[T]:
        with cluster.namespace("case") as namespace:
            case = case_of(seed, namespace)
            try:
                return [case.play()]
            except (TimeoutError, subprocess.TimeoutExpired, HTTPError, ApiError, KubectlError) as error:
                print(f"case {seed} was not played: {error}", file=sys.stderr)
                return []
            finally:
                case.clean()

    with ThreadPoolExecutor(_TOGETHER) as pool:
        return [played for each in pool.map(one, seeds) for played in each]


def arguments(description: str | None) -> argparse.ArgumentParser:
    """Return the parser of a program that plays cases."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first case")
    return parser


@contextmanager
def empty_cluster(*, outages: bool = False) -> Iterator[tuple[ControlPlane, Program]]:
    """Run a cluster without nodes, and the plugin for it; with ``outages``, nodes may stop answering."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "cluster").mkdir()
        with ControlPlane.start(directory / "cluster", kubelet=True, outages=outages) as cluster:
            yield cluster, Plugin(directory / "plugins").program(cluster)
