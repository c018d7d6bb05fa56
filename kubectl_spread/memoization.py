"""Memoization: results that an object keeps, of its methods and of functions about it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

S = TypeVar("S")
P = ParamSpec("P")
R = TypeVar("R")


def memoized(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Return a method that computes each result once for an object; arguments must be hashable.

    A function whose first argument is the object is memoized in the same way.

    The results last as long as the object. ``functools.cache`` would keep each object as long as the program runs.
    """
    name = f"results of {method.__module__}.{method.__qualname__}"

    @wraps(method)
    def remembered(self: S, /, *arguments: P.args, **keywords: P.kwargs) -> R:
        results: dict[object, R] = self.__dict__.setdefault(name, {})
        key = (arguments, *keywords.items()) if keywords else arguments
        if key not in results:
            results[key] = method(self, *arguments, **keywords)
        return results[key]

    return remembered
