"""Needs: which answers depend on claims, volumes, resources and feature gates, so that these have to be known?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedConstraint
from kubectl_spread.audit.evaluation.volumes import UNREAD
from kubectl_spread.audit.merge.admission import AdmissionCheck, may_depend_on_merge
from kubectl_spread.audit.merge.verdicts import GATED, Verdict
from kubectl_spread.audit.snapshot.records import PodClass, PodRecord
from kubectl_spread.diagnosis.exposure import Exposures, replicas
from kubectl_spread.kube import features
from kubectl_spread.kube.api.labels import HOSTNAME
from kubectl_spread.kube.features import OLDEST_MINOR
from kubectl_spread.kube.scheduler import resources
from kubectl_spread.phrases import domains, some

_ALL_LOCKED: Final = 33
"""From this minor on, no gate that can still be switched changes how the scheduler counts by default."""


_NOT_REPLACED_ALIKE: Final = frozenset(
    {Verdict.STALE_LABEL, Verdict.REMOVED_LABEL, Verdict.LATE_LABEL, Verdict.DUPLICATE}
)


def depend_on_budgets(audit: Audit) -> bool:
    """Tell whether a fix may remove running pods, so that disruption budgets have to be read.

    Such pods are in an uneven constraint, have a selector that does not fit their labels, or cannot be edited.
    """
    return any(_may_remove(row, audit) for row in audit.rows)


def _may_remove(row: EvaluatedConstraint, audit: Audit) -> bool:
    spread = row.spread
    if spread is not None and not row.lower_bound and (spread.exceeds_max_skew or not spread.self_match_num):
        return True
    if any(member.verdict in _NOT_REPLACED_ALIKE for member in row.members):
        return True
    return any(audit.admission.edits(evaluation.pod_class) for evaluation, _ in row.evaluations)


def claims_decide(audit: Audit) -> bool:
    """Tell whether any pod uses claims, which decide where it and, after a fix, its replacement may be."""
    return bool(audit.nodes.nodes) and any(audit.volumes.claims(pod) for pod in audit.pods)


def volumes_unread(audit: Audit) -> bool:
    """Tell whether a finding depends on claims or volumes that were not read."""
    return any(audit.volumes.of(pod).unknown == UNREAD for pod in _in_question(audit))


def _in_question(audit: Audit) -> Iterator[PodRecord]:
    """Yield the pods that wait, and, if any pod on a node uses claims, those of which the next ones matter.

    These are the pods of uneven constraints, and of workloads that one domain may stop.
    """
    yield from _waiting(audit)
    if not any(pod.node and audit.volumes.uses_claims(pod) for pod in audit.pods):
        return
    for row in audit.rows:
        spread = row.spread
        if spread is not None and spread.exceeds_max_skew and not row.lower_bound:
            yield from row.pods
    exposures = Exposures(audit)
    for workload in replicas(audit):
        yield from exposures.concentrated(workload)


def unknown_resources(audit: Audit, *, explaining: bool) -> list[str]:
    """Return the quantities that cannot be read and decide where pods in question fit, each with the effect.

    Args:
        audit: The cluster.
        explaining: Whether each pod is in question, and not only pending pods and those of uneven constraints.
    """
    return unknown_room(audit.pods if explaining else _to_place(audit), audit)


def _waiting(audit: Audit) -> Iterator[PodRecord]:
    return (pod for pod in audit.pods if pod.waits)


def _to_place(audit: Audit) -> Iterator[PodRecord]:
    yield from _waiting(audit)
    for row in audit.rows:
        if row.spread is not None and row.spread.constraint.hard and row.spread.exceeds_max_skew:
            yield from row.pods


def unknown_room(pods: Iterable[PodRecord], audit: Audit) -> list[str]:
    """Return the quantities of pods, and of nodes that these could use, that cannot be read, each with the effect."""
    unknown_nodes = _unknown_nodes(audit)
    pods_by_problem: dict[str, list[str]] = {}
    nodes_by_problem: dict[str, list[str]] = {}
    pods_by_class: dict[PodClass, list[str]] = {}
    for pod in pods if audit.nodes.nodes else ():
        pods_by_class.setdefault(pod.pod_class, []).append(pod.name)
    for pod_class, names in pods_by_class.items():
        if not pod_class.known_scheduler:
            continue
        if pod_class.requests is None:
            pods_by_problem.setdefault(_unreadable(pod_class), []).extend(names)
        elif any(amount for name, amount in pod_class.requests.items() if name != resources.POD):
            usable = audit.nodes.usable(pod_class.placement)
            for node, problem in unknown_nodes.items():
                if usable[node].schedulable:
                    nodes_by_problem.setdefault(problem, []).append(node)
    of_pods = (
        f"the requests of {some(list(dict.fromkeys(names)))} are unknown, so no node is known to have room: {problem}"
        for problem, names in pods_by_problem.items()
    )
    of_nodes = (
        f"the room on {domains(HOSTNAME, sorted(set(nodes)))} is unknown, so pods may not fit there: {problem}"
        for problem, nodes in nodes_by_problem.items()
    )
    return [*of_pods, *of_nodes]


def _unknown_nodes(audit: Audit) -> Mapping[str, str]:
    """Map the names of the nodes whose room is unknown to the quantity that cannot be read."""
    problems = {
        pod.node: f"{_unreadable(pod.pod_class)}, in pod {pod.name}"
        for pod in audit.everyone
        if pod.pod_class.requests is None and pod.node in audit.nodes.by_name
    }
    for node in audit.nodes.nodes:
        if error := next(resources.unreadable_amounts(node), None):
            problems[node.metadata.name] = error.message
    return problems


def _unreadable(pod_class: PodClass) -> str:
    return next((error.message for error in resources.unreadable_requests(pod_class.spec)), "")


def gates_decide_counts(minor: int) -> bool:
    """Tell whether gates that a server of this minor may switch change how its scheduler counts."""
    return OLDEST_MINOR <= minor < _ALL_LOCKED


def gates_decide(audit: Audit) -> bool:
    """Tell whether gates decide a verdict, or whether a template or its pods are refused.

    The answer is the same whichever gates the audit was made with.
    """
    return any(GATED & row.verdicts.keys() for row in audit.rows) or _refusals_depend(audit)


def _refusals_depend(audit: Audit) -> bool:
    """Tell whether an API server with another merge would give another answer to a template."""
    doubtful = [template for template in audit.templates if may_depend_on_merge(template)]
    checks = [AdmissionCheck(behaviour) for behaviour in features.merges(audit.context.behaviour)] if doubtful else []
    return any(len({check.template(template) for check in checks}) > 1 for template in doubtful)
