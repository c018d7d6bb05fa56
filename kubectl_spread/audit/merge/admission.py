"""Admission: pods that are created as an API server would store them, and which templates and pods it refuses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import msgspec

from kubectl_spread.audit.merge.merging import Change, without
from kubectl_spread.audit.snapshot.capacity import requests_of
from kubectl_spread.audit.snapshot.podclasses import SharedTerms
from kubectl_spread.audit.snapshot.records import PodClass, PodRecord, digest
from kubectl_spread.audit.snapshot.templates import (
    Refusal,
    Refused,
    Template,
    by_term,
    pod_refusals,
    template_refusals,
)
from kubectl_spread.audit.snapshot.terms import TopologyTerm, split, split_manifest, topology_terms
from kubectl_spread.kube import apiserver
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.field import POD_SPEC, FieldError, FieldPath
from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.types import PodSpec
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.scheduler.podtopologyspread.domains import Placement


def admitted(pods: Sequence[PodRecord], behaviour: Behaviour) -> Sequence[PodRecord]:
    """Return pods with manifests as they would be stored; pods that are stored already stay as they are."""
    shared, written = SharedTerms(), dict.fromkeys(pod.pod_class for pod in pods if not pod.pod_class.stored)
    pod_classes = {pod_class: _admitted(pod_class, shared, behaviour) for pod_class in written}
    if not pod_classes:
        return pods
    return [
        msgspec.structs.replace(pod, pod_class=pod_classes[pod.pod_class]) if pod.pod_class in pod_classes else pod
        for pod in pods
    ]


def _admitted(pod_class: PodClass, shared: SharedTerms, behaviour: Behaviour) -> PodClass:
    """Return the class as it would be stored, or as it is written where the API server would refuse it."""
    stored = apiserver.prepare_for_create(pod_class.written, pod_class.labels, behaviour)
    if apiserver.pod_errors(stored, behaviour):
        return pod_class
    terms, _ = shared.of(stored)
    # The API server stores no default constraints of the scheduler.
    own = sum(term.default for term in pod_class.terms)
    splits = split_manifest(pod_class.terms[own:], terms)
    return msgspec.structs.replace(
        pod_class,
        spec=stored,
        terms=(*pod_class.terms[:own], *terms),
        splits=(*pod_class.splits[:own], *splits),
    )


def created_again(pod_class: PodClass, labels: Labels, behaviour: Behaviour) -> PodClass:
    """Return the class of pods that replace those of ``pod_class``, with the labels that they are created with."""
    changes: list[Change] = []
    for term, part in zip(pod_class.terms, pod_class.splits, strict=True):
        if part.tail and part.authored is not None and term.selector is not None and not term.default:
            merged = range(len(part.authored.match_expressions), len(term.selector.match_expressions))
            changes.append(Change(term.path, removed=tuple(merged)))
    return _created(pod_class, without(pod_class.spec, changes), labels, behaviour)


def created_from(pod_class: PodClass, template: PodSpec, labels: Labels, behaviour: Behaviour) -> PodClass:
    """Return the class of pods of a template, whose owner and scheduler are those of ``pod_class``."""
    placement = Placement(template.node_selector, template.affinity, template.tolerations)
    like = msgspec.structs.replace(pod_class, requests=requests_of(template), placement=placement)
    return _created(like, template, labels, behaviour)


def _created(like: PodClass, spec: PodSpec, labels: Labels, behaviour: Behaviour) -> PodClass:
    stored = apiserver.prepare_for_create(spec, labels, behaviour)
    terms = topology_terms(stored)
    # The scheduler has defaults for pods without constraints of their own.
    own = 0 if stored.topology_spread_constraints else sum(term.default for term in like.terms)
    return msgspec.structs.replace(
        like,
        labels=labels,
        spec=stored,
        written=stored,
        terms=(*like.terms[:own], *terms),
        splits=(*like.splits[:own], *split(terms)),
        unsettled_keys=frozenset[str](),
        bound=False,
    )


Refusals: TypeAlias = tuple[Refusal, ...]


class AdmissionCheck:
    """The refusals of API servers of one behaviour, by term."""

    def __init__(self, behaviour: Behaviour) -> None:
        """Check as an API server of this behaviour does."""
        self.behaviour = behaviour
        self._edits: dict[bytes, Refusals] = {}

    def edits(self, pod_class: PodClass) -> Refusals:
        """Return why stored pods of a class cannot be updated, not even without a change."""
        if not pod_class.stored:
            return ()
        # Labels play no part here.
        key = digest(pod_class.terms)
        if key not in self._edits:
            errors = apiserver.pod_update_errors(pod_class.spec, pod_class.spec, self.behaviour)
            self._edits[key] = _of_pods(pod_class, errors, Refused.EDIT)
        return self._edits[key]

    def manifests(self, pod_class: PodClass) -> Refusals:
        """Return why manifests of a class cannot be created; nothing for stored pods, which are not created again."""
        return () if pod_class.stored else self.creations(pod_class)

    def creations(self, pod_class: PodClass) -> Refusals:
        """Return why pods of a class could not be created as they were read; stored pods again."""
        return _of_pods(pod_class, pod_refusals(pod_class.written, pod_class.labels, self.behaviour), Refused.POD)

    def template(self, template: Template) -> Refusals:
        """Return why a template, or otherwise its pods, could not be created."""
        return _at_terms(template_refusals(template, self.behaviour), template.terms)


def may_depend_on_merge(template: Template) -> bool:
    """Tell whether a template has a constraint that only API servers with, or without, the merge refuse."""
    return any(_names_a_key_twice(term) for term in template.terms if term.spread)


def _names_a_key_twice(term: TopologyTerm) -> bool:
    """Tell whether a key is duplicated in matchLabelKeys, or is in the selector as well."""
    keys = term.match_label_keys
    selected = frozenset() if term.selector is None else labelselectors.keys(term.selector)
    return len(set(keys)) < len(keys) or not selected.isdisjoint(keys)


def _of_pods(pod_class: PodClass, errors: Iterable[FieldError], refused: Refused) -> Refusals:
    return _at_terms(by_term(errors, refused, POD_SPEC), pod_class.terms)


def _at_terms(refusals: Iterable[Refusal], terms: Iterable[TopologyTerm]) -> Refusals:
    """Return refusals with the paths of their terms, each message once; a weight belongs to its term."""
    paths = {path: term.path for term in terms for path in (term.path, term.place)}
    messages_at: dict[tuple[FieldPath, Refused], list[str]] = {}
    for refusal in refusals:
        path = paths.get(refusal.path, refusal.path)
        messages_at.setdefault((path, refusal.refused), []).extend(refusal.messages)
    return tuple(Refusal(*place, tuple(dict.fromkeys(messages))) for place, messages in messages_at.items())
