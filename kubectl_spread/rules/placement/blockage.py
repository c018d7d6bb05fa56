"""Blockages: do the DoNotSchedule constraints of pods keep them from every node?"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedGroup
from kubectl_spread.audit.evaluation.obstacles import ObstacleKind
from kubectl_spread.kube.api.fieldpath import FieldPath
from kubectl_spread.kube.api.types import Node
from kubectl_spread.kube.scheduler.podtopologyspread.filtering import feasible_nodes
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread


class Blockage(msgspec.Struct, frozen=True):
    """The refusal of every usable node by the hard constraints of pods.

    Attributes:
        path: The path of the first constraint that refuses a node.
        conflict: Whether each constraint alone would allow some node.
    """

    path: FieldPath
    conflict: bool


def blockage(group: EvaluatedGroup, audit: Audit) -> Blockage | None:
    """Return how the hard constraints keep a group from every node that it could use; None if they do not.

    A pending pod cannot use a full node; a later pod may, because the node may have room again by then.
    """
    evaluation = group.evaluation
    hard = [
        (term.path, spread)
        for term, spread in zip(evaluation.pod_class.terms, evaluation.spreads, strict=True)
        if spread is not None and spread.constraint.hard
    ]
    if not hard or evaluation.node_answer is None:
        return None
    pending = any(not pod.node for pod in group.pods)

    def usable(node: Node) -> bool:
        obstacle = audit.obstacles.of(evaluation.pod_class, node.metadata.name)
        return obstacle is None or (obstacle.cause is ObstacleKind.FULL and not pending)

    if any(usable(node) for node in feasible_nodes([spread for _, spread in hard], audit.nodes)):
        return None
    refusing = [
        {path for path, spread in hard if not _lets_in(spread, node)} for node in audit.nodes.nodes if usable(node)
    ]
    if not refusing:
        return None
    first = next(path for path, _ in hard if any(path in paths for paths in refusing))
    return Blockage(first, conflict=not set.intersection(*refusing) and _each_allows_a_node(hard, refusing))


def _each_allows_a_node(hard: Sequence[tuple[FieldPath, Spread]], refusing: Sequence[set[FieldPath]]) -> bool:
    return all(any(path not in paths for paths in refusing) for path, _ in hard)


def _lets_in(spread: Spread, node: Node) -> bool:
    return spread.allows(node.metadata.labels.get(spread.constraint.topology_key))
