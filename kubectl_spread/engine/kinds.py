"""Kinds: the facts that kube-scheduler reads of a pod, shared by all pods that it cannot tell apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from kubectl_spread.audit.evaluation.affinity import own_terms
from kubectl_spread.audit.snapshot.records import ENCODER, PodClass
from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import ANYWHERE, Labelled, Labels, Selecting
from kubectl_spread.kube.api.types import LabelSelector, NodeInclusionPolicy, ObjectMeta, Pod, PodSpec
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.scheduler import interpodaffinity, nodeports, scores
from kubectl_spread.kube.scheduler.interpodaffinity import Term
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import (
    Constraint,
    effective_selector,
    working_constraint,
)

_HARD_AFFINITY_WEIGHT: Final = 1
"""What a required affinity term of another pod adds to the score of its domain."""
ASSUMED_CPU: Final = "assumed cpu"
ASSUMED_MEMORY: Final = "assumed memory"
"""The amounts that LeastAllocated sums up, next to the requests; no resource has such a name."""


class HeldTerm(msgspec.Struct, frozen=True, eq=False):
    """A term of running pods that acts on other pods.

    Attributes:
        term: The term.
        weight: What it adds to the score of its domain; None for required anti-affinity, which refuses the domain.
    """

    term: Term
    weight: int | None


class SchedulingKind(msgspec.Struct, frozen=True, eq=False):
    """The facts that the scheduler reads of pods; compared by identity.

    Attributes:
        pod_class: The class of one of the pods.
        pod: A pod with only namespace and labels, which affinity terms may select.
        requests: The resources that it needs.
        usage: The amounts that it takes from a node, with host ports and with what the scores assume.
        excluding: The host ports with which it cannot be on one node, by the names that usage has.
        assumed: The cpu and memory that the scores assume while it is placed.
        priority: Its priority.
        preempts: Whether it may preempt pods with a lower priority.
        hard: Its hard constraints.
        soft: Its soft constraints.
        all_keys: Whether a node without the topology key of any soft constraint has the worst score.
        affinity: Its required affinity terms.
        anti_affinity: Its required anti-affinity terms.
        preferred: Its preferred terms and their weights.
        held: Its terms that act on other pods.
        parses: Whether the scheduler can parse all selectors that it needs.
        ranks: Whether it can also parse those that it needs to choose one of several nodes.
        terminating: Whether the pods are being deleted: they take room and repel others, and no constraint counts them.
    """

    pod_class: PodClass
    pod: Pod
    requests: tuple[tuple[str, int], ...]
    usage: tuple[tuple[str, int], ...]
    excluding: tuple[str, ...]
    assumed: tuple[int, int]
    priority: int
    preempts: bool
    hard: tuple[Constraint, ...]
    soft: tuple[Constraint, ...]
    all_keys: bool
    affinity: tuple[Term, ...]
    anti_affinity: tuple[Term, ...]
    preferred: tuple[tuple[Term, int], ...]
    held: tuple[HeldTerm, ...]
    parses: bool
    ranks: bool
    terminating: bool = False

    @property
    def namespace(self) -> str:
        """The namespace of the pods."""
        return self.pod_class.namespace

    @property
    def labels(self) -> Labels:
        """The labels of the pods."""
        return self.pod_class.labels


class Kinds:
    """The kinds of all pods of a simulation, which its runs share."""

    def __init__(self, behaviour: Behaviour, namespaces: Mapping[str, Labels]) -> None:
        """Read constraints by ``behaviour``; ``namespaces`` maps names to labels."""
        self._behaviour = behaviour
        self._namespaces = namespaces
        self._of_class: dict[tuple[PodClass, bool], SchedulingKind] = {}
        self._by_content: dict[tuple[bytes, bool], SchedulingKind] = {}
        self._labelled: dict[str, Labelled[SchedulingKind]] = {}
        self._held: dict[bytes, HeldTerm] = {}
        self._acting_on = Selecting[HeldTerm]()
        self._selector_keys: dict[int, bytes] = {}
        self._acting: dict[SchedulingKind, tuple[int, Sequence[HeldTerm]]] = {}
        self._holders: dict[HeldTerm, list[SchedulingKind]] = {}

    def of(self, pod_class: PodClass, *, terminating: bool = False) -> SchedulingKind:
        """Return the kind of pods of a class."""
        kind = self._of_class.get((pod_class, terminating))
        if kind is None:
            key = (_content(pod_class), terminating)
            kind = self._by_content.get(key)
            if kind is None:
                kind = self._by_content[key] = replace(self._make(pod_class), terminating=terminating)
                self._labelled.setdefault(pod_class.namespace, Labelled()).add(pod_class.labels, kind)
                for held in kind.held:
                    self._holders.setdefault(held, []).append(kind)
            self._of_class[pod_class, terminating] = kind
        return kind

    def unread_namespaces(self) -> list[str]:
        """Return the namespaces of pods that a term may select by their labels, which were not read."""
        if not any(_selects_namespaces(held.term) for held in self._held.values()):
            return []
        return sorted(self._labelled.keys() - self._namespaces.keys())

    def asks_for_unread_namespaces(self, kind: SchedulingKind) -> bool:
        """Tell whether a required term, of the pods or of others, selects namespaces by labels that were not read."""
        if any(map(_selects_namespaces, own_terms(kind.pod_class))) and not self._namespaces:
            return True
        repelling = (held.term for held in self._held.values() if held.weight is None)
        return kind.namespace not in self._namespaces and any(map(_selects_namespaces, repelling))

    def selected(self, namespace: str, selector: LabelSelector | None) -> Iterator[SchedulingKind]:
        """Yield the kinds of a namespace that a selector selects."""
        if selector is not None and namespace in self._labelled:
            yield from (kind for _, kind in self._labelled[namespace].selected(selector))

    def selector_key(self, constraint: Constraint) -> bytes:
        """Return a value that is equal for constraints that select the same pods of a namespace."""
        key = self._selector_keys.get(id(constraint))
        if key is None:
            # Kinds keep their constraints, so that no other object gets this identity.
            key = self._selector_keys[id(constraint)] = ENCODER.encode((constraint.selector, constraint.counts))
        return key

    def matching(self, terms: Sequence[Term]) -> Iterator[SchedulingKind]:
        """Yield the kinds that all of some unrolled terms select."""
        first = terms[0]
        anywhere = first.namespace_selector is not None
        for namespace in list(self._labelled) if anywhere else sorted(first.namespaces):
            for kind in self.selected(namespace, first.selector):
                if all(term.matches(kind.pod, {}) for term in terms):
                    yield kind

    def holders(self, held: HeldTerm) -> Sequence[SchedulingKind]:
        """Return the kinds with a term of running pods; one that has it twice is there twice."""
        return self._holders.get(held, ())

    @property
    def number_of_terms(self) -> int:
        """The number of distinct terms of pods that act on other pods."""
        return len(self._held)

    def acting_on(self, kind: SchedulingKind) -> Sequence[HeldTerm]:
        """Return the terms of any pods that select pods of a kind."""
        acting = self._acting.get(kind)
        if acting is None or acting[0] != len(self._held):
            labels = self._namespaces.get(kind.namespace, {})
            filed = dict.fromkeys(self._acting_on.that_may_select(kind.namespace, kind.labels))
            acting = (len(self._held), [held for held in filed if held.term.matches(kind.pod, labels)])
            self._acting[kind] = acting
        return acting[1]

    def _make(self, pod_class: PodClass) -> SchedulingKind:
        spec = pod_class.spec
        metadata = ObjectMeta(namespace=pod_class.namespace, labels=dict(pod_class.labels))
        pod = Pod(metadata=metadata, spec=PodSpec(affinity=spec.affinity))
        constraints = [*self._constraints(pod_class)]
        preferred = interpodaffinity.preferred_terms(pod)
        requests = dict(pod_class.requests or {})
        running, incoming = _assumed(pod_class)
        ports = nodeports.host_ports(spec)
        usage = {**requests, ASSUMED_CPU: running[0], ASSUMED_MEMORY: running[1]}
        usage |= {name: 1 for port in ports for name in port.taken}
        required = interpodaffinity.affinity_terms(pod)
        repelling = interpodaffinity.anti_affinity_terms(pod)
        held = (
            *((term, None) for term in repelling),
            *((term, _HARD_AFFINITY_WEIGHT) for term in required),
            *preferred,
        )
        return SchedulingKind(
            pod_class=pod_class,
            pod=Pod(metadata=metadata),
            requests=tuple((name, amount) for name, amount in sorted(requests.items()) if amount > 0),
            usage=tuple(sorted(usage.items())),
            excluding=nodeports.excluding(spec),
            assumed=incoming,
            priority=pod_class.priority or 0,
            preempts=pod_class.preempts,
            hard=tuple(constraint for constraint in constraints if constraint.hard),
            soft=tuple(constraint for constraint in constraints if not constraint.hard),
            all_keys=not any(constraint.lenient for constraint in constraints),
            affinity=tuple(map(self._unrolled, required)),
            anti_affinity=tuple(map(self._unrolled, repelling)),
            preferred=tuple((self._unrolled(term), weight) for term, weight in preferred),
            held=tuple(self._hold(term, weight) for term, weight in held),
            parses=unparsed(pod_class, hard=True) is None,
            ranks=unparsed(pod_class, hard=False) is None,
        )

    def _constraints(self, pod_class: PodClass) -> Iterator[Constraint]:
        """Yield the constraints of a pod that is to be placed, as far as its scheduler respects them."""
        behaviour, profile = self._behaviour, pod_class.profile
        for term in pod_class.terms:
            if term.constraint is None or term.parse_error:
                continue
            keys = term.match_label_keys if behaviour.scheduler_adds_match_label_keys else ()
            selector = effective_selector(term.selector, keys, pod_class.labels)
            lenient = term.default and profile is not None and profile.system_defaults
            if profile is None or profile.respects(hard=term.required):
                constraint = working_constraint(term.constraint, selector, behaviour, lenient=lenient)
                # Of the nodes only that of a pinned pod matches its affinity, so no domain is fuller than another.
                if not (pod_class.pinned and constraint.node_affinity_policy is NodeInclusionPolicy.HONOR):
                    yield constraint

    def _unrolled(self, term: Term) -> Term:
        return interpodaffinity.unrolled(term, self._namespaces, self._behaviour)

    def _hold(self, term: Term, weight: int | None) -> HeldTerm:
        """Return a term of running pods, filed under its namespaces and a label that it requires."""
        key = ENCODER.encode(
            (term.topology_key, term.selector, sorted(term.namespaces), term.namespace_selector, weight)
        )
        if key not in self._held:
            held = self._held[key] = HeldTerm(term, weight)
            for namespace in (ANYWHERE,) if term.namespace_selector is not None else sorted(term.namespaces):
                self._acting_on.add(namespace, term.selector, held)
        return self._held[key]


def _selects_namespaces(term: Term) -> bool:
    return term.namespace_selector is not None and not labelselectors.is_empty(term.namespace_selector)


def unparsed(pod_class: PodClass, *, hard: bool) -> TopologyTerm | None:
    """Return the first term of pods with a selector that the scheduler cannot parse, and on which it fails; None: none.

    Hard constraints and all affinity terms fail the attempt before the scheduler looks at a node; soft constraints
    fail it only if there is more than one node to choose from.

    Source: kubernetes v1.37.1 pkg/scheduler/schedule_one.go, schedulePod, and the PreFilter and PreScore of
    podtopologyspread and interpodaffinity.
    """
    for term in pod_class.terms:
        soft = term.spread and not term.required
        respected = not term.spread or pod_class.profile is None or pod_class.profile.respects(hard=term.required)
        if soft is not hard and respected and term.parse_error:
            return term
    return None


def _assumed(pod_class: PodClass) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the cpu and memory that the scores assume for a running pod, and while it is placed."""
    if pod_class.requests is None:
        return (0, 0), (0, 0)
    return scores.assumed_requests(pod_class.spec), scores.assumed_requests_of_incoming(pod_class.spec)


def _content(pod_class: PodClass) -> bytes:
    """Return the parts of a class that the scheduler reads."""
    spec, terms = pod_class.spec, [(term.constraint, term.selector, term.default) for term in pod_class.terms]
    return ENCODER.encode(
        (
            pod_class.namespace,
            sorted(pod_class.labels.items()),
            terms,
            (spec.node_selector, pod_class.placement.affinity, spec.affinity, spec.tolerations),
            None if pod_class.requests is None else sorted(pod_class.requests.items()),
            _assumed(pod_class),
            nodeports.host_ports(spec),
            pod_class.scheduler_name,
            pod_class.priority,
            pod_class.preempts,
        )
    )


def selects(constraint: Constraint, kind: SchedulingKind) -> bool:
    """Tell whether pods of a kind count for a constraint of a pod in their namespace."""
    return constraint.counts and not kind.terminating and labelselectors.matches(constraint.selector, kind.labels)
