"""Next pods: like which present pods will they be, which nodes and domains may take them, and how are nodes ranked?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import UNSET, UnsetType

from kubectl_spread import phrases
from kubectl_spread.audit.evaluation import affinity
from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedGroup
from kubectl_spread.audit.evaluation.obstacles import AFFINITY_WORDS, FILTERS, Obstacle, ObstacleKind
from kubectl_spread.audit.evaluation.volumes import VolumeNodes
from kubectl_spread.audit.snapshot.records import PodClass, PodRecord
from kubectl_spread.audit.snapshot.revisions import revision_of
from kubectl_spread.diagnosis.node_answers import FirstRefusal, NodeAnswers
from kubectl_spread.explain.uneven_rows import RELABELLED
from kubectl_spread.kube.api.field import POD_SPEC, FieldPath
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import Node
from kubectl_spread.kube.scheduler.interpodaffinity import AffinityAnswer
from kubectl_spread.kube.scheduler.podtopologyspread import spread as podtopologyspread
from kubectl_spread.kube.scheduler.podtopologyspread.domains import NO_VALUE, Cell
from kubectl_spread.kube.scheduler.podtopologyspread.scoring import SoftConstraint, scores
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread
from kubectl_spread.phrases import value
from kubectl_spread.report import model

_SPREAD: Final = FILTERS[ObstacleKind.CONSTRAINED]
_POD_AFFINITY: Final = FILTERS[ObstacleKind.REPELLED]
ORDER: Final = tuple(FILTERS.values())
"""The filters that are modelled, in the scheduler's order."""
_UNREAD_NAMESPACES: Final = (
    "pods of other namespaces were not read, so neither their resources nor their anti-affinity is known"
)


class NodeRefusal(model.Part, frozen=True, kw_only=True):
    """Nodes that will not take the next pod, all for the same reason; domains with equal counts share one.

    ``filter`` is ``cordon``, ``taints``, ``nodeAffinity``, ``resources``, ``volumes``, ``spread`` or ``podAffinity``.
    """

    filter: str
    reason: str
    nodes: list[str]


class Placing(model.Part, frozen=True, kw_only=True):
    """The nodes where the next pod of one group may go; ``unknown`` are the questions that could not be answered.

    ``scores`` are the scores of the scheduler's spread plugin alone. They are absent if a single node is allowed, and
    for pods without soft constraints.
    """

    pods: list[str]
    allowed: list[str]
    scores: dict[str, int] | UnsetType = UNSET
    refused: list[NodeRefusal]
    unknown: list[str] | UnsetType = UNSET


def place(pod_class: PodClass, pods: Sequence[str], volumes: VolumeNodes, audit: Audit) -> Placing:
    """Return the nodes where the next pod of a class may go.

    Args:
        pod_class: The class of the pod.
        pods: The names of the present pods of the class.
        volumes: The nodes that the pod's volumes refuse.
        audit: The cluster.
    """
    if failure := _failure(pod_class, required=True):
        nodes = [node.metadata.name for node in audit.nodes.nodes]
        refusal = NodeRefusal(filter=failure[0], reason=failure[1], nodes=nodes)
        return Placing(pods=list(pods), allowed=[], refused=[refusal])
    repelled = audit.affinity.refusals(pod_class)
    answers = NodeAnswers(pod_class, audit, audit.evaluator.of(pod_class).hard, repelled, volumes)
    allowed: list[str] = []
    nodes_by_refusal: dict[_Refusal, list[Node]] = {}
    for node in audit.nodes.nodes:
        first_refusal = answers.first_refusal(node.metadata.name)
        if first_refusal is None:
            allowed.append(node.metadata.name)
        else:
            nodes_by_refusal.setdefault(_refusal(first_refusal, node), []).append(node)
    refused = [refusal.of(nodes) for refusal, nodes in nodes_by_refusal.items()]
    if len(allowed) > 1 and (failure := _failure(pod_class, required=False)):
        refused.append(NodeRefusal(filter=failure[0], reason=failure[1], nodes=allowed))
        allowed = []
    return Placing(
        pods=list(pods),
        allowed=allowed,
        scores=(rank(pod_class, allowed, audit) if len(allowed) > 1 else {}) or UNSET,
        refused=sorted(refused, key=lambda refusal: (ORDER.index(refusal.filter), refusal.reason)),
        unknown=_unknown(repelled, volumes, audit) or UNSET,
    )


def rank(pod_class: PodClass, feasible: Iterable[str], audit: Audit) -> dict[str, int]:
    """Map the names of ``feasible`` nodes to scores from 0 to 100; empty for pods without counted soft constraints.

    The scheduler adds this score, with the plugin's weight, to the scores of its other plugins. It ranks the nodes
    that passed its filters, in clusters of more than 100 nodes a sample of them, and does not rank a single node.
    """
    soft = [
        SoftConstraint(
            spread.constraint,
            spread.domains,
            audit.evaluator.census.matching(pod_class.namespace, spread.constraint.selector),
        )
        for spread in audit.evaluator.of(pod_class).spreads
        if spread is not None and not spread.constraint.hard
    ]
    names = set(feasible)
    nodes = [node for node in audit.nodes.nodes if node.metadata.name in names]
    lenient = any(constraint.constraint.lenient for constraint in soft)
    return scores(soft, nodes, all_keys=not lenient)


def _failure(pod_class: PodClass, *, required: bool) -> tuple[str, str] | None:
    """Return the plugin that fails on a selector of the pods that it cannot parse, and the reason; None if none does.

    Hard constraints and all affinity terms fail the attempt before the scheduler looks at a node; soft constraints
    fail it only if there is more than one node to choose from.

    Source: kubernetes v1.37.1 pkg/scheduler/schedule_one.go, schedulePod, and the PreFilter and PreScore of
    podtopologyspread and interpodaffinity.
    """
    for term in pod_class.terms:
        soft = term.spread and not term.required
        respected = not term.spread or (
            pod_class.profile is not None and pod_class.profile.respects(hard=term.required)
        )
        if soft is not required and respected and (error := term.parse_error):
            selector = f"{error[0]} of {term.path.moved(POD_SPEC, FieldPath())}"
            fails = "fails before it looks at a node" if required else "fails to choose a node"
            reason = f"{selector} cannot be parsed, so the scheduler {fails}"
            return (_SPREAD if term.spread else _POD_AFFINITY), reason
    return None


def parses(pod_class: PodClass) -> bool:
    """Tell whether every selector of a class can be parsed; if not, the API refuses new pods of the class."""
    return all(term.parse_error is None for term in pod_class.terms)


def _unknown(repelled: Mapping[str, AffinityAnswer] | None, volumes: VolumeNodes, audit: Audit) -> list[str]:
    """Return the questions that cannot be answered because something was not read."""
    unknown = [volumes.unknown] if volumes.unknown else []
    if repelled is None:
        unknown.append(affinity.UNKNOWN_NAMESPACES)
    return unknown if audit.snapshot.anti_affinity.everywhere else [*unknown, _UNREAD_NAMESPACES]


class _Refusal(NamedTuple):
    """The filter that refuses nodes, and the reason; ``key`` is the topology key if their domains belong to it."""

    filter: str
    reason: str
    key: str = ""

    def of(self, nodes: Sequence[Node]) -> NodeRefusal:
        """Return the refusal of some nodes, which names their domains."""
        reason = self.reason
        if self.key:
            values = sorted({node.metadata.labels[self.key] for node in nodes})
            own = values == sorted(node.metadata.name for node in nodes)
            there = "" if own else f" in {phrases.domains(self.key, values)}"
            reason = f"one more pod{there} would exceed maxSkew: {reason}"
        return NodeRefusal(filter=self.filter, reason=reason, nodes=[node.metadata.name for node in nodes])


def _refusal(refusal: FirstRefusal, node: Node) -> _Refusal:
    match refusal:
        case Obstacle():
            return _Refusal(FILTERS[refusal.cause], refusal.text)
        case Spread():
            key = refusal.constraint.topology_key
            value = node.metadata.labels.get(key)
            if value is None:
                return _Refusal(_SPREAD, f"no label {key}")
            return _Refusal(_SPREAD, formula(refusal, value), key)
        case _:
            return _Refusal(_POD_AFFINITY, AFFINITY_WORDS[refusal])


def formula(spread: Spread, value: str) -> str:
    """Return the Filter's comparison with its numbers, for one domain."""
    numbers = f"{spread.match_num.get(value, 0)} + {spread.self_match_num} - {spread.min_match_num}"
    sign = "<=" if spread.allows(value) else ">"
    return f"{numbers} = {spread.skew_with_one_more(value)} {sign} {spread.constraint.max_skew}"


_BETWEEN_KEYS: Final = " / "


class Step(model.Part, frozen=True, kw_only=True):
    """One more pod: the domains that would take it, the number of their nodes, and the domain that is assumed.

    A domain of several constraints is written as the values of their topology keys, in the constraints' order. The
    pod is assumed to use the domain with the fewest matching pods; if no node takes it, ``assumed`` is "".
    """

    allowed: list[str]
    nodes: int
    assumed: str


class NextPods(model.Part, frozen=True, kw_only=True):
    """The next pods of one group."""

    pods: list[str]
    topology_keys: list[str]
    steps: list[Step]


def succeeded(audit: Audit) -> list[tuple[EvaluatedGroup, list[PodRecord]]]:
    """Return the groups that the next pods may be like, each with its fresh pods.

    A controller creates pods of its newest revision, with the labels of its template. Without such fresh pods, the next
    pod may be like any other pod.
    """
    relabelled = {
        (row.namespace, member.pod.name) for row in audit.rows for member in row.members if member.verdict in RELABELLED
    }
    groups_by_workload: dict[ObjectRef, list[tuple[EvaluatedGroup, list[PodRecord]]]] = {}
    for group in audit.groups:
        unchanged = (pod for pod in group.pods if (pod.namespace, pod.name) not in relabelled)
        fresh = [pod for pod in unchanged if _is_fresh(pod, group, audit)]
        groups_by_workload.setdefault(group.workload, []).append((group, fresh))
    return [successor for groups in groups_by_workload.values() for successor in _freshest(groups)]


def placing(audit: Audit) -> list[Placing]:
    """Return the nodes where the next pods may go, without pods that the API would refuse because of a selector."""
    return [
        place(pods[0].pod_class, [pod.name for pod in pods], audit.volumes.of_next(pods[0]), audit)
        for group, pods in succeeded(audit)
        if group.evaluation.node_answers is not None and parses(pods[0].pod_class)
    ]


def _is_fresh(pod: PodRecord, group: EvaluatedGroup, audit: Audit) -> bool:
    """Tell whether the controller of a pod would give it the same labels now, as far as the template was read."""
    if pod.terminating:
        return False
    revisions, labels = audit.revisions.of(group.workload), pod.pod_class.labels
    if revisions and revision_of(labels) != revisions[-1]:
        return False
    chain = audit.snapshot.owner_chain(pod)
    return not chain or all(labels.get(key) == text for key, text in chain[0].template_labels.items())


def _freshest(groups: list[tuple[EvaluatedGroup, list[PodRecord]]]) -> Iterator[tuple[EvaluatedGroup, list[PodRecord]]]:
    """Yield the groups that have fresh pods; if there are none, yield all groups with all of their pods."""
    any_fresh = any(fresh for _, fresh in groups)
    for group, fresh in groups:
        if fresh or not any_fresh:
            yield group, fresh or group.pods


def next_pods(group: EvaluatedGroup, audit: Audit, number: int) -> NextPods | None:
    """Place ``number`` more pods of a group, one after another; None if the group has no counted constraint.

    Nodes are left out because of cordons, taints and node affinity, but not because of resources.
    """
    counted = [spread for spread in group.evaluation.spreads if spread is not None]
    if not counted or group.evaluation.node_answers is None:
        return None
    spreads = group.evaluation.hard or counted
    keys = [spread.constraint.topology_key for spread in spreads]
    usable = audit.nodes.usable(group.evaluation.pod_class.placement)
    nodes = {
        cell: schedulable
        for cell, nodes_of_cell in audit.nodes.cells(keys).items()
        if (schedulable := sum(usable[node.metadata.name].schedulable for node in nodes_of_cell))
    }
    steps = []
    for _ in range(number):
        allowed = {cell: nodes[cell] for cell in nodes if podtopologyspread.allow(spreads, cell)}
        if not allowed:
            steps.append(Step(allowed=[], nodes=0, assumed=""))
            break
        chosen = min(allowed, key=lambda cell: (sum(map(_pods_in, spreads, cell)), _cell_name(cell)))
        steps.append(_step(allowed, chosen))
        spreads = podtopologyspread.place(spreads, chosen)
    return NextPods(pods=[pod.name for pod in group.pods], topology_keys=keys, steps=steps)


def _step(allowed: Mapping[Cell, int], chosen: Cell) -> Step:
    names = sorted(_cell_name(cell) for cell in allowed)
    return Step(allowed=names, nodes=sum(allowed.values()), assumed=_cell_name(chosen))


def _cell_name(cell: Cell) -> str:
    """Return a cell as its values, in the order of the keys."""
    return _BETWEEN_KEYS.join("<none>" if domain is None else value(domain) for domain in cell)


def _pods_in(spread: Spread, domain: str | None) -> int:
    """Return a domain's matching pods; nodes without the key are the last choice, except for a system default."""
    if domain is not None:
        return spread.match_num.get(domain, 0)
    return spread.match_num.get(NO_VALUE, 0) if spread.constraint.lenient else spread.match_num.total + 1
