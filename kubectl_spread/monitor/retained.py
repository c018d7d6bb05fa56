"""Retained pods: the facts about one pod that the monitor keeps, from which the counts of any set of pods are made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

import msgspec

from kubectl_spread.audit.snapshot.capacity import requests_of
from kubectl_spread.audit.snapshot.podclasses import PodClasses
from kubectl_spread.audit.snapshot.records import PodClass, PodRecord
from kubectl_spread.audit.snapshot.scope import Scope
from kubectl_spread.audit.snapshot.snapshot import FINISHED, pod_record, why_unevaluated
from kubectl_spread.kube.api.sparse import SparsePod
from kubectl_spread.kube.api.types import Pod
from kubectl_spread.kube.scheduler.configuration import Profile

_MOST_LIKE: Final = 2_000
"""The number of distinct pods whose shared facts are remembered while a list is read."""


class RetainedPod(msgspec.Struct, frozen=True, gc=False):
    """One pod.

    Attributes:
        record: Its record.
        reason: Why it is not evaluated; "" if it is.
        in_scope: Whether the scope selects it.
    """

    record: PodRecord
    reason: str
    in_scope: bool

    @property
    def counts(self) -> bool:
        """Whether it takes part in anything: a finished pod does not."""
        return self.reason != FINISHED

    @property
    def bound(self) -> bool:
        """Whether it is on a node and not finished."""
        return bool(self.record.node) and self.reason != FINISHED

    @property
    def evaluated(self) -> bool:
        """Whether it is in the report."""
        return self.in_scope and not self.reason


class _Shared(msgspec.Struct, frozen=True):
    """The facts that similar pods share; ``like`` is kept so that no other object gets its identity."""

    like: Pod
    pod_class: PodClass
    reason: str
    in_scope: bool


class PodReader:
    """Makes retained pods; equal classes are one object for as long as any of their pods is retained."""

    def __init__(self, scope: Scope, schedulers: Mapping[str, Profile]) -> None:
        """Read pods in ``scope``."""
        self._scope = scope
        self._classes = PodClasses(schedulers)
        self._shared: dict[int, _Shared] = {}

    def read(self, pod: SparsePod) -> RetainedPod:
        """Return a pod of an event or a page."""
        shared = self._shared.get(id(pod.like))
        if shared is None:
            if len(self._shared) >= _MOST_LIKE:
                self._shared.clear()
            shared = self._shared[id(pod.like)] = self._read(pod.like)
        return RetainedPod(pod_record(pod, shared.pod_class), shared.reason, shared.in_scope)

    def forget(self, retained: Counter[PodClass]) -> None:
        """Forget what was shared while a list was read, and the classes without a retained pod once they are many."""
        self._shared.clear()
        if len(self._classes) > 2 * len(retained):
            self._classes.keep_only(retained)

    def _read(self, like: Pod) -> _Shared:
        reason = why_unevaluated(like)
        requests = None if reason == FINISHED else requests_of(like.spec)
        return _Shared(like, self._classes.of(like, requests), reason, self._scope.selects(like))
