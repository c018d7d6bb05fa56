"""What apiservers would say to the stored pods of a subject."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kubectl_spread.audit.merge.admission_check import Refusals
from kubectl_spread.audit.snapshot.records import PodClass, PodRecord
from kubectl_spread.kube.api.fieldpath import FieldPath
from kubectl_spread.rules.model import Subject


def refused_pods(
    subject: Subject, answer: Callable[[PodClass], Refusals], *, stored: bool = True
) -> tuple[list[PodRecord], list[str]]:
    """Return the pods of a subject that are refused for the subject's own clause, by name, and the API's words.

    Args:
        subject: One workload in one clause.
        answer: What the API says to the pods of a shape.
        stored: Whether to ask about stored pods; else about manifests.
    """
    pods: list[PodRecord] = []
    errors: dict[str, None] = {}
    for row in subject.rows:
        asked = [view.shape for view, _ in row.views if view.shape.stored is stored]
        refused = {shape: found for shape in asked if (found := _messages(answer(shape), subject.path))}
        for pod in row.pods if refused else ():
            if messages := refused.get(pod.shape):
                pods.append(pod)
                errors |= dict.fromkeys(messages)
    return sorted(pods, key=lambda pod: pod.name), list(errors)


def names_a_key_twice(messages: Iterable[str]) -> bool:
    """Tell whether the API says that a key stands twice, as it does in what was merged before."""
    return any("exists in both matchLabelKeys and labelSelector" in message for message in messages)


def _messages(refusals: Refusals, path: FieldPath) -> list[str]:
    return [message for refusal in refusals if refusal.path == path for message in refusal.messages]
