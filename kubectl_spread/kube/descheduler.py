"""How does the descheduler count, by which rules does that differ from the scheduler, and which pods does it evict?

Source: sigs.k8s.io/descheduler v0.36.0, with the defaults of its policy: pkg/framework/plugins/defaultevictor, Filter;
pkg/framework/plugins/removepodsviolatingtopologyspreadconstraint, Balance, newTopologySpreadConstraint and
topologyIsBalanced; pkg/descheduler/pod, ListPodsOnNodes; pkg/descheduler/node, IsReady.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final, Self

import msgspec

from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.types import READY, LabelSelector, Node, TopologySpreadConstraint, WhenUnsatisfiable
from kubectl_spread.kube.features import NEWEST_MINOR, Behaviour, behaviour, gates
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import (
    counts_nothing,
    effective_selector,
    working_constraint,
)
from kubectl_spread.kube.scheduler.podtopologyspread.domains import Domains, NodeSets, Placement
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread, count_pods

_EVICT: Final = "descheduler.alpha.kubernetes.io/evict"
_MIRROR: Final = "kubernetes.io/config.mirror"
_SOURCE: Final = "kubernetes.io/config.source"
_SYSTEM_CRITICAL: Final = 2_000_000_000
_LOCAL_STORAGE: Final = frozenset({"emptyDir", "hostPath"})


class Explained(StrEnum):
    """An enum of stable words, each with a short English clause."""

    clause: str

    def __new__(cls, word: str, clause: str) -> Self:
        """Keep the clause next to the word, which is the value."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.clause = clause
        return member


class EvictionObstacle(Explained):
    """A reason why the default evictor does not evict a pod; the clauses are about the pod."""

    MIRROR = "mirror", "it is the mirror of a static pod"
    STATIC = "static", "it is a static pod"
    TERMINATING = "terminating", "it is being deleted"
    SYSTEM_CRITICAL = "system-critical", "its priority is system-critical"
    NO_OWNER = "no-owner", "nothing owns it"
    LOCAL_STORAGE = "local-storage", "it has an emptyDir or hostPath volume"
    DAEMON_SET = "daemonset", "a DaemonSet owns it"


class Evictee(msgspec.Struct, frozen=True):
    """The fields of a pod that the default evictor reads.

    Attributes:
        owner_kinds: The kinds in ownerReferences.
        annotations: The annotations.
        priority: The number that the API server resolved.
        volume_kinds: The kinds of the volumes as in the API, such as ``emptyDir``.
        terminating: Whether the pod has a deletion timestamp.
    """

    owner_kinds: Collection[str]
    annotations: Mapping[str, str]
    priority: int | None
    volume_kinds: Collection[str]
    terminating: bool


def obstacles(pod: Evictee) -> tuple[EvictionObstacle, ...]:
    """Return the reasons why the default evictor does not evict a pod.

    By default, PersistentVolumeClaims, resource claims and a missing PodDisruptionBudget are not obstacles.
    """
    if _EVICT in pod.annotations:
        return ()
    by_obstacle = {
        EvictionObstacle.MIRROR: _MIRROR in pod.annotations,
        EvictionObstacle.STATIC: pod.annotations.get(_SOURCE, "api") != "api",
        EvictionObstacle.TERMINATING: pod.terminating,
        EvictionObstacle.SYSTEM_CRITICAL: pod.priority is not None and pod.priority >= _SYSTEM_CRITICAL,
        EvictionObstacle.NO_OWNER: not pod.owner_kinds,
        EvictionObstacle.LOCAL_STORAGE: not _LOCAL_STORAGE.isdisjoint(pod.volume_kinds),
        EvictionObstacle.DAEMON_SET: "DaemonSet" in pod.owner_kinds,
    }
    return tuple(obstacle for obstacle, applies in by_obstacle.items() if applies)


_FINISHED: Final = frozenset({"Succeeded", "Failed"})
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


class CountingRule(Explained):
    """A counting rule of the descheduler that the scheduler does not have; the clauses are about the descheduler."""

    SOFT = "soft-constraints-not-looked-at", "it looks at DoNotSchedule constraints only"
    GATES = "feature-gates-not-known", "it always reads matchLabelKeys, node policies and Lt and Gt tolerations"
    MIN_DOMAINS = "minDomains-ignored", "it does not read minDomains"
    OWN_KEY = "only-own-topology-key-needed", "a node needs no topology keys of the pod's other constraints"
    EXCLUDED_NODES = "pods-on-excluded-nodes-count", "it counts pods on nodes that the node policies leave out"
    EMPTY_SELECTOR = "empty-selector-matches-all", "an empty selector selects all pods; the scheduler counts none"
    READY_NODES = "not-ready-nodes-out", "it leaves out nodes that are not ready, and their pods"
    EVICTABLE_PODS = "only-evictable-pods-count", "it counts only pods that it could evict"


# A rule is left out if the others explain the same count, so the rarest rules come first.
_COUNTING: Final = tuple(rule for rule in CountingRule if rule is not CountingRule.SOFT)
_SCHEDULER: Final[Behaviour] = behaviour(NEWEST_MINOR, gates(NEWEST_MINOR, {}))


def is_ready(node: Node) -> bool:
    """Tell whether the descheduler reads a node; a node without the condition ``Ready`` is read."""
    return all(condition.status == "True" for condition in node.status.conditions if condition.type == READY)


class PodGroup(msgspec.Struct, frozen=True):
    """A pod that may count, or ``number`` equal pods; ``node`` is "" while pending."""

    namespace: str
    labels: Labels
    node: str
    evictable: bool
    terminating: bool = False
    phase: str = "Running"
    number: int = 1


class Bearer(msgspec.Struct, frozen=True):
    """The parts of a pod with spread constraints that decide what they count."""

    namespace: str
    labels: Labels
    placement: Placement
    constraints: tuple[TopologySpreadConstraint, ...]


class PodCounts:
    """The nodes and pods of a cluster; equal pods are counted together, and eligible nodes are computed once."""

    def __init__(self, nodes: Iterable[Node], pods: Iterable[PodGroup]) -> None:
        self._nodes = tuple(nodes)
        self._ready = frozenset(node.metadata.name for node in self._nodes if is_ready(node))
        self._sets: dict[tuple[bool, bool], NodeSets] = {}
        self._pods: dict[str, dict[bytes, tuple[PodGroup, Counter[str]]]] = {}
        for pod in pods:
            if pod.node and not pod.terminating and pod.phase not in _FINISHED:
                groups = self._pods.setdefault(pod.namespace, {})
                key = _ENCODER.encode((pod.evictable, pod.labels))
                groups.setdefault(key, (pod, Counter()))[1][pod.node] += pod.number

    def lists(self, pod: PodGroup) -> bool:
        """Tell whether the descheduler lists ``pod``, and so reads its constraints."""
        return pod.evictable and pod.phase not in _FINISHED and pod.node in self._ready

    def node_sets(self, served: Behaviour, *, ready_only: bool) -> NodeSets:
        """Return all nodes, or the ready ones only."""
        key = (ready_only, served.toleration_comparison)
        if key not in self._sets:
            nodes = (node for node in self._nodes if not ready_only or node.metadata.name in self._ready)
            self._sets[key] = NodeSets(nodes, served)
        return self._sets[key]

    def matching(self, namespace: str, selector: LabelSelector | None, *, evictable_only: bool) -> Mapping[str, int]:
        """Map a node's name to its number of pods in ``namespace`` that ``selector`` selects."""
        numbers: Counter[str] = Counter()
        for pod, per_node in self._pods.get(namespace, {}).values():
            if (pod.evictable or not evictable_only) and labelselectors.matches(selector, pod.labels):
                numbers.update(per_node)
        return numbers


def looks_at(constraint: TopologySpreadConstraint) -> bool:
    """Tell whether the descheduler counts such a constraint by default, on a pod that it lists."""
    return constraint.when_unsatisfiable == WhenUnsatisfiable.DO_NOT_SCHEDULE


def count(constraint: TopologySpreadConstraint, bearer: Bearer, cluster: PodCounts) -> Spread:
    """Count as the descheduler does: the pods that it could evict on ready nodes.

    A domain is a value that an eligible ready node or a counted pod's node has. No gate or minor changes the count.
    """
    return _count(constraint, bearer, cluster, _SCHEDULER, _COUNTING)


def differences(
    constraint: TopologySpreadConstraint, bearer: Bearer, cluster: PodCounts, served: Behaviour
) -> tuple[CountingRule, ...]:
    """Return the fewest rules that turn the scheduler's count of a constraint into the descheduler's.

    Counts are equal if all of their domains and their minimum are. No rule of the answer can be left out.

    Args:
        constraint: One of the bearer's constraints.
        bearer: The pod that has it.
        cluster: The nodes and pods.
        served: The behaviour of this cluster's scheduler.
    """
    if not looks_at(constraint):
        return (CountingRule.SOFT,)

    def outcome(rules: Sequence[CountingRule]) -> tuple[Mapping[str, int], int]:
        spread = _count(constraint, bearer, cluster, served, rules)
        return spread.match_num, spread.min_match_num

    descheduler = outcome(_COUNTING)
    if outcome(()) == descheduler:
        return ()
    needed = _COUNTING
    for left_out in _COUNTING:
        fewer = tuple(rule for rule in needed if rule is not left_out)
        needed = fewer if outcome(fewer) == descheduler else needed
    return needed


def _count(
    constraint: TopologySpreadConstraint,
    bearer: Bearer,
    cluster: PodCounts,
    served: Behaviour,
    rules: Sequence[CountingRule],
) -> Spread:
    """Count by the scheduler's rules, except for ``rules`` of the descheduler."""
    served = _with_rules(served, rules)
    added = constraint.match_label_keys if served.scheduler_adds_match_label_keys else ()
    selector = effective_selector(constraint.label_selector, added, bearer.labels)
    working = working_constraint(constraint, selector, served)
    nodes = cluster.node_sets(served, ready_only=CountingRule.READY_NODES in rules)
    keys = _keys(constraint, bearer, rules)
    domains = nodes.eligible_domains(working, nodes.carrying(keys), nodes.usable(bearer.placement))
    matching: Mapping[str, int] = {}
    if not counts_nothing(selector, served):
        matching = cluster.matching(bearer.namespace, selector, evictable_only=CountingRule.EVICTABLE_PODS in rules)
    if CountingRule.EXCLUDED_NODES in rules:
        domains = _with_occupied(domains, nodes, keys, constraint.topology_key, matching)
    return count_pods(working, domains, matching, bearer.labels)


def _with_rules(served: Behaviour, rules: Collection[CountingRule]) -> Behaviour:
    if CountingRule.GATES in rules:
        served = msgspec.structs.replace(
            served, scheduler_adds_match_label_keys=True, node_inclusion_policies=True, toleration_comparison=True
        )
    return msgspec.structs.replace(
        served,
        min_domains=served.min_domains and CountingRule.MIN_DOMAINS not in rules,
        empty_selector_counts_nothing=served.empty_selector_counts_nothing and CountingRule.EMPTY_SELECTOR not in rules,
    )


def _keys(constraint: TopologySpreadConstraint, bearer: Bearer, rules: Collection[CountingRule]) -> tuple[str, ...]:
    if CountingRule.OWN_KEY in rules:
        return (constraint.topology_key,)
    action = constraint.when_unsatisfiable
    return tuple(each.topology_key for each in bearer.constraints if each.when_unsatisfiable == action)


def _with_occupied(
    domains: Domains, nodes: NodeSets, keys: Sequence[str], key: str, matching: Mapping[str, int]
) -> Domains:
    value_of = dict(domains.value_of)
    for node in nodes.nodes:
        labels = node.metadata.labels
        if node.metadata.name in matching and all(topology_key in labels for topology_key in keys):
            value_of[node.metadata.name] = labels[key]
    return Domains(nodes=Counter(value_of.values()), value_of=value_of)
