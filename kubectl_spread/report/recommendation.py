"""The report of `recommend`; its JSON form is a contract (docs/json.md)."""

from __future__ import annotations

from typing import Final

from msgspec import UNSET, UnsetType

from kubectl_spread.report.model import API_VERSION, Cluster, ManifestLines, Part, Patch, Workload

KIND = "SpreadRecommendation"
WORKLOADS: Final = ("Deployment", "StatefulSet")
"""The kinds of workloads for which there is an answer."""


class EventLoss(Part, frozen=True, kw_only=True):
    """The worst that is left of the workload in all runs of an event.

    ``least`` is the fewest ready pods at any moment, the other numbers are those at the end. ``domain`` is the domain
    with which that happens, where each is tried. ``budget`` stops the drain. ``why`` says why pods are pending, or are
    not replaced.
    """

    least: int
    running: int
    pending: int
    not_replaced: int
    survived: bool
    domain: str | UnsetType = UNSET
    budget: str | UnsetType = UNSET
    why: str | UnsetType = UNSET


class RecommendedEvent(Part, frozen=True, kw_only=True):
    """An event, the pods that are to stay ready, and what is left now and with the change."""

    event: str
    survive: str
    keep: int
    now: EventLoss
    patched: EventLoss | UnsetType = UNSET


class RecommendedChange(Part, frozen=True, kw_only=True):
    """The change. ``patch`` is of the stored workload, and ``lines`` are those to write in its manifest.

    ``limits`` say what it cannot promise.
    """

    changes: list[str]
    commands: list[str]
    limits: list[str]
    patch: Patch | UnsetType = UNSET
    lines: list[ManifestLines] | UnsetType = UNSET


class TriedChange(Part, frozen=True, kw_only=True):
    """A change that was tried and is not enough: with which event, and why."""

    changes: list[str]
    event: str
    why: str


class UnreachableEvent(Part, frozen=True, kw_only=True):
    """An event that cannot be survived with this cluster, and why."""

    event: str
    why: str


class RecommendationSummary(Part, frozen=True, kw_only=True):
    """How the answer was found.

    ``replicas`` is the number that the answer is for: minReplicas of ``autoscaler`` where there is one. ``nodes`` and
    ``zones`` may take its pods. ``tried`` changes are not enough. ``complete`` tells whether there was time for all.
    ``not_simulated`` has what the simulation leaves out and could matter here. ``unknown`` has the parts of it that
    decide about pods: the exit status is 2.
    """

    replicas: int
    autoscaler: str | UnsetType = UNSET
    nodes: int
    zones: list[str]
    tried: int
    complete: bool
    runs: int
    seed: int
    unknown: list[str]
    not_simulated: list[str]
    skipped: dict[str, int]


class SpreadRecommendation(Part, frozen=True, kw_only=True):
    """The report of ``recommend``; ``change`` is absent where none is needed or none helps."""

    api_version: str = API_VERSION
    kind: str = KIND
    cluster: Cluster
    namespace: str
    workload: Workload
    events: list[RecommendedEvent]
    change: RecommendedChange | UnsetType = UNSET
    tried: list[TriedChange]
    not_reachable: list[UnreachableEvent]
    remarks: list[str]
    summary: RecommendationSummary
