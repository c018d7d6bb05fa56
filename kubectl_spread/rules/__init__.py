"""The catalogue: every rule, declared once and listed here."""

from __future__ import annotations

from typing import Final

from kubectl_spread.rules.constraint import REFUSED
from kubectl_spread.rules.model import Rule
from kubectl_spread.rules.placement import BLOCKED, HARD_SKEW, SOFT_SKEW
from kubectl_spread.rules.selector import (
    ABSENT_KEY,
    DUPLICATE,
    LATE_LABEL,
    MERGE_OFF,
    PRE_UPGRADE,
    REMOVED_LABEL,
    STALE_LABEL,
    UNMERGED,
)

RULES: Final[tuple[Rule, ...]] = (
    STALE_LABEL,
    REMOVED_LABEL,
    PRE_UPGRADE,
    MERGE_OFF,
    LATE_LABEL,
    DUPLICATE,
    ABSENT_KEY,
    UNMERGED,
    REFUSED,
    HARD_SKEW,
    SOFT_SKEW,
    BLOCKED,
)
