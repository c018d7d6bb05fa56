"""Counted pods: which pods does a constraint count, and which pods are siblings?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import islice
from operator import attrgetter
from typing import Final, TypeAlias

from kubectl_spread.audit.snapshot.records import PodClass, PodRecord, digest
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.kube.api.labels import Labelled
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import counts_nothing
from kubectl_spread.kube.scheduler.podtopologyspread.domains import Domains
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread
from kubectl_spread.memoization import memoized

_BARE: Final = "Pod"
_SpreadsOf: TypeAlias = Callable[[PodClass], Sequence[Spread | None]]


class CountedPods:
    """The pods that were read, found by the constraints that count them, or by their workload."""

    def __init__(self, snapshot: Snapshot, behaviour: Behaviour, spreads_of: _SpreadsOf) -> None:
        """Take the pods of ``snapshot``, the scheduler's ``behaviour``, and what gives the counts of a class."""
        self._snapshot = snapshot
        self._behaviour = behaviour
        self._spreads_of = spreads_of

    @memoized
    def of(self, namespace: str, spread: Spread) -> Counted:
        """Return the count of a constraint with the counted pods."""
        selector = spread.constraint.selector
        bound = self._bound_pods(namespace)
        if selector is None or counts_nothing(selector, self._behaviour):
            return Counted(spread, bound, (), ())
        return Counted(spread, bound, bound.classes.selection(selector), bound.having(spread, self._spreads_of))

    def siblings(self, workload: ObjectRef) -> Sequence[PodRecord]:
        """Return the pods of a workload that are not terminating; for a bare pod all bare pods of the namespace."""
        return self._siblings.get(_siblings_key(workload), ())

    @cached_property
    def _siblings(self) -> Mapping[ObjectRef, Sequence[PodRecord]]:
        siblings: dict[ObjectRef, list[PodRecord]] = {}
        for pod in self._snapshot.pods:
            if not pod.terminating:
                siblings.setdefault(_siblings_key(self._snapshot.workload(pod)), []).append(pod)
        return siblings

    @memoized
    def _bound_pods(self, namespace: str) -> _BoundPods:
        return _BoundPods(self._classes.get(namespace, ()), self._snapshot)

    @cached_property
    def _classes(self) -> Mapping[str, Sequence[Sequence[PodRecord]]]:
        """The same pods of each namespace, by class."""
        by_class: dict[PodClass, list[PodRecord]] = {}
        for pod in self._snapshot.pods:
            if pod.node and not pod.terminating:
                by_class.setdefault(pod.pod_class, []).append(pod)
        classes: dict[str, list[list[PodRecord]]] = {}
        for pods in by_class.values():
            classes.setdefault(pods[0].namespace, []).append(pods)
        return classes


def _siblings_key(workload: ObjectRef) -> ObjectRef:
    """Return the key of a workload's pods, which all bare pods of a namespace share."""
    return ObjectRef(workload.namespace, _BARE, "") if workload.kind == _BARE else workload


class _BoundPods:
    """The bound pods of one namespace, by class, by workload and by node; classes are numbered."""

    def __init__(self, classes: Iterable[Sequence[PodRecord]], snapshot: Snapshot) -> None:
        self.classes = Labelled[Sequence[PodRecord]]()
        self.workloads: dict[ObjectRef, list[PodRecord]] = {}
        self._numbers: dict[PodClass, int] = {}
        self._owners: list[ObjectRef | None] = []
        for number, pods in enumerate(classes):
            pod_class = pods[0].pod_class
            owner = snapshot.workload(pods[0]) if pod_class.owner else None
            self.classes.add(pod_class.labels, pods)
            self._numbers[pod_class] = number
            self._owners.append(owner)
            if owner is None:
                self.workloads.update((pod.ref, [pod]) for pod in pods)
            else:
                self.workloads.setdefault(owner, []).extend(pods)
        for of_workload in self.workloads.values():
            of_workload.sort(key=attrgetter("name"))
        self._having: dict[tuple[bytes, Domains], list[int]] | None = None

    def number(self, pod: PodRecord) -> int:
        """Return the number of a pod's class."""
        return self._numbers[pod.pod_class]

    def workload(self, pod: PodRecord) -> ObjectRef:
        """Return the workload of a pod."""
        return self._owners[self.number(pod)] or pod.ref

    def having(self, spread: Spread, spreads_of: _SpreadsOf) -> Sequence[int]:
        """Return the classes whose pods have the constraint of a count, over the same domains."""
        if self._having is None:
            self._having = {}
            for number, (_, pods) in enumerate(self.classes):
                spreads = (each for each in spreads_of(pods[0].pod_class) if each is not None)
                for question in dict.fromkeys((digest(each.constraint), each.domains) for each in spreads):
                    self._having.setdefault(question, []).append(number)
        return self._having.get((digest(spread.constraint), spread.domains), ())


class Counted:
    """The count of one constraint, and the bound pods that were read and counted, in its eligible domains.

    Attributes:
        spread: The count.
    """

    def __init__(self, spread: Spread, bound: _BoundPods, selected: Sequence[int], carrying: Sequence[int]) -> None:
        """Take the numbers of the classes that the constraint selects, and of those whose pods have it."""
        self.spread = spread
        self._bound = bound
        self._selected = frozenset(selected)
        self._carrying = carrying
        self._value_of = spread.domains.value_of

    @cached_property
    def carriers(self) -> Sequence[PodRecord]:
        """The counted pods that have the constraint themselves."""
        return [pod for number in self._carrying for pod in self._bound.classes[number] if self._includes(pod)]

    def of_workload(self, workload: ObjectRef) -> Sequence[PodRecord]:
        """Return the pods of a workload, by name."""
        return [pod for pod in self._bound.workloads.get(workload, ()) if self._includes(pod)]

    def others(self, workload: ObjectRef, most: int) -> tuple[int, list[ObjectRef]]:
        """Return the number of the other workloads, and the first of them; to a bare pod, bare pods are none."""
        workloads = self._owned if workload.kind == _BARE else self._workloads
        others = (other for other in workloads if other != workload)
        return len(workloads) - (workload in workloads), list(islice(others, most))

    def of_others(self, workload: ObjectRef) -> Counter[str]:
        """Return the number of pods of other workloads in each domain with any; to a bare pod, bare pods are none."""
        if workload.kind == _BARE:
            return self.per_domain - self._bare_per_domain
        return self.per_domain - Counter(self._value_of[pod.node] for pod in self.of_workload(workload))

    @cached_property
    def per_domain(self) -> Counter[str]:
        """The number of pods in each domain with any."""
        return Counter(self._value_of[pod.node] for pod in self._pods)

    @cached_property
    def _bare_per_domain(self) -> Counter[str]:
        return Counter(self._value_of[pod.node] for pod in self._pods if pod.pod_class.owner is None)

    @cached_property
    def _workloads(self) -> Mapping[ObjectRef, None]:
        """The workloads of the pods, in order."""
        return dict.fromkeys(sorted(set(map(self._bound.workload, self._pods))))

    @cached_property
    def _owned(self) -> Mapping[ObjectRef, None]:
        return dict.fromkeys(workload for workload in self._workloads if workload.kind != _BARE)

    @cached_property
    def _pods(self) -> Sequence[PodRecord]:
        return [pod for number in self._selected for pod in self._bound.classes[number] if pod.node in self._value_of]

    def _includes(self, pod: PodRecord) -> bool:
        return self._bound.number(pod) in self._selected and pod.node in self._value_of
