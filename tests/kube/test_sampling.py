"""In which order the scheduler visits nodes, and after how many feasible ones it stops."""

from __future__ import annotations

import pytest

from kubectl_spread.kube.api.types import Node, ObjectMeta
from kubectl_spread.kube.scheduler import scores

BETA, STABLE = "failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"


def visited(labels: dict[str, dict[str, str]]) -> list[str]:
    nodes = [Node(metadata=ObjectMeta(name=name, labels=of_node)) for name, of_node in labels.items()]
    return [node.metadata.name for node in scores.in_visiting_order(nodes)]


def test_one_node_of_each_zone_is_visited_in_turn() -> None:
    zones = {"n1": "a", "n2": "a", "n3": "b", "n4": "b"}
    assert visited({name: {STABLE: zone} for name, zone in zones.items()}) == ["n1", "n3", "n2", "n4"]


def test_the_beta_label_names_the_zone_even_where_it_is_empty() -> None:
    assert visited({"n1": {BETA: "", STABLE: "a"}, "n2": {BETA: "", STABLE: "b"}, "n3": {STABLE: "a"}}) == [
        "n1",
        "n3",
        "n2",
    ]


@pytest.mark.parametrize(("nodes", "number"), [(99, 99), (100, 100), (1000, 420), (5000, 500), (10_000, 500)])
def test_the_scheduler_stops_after_a_part_of_many_nodes(nodes: int, number: int) -> None:
    assert scores.nodes_to_find(nodes) == number
