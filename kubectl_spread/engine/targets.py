"""Targets: the skews above maxSkew and the stale pods that a plan is to end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.engine.cluster import SimulatedCluster
from kubectl_spread.engine.kinds import SchedulingKind, selects
from kubectl_spread.engine.nodes import CountedNodes
from kubectl_spread.engine.placing import Tally, minimum
from kubectl_spread.engine.pods import SimulatedPod
from kubectl_spread.kube.api.labels import HOSTNAME
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import Constraint


class StalePod(msgspec.Struct, frozen=True):
    """A pod that a rule reports.

    Attributes:
        record: The pod.
        workload: Its workload.
        topology_key: The topology key of the constraint or term with the selector.
        why: What is wrong, as a part of a sentence.
        lasting: Why its replacement could be stale too; "" where it would not.
    """

    record: PodRecord
    workload: ObjectRef
    topology_key: str
    why: str
    lasting: str


class SpreadTarget(msgspec.Struct, frozen=True, eq=False):
    """The pods that a constraint counts together.

    Attributes:
        kind: A kind of pods with the constraint.
        constraint: The constraint.
        counted: The nodes that count for it.
        workloads: The workloads with such pods, in order.
    """

    kind: SchedulingKind
    constraint: Constraint
    counted: CountedNodes
    workloads: list[ObjectRef]

    @property
    def topology_key(self) -> str:
        """The topology key of the constraint."""
        return self.constraint.topology_key

    @property
    def hard(self) -> bool:
        """Whether the constraint is hard."""
        return self.constraint.hard

    def excess(self, cluster: SimulatedCluster) -> int:
        """Return the sum of the skews of all domains above maxSkew, in pods."""
        return sum(self.uneven(cluster).values())

    def uneven(self, cluster: SimulatedCluster) -> dict[str, int]:
        """Map each domain whose skew is above maxSkew to the pods that it has too many."""
        tally = self._tally(cluster)
        most = self._most(tally)
        return {value: pods - most for value, pods in tally.counts.items() if pods > most}

    def open_nodes(self, cluster: SimulatedCluster) -> int:
        """Return the nodes of the domains that may have one more pod, as a bitmap."""
        tally = self._tally(cluster)
        most, values = self._most(tally), self.counted.values
        full = {value for value, pods in tally.counts.items() if pods >= most}
        nodes = 0
        for number, value in enumerate(values):
            if value is not None and value not in full:
                nodes |= 1 << number
        return nodes

    def skew(self, cluster: SimulatedCluster) -> int:
        """Return the skew: that of the domain with the most pods."""
        tally = self._tally(cluster)
        return max(tally.counts.values(), default=0) - minimum(self.constraint, self.counted.domains, tally)

    def value_on(self, cluster: SimulatedCluster, pod: SimulatedPod) -> str | None:
        """Return the domain in which the constraint counts a pod; None where it does not count it."""
        number = cluster.table.numbers.get(pod.node)
        return None if number is None or not self.counts(pod.kind) else self.counted.values[number]

    def counts(self, kind: SchedulingKind) -> bool:
        """Tell whether the constraint selects pods of a kind."""
        return kind.namespace == self.kind.namespace and selects(self.constraint, kind)

    def _tally(self, cluster: SimulatedCluster) -> Tally:
        return cluster.state.spread(self.kind, self.constraint, self.counted)

    def _most(self, tally: Tally) -> int:
        return self.constraint.max_skew + minimum(self.constraint, self.counted.domains, tally)


class StaleTarget(msgspec.Struct, frozen=True, eq=False):
    """A pod whose labels no longer fit its selector.

    Attributes:
        stale: The pod as the rules report it.
        pod: The pod in the first run.
    """

    stale: StalePod
    pod: SimulatedPod

    @property
    def topology_key(self) -> str:
        """The topology key of its constraint or affinity term."""
        return self.stale.topology_key

    @property
    def workloads(self) -> Sequence[ObjectRef]:
        """The workload of the pod."""
        return (self.pod.workload,)

    @property
    def hard(self) -> bool:
        """True, because its replacement may go wherever filters allow it."""
        return True

    def excess(self, cluster: SimulatedCluster) -> int:
        """Return 1 while the pod is there, and 0 after it was evicted."""
        return int(same_in(cluster, self.pod) is not None)


PlanTarget: TypeAlias = SpreadTarget | StaleTarget
"""A skew or a stale pod that a plan is to end."""


def same_in(cluster: SimulatedCluster, pod: SimulatedPod) -> SimulatedPod | None:
    """Return the pod of another run that was read from the same object; None if it was replaced there."""
    other = cluster.pods.get(pod.owner, {}).get(pod.key)
    return other if other is not None and other.record is pod.record else None


def spread_targets(cluster: SimulatedCluster, *, soft: bool) -> list[SpreadTarget]:
    """Return all groups of pods that own constraints count together, whether or not they are uneven.

    Args:
        cluster: A run.
        soft: Whether to return soft constraints too.
    """
    workloads: dict[SchedulingKind, dict[ObjectRef, None]] = {}
    for pod in cluster.all_pods():
        workloads.setdefault(pod.kind, {})[pod.workload] = None
    targets: dict[object, SpreadTarget] = {}
    for kind, refs in workloads.items():
        for constraint, counted in _own(cluster, kind, soft=soft):
            selector = cluster.world.kinds.selector_key(constraint)
            limits = (constraint.max_skew, constraint.min_domains, constraint.hard)
            key = (kind.namespace, selector, constraint.topology_key, counted.bits, limits)
            target = targets.setdefault(key, SpreadTarget(kind, constraint, counted, []))
            target.workloads.extend(ref for ref in refs if ref not in target.workloads)
    for target in targets.values():
        target.workloads.sort()
    return sorted(targets.values(), key=_order)


def _order(target: SpreadTarget) -> tuple[object, ...]:
    key = target.topology_key
    return (target.workloads[0], key == HOSTNAME, key, target.constraint.max_skew)


def _own(cluster: SimulatedCluster, kind: SchedulingKind, *, soft: bool) -> Iterator[tuple[Constraint, CountedNodes]]:
    """Yield the constraints of a kind that its pods ask for, and hard defaults, as far as their scheduler is known."""
    pod_class = kind.pod_class
    if pod_class.pinned or pod_class.profile is None:
        return
    terms = (term for term in pod_class.terms if term.constraint is not None)
    own = {term.topology_key for term in terms if term.required or not term.default}
    answers = cluster.table.answers(kind)
    pairs = [*zip(kind.hard, answers.hard, strict=True)]
    if soft:
        pairs += zip(kind.soft, answers.soft, strict=True)
    yield from (pair for pair in pairs if pair[0].topology_key in own)


def affected(
    targets: Iterable[SpreadTarget], kinds: Iterable[SchedulingKind], cache: dict[SchedulingKind, list[SpreadTarget]]
) -> Iterator[SpreadTarget]:
    """Yield the targets that count pods of some kinds, each once."""
    seen: dict[SpreadTarget, None] = {}
    for kind in kinds:
        if kind not in cache:
            cache[kind] = [target for target in targets if target.counts(kind)]
        seen |= dict.fromkeys(cache[kind])
    yield from seen


Scope = Callable[[ObjectRef], bool]
"""Tells whether a workload is in the plan."""
