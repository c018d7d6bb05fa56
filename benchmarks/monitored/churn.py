"""Changes of pods and nodes at a rate, and the changes whose way to the metrics is measured."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Final, NamedTuple

from benchmarks import load
from benchmarks.load import ZONES, Load
from tests.controlplane.client import ApiClient, Object

MARKS: Final = 40
"""The workloads whose pods come and go one by one, so that each change is found in the metrics."""
_NAMESPACE: Final = "marks"
_THREADS: Final = 6
_RELABEL: Final = 20
"""One in so many pairs of changes relabels two pods; each other pair deletes a pod and creates its replacement."""
_AT_ONCE: Final = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}


class _Standing(NamedTuple):
    """A pod by its number in its workload, and the index of its node."""

    number: int
    node: int


class Churn:
    """Changes of random pods, after which there are as many as before; now and then a node is relabelled."""

    def __init__(self, api: ApiClient, loaded: Load, seed: int = 1) -> None:
        """Prepare to change the pods of a load; ``grow`` takes them."""
        self._api = api
        self._load = loaded
        self._random = Random(seed)
        self._numbers = itertools.count(10_000)
        self._pods: list[_Standing] = []

    def grow(self, pods: int) -> None:
        """Change so many pods from now on, which the load has just got."""
        loaded = self._load
        added = range(len(self._pods), pods)
        self._pods += [_Standing(index % loaded.pods_a_workload, loaded.first_node(index)) for index in added]

    def run(self, rate: float, seconds: float, node_seconds: float) -> float:
        """Make changes; relabel a node every ``node_seconds``, unless that is 0.

        Returns:
            The changes of pods in a second that the API server has answered.
        """
        begin = time.monotonic()
        pairs = range(int(rate * seconds / 2))
        stop = threading.Event()
        nodes = threading.Thread(target=self._relabel_nodes, args=(node_seconds, stop))
        if node_seconds:
            nodes.start()
        with ThreadPoolExecutor(_THREADS) as pool:
            # Each thread has pods of its own.
            made = pool.map(
                lambda thread: self._thread(pairs[thread::_THREADS], begin, rate / 2, thread), range(_THREADS)
            )
            changes = 2 * sum(made)
        took = time.monotonic() - begin
        stop.set()
        if node_seconds:
            nodes.join()
        return changes / took

    def _thread(self, pairs: Sequence[int], begin: float, rate: float, thread: int) -> int:
        random, deadline = Random(self._random.random() + thread), begin + (pairs[-1] if pairs else 0) / rate
        made = 0
        for number in pairs:
            time.sleep(max(0.0, begin + number / rate - time.monotonic()))
            if time.monotonic() > deadline:
                break
            index = random.randrange(thread, len(self._pods), _THREADS)
            if number % _RELABEL:
                self._replace(index, random)
            else:
                self._relabel(index, random)
            made += 1
        return made

    def _replace(self, index: int, random: Random) -> None:
        """Delete a pod, and create another one on a random node of the same zone."""
        number, node = self._pods[index]
        owner, nodes = self._load.owners[index // self._load.pods_a_workload], self._load.nodes
        self._api.request("DELETE", _path(owner, number), _AT_ONCE)
        zones = len(ZONES)
        standing = _Standing(next(self._numbers), random.randrange(len(nodes) // zones) * zones + node % zones)
        self._api.create(load.pod(owner, standing.number, nodes[standing.node]))
        self._pods[index] = standing

    def _relabel(self, index: int, random: Random) -> None:
        """Give a pod a label, and take it away again."""
        owner = self._load.owners[index // self._load.pods_a_workload]
        path = _path(owner, self._pods[index].number)
        for label in (f"canary-{random.randrange(5)}", None):
            self._api.patch(path, {"metadata": {"labels": {"track": label}}})

    def _relabel_nodes(self, seconds: float, stop: threading.Event) -> None:
        """Change a label of a random node again and again, which no pod selects."""
        random = Random(seconds)
        for number in itertools.count():
            if stop.wait(seconds):
                return
            path = f"/api/v1/nodes/{random.choice(self._load.nodes)}"
            self._api.patch(path, {"metadata": {"labels": {"pool": f"pool-{number % 3}"}}})


class Marks:
    """Workloads that get and lose a second pod again and again, each as soon as the metrics show the last change.

    Attributes:
        delays: The seconds from the API server's answer to the end of the scrape that shows the change.
    """

    def __init__(self, api: ApiClient, nodes: Sequence[str]) -> None:
        """Create the workloads, each with one pod; ``nodes`` are one of each zone in turn."""
        self._api = api
        self._nodes = nodes
        self.delays: list[float] = []
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}})
        owners = api.create_all(load.replica_set(number, _NAMESPACE) for number in range(MARKS))
        self._owners: dict[str, Object] = {owner["metadata"]["name"]: owner for owner in owners}
        api.create_all(load.pod(owner, 0, nodes[0]) for owner in owners)
        self._pending: dict[str, tuple[int, float]] = {}
        self._numbers = dict.fromkeys(self._owners, 1)

    def run(self, seconds: float, rate: float) -> None:
        """Change workloads in turn, and wait until the metrics show each change."""
        begin = time.monotonic()
        for number, name in enumerate(itertools.cycle(self._owners)):
            time.sleep(max(0.0, begin + number / rate - time.monotonic()))
            if time.monotonic() > begin + seconds:
                break
            if name not in self._pending:
                self._change(name)

    @property
    def pending(self) -> int:
        """The number of changes that no scrape has shown yet."""
        return len(self._pending)

    def _change(self, name: str) -> None:
        owner = self._owners[name]
        if self._numbers[name] == 1:
            self._api.create(load.pod(owner, 1, self._nodes[1]))
        else:
            self._api.request("DELETE", _path(owner, 1), _AT_ONCE)
        self._numbers[name] = 3 - self._numbers[name]
        self._pending[name] = (self._numbers[name], time.monotonic())

    def seen(self, ended: float, numbers: Mapping[str, int]) -> None:
        """Take the numbers of pods that a scrape has shown."""
        for name, (number, changed) in list(self._pending.items()):
            # A scrape that began before the answer may show the change as well.
            if numbers.get(name) == number:
                del self._pending[name]
                self.delays.append(max(0.0, ended - changed))


def _path(owner: Object, number: int) -> str:
    metadata = owner["metadata"]
    return f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}-{number:05d}"
