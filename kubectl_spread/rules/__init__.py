"""Which faults are there, and how are they fixed? The catalogue of rules.

It may import `diagnosis`, `report`, `audit` and `kube`.
"""

from __future__ import annotations

from typing import Final

from kubectl_spread.rules.constraints.grouping import COUNTS_OLD_REVISIONS, OWN_GROUP
from kubectl_spread.rules.constraints.no_effect import (
    EMPTY_SELECTOR,
    NULL_SELECTOR,
    REPEATED_KEY,
    SELF_MISMATCH,
    UNPARSEABLE_SELECTOR,
)
from kubectl_spread.rules.constraints.refusals import PODS_REFUSED, REFUSED, REFUSED_AGAIN, UNKNOWN_FIELD
from kubectl_spread.rules.constraints.workload import (
    DAEMON_SET_SPREAD,
    DEPRECATED_TOPOLOGY_KEY,
    NODE_NAME,
    UNKNOWN_SCHEDULER,
)
from kubectl_spread.rules.exposure import (
    ALL_IN_ONE_DOMAIN,
    ALL_IN_ONE_ZONE,
    ALL_ON_ONE_NODE,
    MAJORITY_IN_ONE_ZONE,
    NO_SPREAD,
)
from kubectl_spread.rules.model import Rule
from kubectl_spread.rules.placement.blocking import BLOCKED, CONFLICTING
from kubectl_spread.rules.placement.domains import (
    EMPTY_VALUE,
    HELD_DOWN,
    KEYLESS_NODES,
    MISSING_DOMAINS,
    SINGLE_DOMAIN,
    TOO_FEW_DOMAINS,
)
from kubectl_spread.rules.placement.population import OLDER_REVISION, OTHER_WORKLOADS, TERMINATING, UNCOUNTED
from kubectl_spread.rules.placement.skews import HARD_SKEW, SOFT_SKEW
from kubectl_spread.rules.selectors.keys import ABSENT_KEY, AUTHORED_KEY, BINDING_KEY
from kubectl_spread.rules.selectors.verdicts import (
    DUPLICATE,
    LATE_LABEL,
    MERGE_OFF,
    PRE_UPGRADE,
    REMOVED_LABEL,
    STALE_LABEL,
    UNMERGED,
)
from kubectl_spread.rules.servers.running import MIXED_SERVERS, NAMESPACE_SELECTOR_TWICE, UNEDITABLE
from kubectl_spread.rules.servers.upgrade import COUNTED_DIFFERENTLY, SCHEDULER_SKIP, STARTS_WORKING, STOPS_WORKING

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
    ALL_ON_ONE_NODE,
    ALL_IN_ONE_ZONE,
    MAJORITY_IN_ONE_ZONE,
    NO_SPREAD,
    ALL_IN_ONE_DOMAIN,
)
