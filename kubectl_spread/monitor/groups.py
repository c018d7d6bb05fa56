"""Counting groups: the workloads whose evaluation depends on each other's pods and templates.

Workloads are in one group if a selector of one selects pods or a template of the other. The widest selector that any
answer uses decides: that of a spread constraint without the merged part. So the evaluation of a group alone gives the
answers that the evaluation of the whole cluster gives for its workloads.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec

from kubectl_spread.audit.evaluation.affinity import own_terms
from kubectl_spread.audit.merge.admission_check import AdmissionCheck
from kubectl_spread.audit.snapshot.digests import digest
from kubectl_spread.audit.snapshot.labelled import Labelled
from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.audit.snapshot.templates import PRESUMED
from kubectl_spread.diagnosis.running_pods import RunningPods
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import LabelSelector
from kubectl_spread.monitor.namespaces import NamespaceContent
from kubectl_spread.report import model

_T = TypeVar("_T", bound=Hashable)
_PLAIN: Final = re.compile(r"[A-Za-z0-9.-]{1,253}")
"""The kinds and names that Kubernetes itself lets an object have, at least; labels in metrics have them as they are."""


class CountingGroup(msgspec.Struct, eq=False):
    """Workloads that are evaluated together, and the result of their evaluation.

    Attributes:
        workloads: The workloads.
        part: Their part of the report; None where nothing of them is in scope.
        running_pods: The running pods of the workloads that have replicas.
        needs_gates: Whether the part depends on feature gates that the version of the API server does not decide.
        budgets_of: The namespaces whose PodDisruptionBudgets the part depends on.
        admission: The answers about what an API server accepts, which counts do not change; None without evaluation.
    """

    workloads: frozenset[ObjectRef]
    part: model.Report | None = None
    running_pods: tuple[RunningPods, ...] = ()
    needs_gates: bool = False
    budgets_of: frozenset[str] = frozenset()
    admission: AdmissionCheck | None = None


class Reach(NamedTuple):
    """A selector, and the namespaces of the pods that it may select; None: any namespace."""

    selector: LabelSelector
    namespaces: frozenset[str] | None


class Sets(Generic[_T]):
    """Disjoint sets of values, which are joined."""

    def __init__(self) -> None:
        """Start without values."""
        self._parents: dict[_T, _T] = {}

    def first(self, value: _T) -> _T:
        """Return the value that stands for the set of a value, which is added if it is new."""
        parents = self._parents
        parent = parents.setdefault(value, value)
        while parent != value:
            parents[value] = parents[parent]
            value, parent = parent, parents[parent]
        return value

    def join(self, values: Iterable[_T]) -> None:
        """Join the sets of some values."""
        first: _T | None = None
        for value in values:
            root = self.first(value)
            if first is None:
                first = root
            elif root != first:
                self._parents[root] = first

    def __iter__(self) -> Iterator[list[_T]]:
        """Yield the sets."""
        sets: dict[_T, list[_T]] = {}
        for value in self._parents:
            sets.setdefault(self.first(value), []).append(value)
        return iter(sets.values())


class Reaches:
    """The reach of each class of pods, computed once."""

    def __init__(self) -> None:
        """Start empty."""
        self._of_class: dict[PodClass, tuple[Reach, ...]] = {}

    def of(self, pod_class: PodClass) -> tuple[Reach, ...]:
        """Return the reaches of pods of a class."""
        if pod_class not in self._of_class:
            self._of_class[pod_class] = tuple(_reaches(pod_class))
        return self._of_class[pod_class]

    def keep_only(self, contents: Iterable[NamespaceContent]) -> None:
        """Forget the classes without pods, if they are many."""
        if len(self._of_class) > 2 * sum(len(content.classes) for content in contents):
            self._of_class.clear()

    def beyond(self, namespace: str, content: NamespaceContent) -> frozenset[str] | None:
        """Return the other namespaces whose pods may concern pods of a namespace; None: all of them."""
        reached: set[str] = set()
        for reach in (reach for pod_class in content.classes for reach in self.of(pod_class)):
            if reach.namespaces is None:
                return None
            reached |= reach.namespaces
        return frozenset(reached - {namespace})


def _reaches(pod_class: PodClass) -> Iterator[Reach]:
    """Yield the selectors of spread constraints, without the merged parts, and of required affinity terms."""
    own = frozenset((pod_class.namespace,))
    for term, split in zip(pod_class.terms, pod_class.splits, strict=True):
        if term.spread and split.authored is not None:
            yield Reach(split.authored, own)
    for required in own_terms(pod_class):
        if required.selector is not None:
            anywhere = required.namespace_selector is not None
            yield Reach(required.selector, None if anywhere else required.namespaces)


def regions(beyond: Mapping[str, frozenset[str] | None]) -> Iterable[frozenset[str]]:
    """Return the namespaces in sets whose pods concern each other.

    Args:
        beyond: For each namespace the others whose pods may concern its own; None: all of them.
    """
    sets: Sets[str] = Sets()
    for namespace, others in beyond.items():
        sets.join((namespace, *(beyond if others is None else others & beyond.keys())))
    return [frozenset(namespaces) for namespaces in sets]


def groups(region: Mapping[str, NamespaceContent], reaches: Reaches) -> Iterable[frozenset[ObjectRef]]:
    """Return the counting groups of the workloads in some namespaces, whose content has been assigned."""
    workloads: Sets[ObjectRef] = Sets()
    links = _Links(region)
    for namespace, content in region.items():
        for workload in content.workloads():
            workloads.first(workload)
        workloads.join(_bare_with_terms(content))
        for sharing in _sharing_series(content):
            workloads.join(sharing)
        for reach, reaching in _reaching(namespace, content, reaches):
            selected = links.selected(reach)
            if selected:
                workloads.join((*reaching, *selected))
    return [frozenset(group) for group in workloads]


def _bare_with_terms(content: NamespaceContent) -> Iterator[ObjectRef]:
    """Yield the pods without owner that have terms: to each of them the others are siblings."""
    for pod_class in content.classes:
        if pod_class.owner is None and pod_class.terms:
            yield from content.of_class(pod_class)


def _sharing_series(content: NamespaceContent) -> Iterable[list[ObjectRef]]:
    """Return the workloads in sets whose labels in metrics may be equal.

    An owner reference may have any kind and name, so kinds may differ only in case. Names that a label has only
    escaped or shortened are all in one set.
    """
    sharing: dict[tuple[str, str], list[ObjectRef]] = {}
    for workload in content.workloads():
        plain = _PLAIN.fullmatch(workload.kind) and _PLAIN.fullmatch(workload.name)
        sharing.setdefault((workload.kind.lower(), workload.name) if plain else ("", ""), []).append(workload)
    return sharing.values()


def _reaching(
    namespace: str, content: NamespaceContent, reaches: Reaches
) -> Iterator[tuple[Reach, Iterable[ObjectRef]]]:
    """Yield each reach with the workloads that have it."""
    for pod_class in content.classes:
        for reach in reaches.of(content.with_defaults(pod_class)):
            yield reach, content.of_class(pod_class)
    own = frozenset((namespace,))
    for holder, template in content.templates.items():
        for term in template.terms:
            if term.spread and term.selector is not None:
                yield Reach(term.selector, own), (content.of_template(holder),)


class _Links:
    """The workloads that selectors select, by the labels of their pods and templates."""

    def __init__(self, region: Mapping[str, NamespaceContent]) -> None:
        self._labelled = {namespace: _labelled(content) for namespace, content in region.items()}
        self._presumed = frozenset(
            key
            for content in region.values()
            for template in content.templates.values()
            for key, value in template.labels.items()
            if value == PRESUMED
        )
        self._selected: dict[tuple[bytes, frozenset[str] | None], list[ObjectRef]] = {}

    def selected(self, reach: Reach) -> list[ObjectRef]:
        """Return the workloads that a selector may select; a label that a controller will set may have any value."""
        key = (digest(reach.selector), reach.namespaces)
        if key not in self._selected:
            selector = reach.selector
            if labelselectors.valid(selector) and not self._presumed.isdisjoint(labelselectors.keys(selector)):
                selector = _without_keys(selector, self._presumed)
            namespaces = self._labelled if reach.namespaces is None else reach.namespaces & self._labelled.keys()
            self._selected[key] = [
                workload
                for namespace in namespaces
                for _, workloads in self._labelled[namespace].selected(selector)
                for workload in workloads
            ]
        return self._selected[key]


def _labelled(content: NamespaceContent) -> Labelled[Iterable[ObjectRef]]:
    labelled: Labelled[Iterable[ObjectRef]] = Labelled()
    for pod_class in content.classes:
        labelled.add(pod_class.labels, content.of_class(pod_class))
    for holder, template in content.templates.items():
        labels = {key: value for key, value in template.labels.items() if value != PRESUMED}
        labelled.add(labels, (content.of_template(holder),))
    return labelled


def _without_keys(selector: LabelSelector, keys: frozenset[str]) -> LabelSelector:
    return msgspec.structs.replace(
        selector,
        match_labels={key: value for key, value in selector.match_labels.items() if key not in keys},
        match_expressions=tuple(each for each in selector.match_expressions if each.key not in keys),
    )
