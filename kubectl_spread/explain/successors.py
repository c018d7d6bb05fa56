"""Successors: which of its pods is the next pod of a workload like, and where may it go?"""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedGroup
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.audit.snapshot.revisions import revision_of
from kubectl_spread.explain.placing import Placing, parses, place
from kubectl_spread.explain.uneven_rows import RELABELLED
from kubectl_spread.kube.api.objects import ObjectRef


def succeeded(audit: Audit) -> list[tuple[EvaluatedGroup, list[PodRecord]]]:
    """Return the groups that the next pods may be like, each with its fresh pods.

    A controller makes pods of its newest revision, with the labels of its template. Only without such fresh pods may
    the next pod be like any other.
    """
    relabelled = {
        (row.namespace, member.pod.name) for row in audit.rows for member in row.members if member.verdict in RELABELLED
    }
    groups_by_workload: dict[ObjectRef, list[tuple[EvaluatedGroup, list[PodRecord]]]] = {}
    for group in audit.groups:
        unchanged = (pod for pod in group.pods if (pod.namespace, pod.name) not in relabelled)
        fresh = [pod for pod in unchanged if _is_fresh(pod, group, audit)]
        groups_by_workload.setdefault(group.workload, []).append((group, fresh))
    return [successor for groups in groups_by_workload.values() for successor in _freshest(groups)]


def placing(audit: Audit) -> list[Placing]:
    """Return where the next pods may go, except pods that the API would refuse for a selector."""
    return [
        place(pods[0].pod_class, [pod.name for pod in pods], audit)
        for group, pods in succeeded(audit)
        if group.evaluation.node_answer is not None and parses(pods[0].pod_class)
    ]


def _is_fresh(pod: PodRecord, group: EvaluatedGroup, audit: Audit) -> bool:
    """Tell whether the controller of a pod would create it with the same labels now, as far as that is known."""
    if pod.terminating:
        return False
    revisions, labels = audit.revisions.of(group.workload), pod.pod_class.labels
    if revisions and revision_of(labels) != revisions[-1]:
        return False
    chain = audit.snapshot.owner_chain(pod)
    return not chain or all(labels.get(key) == value for key, value in chain[0].template_labels.items())


def _freshest(groups: list[tuple[EvaluatedGroup, list[PodRecord]]]) -> Iterator[tuple[EvaluatedGroup, list[PodRecord]]]:
    """Yield the groups with fresh pods; without any, all groups with all of their pods."""
    any_fresh = any(fresh for _, fresh in groups)
    for group, fresh in groups:
        if fresh or not any_fresh:
            yield group, fresh or group.pods
