"""The node index answers for many nodes at once as the reference answers for each."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubectl_spread.kube.api.labelindex import bitmap, numbers
from kubectl_spread.kube.api.types import Node, NodeSpec, Taint, Toleration
from kubectl_spread.kube.features import behaviour, gates
from kubectl_spread.kube.scheduler import taints
from kubectl_spread.kube.scheduler.nodeindex import NodeTaints

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
def test_bitmaps_hold_numbers(some: set[int]) -> None:
    assert numbers(bitmap(some, 100)) == tuple(sorted(some))


@given(st.lists(st.lists(TAINTS, max_size=3), max_size=6), st.lists(TOLERATIONS, max_size=3), st.sampled_from([34, 37]))
def test_tolerated_nodes_have_no_untolerated_taint(
    of_nodes: list[list[Taint]], tolerations: list[Toleration], minor: int
) -> None:
    reads = behaviour(minor, gates(minor, {}))
    nodes = [Node(spec=NodeSpec(taints=tuple(each))) for each in of_nodes]
    tolerated, _ = NodeTaints(nodes, reads).tolerated(tolerations)
    operators = reads.toleration_comparison
    expected = [taints.find_untolerated(each, tolerations, comparison_operators=operators) is None for each in of_nodes]
    assert [bool(tolerated >> number & 1) for number in range(len(nodes))] == expected


def test_placements_with_another_first_taint_differ() -> None:
    """Obstacles name the first taint that is not tolerated, which pods with equal obstacles share."""
    both = (Taint(key="a", effect="NoSchedule"), Taint(key="b", effect="NoSchedule"))
    index = NodeTaints([Node(spec=NodeSpec(taints=both))], behaviour(37, gates(37, {})))
    assert [index.tolerated([Toleration(key=key, operator="Exists")]) for key in "ab"] == [(0, (1,)), (0, (0,))]
