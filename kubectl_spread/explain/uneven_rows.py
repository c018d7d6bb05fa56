"""Which rows need an explanation, because they are uneven or no free node is allowed?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedConstraint
from kubectl_spread.audit.merge.verdicts import Verdict
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.explain.workload_pods import PodsByWorkload, WorkloadPods, matcher, per_domain
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread

_UNGROUPED = frozenset({Verdict.STALE_LABEL, Verdict.REMOVED_LABEL})


class UnevenRow(msgspec.Struct, frozen=True):
    """A row that is too skewed, or where no node that is free is allowed; ``index`` is its place among the rows.

    ``low`` are the domains that make it so: those too far below the fullest, or those at the minimum.
    """

    index: int
    row: EvaluatedConstraint
    spread: Spread
    workload_pods: WorkloadPods
    audit: Audit
    low: tuple[str, ...]

    @property
    def skewed(self) -> bool:
        """Whether a domain holds more pods above the minimum than maxSkew."""
        return self.spread.exceeds_max_skew

    @property
    def counted(self) -> list[PodRecord]:
        """The workload's own pods that count."""
        selects = matcher(self.spread, self.audit)
        value_of = self.spread.domains.value_of
        return [pod for pod in self.workload_pods.pods if not pod.terminating and pod.node in value_of and selects(pod)]

    def domain(self, value: str) -> str:
        """Return a domain in words: the topology key and its value."""
        return f"{self.spread.constraint.topology_key} {value or chr(34) * 2}"

    def nodes_of(self, value: str) -> list[str]:
        """Return the eligible nodes of a domain."""
        return [node for node, domain in self.spread.domains.value_of.items() if domain == value]

    def settles(self, other: Spread) -> bool:
        """Tell whether the row would need no explanation with another count of the same domains."""
        return not other.exceeds_max_skew if self.skewed else other.frees(self.spread)

    def skews(self, other: Spread, when: str) -> str:
        """Return the skew as it is and as it would be with another count, in words."""
        return f"skew is {self.spread.skew}, {when} it would be {other.skew}"

    def per_domain(self, pods: Iterable[PodRecord]) -> Counter[str]:
        """Count those of ``pods`` that count, by domain."""
        return per_domain(pods, self.spread, self.audit)

    @property
    def ungrouped(self) -> list[PodRecord]:
        """The pending pods of the row whose label is not what it was when they were created."""
        return [member.pod for member in self.row.members if member.verdict in _UNGROUPED and not member.pod.node]


def uneven_rows(audit: Audit, pods: PodsByWorkload) -> Iterator[UnevenRow]:
    """Yield the rows that need an explanation, in the report's order."""
    for index, row in enumerate(audit.rows):
        spread = row.spread
        if spread is None:
            continue
        workload_pods = pods[row.workload]
        low = _low(row, spread, audit)
        uneven = UnevenRow(index, row, spread, workload_pods, audit, low)
        if low or uneven.skewed or uneven.ungrouped:
            yield uneven


def _low(row: EvaluatedConstraint, spread: Spread, audit: Audit) -> tuple[str, ...]:
    """Return the domains that are too low, in order; none where the row needs no explanation."""
    most, limit = spread.match_num.most, spread.constraint.max_skew
    if spread.exceeds_max_skew:
        least = most - limit
        return tuple(sorted(value for value, number in spread.match_num.items() if number < least))
    if row.lower_bound or not _jammed(row, spread, audit):
        return ()
    return tuple(sorted(value for value, number in spread.match_num.items() if number == spread.match_num.least))


def _jammed(row: EvaluatedConstraint, spread: Spread, audit: Audit) -> bool:
    """Tell whether the constraint refuses every node that is free for such a pod, and there is one.

    A pod without owner has no next one.
    """
    if not spread.constraint.hard or (row.workload.kind == "Pod" and all(pod.node for pod in row.pods)):
        return False
    pod_class = row.evaluations[0][0].pod_class
    free = [
        node.metadata.labels.get(spread.constraint.topology_key)
        for node in audit.nodes.nodes
        if audit.obstacles.of(pod_class, node.metadata.name) is None
    ]
    return bool(free) and not any(spread.allows(value) for value in free)
