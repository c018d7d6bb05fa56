"""Relabelling: which pods do not count, or count elsewhere, because a label of theirs was changed?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from kubectl_spread.audit.evaluation.evaluate import EvaluatedPod
from kubectl_spread.audit.merge.verdicts import Verdict
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.explain.uneven_rows import UnevenRow
from kubectl_spread.explain.workload_pods import matcher
from kubectl_spread.phrases import plural, some, value

_CHANGED: Final = frozenset({Verdict.STALE_LABEL, Verdict.REMOVED_LABEL})


def evidence(uneven: UnevenRow) -> list[str]:
    """Return how pending pods are not counted by their own selector, or how running pods that moved make the skew."""
    waiting = [member for member in uneven.row.members if member.verdict in _CHANGED and not member.pod.node]
    if waiting:
        return list(_changed(waiting))
    gone, come = _moved(uneven)
    value_of = uneven.spread.domains.value_of
    change = Counter(value_of[pod.node] for pod in gone)
    change.subtract(value_of[pod.node] for pod in come)
    before = uneven.spread.changed(change)
    if not change or not uneven.skewed or not uneven.settles(before):
        return []
    number = plural(len(gone) + len(come), "pod")
    names = some([pod.name for pod in (*gone, *come)])
    return [f"{number} changed a label that the selector asks for ({names}): {uneven.skews(before, 'before that')}"]


def _changed(waiting: Sequence[EvaluatedPod]) -> Iterator[str]:
    """Yield what changed labels make of the selectors of pending pods, once for those that were changed alike."""
    alike: dict[tuple[str, str, str | None], list[str]] = {}
    for member in waiting:
        for key in member.keys:
            if key.verdict in _CHANGED and key.stored is not None:
                alike.setdefault((key.key, key.stored, key.label), []).append(member.pod.name)
    for (name, stored, label), names in alike.items():
        was = f"{name} of {some(sorted(names))} was {value(stored)} at creation and is"
        if label is None:
            yield f"{was} gone: the selector counts pods of {value(stored)}, among which it is not itself"
        else:
            yield f"{was} {value(label)} now: the selector asks for both and selects no pod"


def _moved(uneven: UnevenRow) -> tuple[list[PodRecord], list[PodRecord]]:
    """Return the workload's running pods that a changed label took out of the count, and those it brought in."""
    selects = matcher(uneven.spread, uneven.audit)
    gone: list[PodRecord] = []
    come: list[PodRecord] = []
    for row in uneven.audit.rows:
        if (row.workload, row.path) != (uneven.row.workload, uneven.row.path):
            continue
        for member in row.members:
            if member.verdict not in _CHANGED or member.pod.node not in uneven.spread.domains.value_of:
                continue
            alike = member.term.selector == uneven.row.term.selector
            if alike and not selects(member.pod):
                gone.append(member.pod)
            elif not alike and selects(member.pod):
                come.append(member.pod)
    return [pod for pod in gone if not pod.terminating], [pod for pod in come if not pod.terminating]
