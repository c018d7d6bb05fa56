"""The admission check: the errors of API servers of one behaviour on pods of each class and on templates."""

from __future__ import annotations

from collections.abc import Iterable

from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.audit.snapshot.templates import (
    Refusal,
    Refused,
    Template,
    by_term,
    pod_refusals,
    template_refusals,
)
from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.field import FieldError
from kubectl_spread.kube.api.fieldpath import POD_SPEC, FieldPath
from kubectl_spread.kube.apiserver import validation
from kubectl_spread.kube.features import Behaviour

Refusals = tuple[Refusal, ...]


class AdmissionCheck:
    """The refusals of API servers of one behaviour, by term; each is computed once."""

    def __init__(self, behaviour: Behaviour) -> None:
        """Check as an API server of this behaviour does."""
        self.behaviour = behaviour
        self._edits: dict[int, Refusals] = {}
        self._creations: dict[PodClass, Refusals] = {}
        self._templates: dict[Template, Refusals] = {}

    def edits(self, pod_class: PodClass) -> Refusals:
        """Return why stored pods of a class cannot be updated, not even without a change."""
        if not pod_class.stored:
            return ()
        # Classes whose pods differ in their labels alone share the tuple of terms, and labels play no part here.
        if id(pod_class.terms) not in self._edits:
            errors = validation.pod_update_errors(pod_class.spec, pod_class.spec, self.behaviour)
            self._edits[id(pod_class.terms)] = _of_pods(pod_class, errors, Refused.EDIT)
        return self._edits[id(pod_class.terms)]

    def manifests(self, pod_class: PodClass) -> Refusals:
        """Return why manifests of a class cannot be created; nothing for stored pods, which are not created again."""
        return () if pod_class.stored else self.creations(pod_class)

    def creations(self, pod_class: PodClass) -> Refusals:
        """Return why pods of a class could not be created as they were read; stored pods again."""
        if pod_class not in self._creations:
            errors = pod_refusals(pod_class.written, pod_class.labels, self.behaviour)
            self._creations[pod_class] = _of_pods(pod_class, errors, Refused.POD)
        return self._creations[pod_class]

    def template(self, template: Template) -> Refusals:
        """Return why a template, or otherwise its pods, could not be created."""
        if template not in self._templates:
            refusals = template_refusals(template, self.behaviour)
            self._templates[template] = _at_terms(refusals, template.terms)
        return self._templates[template]


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
