"""Phrases: numbers with their nouns, short lists, and the short names of objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

_NAMED: Final = 3
_SHORT_KINDS: Final[Mapping[str, str]] = {
    "Deployment": "deploy",
    "ReplicaSet": "rs",
    "StatefulSet": "sts",
    "DaemonSet": "ds",
    "Job": "job",
    "CronJob": "cj",
    "ReplicationController": "rc",
    "Pod": "po",
}


def plural(number: int, noun: str) -> str:
    """Return ``1 pod``, ``2 pods``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def some(names: Sequence[str], most: int = _NAMED) -> str:
    """Join names; of more than ``most`` names only the first ones, with the number of the others."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def named(kind: str, name: str) -> str:
    """Return an object as kubectl users write it: ``deploy/web``."""
    return f"{_SHORT_KINDS.get(kind, kind.lower())}/{name}"


def value(text: str) -> str:
    """Return a label's value, or ``""`` for the empty value."""
    return text or '""'
