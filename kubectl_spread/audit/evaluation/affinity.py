"""Affinity: which nodes do required pod affinity and anti-affinity leave to a pod?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

import msgspec

from kubectl_spread.audit.snapshot.records import PodClass, PodRecord, Population
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.types import Node, ObjectMeta, Pod, PodSpec
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.scheduler import interpodaffinity
from kubectl_spread.kube.scheduler.interpodaffinity import AffinityAnswer, PreFilterState, Term
from kubectl_spread.kube.scheduler.podtopologyspread.domains import NodeSets
from kubectl_spread.memoization import memoized

UNKNOWN_NAMESPACES: Final = "pod affinity: the labels of namespaces, which a namespaceSelector asks for, were not read"


def incoming(pod_class: PodClass) -> Pod:
    """Return a pod of ``pod_class`` with the fields that the filter reads."""
    metadata = ObjectMeta(namespace=pod_class.namespace, labels=dict(pod_class.labels))
    return Pod(metadata=metadata, spec=PodSpec(affinity=pod_class.spec.affinity))


def own_terms(pod_class: PodClass) -> tuple[Term, ...]:
    """Return the required terms of pods of ``pod_class``."""
    pod = incoming(pod_class)
    return (*interpodaffinity.affinity_terms(pod), *interpodaffinity.anti_affinity_terms(pod))


def wants_namespaces(pod_classes: Iterable[PodClass], snapshot: Snapshot) -> bool:
    """Tell whether any term selects namespaces by their labels, so that namespaces have to be read."""
    terms = (term for pod_class in pod_classes for term in own_terms(pod_class))
    return _selects(terms) or _selects(_terms_of_others(snapshot))


class AffinityRefusals(msgspec.Struct, frozen=True):
    """The nodes that refuse a pod; the answer of each is computed when it is read.

    Attributes:
        state: The prepared filter; None where no node refuses the pod.
        nodes: The nodes by name.
    """

    state: PreFilterState | None
    nodes: Mapping[str, Node]

    def get(self, name: str) -> AffinityAnswer | None:
        """Return the answer of a node that refuses the pod, or None."""
        answer = None if self.state is None else self.state.filter(self.nodes[name])
        return None if answer is AffinityAnswer.FEASIBLE else answer


NO_REFUSALS: Final = AffinityRefusals(None, {})


class AffinityFilter:
    """The filter of pod affinity over all nodes, prepared once for each class of pods."""

    def __init__(self, snapshot: Snapshot, nodes: NodeSets, behaviour: Behaviour) -> None:
        """Filter ``nodes`` by the bound pods of ``snapshot``."""
        self._snapshot = snapshot
        self._nodes = nodes.by_name
        self._behaviour = behaviour

    @memoized
    def refusals(self, pod_class: PodClass, gone: PodRecord | None = None) -> AffinityRefusals | None:
        """Return the nodes that refuse a pod of ``pod_class``; None: labels of namespaces were not read.

        Args:
            pod_class: The class of the pod.
            gone: A bound pod that is taken as evicted.
        """
        anti_affinity = self._snapshot.anti_affinity
        own = own_terms(pod_class)
        if _selects(own) and not anti_affinity.namespaces:
            return None
        if self._others_select and pod_class.namespace not in anti_affinity.namespaces:
            return None
        others = [
            *anti_affinity.repelling(pod_class.namespace, pod_class.labels, gone),
            *_selected(own, self._snapshot, gone),
        ]
        state = None
        if own or others:
            state = interpodaffinity.pre_filter(
                incoming(pod_class), others, self._nodes, anti_affinity.namespaces, self._behaviour
            )
        return AffinityRefusals(state, self._nodes)

    def concerns(self, pod_class: PodClass) -> bool:
        """Tell whether a required term, of the pods themselves or of other pods, decides where such pods may go."""
        others = self._snapshot.anti_affinity.repelling(pod_class.namespace, pod_class.labels)
        return bool(own_terms(pod_class)) or next(others, None) is not None

    @cached_property
    def _others_select(self) -> bool:
        return _selects(_terms_of_others(self._snapshot))


def _terms_of_others(snapshot: Snapshot) -> Iterator[Term]:
    for pod in snapshot.anti_affinity.kinds():
        yield from interpodaffinity.anti_affinity_terms(pod)


def _selects(terms: Iterable[Term]) -> bool:
    """Tell whether any of ``terms`` selects namespaces by labels that they may or may not have."""
    return any(
        term.namespace_selector is not None and not labelselectors.is_empty(term.namespace_selector) for term in terms
    )


def _selected(terms: Sequence[Term], snapshot: Snapshot, gone: PodRecord | None) -> Iterator[Pod]:
    """Yield a pod for each distinct set of labels that a term selects, in each namespace and on each of its nodes."""
    if not terms:
        return
    for terminating in (False, True):
        for namespace, population in snapshot.populations(terminating=terminating).items():
            for labels, per_node in _selected_in(population, namespace, terms):
                left = gone if gone is not None and not terminating and _is_of(gone, namespace, labels) else None
                metadata = ObjectMeta(namespace=namespace, labels=dict(labels))
                for node, pods in per_node.items():
                    if pods > int(left is not None and left.node == node):
                        yield Pod(metadata=metadata, spec=PodSpec(node_name=node))


def _selected_in(
    population: Population, namespace: str, terms: Iterable[Term]
) -> Iterable[tuple[Labels, Mapping[str, int]]]:
    """Return the label sets of a namespace that a term selects and may concern, each with its pods by node."""
    selected: dict[frozenset[tuple[str, str]], tuple[Labels, Mapping[str, int]]] = {}
    for term in terms:
        if term.selector is not None and (term.namespace_selector is not None or namespace in term.namespaces):
            for labels, per_node in population.selected(term.selector):
                selected[frozenset(labels.items())] = (labels, per_node)
    return selected.values()


def _is_of(pod: PodRecord, namespace: str, labels: Labels) -> bool:
    return pod.namespace == namespace and pod.pod_class.labels == labels
