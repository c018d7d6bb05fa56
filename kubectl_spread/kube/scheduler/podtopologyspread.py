"""Spread counting: how many matching pods does each domain hold, and where may one more go?

Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/podtopologyspread, calPreFilterState, Filter and
countPodsMatchSelector.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace as replace_field

from kubectl_spread.kube.api import labelindex
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.types import (
    Affinity,
    LabelSelector,
    LabelSelectorRequirement,
    Node,
    Toleration,
    TopologySpreadConstraint,
)
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.scheduler import nodeaffinity
from kubectl_spread.kube.scheduler.nodeindex import NodeLabels, NodeTaints

NO_VALUE: Final = ""
"""The domain of nodes that lack the topology key of one of the system's default constraints."""
_FEW_OF: Final = 4
"""If less than one of so many nodes is not eligible, domains are those of all nodes less a few."""


Cell: TypeAlias = tuple[str | None, ...]
"""A node's values for the topology keys of some constraints, in their order; None where it lacks one."""


class WhenUnsatisfiable(StrEnum):
    """What the scheduler does with a node that a constraint does not allow."""

    DO_NOT_SCHEDULE = "DoNotSchedule"
    SCHEDULE_ANYWAY = "ScheduleAnyway"


class NodeInclusionPolicy(StrEnum):
    """Whether nodes that a pod could not use count."""

    HONOR = "Honor"
    IGNORE = "Ignore"


class Placement(msgspec.Struct, frozen=True):
    """What decides which nodes a pod could use: nodeSelector, required node affinity, tolerations."""

    node_selector: Labels
    affinity: Affinity | None
    tolerations: tuple[Toleration, ...]

    def restricts(self, constraint: Constraint) -> bool:
        """Tell whether ``constraint`` counts fewer than all nodes for such a pod, whatever the nodes are."""
        chooses = bool(self.node_selector) or nodeaffinity.required(self.affinity) is not None
        return (chooses and constraint.node_affinity_policy is NodeInclusionPolicy.HONOR) or (
            constraint.node_taints_policy is NodeInclusionPolicy.HONOR
        )


class Constraint(msgspec.Struct, frozen=True):
    """A spread constraint as the scheduler works with it: effective selector, every default filled in.

    Attributes:
        counts: Whether the scheduler counts any pod for the selector.
        lenient: Whether this is one of the system's defaults, for which a node may lack a topology key.
    """

    topology_key: str
    hard: bool
    max_skew: int
    min_domains: int
    node_affinity_policy: NodeInclusionPolicy
    node_taints_policy: NodeInclusionPolicy
    selector: LabelSelector | None
    counts: bool = True
    lenient: bool = False

    def minimum(self, least: int, domains: int) -> int:
        """Return the global minimum over so many eligible ``domains``, the emptiest of which has ``least`` pods.

        Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/podtopologyspread/filtering.go, minMatchNum.
        """
        return least if domains >= self.min_domains else 0

    def limit(self, minimum: int) -> int:
        """Return how many matching pods a domain may have once a pod has been placed there."""
        return minimum + self.max_skew


class Domains(msgspec.Struct, frozen=True):
    """The eligible domains of one constraint: topology value to number of nodes, and each eligible node's value.

    ``all_but`` holds the domains of all nodes, and the value of each node that is not eligible, where these are few.
    """

    nodes: Mapping[str, int]
    value_of: Mapping[str, str]
    all_but: tuple[Domains, Mapping[str, str]] | None = None


class _AllBut(Mapping[str, str]):
    """A mapping without some of its keys, so that many such mappings share one."""

    def __init__(self, everything: Mapping[str, str], left_out: Mapping[str, str]) -> None:
        self._everything = everything
        self._left_out = left_out

    def __getitem__(self, key: str) -> str:
        if key in self._left_out:
            raise KeyError(key)
        return self._everything[key]

    def __iter__(self) -> Iterator[str]:
        return (key for key in self._everything if key not in self._left_out)

    def __len__(self) -> int:
        return len(self._everything) - len(self._left_out)


class _Fewer(Mapping[str, int]):
    """Numbers less others, so that many such mappings share one; there is none that is 0."""

    def __init__(self, numbers: Mapping[str, int], less: Mapping[str, int]) -> None:
        self._numbers = numbers
        self._less = less
        self._gone = frozenset(key for key, number in less.items() if number == numbers[key])

    def __getitem__(self, key: str) -> int:
        if key in self._gone or key not in self._numbers:
            # The numbers may be a Counter, in which a key that is missing is 0.
            raise KeyError(key)
        return self._numbers[key] - self._less.get(key, 0)

    def __iter__(self) -> Iterator[str]:
        return (key for key in self._numbers if key not in self._gone)

    def __len__(self) -> int:
        return len(self._numbers) - len(self._gone)


class MatchNum(Mapping[str, int]):
    """Every eligible domain's number of matching pods, by its topology value.

    Of domains that hold none only the number matters: hosts are many and a workload is on few of them.
    """

    def __init__(self, domains: Mapping[str, object], occupied: Mapping[str, int]) -> None:
        """Take all eligible ``domains``, and the counts of those that hold pods."""
        self._domains = domains
        self._occupied = occupied

    def __getitem__(self, value: str) -> int:
        """Return the count of an eligible domain."""
        number = self._occupied.get(value, 0)
        if not number and value not in self._domains:
            raise KeyError(value)
        return number

    def __iter__(self) -> Iterator[str]:
        """Yield all eligible domains."""
        return iter(self._domains)

    def __len__(self) -> int:
        """Return the number of eligible domains."""
        return len(self._domains)

    @property
    def occupied(self) -> Mapping[str, int]:
        """The counts of the domains that hold pods."""
        return self._occupied

    @property
    def empty(self) -> int:
        """The number of domains that hold no pod."""
        return len(self._domains) - len(self._occupied)

    @cached_property
    def most(self) -> int:
        """The count of the fullest domain; 0 without domains."""
        return max(self._distinct(), default=0)

    @cached_property
    def least(self) -> int:
        """The count of the emptiest domain; 0 without domains."""
        return min(self._distinct(), default=0)

    def _distinct(self) -> set[int]:
        return {*self._occupied.values(), *((0,) if self.empty else ())}

    @property
    def total(self) -> int:
        """The number of pods in all domains."""
        return sum(self._occupied.values())

    def changed(self, change: Mapping[str, int]) -> MatchNum:
        """Return the counts with so many more (or, if negative, fewer) pods in the eligible ones of some domains."""
        counts = {value: self[value] + number for value, number in change.items() if value in self._domains}
        occupied = {**self._occupied, **counts}
        return MatchNum(self._domains, {value: number for value, number in occupied.items() if number})


class Spread(msgspec.Struct, frozen=True):
    """The count of one constraint, in pods."""

    constraint: Constraint
    domains: Domains
    match_num: MatchNum
    self_match_num: int

    @property
    def min_match_num(self) -> int:
        """The global minimum: that of all domains, and 0 while fewer domains than minDomains are eligible."""
        return self.constraint.minimum(self.match_num.least, len(self.match_num))

    @property
    def short_of_domains(self) -> bool:
        """Whether fewer domains are eligible than minDomains asks for."""
        return len(self.match_num) < self.constraint.min_domains

    @property
    def skew(self) -> int:
        """The largest skew of any eligible domain; 0 without one."""
        return self.match_num.most - self.min_match_num if self.match_num else 0

    @property
    def exceeds_max_skew(self) -> bool:
        """Whether the skew is above maxSkew."""
        return self.skew > self.constraint.max_skew

    def changed(self, change: Mapping[str, int]) -> Spread:
        """Return the count with so many more (or, if negative, fewer) matching pods in some domains."""
        return msgspec.structs.replace(self, match_num=self.match_num.changed(change))

    def without(self, pods: Mapping[str, int]) -> Spread:
        """Return the count with so many fewer matching pods in some domains."""
        return self.changed({value: -number for value, number in pods.items()})

    def with_domains(self, pods: Mapping[str, int]) -> Spread:
        """Return the count with so many more matching pods, as if all domains of ``pods`` were eligible."""
        match_num = MatchNum({**dict.fromkeys(self.match_num), **pods}, self.match_num.occupied)
        return msgspec.structs.replace(self, match_num=match_num.changed(pods))

    def placed(self, topology_value: str | None, pods: int = 1) -> Spread:
        """Return the count after ``pods`` such pods were placed on nodes with a value; if negative, were removed.

        None: these nodes lack the topology key. The system's default constraints count them as a domain.
        """
        if topology_value is None and self.constraint.lenient:
            topology_value = NO_VALUE
        if topology_value is None or not self.constraint.counts:
            return self
        return self.changed({topology_value: pods * self.self_match_num})

    def skew_of(self, topology_value: str) -> int:
        """Return how many pods a domain holds above the global minimum."""
        return self.match_num.get(topology_value, 0) - self.min_match_num

    def skew_with_one_more(self, topology_value: str) -> int:
        """Return what the Filter compares with maxSkew: matchNum + selfMatchNum - minMatchNum."""
        return self.skew_of(topology_value) + self.self_match_num

    def allows(self, topology_value: str | None) -> bool:
        """Tell whether one more such pod may go to nodes with a value; None: they lack the topology key."""
        if not self.constraint.hard:
            return True
        return topology_value is not None and self.skew_with_one_more(topology_value) <= self.constraint.max_skew

    def frees(self, before: Spread) -> bool:
        """Tell whether a domain is allowed that was blocked ``before``."""
        return any(self.allows(value) and not before.allows(value) for value in self.match_num)

    @property
    def allows_all(self) -> bool:
        """Whether one more such pod may go to any eligible domain."""
        return not self.constraint.hard or self.skew + self.self_match_num <= self.constraint.max_skew


def effective_selector(
    selector: LabelSelector | None, match_label_keys: Iterable[str], labels: Labels
) -> LabelSelector | None:
    """Return ``selector`` and the pod's current values of ``match_label_keys``, each requirement once; None stays None.

    Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/podtopologyspread/common.go, mergeLabelSetWithSelector.
    """
    if selector is None:
        return None
    current = tuple(
        LabelSelectorRequirement(key=key, operator="In", values=(labels[key],))
        for key in match_label_keys
        if key in labels
    )
    seen = {
        LabelSelectorRequirement(key=key, operator="In", values=(value,))
        for key, value in selector.match_labels.items()
    }
    distinct = dict.fromkeys((*selector.match_expressions, *current))
    expressions = tuple(requirement for requirement in distinct if requirement not in seen)
    if expressions == selector.match_expressions:
        return selector
    return replace_field(selector, match_expressions=expressions)


def working_constraint(
    constraint: TopologySpreadConstraint, selector: LabelSelector | None, behaviour: Behaviour, *, lenient: bool = False
) -> Constraint:
    """Return the scheduler's view of an API constraint whose effective selector is ``selector``."""
    hard = constraint.when_unsatisfiable == WhenUnsatisfiable.DO_NOT_SCHEDULE
    policies = behaviour.node_inclusion_policies
    honors_affinity = not policies or constraint.node_affinity_policy == NodeInclusionPolicy.HONOR
    honors_taints = policies and constraint.node_taints_policy == NodeInclusionPolicy.HONOR
    min_domains = constraint.min_domains if behaviour.min_domains and hard else None
    return Constraint(
        topology_key=constraint.topology_key,
        hard=hard,
        max_skew=constraint.max_skew,
        min_domains=1 if min_domains is None else min_domains,
        node_affinity_policy=NodeInclusionPolicy.HONOR if honors_affinity else NodeInclusionPolicy.IGNORE,
        node_taints_policy=NodeInclusionPolicy.HONOR if honors_taints else NodeInclusionPolicy.IGNORE,
        selector=selector,
        counts=not counts_nothing(selector, behaviour),
        lenient=lenient,
    )


class Usability(NamedTuple):
    """What a pod may make of a node, before spread: node affinity fits, taints are tolerated, it is not cordoned."""

    fits: bool
    tolerated: bool
    open: bool

    @property
    def schedulable(self) -> bool:
        """Whether the scheduler may place the pod there at all."""
        return self.fits and self.tolerated and self.open


class UsableNodes(Mapping[str, Usability]):
    """What a pod may make of each node, by the node's name; placements that nodes cannot tell apart share one."""

    def __init__(self, numbers: Mapping[str, int], fits: int, tolerated: int, passing: int) -> None:
        """Take the numbers of the nodes, and bitmaps of them."""
        self._numbers = numbers
        self.fits = fits
        self.tolerated = tolerated
        self._open = passing

    def __getitem__(self, name: str) -> Usability:
        """Return what the pod may make of one node."""
        number = self._numbers[name]
        return Usability(
            bool(self.fits >> number & 1), bool(self.tolerated >> number & 1), bool(self._open >> number & 1)
        )

    def __iter__(self) -> Iterator[str]:
        """Yield the names of all nodes."""
        return iter(self._numbers)

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self._numbers)


class NodeSets:
    """The nodes of a cluster; eligible domains are found once for each distinct set of nodes."""

    def __init__(self, nodes: Iterable[Node], behaviour: Behaviour) -> None:
        """Take the nodes in any order; ``behaviour`` says how taints are read."""
        self.nodes = tuple(sorted(nodes, key=lambda node: node.metadata.name))
        self._numbers = {node.metadata.name: number for number, node in enumerate(self.nodes)}
        self._index = NodeLabels(self.nodes)
        self._taints = NodeTaints(self.nodes, behaviour)
        self._domains: dict[tuple[str, int], Domains] = {}
        self._lacking: dict[str, tuple[str, ...]] = {}
        self._cells: dict[tuple[str, ...], dict[Cell, list[Node]]] = {}
        self._placements: dict[bytes, UsableNodes] = {}
        self._outcomes: dict[object, UsableNodes] = {}

    def usable(self, placement: Placement) -> UsableNodes:
        """Map each node's name to what a pod may make of it."""
        key = msgspec.json.encode(
            (placement.node_selector, nodeaffinity.required(placement.affinity), placement.tolerations),
            order="deterministic",
        )
        if key not in self._placements:
            fits = self._index.fitting(placement.node_selector, placement.affinity)
            tolerated, first = self._taints.tolerated(placement.tolerations)
            passing = self._taints.passing(placement.tolerations)
            self._placements[key] = self._outcomes.setdefault(
                (fits, tolerated, first, passing), UsableNodes(self._numbers, fits, tolerated, passing)
            )
        return self._placements[key]

    def carrying(self, keys: Iterable[str]) -> int:
        """Return the nodes that have all of some labels, as a bitmap."""
        return self._index.carrying(keys)

    def domains(self, constraint: Constraint, keys: Iterable[str], placement: Placement) -> Domains:
        """Return the eligible domains of ``constraint``.

        A node that lacks any of ``keys``, the topology keys of all the pod's constraints with the same
        whenUnsatisfiable, is in none of them.
        """
        return self.eligible_domains(constraint, self.carrying(keys), self.usable(placement))

    def eligible_domains(self, constraint: Constraint, carrying: int, usable: UsableNodes) -> Domains:
        """Return the eligible domains of ``constraint`` among the nodes of a bitmap, which have its topology key."""
        eligible = carrying
        if constraint.node_affinity_policy is NodeInclusionPolicy.HONOR:
            eligible &= usable.fits
        if constraint.node_taints_policy is NodeInclusionPolicy.HONOR:
            eligible &= usable.tolerated
        question = (constraint.topology_key, eligible)
        if question not in self._domains:
            self._domains[question] = self._domains_of(constraint.topology_key, eligible)
        return self._domains[question]

    def _domains_of(self, key: str, eligible: int) -> Domains:
        having = self._index.carrying([key])
        everywhere = self._domains.get((key, having))
        if everywhere is None:
            value_of = self._values_of(key, having)
            everywhere = self._domains[key, having] = Domains(nodes=Counter(value_of.values()), value_of=value_of)
        if eligible == having:
            return everywhere
        left_out = having & ~eligible
        if _FEW_OF * left_out.bit_count() > having.bit_count():
            value_of = self._values_of(key, eligible)
            return Domains(nodes=Counter(value_of.values()), value_of=value_of)
        lost = self._values_of(key, left_out)
        return Domains(
            nodes=_Fewer(everywhere.nodes, Counter(lost.values())),
            value_of=_AllBut(everywhere.value_of, lost),
            all_but=(everywhere, lost),
        )

    def _values_of(self, key: str, nodes: int) -> dict[str, str]:
        listed = (self.nodes[number].metadata for number in labelindex.numbers(nodes))
        return {metadata.name: metadata.labels[key] for metadata in listed}

    def labels_of(self, name: str) -> Labels:
        """Return the labels of a node."""
        return self.nodes[self._numbers[name]].metadata.labels

    def lacking(self, key: str) -> tuple[str, ...]:
        """Return the names of the nodes without a label."""
        if key not in self._lacking:
            lacking = (node.metadata for node in self.nodes if key not in node.metadata.labels)
            self._lacking[key] = tuple(metadata.name for metadata in lacking)
        return self._lacking[key]

    def cells(self, keys: Sequence[str]) -> Mapping[Cell, Sequence[Node]]:
        """Map each combination of the nodes' values for ``keys`` (None: no such label) to its nodes."""
        topology_keys = tuple(keys)
        if topology_keys not in self._cells:
            cells = self._cells[topology_keys] = {}
            for node in self.nodes:
                cells.setdefault(tuple(node.metadata.labels.get(key) for key in topology_keys), []).append(node)
        return self._cells[topology_keys]


def count(
    constraint: Constraint,
    domains: Domains,
    matching: Mapping[str, int],
    labels: Labels,
) -> Spread:
    """Count matching pods per eligible domain.

    Args:
        constraint: The constraint to count for.
        domains: Its eligible domains.
        matching: Maps a node's name to its number of pods that match the constraint's selector.
        labels: The incoming pod's own labels, for selfMatchNum.
    """
    return Spread(
        constraint=constraint,
        domains=domains,
        match_num=pods_per_domain(domains, matching),
        self_match_num=int(labelselectors.matches(constraint.selector, labels)),
    )


def pods_per_domain(domains: Domains, matching: Mapping[str, int]) -> MatchNum:
    """Count matching pods per eligible domain; ``matching`` maps a node's name to its number of them."""
    occupied: dict[str, int] = {}
    value_of = domains.value_of
    if len(value_of) < len(matching):
        matching = {node: matching[node] for node in value_of if node in matching}
    for node, number in matching.items():
        value = value_of.get(node)
        if value is not None:
            occupied[value] = occupied.get(value, 0) + number
    return MatchNum(domains.nodes, occupied)


def counts_nothing(selector: LabelSelector | None, behaviour: Behaviour) -> bool:
    """Tell whether the scheduler counts no pod at all for ``selector``: None, or empty where it takes the shortcut."""
    if selector is None:
        return True
    return behaviour.empty_selector_counts_nothing and labelselectors.is_empty(selector)


def allow(spreads: Iterable[Spread], values: Iterable[str | None]) -> bool:
    """Tell whether one more such pod may go to nodes with these ``values`` for the constraints' topology keys."""
    return all(spread.allows(value) for spread, value in zip(spreads, values, strict=True))


def place(spreads: Iterable[Spread], values: Iterable[str | None], pods: int = 1) -> list[Spread]:
    """Return the counts after ``pods`` such pods were placed on nodes with these ``values``, or removed from there."""
    return [spread.placed(value, pods) for spread, value in zip(spreads, values, strict=True)]


class FilterAnswer(StrEnum):
    """The Filter's answer for one node."""

    FEASIBLE = "feasible"
    NOT_MATCHING = "not matching"
    MISSING_LABEL = "missing label"


class FilterResult(msgspec.Struct, frozen=True):
    """The Filter's answer over all nodes, in nodes: feasible, not matching the skew, lacking a topology key."""

    total: int
    feasible: int
    not_matching: int
    missing_label: int


def filter_nodes(spreads: Sequence[Spread], nodes: NodeSets) -> FilterResult:
    """Filter all nodes by the pod's hard constraints, in the pod's order; a node's first failure decides."""
    hard = [spread for spread in spreads if spread.constraint.hard]
    answers: Counter[FilterAnswer] = Counter()
    for values, alike in nodes.cells([spread.constraint.topology_key for spread in hard]).items():
        answers[filter_node(hard, values)] += len(alike)
    return FilterResult(
        total=len(nodes.nodes),
        feasible=answers[FilterAnswer.FEASIBLE],
        not_matching=answers[FilterAnswer.NOT_MATCHING],
        missing_label=answers[FilterAnswer.MISSING_LABEL],
    )


def let_in(spreads: Sequence[Spread], nodes: NodeSets) -> Iterator[Node]:
    """Yield the nodes that pass all of the pod's hard constraints."""
    hard = [spread for spread in spreads if spread.constraint.hard]
    for values, alike in nodes.cells([spread.constraint.topology_key for spread in hard]).items():
        if filter_node(hard, values) is FilterAnswer.FEASIBLE:
            yield from alike


def filter_node(hard: Sequence[Spread], values: Sequence[str | None]) -> FilterAnswer:
    """Filter a node by its ``values`` for the topology keys of the pod's hard constraints, in the pod's order."""
    for spread, value in zip(hard, values, strict=True):
        if value is None:
            return FilterAnswer.MISSING_LABEL
        if not spread.allows(value):
            return FilterAnswer.NOT_MATCHING
    return FilterAnswer.FEASIBLE
