"""The refusals of API servers for the stored pods of a workload."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kubectl_spread.audit.merge.admission_check import Refusals
from kubectl_spread.audit.snapshot.records import PodClass, PodRecord
from kubectl_spread.kube.api.fieldpath import FieldPath
from kubectl_spread.rules.rule_input import RuleInput


def refused_pods(
    subject: RuleInput, answer: Callable[[PodClass], Refusals], *, stored: bool = True
) -> tuple[list[PodRecord], list[str]]:
    """Return the pods that are refused for the term at the subject's path, by name, and the API's messages.

    Args:
        subject: The workload and the path.
        answer: Returns the API's refusals for the pods of a class.
        stored: Whether to look at stored pods; else at manifests.
    """
    pods: list[PodRecord] = []
    errors: dict[str, None] = {}
    for row in subject.rows:
        pod_classes = [
            evaluation.pod_class for evaluation, _ in row.evaluations if evaluation.pod_class.stored is stored
        ]
        refused = {
            pod_class: texts for pod_class in pod_classes if (texts := _messages(answer(pod_class), subject.path))
        }
        for pod in row.pods if refused else ():
            if messages := refused.get(pod.pod_class):
                pods.append(pod)
                errors |= dict.fromkeys(messages)
    return sorted(pods, key=lambda pod: pod.name), list(errors)


def names_a_key_twice(messages: Iterable[str]) -> bool:
    """Tell whether the API reports a duplicate key, as it does for pods that were merged before."""
    return any("exists in both matchLabelKeys and labelSelector" in message for message in messages)


def _messages(refusals: Refusals, path: FieldPath) -> list[str]:
    return [message for refusal in refusals if refusal.path == path for message in refusal.messages]
