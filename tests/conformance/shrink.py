"""Shrinking: the smallest case that still disagrees, found by leaving things out."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from tests.builders import Json

Path: TypeAlias = tuple[str | int, ...]

_LISTS: Final = frozenset({"nodes", "pods", "namespaces", "services", "replicaSets", "feasible"})
"""What a question can do without; the pod that is asked about it needs."""


_NEEDED: Final = frozenset(
    {"name", "topologyKey", "maxSkew", "whenUnsatisfiable", "weight", "operator", "key"}
    | {"status", "allocatable", "cpu", "pods", "seed", "labelSelector", "matchLabels", "app"}
)
"""Fields without which a case breaks a rule that it does not ask about."""


def shrink(question: Json, fails: Callable[[Json], bool]) -> Json:
    """Leave out objects, items and fields for as long as the case still fails."""
    while True:
        smaller = next((item for item in _smaller(question) if _holds(item, fails)), None)
        if smaller is None:
            return question
        question = smaller


def _holds(question: Json, fails: Callable[[Json], bool]) -> bool:
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
        items: Iterator[tuple[str | int, Any]] = iter(value.items())
    elif isinstance(value, list):
        items = iter(enumerate(value))
    else:
        return
    for key, item in items:
        yield (*path, key)
        yield from _paths(item, (*path, key))


def _without(question: Json, path: Path) -> Json:
    smaller = copy.deepcopy(question)
    parent: Any = smaller
    for key in path[:-1]:
        parent = parent[key]
    del parent[path[-1]]
    return smaller
