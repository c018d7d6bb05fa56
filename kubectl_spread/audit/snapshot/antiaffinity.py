"""Anti-affinity: the bound pods that repel others by required terms, and the labels of namespaces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from kubectl_spread.audit.snapshot.records import PodClass, PodRecord, digest
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import ANYWHERE, Labels, Selecting
from kubectl_spread.kube.api.types import Affinity, Namespace, ObjectMeta, Pod, PodAffinity, PodAffinityTerm, PodSpec
from kubectl_spread.kube.scheduler import interpodaffinity
from kubectl_spread.kube.scheduler.interpodaffinity import Term


class _Repelling(msgspec.Struct, frozen=True, eq=False):
    """Pods of one namespace with the same required anti-affinity ``terms``; ``nodes`` counts them by node."""

    pod: Pod
    terms: Sequence[Term]
    nodes: Counter[str] = msgspec.field(default_factory=Counter)


class AntiAffinity:
    """The bound pods that repel others; the memory grows with distinct terms and nodes.

    Attributes:
        namespaces: Maps the name of each namespace that was read to its labels.
        everywhere: Whether the pods of all namespaces were read.
    """

    def __init__(self) -> None:
        self.everywhere = True
        self.namespaces: dict[str, Labels] = {}
        self._repelling: dict[bytes, _Repelling] = {}
        self._terms = Selecting[tuple[_Repelling, Term]]()

    def nodes(self, pod_class: PodClass) -> Counter[str] | None:
        """Return the counter by node of the bound pods that repel as such a pod does; None if it repels no pod."""
        required = _required(pod_class)
        if not required:
            return None
        key = _key(pod_class)
        if key not in self._repelling:
            pod = _with_only(required, pod_class.namespace)
            self._repelling[key] = _Repelling(pod, interpodaffinity.anti_affinity_terms(pod))
            self._index(self._repelling[key])
        return self._repelling[key].nodes

    def join(self, others: AntiAffinity) -> None:
        """Add the pods of other namespaces."""
        self._repelling.update(others._repelling)
        for repelling in others._repelling.values():
            self._index(repelling)

    def add_namespace(self, namespace: Namespace) -> None:
        """Store the labels of a namespace."""
        self.namespaces[namespace.metadata.name] = namespace.metadata.labels

    def kinds(self) -> Iterator[Pod]:
        """Yield a pod of each distinct kind that repels others."""
        return (repelling.pod for repelling in self._repelling.values())

    def repelling(self, namespace: str, labels: Labels, evicted: PodRecord | None = None) -> Iterator[Pod]:
        """Yield a pod for each kind that may repel pods with ``labels``, and each node with such a pod.

        Args:
            namespace: The namespace of the pods that are to be placed.
            labels: Their labels.
            evicted: A pod that is taken as evicted.
        """
        leaving = None if evicted is None else self._repelling.get(_key(evicted.pod_class))
        filed = self._terms.that_may_select(namespace, labels)
        repellers = (repelling for repelling, term in filed if labelselectors.matches(term.selector, labels))
        for repelling in dict.fromkeys(repellers):
            left = evicted.node if evicted is not None and repelling is leaving else ""
            for node in (node for node, pods in sorted(repelling.nodes.items()) if pods > int(node == left)):
                spec = msgspec.structs.replace(repelling.pod.spec, node_name=node)
                yield msgspec.structs.replace(repelling.pod, spec=spec)

    def _index(self, repelling: _Repelling) -> None:
        """File the terms of a kind under the namespaces that they name."""
        for term in repelling.terms:
            for namespace in (ANYWHERE,) if term.namespace_selector is not None else sorted(term.namespaces):
                self._terms.add(namespace, term.selector, (repelling, term))


def _required(pod_class: PodClass) -> Sequence[PodAffinityTerm]:
    affinity = pod_class.spec.affinity
    if affinity is None or affinity.pod_anti_affinity is None:
        return ()
    return affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution


def _key(pod_class: PodClass) -> bytes:
    return digest((pod_class.namespace, _required(pod_class)))


def _with_only(required: Sequence[PodAffinityTerm], namespace: str) -> Pod:
    terms = PodAffinity(required_during_scheduling_ignored_during_execution=tuple(required))
    return Pod(metadata=ObjectMeta(namespace=namespace), spec=PodSpec(affinity=Affinity(pod_anti_affinity=terms)))
