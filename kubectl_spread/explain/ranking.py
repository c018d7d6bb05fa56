"""Ranking: how does the scheduler's spread plugin rank the nodes that may take the next pod?

The scheduler adds this score, with the plugin's weight, to those of its other plugins. It ranks the nodes that passed
its filters, in clusters of more than 100 nodes a sample of them, and does not rank a single node.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.kube.scheduler.podtopologyspread.scoring import SoftConstraint, scores


def rank(pod_class: PodClass, feasible: Iterable[str], audit: Audit) -> dict[str, int]:
    """Map the names of ``feasible`` nodes to their scores, from 0 to 100; nothing where no soft constraint counts."""
    soft = [
        SoftConstraint(
            spread.constraint,
            spread.domains,
            audit.evaluator.matching(pod_class.namespace, spread.constraint.selector),
        )
        for spread in audit.evaluator.of(pod_class).spreads
        if spread is not None and not spread.constraint.hard
    ]
    names = set(feasible)
    nodes = [node for node in audit.nodes.nodes if node.metadata.name in names]
    lenient = any(constraint.constraint.lenient for constraint in soft)
    return scores(soft, nodes, all_keys=not lenient)
