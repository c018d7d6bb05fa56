"""Counted pods: which pods does a constraint count, and which pods are siblings?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import islice
from operator import attrgetter
from typing import Any, Final, TypeVar, cast

from kubectl_spread.audit.evaluation.evaluators import Evaluator
from kubectl_spread.audit.snapshot.digests import digest
from kubectl_spread.audit.snapshot.labelled import Labelled, SelectedNumbers
from kubectl_spread.audit.snapshot.records import PodClass, PodRecord
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import LabelSelector
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import counts_nothing
from kubectl_spread.kube.scheduler.podtopologyspread.domains import Domains
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread

_BARE: Final = "Pod"
_T = TypeVar("_T")


class Counted:
    """The count of one constraint, and the pods that were read and counted.

    Attributes:
        spread: The count.
        pods: The counted pods, in the constraint's eligible domains.
    """

    def __init__(self, spread: Spread, pods: SelectedPods, numbers: Sequence[int]) -> None:
        """Take the count, its pods, and the numbers of the classes whose pods have the constraint."""
        self.spread = spread
        self.pods = pods
        self._numbers = numbers
        self._answers: dict[object, Any] = {}

    def remember(self, question: object, answer: Callable[[], _T]) -> _T:
        """Return the answer to a question about the count, computed only once."""
        if question not in self._answers:
            self._answers[question] = answer()
        return cast("_T", self._answers[question])

    @cached_property
    def carriers(self) -> Sequence[PodRecord]:
        """The counted pods that have the constraint themselves."""
        return [pod for number in self._numbers for pod in self.pods.of_class(number)]


class CountedPods:
    """The pods that were read, found by the constraints that count them, or by their workload."""

    def __init__(self, snapshot: Snapshot, behaviour: Behaviour, evaluator: Evaluator) -> None:
        """Take the pods of ``snapshot``, the scheduler's ``behaviour``, and the ``evaluator`` of their classes."""
        self._snapshot = snapshot
        self._behaviour = behaviour
        self._evaluator = evaluator
        self._counted: dict[tuple[str, Spread], Counted] = {}
        self._siblings: dict[ObjectRef, list[PodRecord]] | None = None
        self._bound: dict[str, _BoundPods] = {}

    def of(self, namespace: str, spread: Spread) -> Counted:
        """Return the count of a constraint with the counted pods."""
        question = (namespace, spread)
        if question not in self._counted:
            self._counted[question] = self._find(namespace, spread)
        return self._counted[question]

    def siblings(self, workload: ObjectRef) -> Sequence[PodRecord]:
        """Return the pods of a workload that are not terminating; for a bare pod all bare pods of the namespace."""
        if self._siblings is None:
            self._siblings = {}
            for pod in self._snapshot.pods:
                if not pod.terminating:
                    self._siblings.setdefault(_siblings_key(self._snapshot.workload(pod)), []).append(pod)
        return self._siblings.get(_siblings_key(workload), ())

    def _find(self, namespace: str, spread: Spread) -> Counted:
        selector = spread.constraint.selector
        bound = self._bound_pods(namespace)
        if selector is None or counts_nothing(selector, self._behaviour):
            nothing = SelectedPods(_BoundPods((), self._snapshot), SelectedNumbers(()), spread.domains)
            return Counted(spread, nothing, ())
        return Counted(spread, bound.selected(selector, spread.domains), bound.having(spread, self._evaluator))

    def _bound_pods(self, namespace: str) -> _BoundPods:
        """Return the pods of a namespace that are bound and not terminating."""
        if namespace not in self._bound:
            self._bound[namespace] = _BoundPods(self._classes.get(namespace, ()), self._snapshot)
        return self._bound[namespace]

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
        self._selections: dict[bytes, SelectedNumbers] = {}
        self._pods: dict[tuple[SelectedNumbers, Domains], SelectedPods] = {}
        self._having: dict[tuple[bytes, Domains], list[int]] | None = None
        self._outside: dict[Domains, Sequence[str]] = {}

    def number(self, pod: PodRecord) -> int:
        """Return the number of a pod's class."""
        return self._numbers[pod.pod_class]

    def workload(self, pod: PodRecord) -> ObjectRef:
        """Return the workload of a pod."""
        return self._owners[self.number(pod)] or pod.ref

    def selected(self, selector: LabelSelector, domains: Domains) -> SelectedPods:
        """Return the pods that a selector selects in some domains."""
        key = digest(selector)
        if key not in self._selections:
            self._selections[key] = self.classes.selection(selector)
        question = (self._selections[key], domains)
        if question not in self._pods:
            self._pods[question] = SelectedPods(self, self._selections[key], domains)
        return self._pods[question]

    def having(self, spread: Spread, evaluator: Evaluator) -> Sequence[int]:
        """Return the classes whose pods have the constraint of a count, over the same domains."""
        if self._having is None:
            self._having = {}
            for number, (_, pods) in enumerate(self.classes):
                spreads = (each for each in evaluator.of(pods[0].pod_class).spreads if each is not None)
                for question in dict.fromkeys((digest(each.constraint), each.domains) for each in spreads):
                    self._having.setdefault(question, []).append(number)
        return self._having.get((digest(spread.constraint), spread.domains), ())

    @cached_property
    def nodes(self) -> Mapping[str, Sequence[PodRecord]]:
        """The pods on each node with any."""
        nodes: dict[str, list[PodRecord]] = {}
        for _, pods in self.classes:
            for pod in pods:
                nodes.setdefault(pod.node, []).append(pod)
        return nodes

    @cached_property
    def in_order(self) -> Sequence[ObjectRef]:
        """The workloads, by kind and name."""
        return sorted(self.workloads)

    @cached_property
    def owned_in_order(self) -> Sequence[ObjectRef]:
        """The workloads that are not bare pods, by kind and name."""
        return [workload for workload in self.in_order if workload.kind != _BARE]

    def outside(self, domains: Domains) -> Sequence[str]:
        """Return the nodes with pods that are in none of ``domains``."""
        if domains.all_but is not None:
            everywhere, left_out = domains.all_but
            return (*self.outside(everywhere), *left_out)
        if domains not in self._outside:
            self._outside[domains] = [node for node in self.nodes if node not in domains.value_of]
        return self._outside[domains]

    @cached_property
    def per_node(self) -> Mapping[str, int]:
        """The number of pods on each node."""
        return {node: len(pods) for node, pods in self.nodes.items()}

    @cached_property
    def bare_per_node(self) -> Mapping[str, int]:
        """The number of pods without owner on each node."""
        return {node: sum(self.workload(pod).kind == _BARE for pod in pods) for node, pods in self.nodes.items()}


class SelectedPods:
    """The bound pods of one namespace that a selector selects in some domains."""

    def __init__(self, bound: _BoundPods, selection: SelectedNumbers, domains: Domains) -> None:
        self._bound = bound
        self._inverted = selection.inverted
        self._numbers = frozenset(selection.numbers)
        self._domains = domains
        self._value_of = domains.value_of

    def of_class(self, number: int) -> Sequence[PodRecord]:
        """Return the pods of a class."""
        return [pod for pod in self._bound.classes[number] if self._includes(pod)]

    def of_workload(self, workload: ObjectRef) -> Sequence[PodRecord]:
        """Return the pods of a workload, by name."""
        return [pod for pod in self._bound.workloads.get(workload, ()) if self._includes(pod)]

    def others(self, workload: ObjectRef, most: int) -> tuple[int, list[ObjectRef]]:
        """Return the number of the other workloads, and the first of them; to a bare pod, bare pods are none."""
        if workload.kind == _BARE:
            in_order, own = self._owned, 0
        else:
            in_order, own = self._workloads, int(bool(self.of_workload(workload)))
        number = len(in_order) - own - sum(1 for gone in self._gone if workload.kind != _BARE or gone.kind != _BARE)
        others = (other for other in in_order if other != workload and other not in self._gone)
        return number, list(islice(others, most))

    def of_others(self, workload: ObjectRef) -> Counter[str]:
        """Return the number of pods of other workloads in each domain with any; to a bare pod, bare pods are none."""
        if workload.kind == _BARE:
            return self.per_domain - self._bare_per_domain
        return self.per_domain - Counter(self._value_of[pod.node] for pod in self.of_workload(workload))

    @cached_property
    def per_domain(self) -> Counter[str]:
        """The number of pods in each domain with any."""
        return self._count(self._bound.per_node, self._listed)

    @cached_property
    def _bare_per_domain(self) -> Counter[str]:
        bare = [pod for pod in self._listed if self._bound.workload(pod).kind == _BARE]
        return self._count(self._bound.bare_per_node, bare)

    def _count(self, per_node: Mapping[str, int], listed: Iterable[PodRecord]) -> Counter[str]:
        value_of = self._value_of
        counts = Counter(value_of[pod.node] for pod in listed if pod.node in value_of)
        if not self._all_but:
            return counts
        total: Counter[str] = Counter()
        for node, number in per_node.items():
            if node in value_of:
                total[value_of[node]] += number
        return total - counts

    @cached_property
    def _workloads(self) -> Sequence[ObjectRef]:
        """The workloads of the pods, in order; with ``_all_but`` also the workloads in ``_gone``."""
        return self._bound.in_order if self._all_but else sorted(set(map(self._bound.workload, self._listed)))

    @cached_property
    def _owned(self) -> Sequence[ObjectRef]:
        if self._all_but:
            return self._bound.owned_in_order
        return [workload for workload in self._workloads if workload.kind != _BARE]

    @cached_property
    def _gone(self) -> frozenset[ObjectRef]:
        """The workloads of which all pods are left out."""
        left_out = Counter(map(self._bound.workload, self._listed if self._all_but else ()))
        return frozenset(
            workload for workload, number in left_out.items() if number == len(self._bound.workloads[workload])
        )

    @cached_property
    def _all_but(self) -> bool:
        return self._inverted and 2 * len(self._value_of) >= len(self._bound.nodes)

    @cached_property
    def _listed(self) -> Sequence[PodRecord]:
        value_of = self._value_of
        selected = (pod for number in self._numbers for pod in self._bound.classes[number])
        if not self._inverted:
            return [pod for pod in selected if pod.node in value_of]
        nodes = self._bound.nodes
        if self._all_but:
            outside = [pod for node in self._bound.outside(self._domains) for pod in nodes.get(node, ())]
            return [*outside, *(pod for pod in selected if pod.node in value_of)]
        on_nodes = (pod for node in value_of for pod in nodes.get(node, ()))
        return [pod for pod in on_nodes if self._bound.number(pod) not in self._numbers]

    def _includes(self, pod: PodRecord) -> bool:
        return (self._bound.number(pod) in self._numbers) is not self._inverted and pod.node in self._value_of
