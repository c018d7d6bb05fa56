"""Affinity: which nodes do required pod affinity and anti-affinity leave to a pod, as far as that is known?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.types import Node, ObjectMeta, Pod, PodSpec
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.scheduler import interpodaffinity
from kubectl_spread.kube.scheduler.interpodaffinity import AffinityAnswer, Term

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


def answers(
    shape: PodClass, snapshot: Snapshot, nodes: Iterable[Node], behaviour: Behaviour
) -> dict[str, AffinityAnswer] | None:
    """Return the filter's answer for each node, by name; None: it depends on labels of namespaces that were not read.

    A snapshot that was not told to keep neighbours knows no pods that keep others away.
    """
    neighbours = snapshot.neighbours
    own = own_terms(shape)
    if _selects(own) and not neighbours.namespaces:
        return None
    if _selects(_terms_of_others(snapshot)) and shape.namespace not in neighbours.namespaces:
        return None
    return interpodaffinity.filter_nodes(
        incoming(shape),
        [*neighbours.repelling(shape.labels), *_selected(own, snapshot)],
        tuple(nodes),
        neighbours.namespaces,
        behaviour,
    )


def _terms_of_others(snapshot: Snapshot) -> Iterator[Term]:
    for pod in snapshot.neighbours.kinds():
        yield from interpodaffinity.anti_affinity_terms(pod)


def _selects(terms: Iterable[Term]) -> bool:
    """Tell whether any of ``terms`` selects namespaces by labels that they may or may not have."""
    return any(
        term.namespace_selector is not None and not labelselectors.is_empty(term.namespace_selector) for term in terms
    )


def _selected(terms: Sequence[Term], snapshot: Snapshot) -> Iterator[Pod]:
    """Yield a pod for each distinct set of labels that a term selects, in each namespace and on each node with one."""
    if not terms:
        return
    for populations in (snapshot.populations(), snapshot.populations(leaving=True)):
        for namespace, population in populations.items():
            for labels, per_node in population:
                if not any(labelselectors.matches(term.selector, labels) for term in terms):
                    continue
                metadata = ObjectMeta(namespace=namespace, labels=dict(labels))
                yield from (Pod(metadata=metadata, spec=PodSpec(node_name=node)) for node in per_node)
