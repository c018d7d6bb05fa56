"""Claims: the volumes that claims are bound to, and the counting groups whose evaluation asked for them.

A counting group is evaluated again only if one of its claims leads to another volume now, or to a volume that another
set of nodes can reach.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from typing import Generic, NamedTuple, TypeVar

import msgspec

from kubectl_spread.kube.scheduler.volumebinding import (
    ClaimedVolumes,
    PersistentVolume,
    PersistentVolumeClaim,
    Unresolved,
)

_T = TypeVar("_T", bound=Hashable)
"""Who asks: a counting group."""


class ClaimQuestion(NamedTuple):
    """Which volume a claim leads to; with ``created``, a StatefulSet creates the claim if it does not exist."""

    namespace: str
    claim: str
    created: bool


class _Answer(msgspec.Struct, Generic[_T], eq=False):
    """The current answer to a question, and who asked it."""

    volume: PersistentVolume | Unresolved
    askers: set[_T]


class ClusterClaims(Generic[_T]):
    """The claims and volumes of a cluster, and the answers that were given."""

    def __init__(self) -> None:
        """Start without claims and volumes."""
        self._now = ClaimedVolumes()
        self._now.complete = True
        self._answers: dict[ClaimQuestion, _Answer[_T]] = {}
        self._questions: dict[_T, set[ClaimQuestion]] = {}
        self._changed = False

    def put_claim(self, claim: PersistentVolumeClaim) -> None:
        """Store a claim in its present state."""
        self._changed = True
        self._now.add_claim(claim)

    def remove_claim(self, namespace: str, name: str) -> None:
        """Remove a claim that no longer exists."""
        self._changed = True
        self._now.remove_claim(namespace, name)

    def put_volume(self, volume: PersistentVolume) -> None:
        """Store a volume in its present state."""
        self._changed = True
        self._now.add_volume(volume)

    def remove_volume(self, name: str) -> None:
        """Remove a volume that no longer exists."""
        self._changed = True
        self._now.remove_volume(name)

    def claim_names(self) -> Collection[tuple[str, str]]:
        """Return the namespace and name of each claim."""
        return self._now.claim_names()

    def volume_names(self) -> Collection[str]:
        """Return the names of the volumes."""
        return self._now.volume_names()

    def asked_by(self, asker: _T) -> ClaimedVolumes:
        """Return the claims and volumes as one asker sees them, with each question stored."""
        return _AskedClaims(self, asker)

    def forget(self, asker: _T) -> None:
        """Forget the questions of a counting group."""
        for question in self._questions.pop(asker, ()):
            askers = self._answers[question].askers
            askers.remove(asker)
            if not askers:
                del self._answers[question]

    def answered_differently(self) -> Iterator[_T]:
        """Yield the askers of which an answer differs since the last call; each may come several times."""
        if self._changed:
            self._changed = False
            for question, answer in self._answers.items():
                volume = self._now.volume_of(question.namespace, question.claim, created=question.created)
                if volume != answer.volume:
                    answer.volume = volume
                    yield from answer.askers

    def answer(self, asker: _T, question: ClaimQuestion) -> PersistentVolume | Unresolved:
        """Return the volume that a claim leads to, and store who asked."""
        answer = self._answers.get(question)
        if answer is None:
            volume = self._now.volume_of(question.namespace, question.claim, created=question.created)
            answer = self._answers[question] = _Answer(volume, set())
        answer.askers.add(asker)
        self._questions.setdefault(asker, set()).add(question)
        return answer.volume


class _AskedClaims(ClaimedVolumes, Generic[_T]):
    """The claims and volumes as one evaluation sees them; it stores each question."""

    def __init__(self, claims: ClusterClaims[_T], asker: _T) -> None:
        super().__init__()
        self.complete = True
        self._of_cluster = claims
        self._asker = asker

    def volume_of(self, namespace: str, claim: str, *, created: bool = False) -> PersistentVolume | Unresolved:
        """Return the volume that a claim is bound to, or why there is none."""
        return self._of_cluster.answer(self._asker, ClaimQuestion(namespace, claim, created))
