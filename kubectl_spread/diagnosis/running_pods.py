"""Running pods: how many pods of a workload run, in each zone and on the node with the most of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.diagnosis.exposure import replicas
from kubectl_spread.kube.api.labels import ZONE
from kubectl_spread.kube.api.objects import ObjectRef


class RunningPods(msgspec.Struct, frozen=True, gc=False):
    """The running pods of one workload whose pods stand in for each other.

    A pod runs if it is bound to a listed node, and neither finished nor terminating, as the scheduler counts it.

    Attributes:
        workload: The root owner.
        pods: The number of running pods.
        zones: The number of running pods in each zone that has any, by name; pods on nodes without a zone are left out.
        fullest_node: The number of running pods on the node with the most of them.
    """

    workload: ObjectRef
    pods: int
    zones: tuple[tuple[str, int], ...]
    fullest_node: int

    @property
    def fullest_zone(self) -> int:
        """The number of running pods in the zone with the most of them."""
        return max((pods for _, pods in self.zones), default=0)


def running_pods(audit: Audit) -> Iterator[RunningPods]:
    """Yield the running pods of each workload with replicas, by kind and name; nothing where nodes were not listed."""
    if not audit.evaluator.lists_nodes:
        return
    zone_of = audit.nodes.value_of(ZONE)
    for workload in replicas(audit):
        nodes = Counter(pod.node for pod in workload.pods if pod.node in audit.nodes.numbers)
        zones = _by_zone(((zone_of[node], pods) for node, pods in nodes.items() if node in zone_of))
        yield RunningPods(workload.workload, nodes.total(), zones, max(nodes.values(), default=0))


def _by_zone(numbers: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """Return the sum for each zone, by name."""
    zones: Counter[str] = Counter()
    for zone, pods in numbers:
        zones[zone] += pods
    return tuple(sorted(zones.items()))
