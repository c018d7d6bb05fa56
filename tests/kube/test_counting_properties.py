"""The spread model gives the same answers as a naive count over all nodes and pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_spread.kube.api.types import Node, NodeInclusionPolicy, NodeSpec, ObjectMeta, Taint
from kubectl_spread.kube.features import behaviour, gates
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import Constraint
from kubectl_spread.kube.scheduler.podtopologyspread.domains import NodeSets, Placement
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread
from tests.builders import decode_selector, selector
from tests.kube.test_podtopologyspread import count_pods

SERVED = behaviour(37, gates(37, {}))
KEYS = ("zone", "rack")
WEB, OTHER = {"app": "web"}, {"app": "other"}
GPU = Taint(key="gpu", effect="NoSchedule")
POLICIES = st.sampled_from(NodeInclusionPolicy)
CONSTRAINTS = st.builds(
    Constraint,
    topology_key=st.sampled_from(KEYS),
    hard=st.booleans(),
    max_skew=st.integers(1, 3),
    min_domains=st.integers(1, 4),
    node_affinity_policy=POLICIES,
    node_taints_policy=POLICIES,
    selector=st.just(decode_selector(selector(WEB))),
)
NODES = st.builds(
    lambda labels, tainted: Node(metadata=ObjectMeta(labels=labels), spec=NodeSpec(taints=(GPU,) if tainted else ())),
    st.dictionaries(st.sampled_from((*KEYS, "disk")), st.sampled_from(("", "a", "b", "c"))),
    st.booleans(),
)


class Cluster(NamedTuple):
    """Nodes, the number of matching pods on each, and an incoming pod with its constraint."""

    nodes: Sequence[Node]
    pods: Sequence[int]
    constraint: Constraint
    placement: Placement
    labels: Mapping[str, str]

    @property
    def counted(self) -> Spread:
        """The count of the model."""
        sets = NodeSets(self.nodes, SERVED)
        domains = sets.eligible_domains(self.constraint, sets.carrying(KEYS), sets.usable(self.placement))
        matching = {node.metadata.name: pods for node, pods in zip(self.nodes, self.pods, strict=True) if pods}
        return count_pods(self.constraint, domains, matching, self.labels)


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Return up to twelve nodes, of which one at most is excluded in half of the clusters."""
    drawn = draw(st.lists(NODES, max_size=12))
    nodes = [
        Node(metadata=ObjectMeta(name=f"n{number}", labels=node.metadata.labels), spec=node.spec)
        for number, node in enumerate(drawn)
    ]
    node_selector = draw(st.sampled_from(({}, {"disk": "a"})))
    return Cluster(
        nodes,
        [draw(st.integers(0, 4)) for _ in nodes],
        draw(CONSTRAINTS),
        Placement(node_selector, None, ()),
        draw(st.sampled_from((WEB, OTHER))),
    )


def naive_count(cluster: Cluster) -> dict[str, int]:
    """Count the matching pods of each domain, node by node."""
    honor, constraint, counts = NodeInclusionPolicy.HONOR, cluster.constraint, dict[str, int]()
    for node, pods in zip(cluster.nodes, cluster.pods, strict=True):
        labels = node.metadata.labels
        fits = all(labels.get(key) == value for key, value in cluster.placement.node_selector.items())
        if not all(key in labels for key in KEYS):
            continue
        if constraint.node_affinity_policy is honor and not fits:
            continue
        if constraint.node_taints_policy is honor and node.spec.taints:
            continue
        value = labels[constraint.topology_key]
        counts[value] = counts.get(value, 0) + pods
    return counts


def assert_equal_to_naive(counted: Spread, counts: Mapping[str, int]) -> None:
    """Compare everything that the model says with these counts of the domains."""
    constraint, added = counted.constraint, counted.self_match_num
    minimum = 0 if len(counts) < constraint.min_domains else min(counts.values(), default=0)
    skews = {value: number - minimum for value, number in counts.items()}
    allowed = {value: not constraint.hard or skew + added <= constraint.max_skew for value, skew in skews.items()}
    assert dict(counted.match_num) == counts
    assert counted.min_match_num == minimum
    assert counted.short_of_domains == (len(counts) < constraint.min_domains)
    assert counted.skew == max(skews.values(), default=0)
    assert counted.exceeds_max_skew == any(skew > constraint.max_skew for skew in skews.values())
    assert {value: counted.allows(value) for value in counts} == allowed
    assert counted.allows_all == all(allowed.values())
    assert counted.allows(None) is not constraint.hard
    assert counted.match_num.total == sum(counts.values())
    assert counted.match_num.empty == sum(not number for number in counts.values())
    assert set(counted.blocked) == {value for value, allows in allowed.items() if constraint.hard and not allows}


@settings(max_examples=150, derandomize=True)
@given(clusters())
def test_counts_equal_those_of_a_naive_count(cluster: Cluster) -> None:
    counted = cluster.counted
    assert counted.self_match_num == (cluster.labels == WEB)
    assert_equal_to_naive(counted, naive_count(cluster))


@settings(max_examples=150, derandomize=True)
@given(clusters(), st.dictionaries(st.sampled_from(("", "a", "b", "elsewhere")), st.integers(0, 3)))
def test_counts_after_pods_come_and_go_equal_those_of_a_naive_count(
    cluster: Cluster, change: Mapping[str, int]
) -> None:
    """Pods are added to eligible domains only; with_domains makes other domains eligible first."""
    before, counts = cluster.counted, naive_count(cluster)
    added = {value: number + change.get(value, 0) for value, number in counts.items()}
    assert_equal_to_naive(before.changed(change), added)
    assert_equal_to_naive(before.changed(change).without(change), counts)
    with_domains = {value: counts.get(value, 0) + change.get(value, 0) for value in {**counts, **change}}
    assert_equal_to_naive(before.with_domains(change), with_domains)
    after = before.changed(change)
    opened = any(after.allows(value) and not before.allows(value) for value in counts)
    assert after.frees(before) == opened
