"""Eligible domains: which nodes count for a constraint of a pod, and which of them could the pod use?

Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/podtopologyspread/filtering.go, calPreFilterState.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec

from kubectl_spread.kube.api import labelindex
from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.types import Affinity, Node, NodeInclusionPolicy, Toleration
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.scheduler import nodeaffinity
from kubectl_spread.kube.scheduler.nodeindex import NodeLabels, NodeTaints
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import Constraint

NO_VALUE: Final = ""
"""The domain of nodes that lack the topology key of one of the system's default constraints."""


_FEW_OF: Final = 4
"""If less than one of so many nodes is not eligible, domains are those of all nodes less a few."""


Cell: TypeAlias = tuple[str | None, ...]
"""A node's values for the topology keys of some constraints, in their order; None where it lacks one."""


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
