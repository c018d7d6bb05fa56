"""Neighbours: the bound pods that keep others away by required anti-affinity, and the labels of namespaces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.types import Affinity, Namespace, ObjectMeta, Pod, PodAffinity, PodSpec
from kubectl_spread.kube.scheduler import interpodaffinity

_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


class AntiAffinity:
    """What is kept to ask the filter of pod affinity, in memory that grows with distinct terms and nodes.

    Attributes:
        keeps: Whether anything is kept at all.
        namespaces: Maps the name of each namespace that was read to its labels.
        everywhere: Whether the pods of all namespaces were read, as far as anyone knows.
    """

    def __init__(self, *, keeps: bool) -> None:
        """Start without any."""
        self.keeps = keeps
        self.everywhere = True
        self.namespaces: dict[str, Labels] = {}
        self._repelling: dict[bytes, tuple[Pod, set[str]]] = {}

    def add(self, pod: Pod) -> None:
        """Keep the required anti-affinity of a bound pod, if it has any; terminating pods repel too."""
        affinity = pod.spec.affinity
        if not self.keeps or affinity is None or affinity.pod_anti_affinity is None:
            return
        required = affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution
        if not required:
            return
        namespace, labels = pod.metadata.namespace, pod.metadata.labels
        key = _ENCODER.encode((namespace, labels, required))
        if key not in self._repelling:
            terms = PodAffinity(required_during_scheduling_ignored_during_execution=required)
            kept = Pod(
                metadata=ObjectMeta(namespace=namespace, labels=labels),
                spec=PodSpec(affinity=Affinity(pod_anti_affinity=terms)),
            )
            self._repelling[key] = (kept, set())
        self._repelling[key][1].add(pod.spec.node_name)

    def join(self, others: AntiAffinity) -> None:
        """Take over the pods of other namespaces."""
        self._repelling.update(others._repelling)

    def add_namespace(self, namespace: Namespace) -> None:
        """Keep the labels of a namespace."""
        self.namespaces[namespace.metadata.name] = namespace.metadata.labels

    def kinds(self) -> Iterator[Pod]:
        """Yield a pod of each distinct kind that keeps others away."""
        return (pod for pod, _ in self._repelling.values())

    def repelling(self, labels: Labels) -> Iterator[Pod]:
        """Yield a pod for each distinct kind with a term that selects ``labels``, and each node where one is."""
        for pod, nodes in self._repelling.values():
            terms = interpodaffinity.anti_affinity_terms(pod)
            chosen = any(labelselectors.matches(term.selector, labels) for term in terms)
            for node in sorted(nodes) if chosen else ():
                spec = msgspec.structs.replace(pod.spec, node_name=node)
                yield msgspec.structs.replace(pod, spec=spec)
