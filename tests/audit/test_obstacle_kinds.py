"""Each kind of obstacle has its filter, its cause and its words wherever kinds are distinguished."""

from collections.abc import Collection

import pytest

from kubectl_spread.audit.evaluation.obstacles import FILTERS, ObstacleKind
from kubectl_spread.explain import causes
from kubectl_spread.rules.placement import blocking

AFTER_CONSTRAINTS = {ObstacleKind.REPELLED}
"""Pods that no node accepts because of their constraints are not refused by the filter that comes later."""


@pytest.mark.parametrize(
    "kinds",
    [FILTERS, causes._CLOSED, {*blocking._REFUSES, *AFTER_CONSTRAINTS} - {blocking._LABEL}],
    ids=["filters", "causes", "words"],
)
def test_every_kind_is_named(kinds: Collection[ObstacleKind]) -> None:
    assert set(kinds) == set(ObstacleKind)
