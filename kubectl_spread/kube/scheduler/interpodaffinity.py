"""Pod affinity and anti-affinity: which nodes do the required terms of a pod and of all other pods allow?

Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/interpodaffinity, PreFilter and Filter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TypeAlias

import msgspec

from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api import types
from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.types import LabelSelector, Node, Pod, PodAffinity, PodAffinityTerm
from kubectl_spread.kube.features import Behaviour

_EMPTY = LabelSelector()


class AffinityAnswer(StrEnum):
    """The Filter's answer for one node; every answer except the first refuses the node."""

    FEASIBLE = "feasible"
    NO_AFFINITY = "didn't match pod affinity rules"
    ANTI_AFFINITY = "didn't match pod anti-affinity rules"
    EXISTING_ANTI_AFFINITY = "didn't satisfy existing pods anti-affinity rules"
    UNPARSEABLE = "parsing pod"


class Term(msgspec.Struct, frozen=True):
    """A required term as the scheduler works with it; it selects pods in its namespaces and in selected ones."""

    topology_key: str
    selector: LabelSelector | None
    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None

    def matches(self, pod: Pod, namespace_labels: Labels) -> bool:
        """Tell whether the term selects ``pod``, whose namespace has ``namespace_labels``."""
        in_scope = pod.metadata.namespace in self.namespaces or labelselectors.matches(
            self.namespace_selector, namespace_labels
        )
        return in_scope and labelselectors.matches(self.selector, pod.metadata.labels)


_Domain: TypeAlias = tuple[str, str]
"""A topology key and one of its values."""


class PreFilterState(msgspec.Struct, frozen=True):
    """What decides for every node: the terms of the incoming pod, and the domains that pods in the cache make.

    Attributes:
        parses: Whether all terms of the incoming pod can be parsed.
        affinity: Its required affinity terms.
        anti_affinity: Its required anti-affinity terms.
        attracting: The domains of pods that all of its affinity terms select.
        excluded: The domains of pods that an anti-affinity term selects.
        repelling: The domains of pods with an anti-affinity term that selects it.
        starts_group: Whether it needs no other pod to satisfy its affinity.
    """

    parses: bool
    affinity: Sequence[Term]
    anti_affinity: Sequence[Term]
    attracting: frozenset[_Domain]
    excluded: frozenset[_Domain]
    repelling: frozenset[_Domain]
    starts_group: bool

    def filter(self, node: Node) -> AffinityAnswer:
        """Return the answer for a node."""
        if not self.parses:
            return AffinityAnswer.UNPARSEABLE
        domains = list(_domains(self.affinity, node))
        if len(domains) < len(self.affinity) or not (self.starts_group or self.attracting.issuperset(domains)):
            return AffinityAnswer.NO_AFFINITY
        if not self.excluded.isdisjoint(_domains(self.anti_affinity, node)):
            return AffinityAnswer.ANTI_AFFINITY
        if not self.repelling.isdisjoint(node.metadata.labels.items()):
            return AffinityAnswer.EXISTING_ANTI_AFFINITY
        return AffinityAnswer.FEASIBLE


def pre_filter(
    pod: Pod, others: Iterable[Pod], nodes: Mapping[str, Node], namespaces: Mapping[str, Labels], behaviour: Behaviour
) -> PreFilterState:
    """Prepare the filter for an incoming pod.

    Args:
        pod: The incoming pod.
        others: The pods in the scheduler's cache: bound and not finished, terminating or not.
        nodes: All nodes by name.
        namespaces: Maps a namespace's name to its labels.
        behaviour: How the scheduler behaves.
    """
    affinity = [unrolled(term, namespaces, behaviour) for term in affinity_terms(pod)]
    anti_affinity = [unrolled(term, namespaces, behaviour) for term in anti_affinity_terms(pod)]
    attracting: set[_Domain] = set()
    excluded: set[_Domain] = set()
    repelling: set[_Domain] = set()
    own_namespace = namespaces.get(pod.metadata.namespace, {})
    for neighbour in others:
        node = nodes.get(neighbour.spec.node_name)
        if node is None:
            continue
        if _matches_all(affinity, neighbour):
            attracting.update(_domains(affinity, node))
        excluded.update(_domains((term for term in anti_affinity if term.matches(neighbour, {})), node))
        repelling_terms = (term for term in anti_affinity_terms(neighbour) if term.matches(pod, own_namespace))
        repelling.update(_domains(repelling_terms, node))
    return PreFilterState(
        parses=parses(pod),
        affinity=affinity,
        anti_affinity=anti_affinity,
        attracting=frozenset(attracting),
        excluded=frozenset(excluded),
        repelling=frozenset(repelling),
        starts_group=not attracting and _matches_all(affinity, pod),
    )


def affinity_terms(pod: Pod) -> tuple[Term, ...]:
    """Return the required affinity terms of a pod; no terms if any of them cannot be parsed."""
    return _terms(None if pod.spec.affinity is None else pod.spec.affinity.pod_affinity, pod.metadata.namespace)


def anti_affinity_terms(pod: Pod) -> tuple[Term, ...]:
    """Return the required anti-affinity terms of a pod; no terms if any of them cannot be parsed."""
    return _terms(None if pod.spec.affinity is None else pod.spec.affinity.pod_anti_affinity, pod.metadata.namespace)


def preferred_terms(pod: Pod) -> tuple[tuple[Term, int], ...]:
    """Return the preferred terms of a pod with their weights, which are negative for anti-affinity."""
    affinity = pod.spec.affinity
    if affinity is None:
        return ()
    signed = ((affinity.pod_affinity, 1), (affinity.pod_anti_affinity, -1))
    return tuple(
        (_term(weighted.pod_affinity_term, pod.metadata.namespace), sign * weighted.weight)
        for terms, sign in signed
        if terms is not None
        for weighted in terms.preferred_during_scheduling_ignored_during_execution
        if _term_parses(weighted.pod_affinity_term)
    )


def parses(pod: Pod) -> bool:
    """Tell whether all terms of a pod can be parsed; the scheduler does not place a pod with others."""
    return all(_term_parses(term) for _, term, _ in types.affinity_terms(pod.spec))


def _terms(affinity: PodAffinity | None, namespace: str) -> tuple[Term, ...]:
    if affinity is None:
        return ()
    required = affinity.required_during_scheduling_ignored_during_execution
    if not all(_term_parses(term) for term in required):
        return ()
    return tuple(_term(term, namespace) for term in required)


def _term(term: PodAffinityTerm, namespace: str) -> Term:
    """Return a term of a pod in ``namespace``, which is the term's namespace unless the term names others."""
    own_only = not term.namespaces and term.namespace_selector is None
    return Term(
        topology_key=term.topology_key,
        selector=term.label_selector,
        namespaces=frozenset([namespace] if own_only else term.namespaces),
        namespace_selector=term.namespace_selector,
    )


def _term_parses(term: PodAffinityTerm) -> bool:
    selectors = (term.label_selector, term.namespace_selector)
    return all(selector is None or labelselectors.valid(selector) for selector in selectors)


def unrolled(term: Term, namespaces: Mapping[str, Labels], behaviour: Behaviour) -> Term:
    """Return an incoming pod's term with the names of the namespaces that its selector selects.

    Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/interpodaffinity/plugin.go,
    mergeAffinityTermNamespacesIfNotEmpty.
    """
    selector = term.namespace_selector
    if selector == _EMPTY:
        return term
    selected = {name for name, labels in namespaces.items() if labelselectors.matches(selector, labels)}
    return Term(
        topology_key=term.topology_key,
        selector=term.selector,
        namespaces=term.namespaces | selected,
        namespace_selector=selector if behaviour.matches_namespace_selectors_twice else None,
    )


def _matches_all(terms: Sequence[Term], pod: Pod) -> bool:
    """Tell whether all terms select ``pod``; their selected namespaces are named in them."""
    return all(term.matches(pod, {}) for term in terms)


def _domains(terms: Iterable[Term], node: Node) -> Iterator[_Domain]:
    for term in terms:
        value = node.metadata.labels.get(term.topology_key)
        if value is not None:
            yield term.topology_key, value
