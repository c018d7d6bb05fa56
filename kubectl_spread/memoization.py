"""Memoization: results that an object keeps, of its methods and of functions about it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

S = TypeVar("S")
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


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


def memoized_by_identity(method: Callable[Concatenate[S, T, P], R]) -> Callable[Concatenate[S, T, P], R]:
    """Return a method as ``memoized``, whose first argument need not be hashable: it is compared by identity."""
    name = f"results of {method.__module__}.{method.__qualname__}"

    @wraps(method)
    def remembered(self: S, first: T, /, *arguments: P.args, **keywords: P.kwargs) -> R:
        results: dict[object, tuple[T, R]] = self.__dict__.setdefault(name, {})
        key = (id(first), arguments, *keywords.items())
        if key not in results:
            # The first argument is kept, so that no other object gets its identity.
            results[key] = (first, method(self, first, *arguments, **keywords))
        return results[key][1]

    return remembered
