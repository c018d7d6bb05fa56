"""Template preview: which terms will the pods of a template have, as long as there are none?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from msgspec import UNSET, UnsetType

from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.audit.snapshot.templates import PRESUMED, Refusal, Refused, Template
from kubectl_spread.audit.snapshot.terms import TopologyTerm, topology_terms
from kubectl_spread.kube.api.types import LabelSelector
from kubectl_spread.kube.apiserver import strategy
from kubectl_spread.report import model

_UNKNOWN_VALUE: Final = "<value>"
"""A placeholder for a value that a controller will set; it is not a valid label value."""


class TemplateSelectors(model.Part, frozen=True, kw_only=True):
    """The selector of a template's term, and the selector that the API server would store; None if it is not set."""

    authored: LabelSelector | None
    merged: LabelSelector | None


class TemplateTerm(model.Part, frozen=True, kw_only=True):
    """A spread constraint of a template, or an affinity term with keys.

    ``presumed`` are the merged keys whose values the controller will set, and which are ``<value>`` in the merged
    selector. ``refused`` names the objects that the API would refuse because of the term, with its ``messages``; it is
    absent if the API allows the term.
    """

    path: str
    topology_key: str
    when_unsatisfiable: str | UnsetType = UNSET
    max_skew: int | UnsetType = UNSET
    selector: TemplateSelectors
    presumed: list[str]
    refused: Literal["workload", "pods"] | UnsetType = UNSET
    messages: list[str]


def template_terms(audit: Audit) -> list[TemplateTerm]:
    """Return the terms of the requested templates whose workloads have no pods."""
    running = {audit.snapshot.workload(pod) for pod in audit.pods}
    return [
        preview
        for template in audit.templates
        if template.workload not in running
        for preview in _of_template(template, audit)
    ]


def _of_template(template: Template, audit: Audit) -> Iterator[TemplateTerm]:
    labels = {key: _UNKNOWN_VALUE if value == PRESUMED else value for key, value in template.labels.items()}
    pod_terms = topology_terms(
        strategy.prepare_for_create(template.spec, labels, audit.context.behaviour), template.path
    )
    merged = {term.path: term for term in pod_terms}
    refusals = {refusal.path: refusal for refusal in audit.admission.template(template)}
    for authored in template.terms:
        if authored.spread or authored.keyed:
            yield _term(authored, merged[authored.path], refusals.get(authored.path))


def _term(authored: TopologyTerm, merged: TopologyTerm, refusal: Refusal | None) -> TemplateTerm:
    constraint = authored.constraint
    refused: Literal["workload", "pods"] | UnsetType = UNSET
    if refusal is not None:
        refused = "workload" if refusal.refused is Refused.TEMPLATE else "pods"
    return TemplateTerm(
        path=str(authored.path),
        topology_key=authored.topology_key,
        when_unsatisfiable=UNSET if constraint is None else constraint.when_unsatisfiable,
        max_skew=UNSET if constraint is None else constraint.max_skew,
        selector=TemplateSelectors(authored=authored.selector, merged=merged.selector),
        presumed=_presumed(merged.selector),
        refused=refused,
        messages=[] if refusal is None else list(refusal.messages),
    )


def _presumed(merged: LabelSelector | None) -> list[str]:
    """Return the keys of a merged selector whose values the controller will set."""
    expressions = () if merged is None else merged.match_expressions
    return list(dict.fromkeys(expression.key for expression in expressions if expression.values == (_UNKNOWN_VALUE,)))
