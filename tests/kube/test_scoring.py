"""Spread scores, computed by hand from the formulas of the scheduler's plugin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from kubectl_spread.kube.features import behaviour, gates
from kubectl_spread.kube.scheduler.configuration import Profile
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import working_constraint
from kubectl_spread.kube.scheduler.podtopologyspread.domains import NodeSets, Placement
from kubectl_spread.kube.scheduler.podtopologyspread.scoring import lenient_domains
from tests.audits import audit, engine_of
from tests.builders import HOSTNAME, ZONE, Json, constraint, decode_node, decode_pod, node_json, pod_json

SERVED = behaviour(37, gates(37, {}))
ABC = [node_json("a1"), node_json("b1"), node_json("c1")]


def ranked(
    constraints: Sequence[Json], matching: Mapping[str, int], manifests: Sequence[Json], *, defaults: bool = False
) -> dict[str, int]:
    """Return the scores of a pending pod, which the soft constraints of pods on these nodes decide."""
    bound = [pod_json(f"{node}-{n}", node=node) for node, number in matching.items() for n in range(number)]
    soft = tuple(decode_pod(pod_json(constraints=constraints)).spec.topology_spread_constraints)
    profile = Profile(defaults=soft if defaults else (), system_defaults=defaults)
    pending = pod_json("new", constraints=() if defaults else constraints)
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default"}}
    service["spec"] = {"selector": {"app": "web"}}
    evaluation = audit(*manifests, *bound, pending, service, schedulers={"default-scheduler": profile})
    (record,) = [pod for pod in evaluation.pods if not pod.node]
    return dict(engine_of(evaluation).destinations(record).scores)


@pytest.mark.parametrize(
    ("matching", "max_skew", "expected"),
    [
        # Three zones: a pod weighs ln(3 + 2) = 1.609.
        pytest.param({}, 1, {"a1": 100, "b1": 100, "c1": 100}, id="without pods all nodes have the best score"),
        # round(3.219) = 3, round(1.609) = 2, 0.
        pytest.param({"a1": 2, "b1": 1}, 1, {"a1": 0, "b1": 33, "c1": 100}, id="fewer pods are better"),
        # round(5.219) = 5, round(3.609) = 4, 2: scores are 100 * (5 + 2 - raw) / 5.
        pytest.param({"a1": 2, "b1": 1}, 3, {"a1": 40, "b1": 60, "c1": 100}, id="a larger maxSkew matters less"),
    ],
)
def test_zones_are_ranked_by_their_pods(
    matching: Mapping[str, int], max_skew: int, expected: Mapping[str, int]
) -> None:
    assert ranked([constraint(hard=False, max_skew=max_skew)], matching, ABC) == expected


def test_hosts_are_ranked_by_their_own_pods() -> None:
    """A pod weighs ln(2 nodes + 2) = 1.386, and 3 pods come to round(4.159) = 4."""
    nodes = [node_json("a1"), node_json("a2")]
    assert ranked([constraint(key=HOSTNAME, hard=False)], {"a1": 3}, nodes) == {"a1": 0, "a2": 100}
    assert ranked([constraint(key=HOSTNAME, hard=False)], {"a1": 3, "a2": 1}, nodes) == {"a1": 25, "a2": 100}


def test_hosts_with_the_same_hostname_are_ranked_one_by_one() -> None:
    """The weight is that of 2 hosts: 3 pods come to 4 and 1 pod to 1."""
    nodes = [node_json("a1", labels={HOSTNAME: "same"}), node_json("a2", labels={HOSTNAME: "same"})]
    assert ranked([constraint(key=HOSTNAME, hard=False)], {"a1": 3, "a2": 1}, nodes) == {"a1": 25, "a2": 100}


def test_default_constraints_leave_out_nodes_that_the_pod_cannot_use() -> None:
    manifests = [node_json("a1", labels={"disk": "ssd"}), node_json("a2"), node_json("x1", without=[ZONE])]
    nodes = NodeSets([decode_node(manifest) for manifest in manifests], SERVED)
    (default,) = decode_pod(pod_json(constraints=[constraint(hard=False)])).spec.topology_spread_constraints
    working = working_constraint(default, None, SERVED, lenient=True)
    anywhere, on_ssd = (
        lenient_domains(working, nodes, nodes.usable(Placement(node_selector, None, ())))
        for node_selector in ({}, {"disk": "ssd"})
    )
    assert anywhere.value_of == {"a1": "a", "a2": "a", "x1": ""}
    assert on_ssd.value_of == {"a1": "a"}


def test_a_node_without_a_topology_key_has_the_worst_score() -> None:
    nodes = [node_json("a1"), node_json("x1", without=[ZONE])]
    assert ranked([constraint(hard=False)], {"a1": 1}, nodes) == {"a1": 100, "x1": 0}


def test_nodes_without_a_key_are_one_domain_of_the_default_constraints() -> None:
    """With three domains a pod weighs ln(3 + 2) = 1.609; the pods of x1 and x2 add nothing to their raw score of 0."""
    nodes = [*ABC[:2], node_json("x1", without=[ZONE]), node_json("x2", without=[ZONE])]
    by_node = ranked([constraint(hard=False)], {"a1": 2, "b1": 1, "x1": 5}, nodes, defaults=True)
    assert by_node == {"a1": 0, "b1": 33, "x1": 100, "x2": 100}


def test_without_soft_constraints_nothing_is_ranked() -> None:
    assert ranked([], {"a1": 1}, ABC) == {}
