"""Which faults are there, and how are they fixed? The catalogue of rules.

It may import `diagnosis`, `report`, `audit` and `kube`.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from kubectl_spread.rules import exposure, selector_keys, selectors, servers, upgrades
from kubectl_spread.rules.constraints import affinity, grouping, no_effect, refusals, workload
from kubectl_spread.rules.model import Rule
from kubectl_spread.rules.placement import blocking, domains, pools, population, skews

_CONSTRAINTS: Final = (affinity, grouping, no_effect, refusals, workload)
_PLACEMENT: Final = (blocking, domains, pools, population, skews)
_MODULES: Final = (selectors, selector_keys, *_CONSTRAINTS, *_PLACEMENT, servers, upgrades, exposure)

RULES: Final[tuple[Rule, ...]] = tuple(
    sorted(
        (rule for module in _MODULES for rule in vars(module).values() if isinstance(rule, Rule)),
        key=attrgetter("code"),
    )
)
"""The rules that these modules declare, by code."""
