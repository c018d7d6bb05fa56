"""The catalogue: every rule, declared once and listed here."""

from __future__ import annotations

from typing import Final

from kubectl_spread.rules.absent import ABSENT_KEY
from kubectl_spread.rules.blocking import BLOCKED, CONFLICTING
from kubectl_spread.rules.constraint import (
    EMPTY_SELECTOR,
    NULL_SELECTOR,
    PODS_REFUSED,
    REFUSED,
    REPEATED_KEY,
)
from kubectl_spread.rules.domains import (
    EMPTY_VALUE,
    MISSING_DOMAINS,
    SINGLE_DOMAIN,
    TOO_FEW_DOMAINS,
)
from kubectl_spread.rules.grouping import COUNTS_OLD_REVISIONS, OWN_GROUP
from kubectl_spread.rules.keys import AUTHORED_KEY, BINDING_KEY
from kubectl_spread.rules.mismatch import SELF_MISMATCH
from kubectl_spread.rules.model import Rule
from kubectl_spread.rules.parsing import UNPARSEABLE_SELECTOR
from kubectl_spread.rules.population import OLDER_REVISION, TERMINATING, UNCOUNTED
from kubectl_spread.rules.reach import HELD_DOWN, KEYLESS_NODES
from kubectl_spread.rules.recreation import REFUSED_AGAIN
from kubectl_spread.rules.relabelled import REMOVED_LABEL, STALE_LABEL
from kubectl_spread.rules.selector import (
    DUPLICATE,
    LATE_LABEL,
    MERGE_OFF,
    PRE_UPGRADE,
    UNMERGED,
)
from kubectl_spread.rules.servers import MIXED_SERVERS, NAMESPACE_SELECTOR_TWICE, UNEDITABLE
from kubectl_spread.rules.sharing import OTHER_WORKLOADS
from kubectl_spread.rules.skews import HARD_SKEW, SOFT_SKEW
from kubectl_spread.rules.unknown import UNKNOWN_FIELD
from kubectl_spread.rules.upgrade import COUNTED_DIFFERENTLY, SCHEDULER_SKIP, STARTS_WORKING, STOPS_WORKING
from kubectl_spread.rules.workload import DAEMON_SET_SPREAD, DEPRECATED_TOPOLOGY_KEY, NODE_NAME, UNKNOWN_SCHEDULER

RULES: Final[tuple[Rule, ...]] = (
    STALE_LABEL,
    REMOVED_LABEL,
    PRE_UPGRADE,
    MERGE_OFF,
    LATE_LABEL,
    DUPLICATE,
    ABSENT_KEY,
    UNMERGED,
    AUTHORED_KEY,
    BINDING_KEY,
    REFUSED,
    PODS_REFUSED,
    REPEATED_KEY,
    NULL_SELECTOR,
    EMPTY_SELECTOR,
    SELF_MISMATCH,
    REFUSED_AGAIN,
    COUNTS_OLD_REVISIONS,
    OWN_GROUP,
    DAEMON_SET_SPREAD,
    NODE_NAME,
    UNKNOWN_SCHEDULER,
    DEPRECATED_TOPOLOGY_KEY,
    UNPARSEABLE_SELECTOR,
    UNKNOWN_FIELD,
    HARD_SKEW,
    SOFT_SKEW,
    BLOCKED,
    TOO_FEW_DOMAINS,
    KEYLESS_NODES,
    EMPTY_VALUE,
    HELD_DOWN,
    CONFLICTING,
    OLDER_REVISION,
    TERMINATING,
    MISSING_DOMAINS,
    UNCOUNTED,
    SINGLE_DOMAIN,
    OTHER_WORKLOADS,
    UNEDITABLE,
    MIXED_SERVERS,
    SCHEDULER_SKIP,
    STOPS_WORKING,
    STARTS_WORKING,
    COUNTED_DIFFERENTLY,
    NAMESPACE_SELECTOR_TWICE,
)
