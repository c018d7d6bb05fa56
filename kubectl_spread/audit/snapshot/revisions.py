"""Revisions: the versions of a workload, one of which each pod belongs to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from kubectl_spread.audit.snapshot.records import PodRecord, Population
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.audit.snapshot.templates import labels_of_controller
from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread

LABELS: Final = ("pod-template-hash", "controller-revision-hash", "rollouts-pod-template-hash")
"""The labels by which controllers distinguish the revisions of a workload; a pod has one of them."""
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


def revision_key(labels: Labels) -> str:
    """Return the label by which a pod's controller distinguishes revisions; "" for none."""
    return next((key for key in LABELS if key in labels), "")


def revision_key_of(kind: str) -> str:
    """Return the label by which the controller of a kind distinguishes revisions; "" for none, or an unknown kind."""
    return revision_key(dict.fromkeys(labels_of_controller(kind), ""))


def revision_of(labels: Labels) -> str:
    """Return the revision that a pod's labels name; "" for none."""
    return labels.get(revision_key(labels), "")


class Revisions:
    """The revisions that the pods of each workload have, oldest first."""

    def __init__(self, snapshot: Snapshot) -> None:
        """Start empty, or with all pods of ``snapshot`` where the command line names some of them."""
        self._snapshot = snapshot
        self._born: dict[ObjectRef, dict[str, tuple[int, datetime]]] = {}
        for pod in snapshot.pods if snapshot.scope.targets else ():
            self.add(snapshot.workload(pod), [pod])

    def add(self, workload: ObjectRef, pods: Iterable[PodRecord]) -> None:
        """Store the age of the revision of equal pods.

        A ReplicaSet of a Deployment has a number; otherwise a revision is as old as its owner, or as its first pod.
        """
        alike = list(pods)
        pod_class, chain = alike[0].pod_class, self._snapshot.owner_chain(alike[0])
        if chain and chain[0].ref != workload:
            age = (chain[0].revision, chain[0].created or _LONG_AGO)
        else:
            age = (0, min(pod.created or _LONG_AGO for pod in alike))
        ages = self._born.setdefault(workload, {})
        revision = revision_of(pod_class.labels)
        ages[revision] = min(ages.get(revision, age), age)

    def of(self, workload: ObjectRef) -> tuple[str, ...]:
        """Return the revisions of a workload, the oldest first."""
        born = self._born.get(workload, {})
        return tuple(sorted(born, key=lambda revision: (born[revision], revision)))

    def superseded(self, workload: ObjectRef, pods: Iterable[PodRecord]) -> bool:
        """Tell whether none of ``pods`` is of the newest revision of their workload."""
        revisions = self.of(workload)
        return len(revisions) > 1 and all(revision_of(pod.pod_class.labels) != revisions[-1] for pod in pods)

    def older_pods(self, workload: ObjectRef, spread: Spread) -> Counter[str]:
        """Count the matching pods of all revisions of a workload but the newest, by eligible domain."""
        older: Counter[str] = Counter()
        revisions = self.of(workload)[:-1]
        counts = by_revision(spread, self._snapshot.population(workload.namespace)) if revisions else {}
        for revision in revisions:
            older.update(counts.get(revision, {}))
        return older

    def evens_out(self, workload: ObjectRef, spread: Spread) -> bool:
        """Tell whether a skew above maxSkew is within it after the pods of older revisions are gone."""
        older = self.older_pods(workload, spread)
        return bool(older.total()) and spread.exceeds_max_skew and not spread.without(older).exceeds_max_skew


def by_revision(spread: Spread, population: Population) -> dict[str, Counter[str]]:
    """Return for each revision the number of pods that match in each eligible domain.

    Args:
        spread: The count of a constraint.
        population: The pods of its namespace: the counted ones, or the terminating ones.
    """
    numbers: dict[str, Counter[str]] = {}
    value_of = spread.domains.value_of
    selector = spread.constraint.selector
    for labels, per_node in population.selected(selector) if selector else ():
        counts = numbers.setdefault(revision_of(labels), Counter())
        for node, number in per_node.items():
            if node in value_of:
                counts[value_of[node]] += number
    return numbers
