"""The answer to ``explain``: the report on one pod or workload, with causes, pending pods and the next pod."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, Literal, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from kubectl_spread import phrases
from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.audit.snapshot.records import ENCODER
from kubectl_spread.audit.snapshot.templates import PRESUMED, Refusal, Refused, Template
from kubectl_spread.audit.snapshot.terms import TopologyTerm, topology_terms
from kubectl_spread.errors import Faults
from kubectl_spread.explain.causes import SkewCause, causes
from kubectl_spread.explain.uneven_rows import Rollup, pods_by_workload, roll_up
from kubectl_spread.explain.waiting import next_pods, placing, waiting
from kubectl_spread.kube import apiserver
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import LabelSelector
from kubectl_spread.kube.scheduler import configuration
from kubectl_spread.report import model, projections
from kubectl_spread.report.explanation import NewNodes, NextPods, Placing, Waiting
from kubectl_spread.report.model import FAILED

if TYPE_CHECKING:
    # The engine is given.
    from kubectl_spread.engine.engine import Engine

_T = TypeVar("_T")


class Explanation(model.Part, frozen=True, kw_only=True):
    """The report on one pod or workload, with the sections of ``explain``.

    ``unconstrained`` are the pods without constraints of their own, if the scheduler's default constraints are unknown.
    ``templates`` are the terms of templates without pods. ``new_nodes`` is absent where no node autoscaler was read.
    """

    api_version: str = model.API_VERSION
    kind: str = "SpreadExplanation"
    cluster: model.Cluster
    namespace: str
    object: model.Workload
    constraints: list[model.Row]
    templates: list[TemplateTerm]
    groups: list[model.Group]
    pods: list[model.PodVerdict]
    unconstrained: list[str] | UnsetType = UNSET
    rollup: Rollup
    causes: list[SkewCause]
    waiting: list[Waiting]
    new_nodes: list[NewNodes] | UnsetType = UNSET
    placing: list[Placing] | UnsetType = UNSET
    next_pods: list[NextPods]
    findings: list[model.Finding]
    summary: model.Summary


def explain(
    audit: Audit,
    report: model.Report,
    ref: ObjectRef,
    engine: Engine,
    *,
    replicas: int = 0,
    faults: Faults | None = None,
) -> Explanation:
    """Return the explanation of an audit and its report on ``ref``.

    Args:
        audit: The audit.
        report: Its report.
        ref: The pod or workload.
        engine: The model of its cluster.
        replicas: The number of further pods that are placed.
        faults: Gets the unexpected errors, each of which leaves one section empty; without it they are raised.
    """
    workloads = pods_by_workload(audit)

    def section(name: str, compute: Callable[[], list[_T]]) -> list[_T]:
        if faults is None:
            return compute()
        return faults.guard(
            lambda: f"the section {name} of {phrases.named(ref.kind, ref.name)} is missing", compute, []
        )

    return Explanation(
        cluster=report.cluster,
        namespace=ref.namespace,
        object=projections.workload(ref),
        constraints=report.constraints,
        templates=template_terms(audit),
        groups=report.groups,
        pods=report.pods,
        unconstrained=_unconstrained(audit) or UNSET,
        rollup=roll_up(audit, workloads),
        causes=section("causes", lambda: causes(audit, workloads)),
        waiting=section("waiting", lambda: waiting(audit, engine)),
        new_nodes=section("newNodes", lambda: _new_nodes(audit, engine)) or UNSET,
        placing=section("placing", lambda: placing(audit, engine)),
        next_pods=section("nextPods", lambda: list(next_pods(audit, engine, replicas))),
        findings=report.findings,
        # The last of all, because it counts the sections that failed.
        summary=report.summary if faults is None else _with_failures(report.summary, len(faults)),
    )


def _with_failures(summary: model.Summary, number: int) -> model.Summary:
    failed = Counter(summary.skipped) + Counter({FAILED: number})
    return msgspec.structs.replace(summary, skipped={reason: failed[reason] for reason in sorted(failed)})


def _unconstrained(audit: Audit) -> list[str]:
    """Return the pods to which the scheduler's default constraints apply, unless their evaluation was requested."""
    if audit.snapshot.schedulers is not configuration.WITHOUT_DEFAULTS:
        return []
    pod_classes = {
        pod_class
        for pod_class in {pod.pod_class for pod in audit.pods}
        if pod_class.known_scheduler and not pod_class.pinned and not any(term.spread for term in pod_class.terms)
    }
    return sorted(pod.name for pod in audit.pods if pod.pod_class in pod_classes)


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
        apiserver.prepare_for_create(template.spec, labels, audit.context.behaviour), template.path
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


def _new_nodes(audit: Audit, engine: Engine) -> list[NewNodes]:
    """Return an answer for each set of requested pending pods that share it, in the order of their names."""
    if not audit.evaluator.lists_nodes:
        return []
    pods_by_answer: dict[bytes, tuple[NewNodes, list[str]]] = {}
    for pod in sorted(audit.pods, key=lambda pod: pod.name):
        answer = engine.new_nodes(pod)
        if answer is not None:
            # The events of one pod are quoted for all that share its answer.
            key = ENCODER.encode(msgspec.structs.replace(answer, messages=[]))
            pods_by_answer.setdefault(key, (answer, []))[1].append(pod.name)
    return [msgspec.structs.replace(answer, pods=names) for answer, names in pods_by_answer.values()]
