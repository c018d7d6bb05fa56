"""The admission check: the errors of API servers of one behaviour on pods of each class and on templates."""

from __future__ import annotations

from collections.abc import Iterable

from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.audit.snapshot.templates import (
    Refusal,
    Refused,
    Template,
    by_clause,
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
    """The refusals of API servers of one behaviour, by the terms they are about; each is computed once."""

    def __init__(self, behaviour: Behaviour) -> None:
        """Check as an API server of this behaviour does."""
        self.behaviour = behaviour
        self._edits: dict[int, Refusals] = {}
        self._creations: dict[PodClass, Refusals] = {}
        self._templates: dict[Template, Refusals] = {}

    def edits(self, shape: PodClass) -> Refusals:
        """Return why stored pods of a class cannot be updated, not even without a change."""
        if not shape.stored:
            return ()
        # Classes whose pods differ in their labels alone share the tuple of clauses, and labels play no part here.
        if id(shape.clauses) not in self._edits:
            errors = validation.pod_update_errors(shape.spec, shape.spec, self.behaviour)
            self._edits[id(shape.clauses)] = _of_pods(shape, errors, Refused.EDIT)
        return self._edits[id(shape.clauses)]

    def manifests(self, shape: PodClass) -> Refusals:
        """Return why manifests of a class cannot be created; nothing for stored pods, which are not created again."""
        return () if shape.stored else self.creations(shape)

    def creations(self, shape: PodClass) -> Refusals:
        """Return why pods of a class could not be created as they were read; stored pods again."""
        if shape not in self._creations:
            errors = pod_refusals(shape.written, shape.labels, self.behaviour)
            self._creations[shape] = _of_pods(shape, errors, Refused.POD)
        return self._creations[shape]

    def template(self, template: Template) -> Refusals:
        """Return why a template, or otherwise its pods, could not be created."""
        if template not in self._templates:
            refusals = template_refusals(template.spec, template.labels, self.behaviour, template.path)
            self._templates[template] = _at_clauses(refusals, template.clauses)
        return self._templates[template]


def may_depend_on_merge(template: Template) -> bool:
    """Tell whether a template has a constraint that only API servers with, or without, the merge refuse."""
    return any(_names_a_key_twice(clause) for clause in template.clauses if clause.spread)


def _names_a_key_twice(clause: TopologyTerm) -> bool:
    """Tell whether a key is duplicated in matchLabelKeys, or is in the selector as well."""
    keys = clause.match_label_keys
    selected = frozenset() if clause.selector is None else labelselectors.keys(clause.selector)
    return len(set(keys)) < len(keys) or not selected.isdisjoint(keys)


def _of_pods(shape: PodClass, errors: Iterable[FieldError], refused: Refused) -> Refusals:
    return _at_clauses(by_clause(errors, refused, POD_SPEC), shape.clauses)


def _at_clauses(refusals: Iterable[Refusal], clauses: Iterable[TopologyTerm]) -> Refusals:
    """Return refusals with the paths of the terms they are about, each message once; a weight belongs to its term."""
    paths = {path: clause.path for clause in clauses for path in (clause.path, clause.place)}
    messages_at: dict[tuple[FieldPath, Refused], list[str]] = {}
    for refusal in refusals:
        path = paths.get(refusal.path, refusal.path)
        messages_at.setdefault((path, refusal.refused), []).extend(refusal.messages)
    return tuple(Refusal(*place, tuple(dict.fromkeys(messages))) for place, messages in messages_at.items())
