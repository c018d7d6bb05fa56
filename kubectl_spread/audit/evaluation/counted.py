"""Counted pods: which of the pods that were read does a constraint count, and which are siblings?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from kubectl_spread.audit.snapshot.labelled import Labelled
from kubectl_spread.audit.snapshot.records import PodClass, PodRecord
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.scheduler.podtopologyspread import Spread, counts_nothing


class Counted:
    """The pods that were read and that one constraint counts, in its eligible domains.

    Attributes:
        spread: The count.
        by_workload: The pods of each workload, by name.
    """

    def __init__(self, spread: Spread, by_workload: Mapping[ObjectRef, Sequence[PodRecord]]) -> None:
        """Take the count and the pods of it."""
        self.spread = spread
        self.by_workload = by_workload

    @cached_property
    def workloads(self) -> Sequence[ObjectRef]:
        """The workloads, by kind and name."""
        return sorted(self.by_workload)

    @cached_property
    def per_domain(self) -> Counter[str]:
        """The number of pods in each domain that has any."""
        value_of = self.spread.domains.value_of
        return Counter(value_of[pod.node] for pod in self.pods)

    @property
    def pods(self) -> Iterator[PodRecord]:
        """All pods, those of one workload together."""
        return (pod for pods in self.by_workload.values() for pod in pods)

    @cached_property
    def shapes_in_the_fullest(self) -> Sequence[PodClass]:
        """The shapes of the pods in the fullest domains."""
        value_of, counts = self.spread.domains.value_of, self.spread.match_num
        fullest = (pod.shape for pod in self.pods if counts[value_of[pod.node]] == counts.most)
        return list(dict.fromkeys(fullest))


class CountedPods:
    """The pods that were read, found by the constraints that count them, or by their workload."""

    def __init__(self, snapshot: Snapshot, behaviour: Behaviour) -> None:
        """Look among the pods of ``snapshot``; ``behaviour`` says how the scheduler counts."""
        self._snapshot = snapshot
        self._behaviour = behaviour
        self._by_namespace: dict[str, Labelled[list[PodRecord]]] | None = None
        self._found: dict[tuple[str, int], Counted] = {}
        self._siblings: dict[ObjectRef, list[PodRecord]] | None = None

    def of(self, namespace: str, spread: Spread) -> Counted:
        """Return the pods in eligible domains that a constraint counts."""
        question = (namespace, id(spread))
        if question not in self._found:
            self._found[question] = Counted(spread, self._find(namespace, spread))
        return self._found[question]

    def siblings(self, workload: ObjectRef) -> Sequence[PodRecord]:
        """Return the pods of a workload that are not terminating; for a bare pod all bare pods of the namespace."""
        if self._siblings is None:
            self._siblings = {}
            for pod in self._snapshot.pods:
                if not pod.terminating:
                    self._siblings.setdefault(_siblings_key(self._snapshot.workload(pod)), []).append(pod)
        return self._siblings.get(_siblings_key(workload), ())

    def _find(self, namespace: str, spread: Spread) -> Mapping[ObjectRef, list[PodRecord]]:
        selector = spread.constraint.selector
        if selector is None or counts_nothing(selector, self._behaviour):
            return {}
        found: dict[ObjectRef, list[PodRecord]] = {}
        for _, pods in self._pods(namespace).selected(selector):
            for pod in pods:
                if pod.node in spread.domains.value_of:
                    found.setdefault(self._snapshot.workload(pod), []).append(pod)
        for pods in found.values():
            pods.sort(key=lambda pod: pod.name)
        return found

    def _pods(self, namespace: str) -> Labelled[list[PodRecord]]:
        """Return the pods of a namespace that are bound and not terminating, those of one shape together."""
        if self._by_namespace is None:
            self._by_namespace = {}
            by_shape: dict[PodClass, list[PodRecord]] = {}
            for pod in self._snapshot.pods:
                if pod.node and not pod.terminating:
                    by_shape.setdefault(pod.shape, []).append(pod)
            for pods in by_shape.values():
                shape = pods[0].shape
                self._by_namespace.setdefault(shape.namespace, Labelled()).add(shape.labels, pods)
        return self._by_namespace.get(namespace, Labelled())


def _siblings_key(workload: ObjectRef) -> ObjectRef:
    """Return the key under which a workload's pods are kept: all bare pods of a namespace share one."""
    return ObjectRef(workload.namespace, "Pod", "") if workload.kind == "Pod" else workload
