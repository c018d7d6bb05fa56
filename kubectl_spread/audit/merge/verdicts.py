"""Verdicts: whether each key of a term is stored as the merge writes it, and the cause if it is not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from heapq import nsmallest
from operator import itemgetter
from typing import Final

import msgspec

from kubectl_spread.audit.snapshot.terms import Key, SelectorParts, TopologyTerm, keys_of
from kubectl_spread.kube.api.labels import HOSTNAME, REGION, ZONE, Labels, Operator
from kubectl_spread.kube.api.managedfields import LabelOwner
from kubectl_spread.kube.features import Behaviour


class ExtraChecks(msgspec.Struct, frozen=True):
    """Checks that only some runs make.

    Attributes:
        recreate: Whether the API would accept the stored pods if they were created again.
        upgrade: The behaviours of the minors from this Kubernetes to the one to compare with, in their order; () for no
            comparison.
        expected_domains: Maps a topology key to the number of domains that there should be.
        exposing_keys: The topology keys by whose domains the exposure of workloads is checked.
    """

    recreate: bool = False
    upgrade: tuple[Behaviour, ...] = ()
    expected_domains: Mapping[str, int] = msgspec.field(default_factory=dict)
    exposing_keys: tuple[str, ...] = (HOSTNAME, ZONE)


MERGE_RELEASED: Final = datetime(2025, 8, 27, tzinfo=UTC)
"""The release of 1.34.0, the first minor whose API server merges spread selectors."""
NOTHING_ELSE: Final = ExtraChecks()
_REMOVED_OR_AUTHORED: Final = "the API does not record whether a label was removed or never there"
BINDING_KEYS: Final = frozenset({ZONE, REGION})
"""The labels that a pod gets from its node when it is bound."""
REVISION_KEYS: Final = frozenset(
    {
        "pod-template-hash",
        "controller-revision-hash",
        "pod-template-generation",
        "statefulset.kubernetes.io/pod-name",
        "batch.kubernetes.io/job-name",
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-completion-index",
        "job-name",
        "controller-uid",
    }
)
"""The labels that Kubernetes' own controllers give a pod when they create it."""


class Verdict(StrEnum):
    """The verdict on a key, a term or a row, worst first."""

    DUPLICATE = "duplicate"
    STALE_LABEL = "stale-label"
    REMOVED_LABEL = "removed-label"
    NO_SELECTOR = "no-selector"
    LATE_LABEL = "late-label"
    MERGE_OFF = "merge-off"
    PRE_UPGRADE = "pre-upgrade"
    UNMERGED = "unmerged"
    AUTHORED = "authored"
    ABSENT_KEY = "absent-key"
    BIND_LABEL = "bind-label"
    SCHEDULER_MERGED = "scheduler-merged"
    MERGED = "merged"


SEVEREST: Final = {verdict: rank for rank, verdict in enumerate(Verdict)}
"""The rank of each verdict; 0 is the worst."""


class Confidence(StrEnum):
    """How sure a verdict is."""

    CERTAIN = "certain"
    LIKELY = "likely"
    UNKNOWN = "unknown"


class ServerFacts(msgspec.Struct, frozen=True):
    """The facts about the servers: their behaviour, whether gates were read, and since when all of them merge.

    ``gates_known`` is False where gates are assumed from the version alone.
    """

    behaviour: Behaviour
    gates_known: bool
    merge_since: datetime | None = None
    extra_checks: ExtraChecks = NOTHING_ELSE


class Provenance(msgspec.Struct, frozen=True):
    """The evidence of a pod's metadata and its owner about its creation.

    ``template_keys`` are the label keys of the owner's pod template, which ``template_fixed`` says never changes, and
    ``authored_keys`` the keys that its matchLabelKeys and its selectors both name. ``controller_keys`` are the labels
    that the owner's controller sets. ``stored`` is False for a manifest.
    """

    stored: bool
    generation: int
    created: datetime | None
    owners: tuple[LabelOwner, ...]
    template_keys: frozenset[str]
    template_fixed: bool = True
    controller_keys: frozenset[str] = frozenset()
    authored_keys: frozenset[str] = frozenset()


class KeyVerdict(msgspec.Struct, frozen=True):
    """The verdict on one key of one term; ``stored`` and ``label`` are None where there is no such value."""

    key: str
    operator: Operator
    verdict: Verdict
    confidence: Confidence
    stored: str | None = None
    label: str | None = None
    evidence: tuple[str, ...] = ()
    changed_by: LabelOwner | None = None


def worst(verdicts: Iterable[Verdict]) -> Verdict | None:
    """Return the worst verdict, or None for none."""
    return min(verdicts, key=SEVEREST.__getitem__, default=None)


def judge(
    terms: Sequence[TopologyTerm],
    splits: Sequence[SelectorParts],
    labels: Labels,
    *,
    bound: bool,
    context: ServerFacts,
    provenance: Provenance | None = None,
) -> tuple[tuple[KeyVerdict, ...], ...]:
    """Evaluate every key of every term of one pod; one tuple of verdicts for each term, in the order of the merge.

    Without ``provenance`` a missing requirement stays ``unmerged``, whatever its reason.
    """
    parts = tuple(zip(terms, splits, strict=True))
    owners: dict[str, list[LabelOwner]] = {}
    for owner in provenance.owners if provenance is not None else ():
        owners.setdefault(owner.key, []).append(owner)
    judge_of_pod = _Judge(
        labels=labels,
        bound=bound,
        context=context,
        provenance=provenance,
        owners=owners,
        spread_merged=_first_two(key for term, part in parts if term.spread for key in part.tail),
        affinity_merged=frozenset(key for term, part in parts if not term.spread for key in part.tail),
    )
    return tuple(tuple(judge_of_pod.key_verdict(key, term, part) for key in keys_of(term)) for term, part in parts)


def term_verdict(term: TopologyTerm, keys: Sequence[KeyVerdict]) -> Verdict | None:
    """Return the verdict on a term: the worst of its keys; without keys None, or no-selector without a selector."""
    if term.selector is None:
        return Verdict.NO_SELECTOR
    return worst(key.verdict for key in keys)


_Reading = tuple[Verdict, Confidence, tuple[str, ...]]


def _certain(verdict: Verdict, *evidence: str) -> _Reading:
    return verdict, Confidence.CERTAIN, evidence


class _Judge(msgspec.Struct, frozen=True):
    """The evidence on one pod: its labels, the history of its creation, and the keys that are merged in any term."""

    labels: Labels
    bound: bool
    context: ServerFacts
    provenance: Provenance | None
    owners: Mapping[str, Sequence[LabelOwner]]
    spread_merged: tuple[Key, ...]
    affinity_merged: frozenset[Key]

    def key_verdict(self, key: Key, term: TopologyTerm, split: SelectorParts) -> KeyVerdict:
        """Evaluate one key of one term."""
        operator, name = key
        verdict, confidence, evidence = self._read(key, term, split)
        changed = self._changed_by(name) if verdict in LABEL_MAY_HAVE_CHANGED else None
        return KeyVerdict(
            key=name,
            operator=operator,
            verdict=verdict,
            confidence=confidence,
            stored=split.tail.get(key),
            label=self.labels.get(name),
            evidence=evidence,
            changed_by=changed,
        )

    def _read(self, key: Key, term: TopologyTerm, split: SelectorParts) -> _Reading:
        operator, name = key
        if term.selector is None:
            return _certain(Verdict.NO_SELECTOR, "labelSelector is not set")
        mentions = term.mentions[name]
        if operator is Operator.IN and mentions > 1:
            return _certain(Verdict.DUPLICATE, f"{name} appears {mentions} times in the selector")
        if key in split.tail:
            return self._read_tail(key, split.tail[key])
        if mentions:
            return _certain(Verdict.AUTHORED, *_authored_evidence(key, split))
        if name not in self.labels:
            return _certain(Verdict.ABSENT_KEY, f"the pod has no label {name}")
        if self.bound and name in BINDING_KEYS:
            return _certain(Verdict.BIND_LABEL, "written when the pod was bound to its node")
        if not term.spread:
            return _certain(Verdict.LATE_LABEL, "a term that was merged at creation would hold it")
        if not self.context.behaviour.could_merge_spread_selectors:
            return _certain(Verdict.SCHEDULER_MERGED, "this server's scheduler applies the key itself")
        return self._missing_in_spread(key, split)

    def _read_tail(self, key: Key, stored: str) -> _Reading:
        _, name = key
        if name not in self.labels:
            return self._without_label(key)
        if self.labels[name] == stored:
            return _certain(Verdict.MERGED)
        if self.bound and name in BINDING_KEYS and self._changed_by(name) is None:
            return _certain(Verdict.STALE_LABEL, "binding the pod overwrote the label with its node's value")
        return _certain(Verdict.STALE_LABEL)

    def _without_label(self, key: Key) -> _Reading:
        """Return whether a label was removed, or its requirement written by the author, as far as it can be proven."""
        operator, name = key
        provenance = self.provenance
        if provenance is not None and name in provenance.controller_keys:
            return _certain(Verdict.REMOVED_LABEL, f"the pod was created with {name}, which its controller sets")
        if provenance is not None and provenance.template_fixed:
            if name in provenance.template_keys:
                return _certain(Verdict.REMOVED_LABEL, f"the owner's pod template has the label {name}")
            if operator is Operator.IN and name in provenance.authored_keys:
                return _certain(Verdict.AUTHORED, f"the selector in the owner's pod template names {name}")
        return Verdict.REMOVED_LABEL, Confidence.LIKELY, (_REMOVED_OR_AUTHORED,)

    def _missing_in_spread(self, key: Key, split: SelectorParts) -> _Reading:
        """Return why a spread selector lacks a key whose label exists, as far as it can be proven."""
        if key in split.handwritten:
            return _certain(Verdict.LATE_LABEL, "another constraint of this pod names the key by hand")
        sibling = next((merged for merged in self.spread_merged if merged != key), None)
        if sibling is not None:
            return _certain(Verdict.LATE_LABEL, f"the merge ran at creation: {sibling[1]} is merged")
        if self.context.gates_known and not self.context.behaviour.merges_spread_selectors:
            return Verdict.MERGE_OFF, Confidence.LIKELY, ("the merge is switched off by feature gates",)
        if self.provenance is not None:
            if proof := _older_than_the_merge(self.provenance, self.context.merge_since):
                return _certain(Verdict.PRE_UPGRADE, proof)
            if proof := self._present_at_creation(key, self.provenance):
                return Verdict.PRE_UPGRADE, Confidence.LIKELY, (proof,)
        return Verdict.UNMERGED, Confidence.UNKNOWN, ("the cause cannot be determined from the API",)

    def _present_at_creation(self, key: Key, provenance: Provenance) -> str | None:
        _, name = key
        if name in REVISION_KEYS:
            return f"{name} is set by the controller that creates the pod"
        if name in provenance.template_keys and (provenance.template_fixed or self._changed_by(name) is None):
            return f"the owner's pod template has the label {name}"
        if key in self.affinity_merged:
            return f"{name} is merged in an affinity term of this pod"
        return None

    def _changed_by(self, name: str) -> LabelOwner | None:
        """Return the manager that wrote the label last after creation."""
        later = [owner for owner in self.owners.get(name, ()) if not owner.at_creation and owner.time is not None]
        return max(later, key=lambda owner: (owner.time or MERGE_RELEASED, owner.manager), default=None)


GATED: Final = frozenset({Verdict.UNMERGED, Verdict.PRE_UPGRADE, Verdict.MERGE_OFF})
"""Verdicts that depend on the API server's feature gates."""
LABEL_MAY_HAVE_CHANGED: Final = frozenset({Verdict.STALE_LABEL, Verdict.LATE_LABEL, Verdict.UNMERGED})
"""Verdicts on a label that may have been written after the pod was created; managedFields names the manager."""


def _authored_evidence(key: Key, split: SelectorParts) -> tuple[str, ...]:
    if key in split.handwritten:
        return ("another constraint of this pod that names the key lacks it: not a merge",)
    return ("the author's own requirement on this key",)


def _first_two(keys: Iterable[Key]) -> tuple[Key, ...]:
    """Return the first two keys by label, which suffice to name a merged key other than any given one."""
    return tuple(nsmallest(2, set(keys), key=itemgetter(1)))


def _older_than_the_merge(provenance: Provenance, merge_since: datetime | None) -> str | None:
    if provenance.stored and provenance.generation == 0:
        return "metadata.generation is absent: created by an apiserver before 1.33"
    if provenance.created is None:
        return None
    created = f"created {provenance.created.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    if provenance.created < MERGE_RELEASED:
        return f"{created}, before 1.34.0 was released"
    if merge_since is not None and provenance.created < merge_since:
        return f"{created}, before the merge began"
    return None
