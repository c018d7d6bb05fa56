"""The node index gives the same answers as a test of each node."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubectl_spread.kube.api.labels import ascending, bitmap
from kubectl_spread.kube.api.types import Node, NodeSpec, Taint, Toleration
from kubectl_spread.kube.features import behaviour, gates
from kubectl_spread.kube.scheduler import taints
from kubectl_spread.kube.scheduler.podtopologyspread.domains import NodeTaints

KEYS = st.sampled_from(["", "a", "b"])
VALUES = st.sampled_from(["", "1", "2"])
EFFECTS = ["NoSchedule", "NoExecute", "PreferNoSchedule"]
TAINTS = st.builds(Taint, key=KEYS, value=VALUES, effect=st.sampled_from(EFFECTS))
TOLERATIONS = st.builds(
    Toleration,
    key=KEYS,
    operator=st.sampled_from(["", "Equal", "Exists", "Gt", "Lt"]),
    value=VALUES,
    effect=st.sampled_from(["", *EFFECTS]),
)


@given(st.sets(st.integers(0, 99)))
def test_a_bitmap_has_its_numbers(members: set[int]) -> None:
    assert list(ascending(bitmap(members))) == sorted(members)


@given(st.lists(st.lists(TAINTS, max_size=3), max_size=6), st.lists(TOLERATIONS, max_size=3), st.sampled_from([34, 37]))
def test_tolerated_nodes_have_no_untolerated_taint(
    taint_lists: list[list[Taint]], tolerations: list[Toleration], minor: int
) -> None:
    served = behaviour(minor, gates(minor, {}))
    nodes = [Node(spec=NodeSpec(taints=tuple(node_taints))) for node_taints in taint_lists]
    tolerated, _ = NodeTaints(nodes, served).tolerated(tolerations)
    expected = [
        taints.find_untolerated(node_taints, tolerations, comparison_operators=served.toleration_comparison) is None
        for node_taints in taint_lists
    ]
    assert [bool(tolerated >> number & 1) for number in range(len(nodes))] == expected


def test_tolerations_with_different_first_untolerated_taints_differ() -> None:
    """Obstacles name the first untolerated taint, so pods with different first taints must not share them."""
    both = (Taint(key="a", effect="NoSchedule"), Taint(key="b", effect="NoSchedule"))
    index = NodeTaints([Node(spec=NodeSpec(taints=both))], behaviour(37, gates(37, {})))
    a, b = both
    assert [index.tolerated([Toleration(key=key, operator="Exists")]) for key in "ab"] == [(0, (b,)), (0, (a,))]
