"""Each kind of obstacle has its filter, and with it its words, its cause and what helps."""

from kubectl_spread.audit.evaluation.obstacles import FILTERS, ObstacleKind


def test_every_kind_has_a_filter() -> None:
    assert list(FILTERS) == list(ObstacleKind)
