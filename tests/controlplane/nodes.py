"""Nodes that exist in the API alone, and the work of their kubelets."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import urllib3

from tests.controlplane.client import (
    CONFLICT,
    NOT_FOUND,
    STRATEGIC_PATCH,
    ApiClient,
    ApiError,
    Object,
    parallel,
)

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
HOSTNAME = "kubernetes.io/hostname"


def node(name: str, zone: str, labels: Mapping[str, str | None]) -> dict[str, Any]:
    """Return a ready node with room for 500 pods; a label with the value ``None`` is left out."""
    standard = {
        HOSTNAME: name,
        ZONE: zone,
        REGION: "test",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    }
    expected = {key: value for key, value in {**standard, **labels}.items() if value is not None}
    capacity = {"cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "500"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": expected},
        "status": {
            "capacity": capacity,
            "allocatable": capacity,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def add(client: ApiClient, nodes: Sequence[Object], taints: Sequence[Object]) -> None:
    """Create nodes with exactly these taints."""

    def create(manifest: Object) -> None:
        client.create(manifest)
        # Admission taints every new node as not ready, and the controller that removes the taint
        # waits for a kubelet.
        client.patch(f"/api/v1/nodes/{manifest['metadata']['name']}", {"spec": {"taints": taints}})

    parallel(create, nodes)


def run_pods(client: ApiClient, silent: Collection[str] = ()) -> int:
    """Report every pod that has a node and is pending as running, but on ``silent`` nodes; return how many."""
    pending = _bound_pods(client, "status.phase=Pending")
    starting = [
        pod for pod in pending if "deletionTimestamp" not in pod["metadata"] and pod["spec"]["nodeName"] not in silent
    ]

    def run(pod: Object) -> None:
        status = {"status": _running(pod)}
        with _gone_is_fine():
            client.patch(f"{_path(pod)}/status", status, STRATEGIC_PATCH)

    parallel(run, starting)
    return len(starting)


def finish_deletions(client: ApiClient, after: timedelta = timedelta(), silent: Collection[str] = ()) -> int:
    """Remove every pod that was deleted this long ago, as a kubelet does at its end; return how many."""
    latest = datetime.now(UTC) - after
    bound = [pod for pod in _bound_pods(client) if pod["spec"]["nodeName"] not in silent]
    ending = [pod for pod in bound if (deleted := _deleted(pod)) and deleted <= latest]

    def remove(pod: Object) -> None:
        at_once = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": pod["metadata"]["uid"]},
        }
        with _gone_is_fine():
            client.request("DELETE", _path(pod), at_once)

    parallel(remove, ending)
    return len(ending)


class FakeKubelet:
    """A thread that does the work of the kubelets of all nodes.

    Attributes:
        silent: The nodes whose kubelets have stopped, as in an outage.
    """

    def __init__(self, client: ApiClient, *, deletions: bool, interval: float = 0.2) -> None:
        """Prepare the thread; without ``deletions``, deleted pods stay terminating."""
        self._client = client
        self._deletions = deletions
        self._interval = interval
        self._after = timedelta()
        self.silent: set[str] = set()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread, unless it runs."""
        if self._thread is None:
            self._stopping.clear()
            self._thread = threading.Thread(target=self._work, name="fake-kubelet", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop the thread, if it runs, and wait for its end."""
        if self._thread is not None:
            self._stopping.set()
            self._thread.join()
            self._thread = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave pods alone inside a ``with`` block."""
        was_running = self._thread is not None
        self.stop()
        try:
            yield
        finally:
            if was_running:
                self.start()

    @contextmanager
    def slow(self, after: timedelta) -> Iterator[None]:
        """Keep deleted pods for some time inside a ``with`` block."""
        self._after = after
        try:
            yield
        finally:
            self._after = timedelta()

    def _work(self) -> None:
        while not self._stopping.wait(self._interval):
            self._try(partial(run_pods, silent=self.silent))
            if self._deletions:
                self._try(partial(finish_deletions, after=self._after, silent=self.silent))

    def _try(self, work: Callable[[ApiClient], int]) -> None:
        """Do a part of the work, which is tried again if it fails; pytest shows the error where a test fails too."""
        try:
            work(self._client)
        except (ApiError, urllib3.exceptions.HTTPError) as error:
            # The apiserver restarts, or refuses a pod that a test has written to etcd.
            print(f"fake kubelet: {work}: {error!r}", file=sys.stderr)


class Heartbeats:
    """A thread that renews the leases of all nodes whose kubelets have not stopped."""

    def __init__(self, client: ApiClient, kubelet: FakeKubelet, interval: float) -> None:
        """Prepare the thread, which renews each lease once in an interval, at a time of its own."""
        self._client, self._kubelet, self._interval = client, kubelet, interval
        self._due: dict[str, float] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="heartbeats", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, and wait for its end."""
        self._stopping.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._stopping.wait(self._interval / 10):
            try:
                names = [node["metadata"]["name"] for node in self._client.get("/api/v1/nodes")["items"]]
                now = time.monotonic()
                due = [name for name in names if name not in self._kubelet.silent and self._due.get(name, 0) <= now]
                parallel(self._renew, due)
            except (ApiError, urllib3.exceptions.HTTPError) as error:
                print(f"heartbeats: {error!r}", file=sys.stderr)

    def _renew(self, name: str) -> None:
        first = name not in self._due
        self._due[name] = time.monotonic() + (random.uniform(0, self._interval) if first else self._interval)
        spec = {
            "holderIdentity": name,
            "leaseDurationSeconds": 40,
            "renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        }
        path = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}"
        try:
            self._client.patch(path, {"spec": spec})
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise
            metadata = {"name": name, "namespace": "kube-node-lease"}
            lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
            self._client.create(lease)


@contextmanager
def _gone_is_fine() -> Iterator[None]:
    """Ignore that a pod was deleted, or replaced by a pod of the same name."""
    try:
        yield
    except ApiError as error:
        if error.status not in (NOT_FOUND, CONFLICT):
            raise


def _bound_pods(client: ApiClient, *selectors: str) -> list[dict[str, Any]]:
    selector = ",".join(["spec.nodeName!=", *selectors])
    pods: list[dict[str, Any]] = client.get("/api/v1/pods", fieldSelector=selector)["items"]
    return pods


def _deleted(pod: Object) -> datetime | None:
    """Return the second in which a pod was deleted; None for others."""
    metadata = pod["metadata"]
    if "deletionTimestamp" not in metadata:
        return None
    grace = timedelta(seconds=metadata.get("deletionGracePeriodSeconds", 0))
    return datetime.fromisoformat(metadata["deletionTimestamp"]) - grace


def _path(pod: Object) -> str:
    metadata = pod["metadata"]
    return f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"


def _running(pod: Object) -> dict[str, Any]:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    conditions = ("Initialized", "ContainersReady", "Ready")
    return {
        "phase": "Running",
        "startTime": now,
        "conditions": [{"type": name, "status": "True", "lastTransitionTime": now} for name in conditions],
        "containerStatuses": [
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": "",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": now}},
            }
            for container in pod["spec"]["containers"]
        ],
    }
