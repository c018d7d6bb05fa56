"""Evaluators: the verdicts and counts of each class of pods, computed once, from pods counted by label set and node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

import msgspec

from kubectl_spread.audit.merge.admission import AdmissionCheck
from kubectl_spread.audit.merge.verdicts import BINDING_KEYS, KeyVerdict, Provenance, ServerFacts, Verdict, judge
from kubectl_spread.audit.snapshot.records import PodClass, PodRecord, Population, digest
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.audit.snapshot.templates import Template, labels_of_controller
from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.kube import apiserver
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import LabelSelector, Node, ObjectMeta
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.scheduler.configuration import Profile
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import (
    Constraint,
    counts_nothing,
    effective_selector,
    working_constraint,
)
from kubectl_spread.kube.scheduler.podtopologyspread.domains import Domains, NodeSets, Placement, UsableNodes
from kubectl_spread.kube.scheduler.podtopologyspread.scoring import lenient_domains
from kubectl_spread.kube.scheduler.podtopologyspread.spread import (
    FilterAnswer,
    MatchNum,
    Spread,
    count_answers,
    pods_per_domain,
)
from kubectl_spread.memoization import memoized

KeyVerdicts = tuple[tuple[KeyVerdict, ...], ...]
"""The verdicts on every key, one tuple a term."""

FIXED_TEMPLATES: Final = frozenset({"ReplicaSet", "Job"})
"""Kinds whose pod template never changes; that of a StatefulSet may get a label after a pod was created."""
_SETTLED: Final = frozenset(Verdict) - {
    Verdict.STALE_LABEL,
    Verdict.REMOVED_LABEL,
    Verdict.LATE_LABEL,
    Verdict.UNMERGED,
    Verdict.PRE_UPGRADE,
}
"""Verdicts that look the same on every pod of a class; the others depend on each pod's own history."""


class ClassEvaluation(msgspec.Struct, frozen=True, dict=True):
    """The verdicts and counts of every pod of a class.

    ``effective`` holds one selector a term; ``spreads`` one count a term, None for affinity terms
    and wherever placement is not evaluated. ``node_answers`` counts the Filter's answers.
    """

    pod_class: PodClass
    verdicts: KeyVerdicts
    effective: tuple[LabelSelector | None, ...]
    spreads: tuple[Spread | None, ...]
    node_answers: Counter[FilterAnswer] | None
    lower_bound: bool

    @cached_property
    def settled(self) -> bool:
        """Whether the verdicts need nothing that differs between the pods of a class."""
        return all(key.verdict in _SETTLED for keys in self.verdicts for key in keys)

    @cached_property
    def hard(self) -> Sequence[Spread]:
        """The counts of the hard constraints."""
        return [spread for spread in self.spreads if spread is not None and spread.constraint.hard]


class Evaluator:
    """Evaluates classes of pods of one snapshot."""

    def __init__(self, snapshot: Snapshot, context: ServerFacts, *, nodes: str) -> None:
        """Evaluate by ``context``; ``nodes`` is ``listed``, ``inferred`` or ``none``."""
        self._snapshot = snapshot
        self._context = context
        self._mode = nodes
        behaviour = context.behaviour
        listed = nodes == "listed"
        self.node_sets = NodeSets(snapshot.nodes if listed else inferred_nodes(snapshot), behaviour)
        self.census = Census(snapshot, self.node_sets, context.behaviour)
        self._alike: dict[object, ClassEvaluation] = {}
        self._verdicts: dict[KeyVerdicts, KeyVerdicts] = {}

    @property
    def lists_nodes(self) -> bool:
        """Whether the nodes were read, and not inferred from pods."""
        return self._mode == "listed"

    def with_behaviour(self, behaviour: Behaviour) -> Evaluator:
        """Return an evaluator of the same snapshot by another behaviour."""
        return Evaluator(self._snapshot, msgspec.structs.replace(self._context, behaviour=behaviour), nodes=self._mode)

    def of(self, pod_class: PodClass) -> ClassEvaluation:
        """Return the evaluation of a class, which shares the parts of that of a like class."""
        key = self._likeness(pod_class)
        alike = self._alike.get(key)
        if alike is not None:
            return msgspec.structs.replace(alike, pod_class=pod_class)
        return self._alike.setdefault(key, self._evaluated(pod_class))

    def verdicts(self, pod: PodRecord) -> KeyVerdicts:
        """Return the verdicts on one pod, with its own history as evidence; a settled class needs none."""
        pod_class = pod.pod_class
        chain = self._snapshot.owner_chain(pod)
        provenance = Provenance(
            stored=pod_class.stored,
            generation=pod.generation,
            created=pod.created,
            owners=pod.owners,
            # Not the Deployment's: it may have changed since its ReplicaSet was made.
            template_keys=chain[0].template_keys if chain else frozenset(),
            template_fixed=bool(chain) and chain[0].ref.kind in FIXED_TEMPLATES,
            controller_keys=frozenset(labels_of_controller(chain[0].ref.kind)) if chain else frozenset(),
            authored_keys=chain[0].authored_keys if chain else frozenset(),
        )
        return judge(
            pod_class.terms,
            pod_class.splits,
            pod_class.labels,
            bound=pod_class.bound,
            context=self._context,
            provenance=provenance,
        )

    def _likeness(self, pod_class: PodClass) -> tuple[object, ...]:
        """Return a key with everything that an evaluation depends on, so without labels that no term names."""
        terms, where = pod_class.terms, pod_class.placement
        # Classes outlive evaluators, so that an identity is never given to another object.
        parts = (terms, pod_class.splits, where.node_selector or None, where.affinity, where.tolerations)
        others = (pod_class.namespace, pod_class.scheduler_name, pod_class.bound, pod_class.pinned)
        return (*map(id, parts), *others, *map(pod_class.labels.get, _named(terms)))

    def _evaluated(self, pod_class: PodClass) -> ClassEvaluation:
        context = self._context
        verdicts = judge(pod_class.terms, pod_class.splits, pod_class.labels, bound=pod_class.bound, context=context)
        verdicts = self._verdicts.setdefault(verdicts, verdicts)
        effective = tuple(
            _effective(term, keys, pod_class, context.behaviour)
            for term, keys in zip(pod_class.terms, verdicts, strict=True)
        )
        spreads, answer = self._place(pod_class, effective)
        return ClassEvaluation(pod_class, verdicts, effective, spreads, answer, self._mode == "inferred")

    def _place(
        self, pod_class: PodClass, effective: Sequence[LabelSelector | None]
    ) -> tuple[tuple[Spread | None, ...], Counter[FilterAnswer] | None]:
        uncounted = tuple(None for _ in pod_class.terms)
        profile = pod_class.profile
        if self._mode == "none" or pod_class.pinned or profile is None:
            return uncounted, None
        if self._mode == "inferred":
            return _respected(self._place_by_pods(pod_class, effective), profile), None
        behaviour = self._context.behaviour
        constraints = [
            working_constraint(term.constraint, selector, behaviour, lenient=term.default and profile.system_defaults)
            for term, selector in zip(pod_class.terms, effective, strict=True)
            if term.constraint is not None
        ]
        if not constraints:
            return uncounted, None
        spreads = self.census.spreads(pod_class.namespace, pod_class.labels, constraints, pod_class.placement)
        unread = [term for term in pod_class.terms if term.spread and term.parse_error]
        answers = profile.filters and not any(term.required for term in unread)
        answer = count_answers(spreads, self.node_sets) if answers else None
        counted = tuple(
            None if term in unread else spread for term, spread in zip(pod_class.terms, spreads, strict=False)
        )
        return _respected((*counted, *uncounted[len(spreads) :]), profile), answer

    def _place_by_pods(
        self, pod_class: PodClass, effective: Sequence[LabelSelector | None]
    ) -> tuple[Spread | None, ...]:
        """Count zones and regions by the pods' own labels, except constraints that may exclude nodes."""
        spreads: list[Spread | None] = []
        anywhere = Placement({}, None, ())
        for term, selector in zip(pod_class.terms, effective, strict=True):
            if term.constraint is None or term.topology_key not in BINDING_KEYS:
                spreads.append(None)
                continue
            constraint = working_constraint(term.constraint, selector, self._context.behaviour)
            if pod_class.placement.restricts(constraint):
                spreads.append(None)
                continue
            (spread,) = self.census.spreads(pod_class.namespace, pod_class.labels, [constraint], anywhere)
            spreads.append(spread)
        return tuple(spreads)


class Comparison:
    """The same snapshot by another behaviour; every answer is computed once, at first use.

    Attributes:
        behaviour: The behaviour.
        minors: The minors that have it.
        admission: The API server's answers.
    """

    def __init__(
        self, behaviour: Behaviour, minors: Sequence[int], evaluator: Evaluator, templates: Iterable[Template]
    ) -> None:
        """Compare ``behaviour`` with that of ``evaluator``."""
        self.behaviour = behaviour
        self.minors = minors
        self._compared = evaluator
        self.admission = AdmissionCheck(behaviour)
        self._templates: dict[ObjectRef, list[Template]] = {}
        for template in templates:
            self._templates.setdefault(template.workload, []).append(template)

    @cached_property
    def evaluator(self) -> Evaluator:
        """The scheduler's answers."""
        return self._compared.with_behaviour(self.behaviour)

    def templates(self, workload: ObjectRef) -> list[Template]:
        """Return the templates of a workload."""
        return self._templates.get(workload, [])


def comparisons(context: ServerFacts, evaluator: Evaluator, templates: Iterable[Template]) -> tuple[Comparison, ...]:
    """Return a comparison for each other behaviour on the way to another Kubernetes, in the order of the way."""
    own = msgspec.structs.replace(context.behaviour, minor=0)
    on_the_way: dict[Behaviour, list[Behaviour]] = {}
    for behaviour in context.extra_checks.upgrade:
        on_the_way.setdefault(msgspec.structs.replace(behaviour, minor=0), []).append(behaviour)
    return tuple(
        Comparison(alike[0], [each.minor for each in alike], evaluator, templates)
        for behaviour, alike in on_the_way.items()
        if behaviour != own
    )


def _named(terms: Iterable[TopologyTerm]) -> tuple[str, ...]:
    keys: set[str] = set()
    for term in terms:
        keys.update(term.match_label_keys, term.mismatch_label_keys)
        if term.selector is not None:
            keys |= labelselectors.keys(term.selector)
    return tuple(keys)


def _respected(spreads: Iterable[Spread | None], profile: Profile) -> tuple[Spread | None, ...]:
    """Return the counts of the constraints that a scheduler respects, and None for the others."""
    return tuple(spread if spread and profile.respects(hard=spread.constraint.hard) else None for spread in spreads)


def merged_selector(term: TopologyTerm, pod_class: PodClass, authored: LabelSelector | None) -> LabelSelector | None:
    """Return ``authored`` as the API server would store it for today's labels; keys written at binding are left out."""
    return apiserver.merged_selector(
        authored,
        pod_class.labels,
        [key for key in term.match_label_keys if not _written_at_binding(term, key, pod_class)],
        [key for key in term.mismatch_label_keys if not _written_at_binding(term, key, pod_class)],
    )


def inferred_nodes(snapshot: Snapshot) -> list[Node]:
    """Return nodes with the zone and region labels that binding writes to the pods on them, from 1.35 on."""
    labels: dict[str, dict[str, str]] = {}
    for population in snapshot.populations().values():
        for pod_labels, per_node in population:
            domains = {key: pod_labels[key] for key in BINDING_KEYS if key in pod_labels}
            for node in per_node:
                of_node = labels.setdefault(node, {})
                of_node.update({key: min(value, of_node.get(key, value)) for key, value in domains.items()})
    return [Node(metadata=ObjectMeta(name=name, labels=of_node)) for name, of_node in labels.items()]


def _written_at_binding(term: TopologyTerm, key: str, pod_class: PodClass) -> bool:
    if not pod_class.bound or key not in BINDING_KEYS or term.selector is None:
        return False
    named = (*term.selector.match_labels, *(item.key for item in term.selector.match_expressions))
    return key not in named


def _effective(
    term: TopologyTerm, keys: Sequence[KeyVerdict], pod_class: PodClass, behaviour: Behaviour
) -> LabelSelector | None:
    """Return the selector that the scheduler works with; for an affinity term, the stored selector."""
    if not term.spread:
        return term.selector
    at_binding = {key.key for key in keys if key.verdict is Verdict.BIND_LABEL}
    added = term.match_label_keys if behaviour.scheduler_adds_match_label_keys else ()
    effective = effective_selector(term.selector, [key for key in added if key not in at_binding], pod_class.labels)
    # Equal selectors share one object, which saves memory.
    return term.selector if effective == term.selector else effective


class Census:
    """Counts matching pods per node and per domain, once for each selection of pods, and spreads, once a constraint."""

    def __init__(self, snapshot: Snapshot, nodes: NodeSets, behaviour: Behaviour) -> None:
        """Count the pods of ``snapshot`` on ``nodes``."""
        self.nodes = nodes
        self._snapshot = snapshot
        self._behaviour = behaviour
        self._lenient: dict[object, Domains] = {}
        self._spreads: dict[object, Spread] = {}

    def spreads(
        self, namespace: str, labels: Labels, constraints: Sequence[Constraint], placement: Placement
    ) -> tuple[Spread, ...]:
        """Count every constraint of one pod, in the pod's order."""
        carrying = {
            hard: self.nodes.carrying(other.topology_key for other in constraints if other.hard is hard)
            for hard in {constraint.hard for constraint in constraints}
        }
        usable = self.nodes.usable(placement)
        return tuple(
            self._spread(namespace, labels, constraint, self._domains(constraint, carrying[constraint.hard], usable))
            for constraint in constraints
        )

    def _domains(self, constraint: Constraint, carrying: int, usable: UsableNodes) -> Domains:
        if not constraint.lenient:
            return self.nodes.eligible_domains(constraint, carrying, usable)
        question = (constraint.topology_key, constraint.node_affinity_policy, usable)
        if question not in self._lenient:
            self._lenient[question] = lenient_domains(constraint, self.nodes, usable)
        return self._lenient[question]

    def matching(self, namespace: str, selector: LabelSelector | None) -> Mapping[str, int]:
        """Map a node's name to its number of pods in ``namespace`` that count for ``selector``."""
        if selector is None or counts_nothing(selector, self._behaviour):
            return {}
        counts = self._counts_of(namespace)
        return counts.per_node(counts.selection(selector))

    def terminating(self, namespace: str, spread: Spread) -> Mapping[str, int]:
        """Return the number of terminating pods that match in each eligible domain with any."""
        selector = spread.constraint.selector
        if selector is None or not spread.constraint.counts:
            return {}
        counts = self._counts_of(namespace, terminating=True)
        return counts.per_domain(counts.selection(selector), spread.domains).occupied

    def _spread(self, namespace: str, labels: Labels, constraint: Constraint, domains: Domains) -> Spread:
        self_match_num = int(labelselectors.matches(constraint.selector, labels))
        question = (namespace, digest(constraint), domains, self_match_num)
        if question not in self._spreads:
            match_num = self._match_num(namespace, constraint.selector, domains)
            self._spreads[question] = Spread(constraint, domains, match_num, self_match_num)
        return self._spreads[question]

    def _match_num(self, namespace: str, selector: LabelSelector | None, domains: Domains) -> MatchNum:
        if selector is None or counts_nothing(selector, self._behaviour):
            return MatchNum(domains.nodes, {})
        counts = self._counts_of(namespace)
        return counts.per_domain(counts.selection(selector), domains)

    @memoized
    def _counts_of(self, namespace: str, *, terminating: bool = False) -> _Counts:
        return _Counts(self._snapshot.population(namespace, terminating=terminating))


class _Counts:
    """The counts of the pods of one namespace, by selection of their label sets."""

    def __init__(self, population: Population) -> None:
        self._population = population
        self._selections: dict[bytes, tuple[int, ...]] = {}

    def selection(self, selector: LabelSelector) -> tuple[int, ...]:
        """Return the numbers of the label sets that a selector selects."""
        key = digest(selector)
        if key not in self._selections:
            self._selections[key] = self._population.selection(selector)
        return self._selections[key]

    @memoized
    def per_node(self, selection: tuple[int, ...]) -> Mapping[str, int]:
        """Map a node's name to its number of selected pods."""
        if len(selection) == 1:
            return self._population[selection[0]]
        total: Counter[str] = Counter()
        for number in selection:
            total.update(self._population[number])
        return total

    @memoized
    def per_domain(self, selection: tuple[int, ...], domains: Domains) -> MatchNum:
        """Count the selected pods in each domain."""
        return pods_per_domain(domains, self.per_node(selection))
