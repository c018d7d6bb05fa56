"""The answer to ``explain``: a report of one pod or workload, and why its next pod may go here and not there."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from kubectl_spread.audit import report
from kubectl_spread.audit.causes import Cause, causes
from kubectl_spread.audit.engines import OtherCount, other_counts
from kubectl_spread.audit.evaluate import Audit
from kubectl_spread.audit.evictions import Evictions, evictions
from kubectl_spread.audit.families import families
from kubectl_spread.audit.placing import Placing
from kubectl_spread.audit.prospects import TemplateClause, template_clauses
from kubectl_spread.audit.replicas import NextPods, next_pods
from kubectl_spread.audit.rollup import Rollup, roll_up
from kubectl_spread.audit.successors import placing, succeeded
from kubectl_spread.audit.waiting import Waiting, waiting
from kubectl_spread.kube import schedulerconfig


class Explanation(report.Part, frozen=True, kw_only=True):
    """Everything about one pod or workload.

    ``unconstrained`` are the pods that have no constraints of their own, where nothing is known of the scheduler's.
    ``templates`` are the clauses of templates without pods.
    """

    api_version: str = report.API_VERSION
    kind: str = "SpreadExplanation"
    cluster: report.Cluster
    namespace: str
    object: report.Workload
    constraints: list[report.Row]
    templates: list[TemplateClause]
    groups: list[report.Group]
    pods: list[report.Pod]
    unconstrained: list[str] | UnsetType = UNSET
    rollup: Rollup
    causes: list[Cause]
    waiting: list[Waiting]
    placing: list[Placing] | UnsetType = UNSET
    evictions: list[Evictions]
    next_pods: list[NextPods]
    other_engines: list[OtherCount]
    findings: list[report.Finding]
    summary: report.Summary


def explain(
    audit: Audit, found: report.Report, namespace: str, target: report.Workload, *, replicas: int = 0
) -> Explanation:
    """Return the explanation of what an audit and its report say about ``target``, with so many more pods placed."""
    known = families(audit)
    return Explanation(
        cluster=found.cluster,
        namespace=namespace,
        object=target,
        constraints=found.constraints,
        templates=template_clauses(audit),
        groups=found.groups,
        pods=found.pods,
        unconstrained=_unconstrained(audit) or UNSET,
        rollup=roll_up(audit, known),
        causes=causes(audit, known),
        waiting=waiting(audit),
        placing=placing(audit),
        evictions=evictions(audit),
        next_pods=[more for group, _ in succeeded(audit) if replicas and (more := next_pods(group, audit, replicas))],
        other_engines=other_counts(audit),
        findings=found.findings,
        summary=found.summary,
    )


def _unconstrained(audit: Audit) -> list[str]:
    """Return the pods to which the scheduler's default constraints apply, where nobody asked for these."""
    if audit.snapshot.schedulers is not schedulerconfig.UNASKED:
        return []
    found = {id(pod.shape): pod.shape for pod in audit.pods}
    bare = {key for key, shape in found.items() if not any(clause.spread for clause in shape.clauses)}
    return sorted(
        pod.name for pod in audit.pods if id(pod.shape) in bare and pod.shape.known_scheduler and not pod.shape.pinned
    )
