"""Shrinking: find the smallest case that still disagrees by leaving out its parts."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from tests.builders import Json

Path: TypeAlias = tuple[str | int, ...]

_LISTS: Final = frozenset({"nodes", "pods", "namespaces", "services", "replicaSets", "feasible"})
"""The fields that a question can lack; it needs the pod that it is about."""


_NEEDED: Final = frozenset(
    {"name", "topologyKey", "maxSkew", "whenUnsatisfiable", "weight", "operator", "key"}
    | {"status", "allocatable", "cpu", "pods", "seed", "labelSelector", "matchLabels", "app"}
    | {"metadata", "uid", "namespace", "spec", "schedulerName", "containers", "preemptionPolicy", "operator", "effect"}
)
"""The fields that a case needs to be valid."""


def shrink(question: Json, fails: Callable[[Json], bool]) -> Json:
    """Leave out objects, items and fields for as long as the case still fails."""
    while True:
        smaller = next((candidate for candidate in _smaller(question) if _still_fails(candidate, fails)), None)
        if smaller is None:
            return question
        question = smaller


def _still_fails(question: Json, fails: Callable[[Json], bool]) -> bool:
    try:
        return fails(question)
    except (KeyError, ValueError):
        return False


def _smaller(question: Json) -> Iterator[Json]:
    """Yield the case without each of its parts, the largest parts first."""
    for path in sorted(_paths(question, ()), key=len):
        if (path[0] in _LISTS or len(path) > 1) and path[-1] not in _NEEDED:
            yield _without(question, path)


def _paths(value: Any, path: Path) -> Iterator[Path]:
    if isinstance(value, dict):
        members: Iterator[tuple[str | int, Any]] = iter(value.items())
    elif isinstance(value, list):
        members = iter(enumerate(value))
    else:
        return
    for key, member in members:
        yield (*path, key)
        yield from _paths(member, (*path, key))


def _without(question: Json, path: Path) -> Json:
    smaller = copy.deepcopy(question)
    parent: Any = smaller
    for key in path[:-1]:
        parent = parent[key]
    del parent[path[-1]]
    return smaller
