"""Which pods does the descheduler's default evictor evict?

Source: sigs.k8s.io/descheduler v0.36.0 pkg/framework/plugins/defaultevictor, Filter, with the defaults of its policy.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Final, Self

import msgspec

_EVICT: Final = "descheduler.alpha.kubernetes.io/evict"
_MIRROR: Final = "kubernetes.io/config.mirror"
_SOURCE: Final = "kubernetes.io/config.source"
_SYSTEM_CRITICAL: Final = 2_000_000_000
_LOCAL_STORAGE: Final = frozenset({"emptyDir", "hostPath"})


class Explained(StrEnum):
    """An enum of stable words, each with a short English clause."""

    clause: str

    def __new__(cls, word: str, clause: str) -> Self:
        """Keep the clause next to the word, which is the value."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.clause = clause
        return member


class EvictionObstacle(Explained):
    """A reason why the default evictor does not evict a pod; the clauses are about the pod."""

    MIRROR = "mirror", "it is the mirror of a static pod"
    STATIC = "static", "it is a static pod"
    TERMINATING = "terminating", "it is being deleted"
    SYSTEM_CRITICAL = "system-critical", "its priority is system-critical"
    NO_OWNER = "no-owner", "nothing owns it"
    LOCAL_STORAGE = "local-storage", "it has an emptyDir or hostPath volume"
    DAEMON_SET = "daemonset", "a DaemonSet owns it"


class Evictee(msgspec.Struct, frozen=True):
    """The fields of a pod that the default evictor reads.

    Attributes:
        owner_kinds: The kinds in ownerReferences.
        annotations: The annotations.
        priority: The number that the API server resolved.
        volume_kinds: The kinds of the volumes as in the API, such as ``emptyDir``.
        terminating: Whether the pod has a deletion timestamp.
    """

    owner_kinds: Collection[str]
    annotations: Mapping[str, str]
    priority: int | None
    volume_kinds: Collection[str]
    terminating: bool


def obstacles(pod: Evictee) -> tuple[EvictionObstacle, ...]:
    """Return the reasons why the default evictor does not evict a pod.

    By default, PersistentVolumeClaims, resource claims and a missing PodDisruptionBudget are not obstacles.
    """
    if _EVICT in pod.annotations:
        return ()
    by_obstacle = {
        EvictionObstacle.MIRROR: _MIRROR in pod.annotations,
        EvictionObstacle.STATIC: pod.annotations.get(_SOURCE, "api") != "api",
        EvictionObstacle.TERMINATING: pod.terminating,
        EvictionObstacle.SYSTEM_CRITICAL: pod.priority is not None and pod.priority >= _SYSTEM_CRITICAL,
        EvictionObstacle.NO_OWNER: not pod.owner_kinds,
        EvictionObstacle.LOCAL_STORAGE: not _LOCAL_STORAGE.isdisjoint(pod.volume_kinds),
        EvictionObstacle.DAEMON_SET: "DaemonSet" in pod.owner_kinds,
    }
    return tuple(obstacle for obstacle, applies in by_obstacle.items() if applies)
