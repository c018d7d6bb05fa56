"""The answer to ``explain``: the report on one pod or workload, with causes, pending pods and the next pod."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.diagnosis.evictions import Evictions, evictions
from kubectl_spread.explain.causes import SkewCause, causes
from kubectl_spread.explain.engines import OtherCount, other_counts
from kubectl_spread.explain.next_pods import NextPods, next_pods, placing, succeeded
from kubectl_spread.explain.placing import Placing
from kubectl_spread.explain.rollup import Rollup, roll_up
from kubectl_spread.explain.template_preview import TemplateTerm, template_terms
from kubectl_spread.explain.waiting import Waiting, waiting
from kubectl_spread.explain.workload_pods import pods_by_workload
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.scheduler import configuration
from kubectl_spread.report import model, projections


class Explanation(model.Part, frozen=True, kw_only=True):
    """The report on one pod or workload, with the sections of ``explain``.

    ``unconstrained`` are the pods without constraints of their own, if the scheduler's default constraints are unknown.
    ``templates`` are the terms of templates without pods.
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
    placing: list[Placing] | UnsetType = UNSET
    evictions: list[Evictions]
    next_pods: list[NextPods]
    other_engines: list[OtherCount]
    findings: list[model.Finding]
    summary: model.Summary


def explain(audit: Audit, report: model.Report, ref: ObjectRef, *, replicas: int = 0) -> Explanation:
    """Return the explanation of an audit and its report on ``ref``, with ``replicas`` more pods placed."""
    workloads = pods_by_workload(audit)
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
        causes=causes(audit, workloads),
        waiting=waiting(audit),
        placing=placing(audit),
        evictions=evictions(audit),
        next_pods=[pods for group, _ in succeeded(audit) if replicas and (pods := next_pods(group, audit, replicas))],
        other_engines=other_counts(audit),
        findings=report.findings,
        summary=report.summary,
    )


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
