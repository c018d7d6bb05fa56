"""Records: what is kept of pods, owners and events once an object has been read.

Pods that are alike in everything but name and node share one Shape, so memory grows by one small record a pod.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from kubectl_spread.audit.clauses import Clause
from kubectl_spread.audit.scope import Target
from kubectl_spread.audit.tails import Split
from kubectl_spread.audit.templates import Refusal
from kubectl_spread.kube.labels import Labels
from kubectl_spread.kube.managedfields import LabelOwner
from kubectl_spread.kube.model import OwnerReference, PodSpec
from kubectl_spread.kube.podtopologyspread import Placement

DEFAULT_SCHEDULER: Final = "default-scheduler"
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """What pods of one template have in common; compared by identity.

    ``clauses`` hold the selectors as stored (for a manifest: as they would be stored); ``splits`` go with
    them. ``unsettled_keys`` are the keys of which some clause does not hold the current value. ``pinned`` pods
    may run on one node only. ``refusals`` are the API's on a manifest. ``spec`` is as stored, like the clauses.
    """

    namespace: str
    owner: OwnerReference | None
    labels: Labels
    spec: PodSpec
    clauses: tuple[Clause, ...]
    splits: tuple[Split, ...]
    placement: Placement
    scheduler_name: str
    unsettled_keys: frozenset[str]
    bound: bool
    stored: bool
    pinned: bool
    ignored: str
    refusals: tuple[Refusal, ...]

    @property
    def default_scheduler(self) -> bool:
        """Whether the scheduler whose counting we know places these pods."""
        return self.scheduler_name == DEFAULT_SCHEDULER


@dataclass(frozen=True, slots=True)
class PodRecord:
    """What is kept of one judged pod; ``node`` is "" while it is pending, ``owners`` are those of unsettled labels."""

    name: str
    node: str
    shape: Shape
    generation: int
    created: datetime | None
    owners: tuple[LabelOwner, ...]
    terminating: bool


@dataclass(frozen=True, slots=True)
class OwnerRecord:
    """What is kept of a workload: who owns it, its template's label keys, and the rules it asks to ignore.

    ``created`` is None where the workload was not read.
    """

    target: Target
    owner: OwnerReference | None
    template_keys: frozenset[str]
    ignored: str
    created: datetime | None = None


@dataclass(frozen=True, slots=True)
class EventRecord:
    """What was said about an object, how often, and when last."""

    reason: str
    message: str
    count: int
    last: datetime | None


class Population:
    """The pods of one namespace that count: for each label set, the number of pods on each node."""

    def __init__(self) -> None:
        """Start without pods."""
        self._label_sets: dict[bytes, tuple[Labels, Counter[str]]] = {}

    def add(self, labels: Labels, node: str) -> None:
        """Count one pod."""
        key = _ENCODER.encode(labels)
        if key not in self._label_sets:
            self._label_sets[key] = (labels, Counter())
        self._label_sets[key][1][node] += 1

    def __iter__(self) -> Iterator[tuple[Labels, Counter[str]]]:
        """Yield each label set with its number of pods on each node."""
        return iter(self._label_sets.values())
