"""The severity of findings, and its only order."""

from __future__ import annotations

from enum import Enum
from functools import total_ordering


@total_ordering
class Severity(Enum):
    """How much a finding affects the user's pods, from the least to the most."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    def __lt__(self, other: Severity) -> bool:
        """Tell whether this severity is lower."""
        return _RANKS[self] < _RANKS[other]

    def __str__(self) -> str:
        """Return the word that users see."""
        return self.value


_RANKS = {severity: rank for rank, severity in enumerate(Severity)}
SEVEREST_FIRST = tuple(reversed(Severity))
