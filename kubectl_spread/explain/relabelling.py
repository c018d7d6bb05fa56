"""Relabelling: which pods do not count, or count elsewhere, because one of their labels was changed?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from kubectl_spread.audit.evaluation.evaluate import EvaluatedPod
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.explain.uneven_rows import RELABELLED, UnevenRow
from kubectl_spread.explain.workload_pods import counter
from kubectl_spread.phrases import plural, some, value


def evidence(uneven: UnevenRow) -> list[str]:
    """Return the evidence that a changed label keeps pending pods from being counted, or that it makes the skew."""
    if uneven.relabelled_pending:
        return list(_changes(uneven.relabelled_pending))
    lost, gained = _moved(uneven)
    value_of = uneven.spread.domains.value_of
    change = Counter(value_of[pod.node] for pod in lost)
    change.subtract(value_of[pod.node] for pod in gained)
    before = uneven.spread.changed(change)
    if not change or not uneven.skewed or not uneven.settled_by(before):
        return []
    number = plural(len(lost) + len(gained), "pod")
    names = some([pod.name for pod in (*lost, *gained)])
    return [
        f"A label that the selector requires was changed on {number} ({names}). {uneven.skews(before, 'Without that')}"
    ]


def _changes(members: Sequence[EvaluatedPod]) -> Iterator[str]:
    """Yield the effect of each change of a label on the selectors of pending pods, with the names of the pods."""
    pods_by_change: dict[tuple[str, str, str | None], list[str]] = {}
    for member in members:
        for key in member.keys:
            if key.verdict in RELABELLED and key.stored is not None:
                pods_by_change.setdefault((key.key, key.stored, key.label), []).append(member.pod.name)
    for (name, stored, label), pods in pods_by_change.items():
        subject = f"Label {name} of {some(sorted(pods))}"
        if label is None:
            yield f"{subject} is missing. The selector requires {name}={value(stored)}, so it does not match the pod."
        else:
            now = f"was {value(stored)} at creation and is {value(label)} now"
            yield f"{subject} {now}. The selector requires both values, so it matches no pod."


def _moved(uneven: UnevenRow) -> tuple[list[PodRecord], list[PodRecord]]:
    """Return the workload's running pods that a changed label removed from the count, and the pods that it added."""
    counts = counter(uneven.spread, uneven.audit)
    lost: list[PodRecord] = []
    gained: list[PodRecord] = []
    for row in uneven.audit.rows:
        if (row.workload, row.path) != (uneven.row.workload, uneven.row.path):
            continue
        for member in row.members:
            pod = member.pod
            if member.verdict not in RELABELLED or pod.terminating or pod.node not in uneven.spread.domains.value_of:
                continue
            same_selector = member.term.selector == uneven.row.term.selector
            if same_selector and not counts(pod):
                lost.append(pod)
            elif not same_selector and counts(pod):
                gained.append(pod)
    return lost, gained
