"""Uneven rows: which rows need an explanation, because of their skew or because they refuse every free node?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedConstraint, EvaluatedPod
from kubectl_spread.audit.merge.verdicts import Confidence, Verdict
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.diagnosis.node_answers import NodeAnswers
from kubectl_spread.explain.workload_pods import PodsByWorkload, WorkloadPods, counter, per_domain
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread
from kubectl_spread.phrases import domains

RELABELLED: Final = frozenset({Verdict.STALE_LABEL, Verdict.REMOVED_LABEL})
"""The verdicts on pods with a label that changed after the pod was created."""


class Proof(NamedTuple):
    """The evidence for a cause."""

    confidence: Confidence
    text: str


class UnevenRow(msgspec.Struct, frozen=True):
    """A row whose skew is above maxSkew, or that refuses the next pod on every free node.

    Attributes:
        index: The index of the row in the report.
        row: The row.
        spread: The count of the row.
        workload_pods: The pods of the row's workload.
        audit: The audit.
        low: The domains that are too far below the fullest; without a skew, the domains at the minimum.
    """

    index: int
    row: EvaluatedConstraint
    spread: Spread
    workload_pods: WorkloadPods
    audit: Audit
    low: tuple[str, ...]

    @property
    def skewed(self) -> bool:
        """Whether the skew is above maxSkew."""
        return self.spread.exceeds_max_skew

    @property
    def counted(self) -> list[PodRecord]:
        """The workload's pods that count."""
        counts = counter(self.spread, self.audit)
        return [pod for pod in self.workload_pods.pods if counts(pod)]

    def domain(self, value: str) -> str:
        """Return a domain in words: ``zone a``."""
        return domains(self.spread.constraint.topology_key, [value])

    def nodes_of(self, value: str) -> list[str]:
        """Return the eligible nodes of a domain."""
        return [node for node, domain in self.spread.domains.value_of.items() if domain == value]

    def settled_by(self, count: Spread) -> bool:
        """Tell whether the row would need no explanation with another count of the same domains."""
        return not count.exceeds_max_skew if self.skewed else count.frees(self.spread)

    def skews(self, count: Spread, when: str) -> str:
        """Return the skew of another count and the present skew, in a sentence that begins with ``when``."""
        return f"{when} the skew would be {count.skew} instead of {self.spread.skew}."

    def per_domain(self, pods: Iterable[PodRecord]) -> Counter[str]:
        """Count the pods that the constraint counts, by domain."""
        return per_domain(pods, self.spread, self.audit)

    @property
    def relabelled_pending(self) -> list[EvaluatedPod]:
        """The pending pods of the row with a label that changed after they were created."""
        return [member for member in self.row.members if member.verdict in RELABELLED and not member.pod.node]


def uneven_rows(audit: Audit, pods: PodsByWorkload) -> Iterator[UnevenRow]:
    """Yield the rows that need an explanation, in the report's order."""
    for index, row in enumerate(audit.rows):
        spread = row.spread
        if spread is None:
            continue
        uneven = UnevenRow(index, row, spread, pods[row.workload], audit, _low(row, spread, audit))
        if uneven.low or uneven.skewed or uneven.relabelled_pending:
            yield uneven


def _low(row: EvaluatedConstraint, spread: Spread, audit: Audit) -> tuple[str, ...]:
    """Return the domains that are too low, in order; none if the row needs no explanation."""
    counts = spread.match_num
    if spread.exceeds_max_skew:
        limit = counts.most - spread.constraint.max_skew
        return tuple(sorted(domain for domain, number in counts.items() if number < limit))
    if row.lower_bound or not _refuses_free_nodes(row, spread, audit):
        return ()
    return tuple(sorted(domain for domain, number in counts.items() if number == counts.least))


def _refuses_free_nodes(row: EvaluatedConstraint, spread: Spread, audit: Audit) -> bool:
    """Tell whether some nodes have no obstacle for the next pod, and the constraint refuses all of these nodes.

    A bound pod without owner has no next pod.
    """
    if not spread.constraint.hard or (row.workload.kind == "Pod" and all(pod.node for pod in row.pods)):
        return False
    pod_class = row.evaluations[0][0].pod_class
    key, free = spread.constraint.topology_key, NodeAnswers(pod_class, audit).free()
    domains = [audit.nodes.labels_of(node).get(key) for node in free]
    return bool(domains) and not any(spread.allows(domain) for domain in domains)
