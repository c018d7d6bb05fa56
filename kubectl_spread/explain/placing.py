"""Placing: which nodes would take a pod, and what keeps it from each of the others first.

Nodes are held against the scheduler's filters in its order: cordon, taints, node affinity, resources, spread, pod
affinity. Source: kubernetes v1.37.1 pkg/scheduler/apis/config/v1/default_plugins.go, getDefaultPlugins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import UNSET, UnsetType

from kubectl_spread import phrases
from kubectl_spread.audit.evaluation import affinity
from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.audit.evaluation.obstacles import Obstacle, ObstacleKind
from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.diagnosis.node_filters import AFFINITY_WORDS, FirstRefusal, NodeFilters
from kubectl_spread.explain.ranking import rank
from kubectl_spread.kube.api.fieldpath import POD_SPEC, FieldPath
from kubectl_spread.kube.api.types import Node
from kubectl_spread.kube.scheduler.interpodaffinity import AffinityAnswer
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread
from kubectl_spread.report import model

_FILTERS: Final = {
    ObstacleKind.CORDONED: "cordon",
    ObstacleKind.TAINTED: "taints",
    ObstacleKind.EXCLUDED: "nodeAffinity",
    ObstacleKind.FULL: "resources",
}
_SPREAD: Final = "spread"
_POD_AFFINITY: Final = "podAffinity"
ORDER: Final = (*_FILTERS.values(), _SPREAD, _POD_AFFINITY)
"""The filters that are modelled, in the scheduler's order."""
_ELSEWHERE: Final = "pods of other namespaces were not read: what they take of nodes, and whom they keep away"


class NodeRefusal(model.Part, frozen=True, kw_only=True):
    """Nodes that will not take the next pod, all for the same reason.

    ``filter`` is ``cordon``, ``taints``, ``nodeAffinity``, ``resources``, ``spread`` or ``podAffinity``.
    """

    filter: str
    reason: str
    nodes: list[str]


class Placing(model.Part, frozen=True, kw_only=True):
    """Where the next pod of one group may go; ``unknown`` are the questions that could not be answered.

    ``scores`` are those of the scheduler's spread plugin alone, for each of several allowed nodes; without soft
    constraints there are none.
    """

    pods: list[str]
    allowed: list[str]
    scores: dict[str, int] | UnsetType = UNSET
    refused: list[NodeRefusal]
    unknown: list[str] | UnsetType = UNSET


def place(pod_class: PodClass, pods: Sequence[str], audit: Audit) -> Placing:
    """Return where the next pod of ``pod_class`` may go; ``pods`` names those that are like it."""
    if unread := _unparsed(pod_class, required=True):
        everywhere = [node.metadata.name for node in audit.nodes.nodes]
        return Placing(
            pods=list(pods), allowed=[], refused=[NodeRefusal(filter=unread[0], reason=unread[1], nodes=everywhere)]
        )
    spreads = audit.evaluator.of(pod_class).spreads
    hard = [spread for spread in spreads if spread is not None and spread.constraint.hard]
    repelled = audit.affinity.refusals(pod_class)
    filters = NodeFilters(pod_class, hard, repelled or {}, audit)
    allowed: list[str] = []
    refused: dict[tuple[str, str], list[str]] = {}
    for node in audit.nodes.nodes:
        refusal = filters.first_refusal(node.metadata.name)
        names = allowed if refusal is None else refused.setdefault(_reason(refusal, node), [])
        names.append(node.metadata.name)
    if len(allowed) > 1 and (unread := _unparsed(pod_class, required=False)):
        refused[unread], allowed = allowed, []
    return Placing(
        pods=list(pods),
        allowed=allowed,
        scores=(rank(pod_class, allowed, audit) if len(allowed) > 1 else {}) or UNSET,
        refused=[
            NodeRefusal(filter=name, reason=reason, nodes=refused[name, reason])
            for name, reason in sorted(refused, key=lambda refusal: (ORDER.index(refusal[0]), refusal[1]))
        ],
        unknown=_unknown(repelled, audit) or UNSET,
    )


def _unparsed(pod_class: PodClass, *, required: bool) -> tuple[str, str] | None:
    """Return the filter and the reason where a selector of the pod itself, which cannot be parsed, fails the attempt.

    Hard constraints and all affinity terms fail it before any node is looked at; soft constraints once there is more
    than one node to choose from.

    Source: kubernetes v1.37.1 pkg/scheduler/schedule_one.go, schedulePod, and the PreFilter and PreScore of
    podtopologyspread and interpodaffinity.
    """
    for term in pod_class.terms:
        soft = term.spread and not term.required
        respected = not term.spread or (
            pod_class.profile is not None and pod_class.profile.respects(hard=term.required)
        )
        if soft is not required and respected and (error := term.parse_error):
            where = f"{error[0]} of {term.path.moved(POD_SPEC, FieldPath())} cannot be parsed"
            so = "the scheduler fails before it looks at a node" if required else "the scheduler fails to choose a node"
            return (_SPREAD if term.spread else _POD_AFFINITY), f"{where}, so {so}"
    return None


def parses(pod_class: PodClass) -> bool:
    """Tell whether every selector of pods of ``pod_class`` can be parsed; the API takes no new pod with another one."""
    return all(term.parse_error is None for term in pod_class.terms)


def _unknown(repelled: Mapping[str, AffinityAnswer] | None, audit: Audit) -> list[str]:
    """Return the questions that cannot be answered because something was not read."""
    unknown = [affinity.UNKNOWN_NAMESPACES] if repelled is None else []
    return unknown if audit.snapshot.anti_affinity.everywhere else [*unknown, _ELSEWHERE]


def _reason(refusal: FirstRefusal, node: Node) -> tuple[str, str]:
    """Return the filter that refuses a node, and why."""
    match refusal:
        case Obstacle():
            return _FILTERS[refusal.cause], refusal.text
        case Spread():
            return _SPREAD, _spread_reason(refusal, node)
        case _:
            return _POD_AFFINITY, AFFINITY_WORDS[refusal]


def _spread_reason(spread: Spread, node: Node) -> str:
    """Return why a hard constraint refuses a node, with its numbers."""
    key = spread.constraint.topology_key
    value = node.metadata.labels.get(key)
    return f"no label {key}" if value is None else f"{key} {phrases.value(value)}: {formula(spread, value)}"


def formula(spread: Spread, value: str) -> str:
    """Return the Filter's comparison with its numbers, for one domain."""
    numbers = f"{spread.match_num.get(value, 0)} + {spread.self_match_num} - {spread.min_match_num}"
    sign = "<=" if spread.allows(value) else ">"
    return f"{numbers} = {spread.skew_with_one_more(value)} {sign} {spread.constraint.max_skew}"
