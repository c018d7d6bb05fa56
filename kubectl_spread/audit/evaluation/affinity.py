"""Affinity: which nodes do required pod affinity and anti-affinity leave to a pod?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from kubectl_spread.audit.snapshot.records import PodClass, PodRecord
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.types import ObjectMeta, Pod, PodSpec
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.scheduler import interpodaffinity
from kubectl_spread.kube.scheduler.interpodaffinity import AffinityAnswer, Term
from kubectl_spread.kube.scheduler.podtopologyspread import NodeSets

UNKNOWN_NAMESPACES: Final = "pod affinity: the labels of namespaces, which a namespaceSelector asks for, were not read"


def incoming(shape: PodClass) -> Pod:
    """Return what the filter looks at of a pod of ``shape``."""
    metadata = ObjectMeta(namespace=shape.namespace, labels=dict(shape.labels))
    return Pod(metadata=metadata, spec=PodSpec(affinity=shape.spec.affinity))


def own_terms(shape: PodClass) -> tuple[Term, ...]:
    """Return the required terms of pods of ``shape``."""
    pod = incoming(shape)
    return (*interpodaffinity.affinity_terms(pod), *interpodaffinity.anti_affinity_terms(pod))


def wants_namespaces(shapes: Iterable[PodClass], snapshot: Snapshot) -> bool:
    """Tell whether any term selects namespaces by their labels, so that these have to be read."""
    terms = (term for shape in shapes for term in own_terms(shape))
    return _selects(terms) or _selects(_terms_of_others(snapshot))


class AffinityFilter:
    """The filter of pod affinity over all nodes, computed once for each class of pods."""

    def __init__(self, snapshot: Snapshot, nodes: NodeSets, behaviour: Behaviour) -> None:
        """Take the bound pods of ``snapshot`` as those that are on ``nodes``."""
        self._snapshot = snapshot
        self._nodes = nodes.nodes
        self._behaviour = behaviour
        self._refusals: dict[object, Mapping[str, AffinityAnswer] | None] = {}

    def refusals(self, shape: PodClass, gone: PodRecord | None = None) -> Mapping[str, AffinityAnswer] | None:
        """Return the nodes that refuse a pod of ``shape``, by name; None: labels of namespaces were not read.

        Args:
            shape: What the pod is like.
            gone: A pod that is not there any more.
        """
        key = (shape, None if gone is None else (gone.shape, gone.node))
        if key not in self._refusals:
            self._refusals[key] = self._find(shape, gone)
        return self._refusals[key]

    def concerns(self, shape: PodClass) -> bool:
        """Tell whether any required term, of the pods themselves or of others, decides where such pods may go."""
        others = self._snapshot.neighbours.repelling(shape.namespace, shape.labels)
        return bool(own_terms(shape)) or next(others, None) is not None

    def _find(self, shape: PodClass, gone: PodRecord | None) -> Mapping[str, AffinityAnswer] | None:
        neighbours = self._snapshot.neighbours
        own = own_terms(shape)
        if _selects(own) and not neighbours.namespaces:
            return None
        if _selects(_terms_of_others(self._snapshot)) and shape.namespace not in neighbours.namespaces:
            return None
        left = None if gone is None else _bound(gone)
        others = [
            *neighbours.repelling(shape.namespace, shape.labels, left),
            *_selected(own, self._snapshot, gone),
        ]
        if not own and not others:
            return {}
        answers = interpodaffinity.filter_nodes(
            incoming(shape), others, self._nodes, neighbours.namespaces, self._behaviour
        )
        return {name: answer for name, answer in answers.items() if answer is not AffinityAnswer.FEASIBLE}


def _bound(pod: PodRecord) -> Pod:
    bound = incoming(pod.shape)
    return replace(bound, spec=replace(bound.spec, node_name=pod.node))


def _terms_of_others(snapshot: Snapshot) -> Iterator[Term]:
    for pod in snapshot.neighbours.kinds():
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
        for namespace, population in snapshot.populations(leaving=terminating).items():
            for labels, per_node in population:
                if not any(labelselectors.matches(term.selector, labels) for term in terms):
                    continue
                left = gone if gone is not None and not terminating and _is_of(gone, namespace, labels) else None
                metadata = ObjectMeta(namespace=namespace, labels=dict(labels))
                for node, pods in per_node.items():
                    if pods > int(left is not None and left.node == node):
                        yield Pod(metadata=metadata, spec=PodSpec(node_name=node))


def _is_of(pod: PodRecord, namespace: str, labels: Labels) -> bool:
    return pod.namespace == namespace and pod.shape.labels == labels
