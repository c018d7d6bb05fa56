"""Required pod affinity and anti-affinity: the answers for each node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from kubectl_spread.kube.features import behaviour, gates
from kubectl_spread.kube.scheduler.interpodaffinity import AffinityAnswer, pre_filter
from tests.builders import (
    ZONE,
    Json,
    affinity,
    decode_node,
    decode_pod,
    node_json,
    pod_json,
    requirement,
    selector,
    term,
)

WEB, DB = {"app": "web"}, {"app": "db"}
NEAR_WEB = affinity("podAffinity", term(key=ZONE))
AWAY_FROM_WEB = affinity("podAntiAffinity", term(key=ZONE))
UNPARSEABLE = term(selects=selector(None, requirement("x", "Equals", "y")))
FEASIBLE, NO_AFFINITY = AffinityAnswer.FEASIBLE, AffinityAnswer.NO_AFFINITY
NODES = [node_json("a1"), node_json("b1"), node_json("x1", without=[ZONE])]


def pod(labels: Mapping[str, str], *, node: str = "", namespace: str = "default", near: Json | None = None) -> Json:
    manifest = pod_json("p", node=node, labels=labels, namespace=namespace)
    return manifest if near is None else {**manifest, "spec": {**manifest["spec"], "affinity": near}}


def answers(
    incoming: Json, *others: Json, namespaces: Mapping[str, Mapping[str, str]] | None = None, minor: int = 37
) -> list[AffinityAnswer]:
    nodes = {node.metadata.name: node for node in map(decode_node, NODES)}
    state = pre_filter(
        decode_pod(incoming),
        [decode_pod(other) for other in others],
        nodes,
        {"default": {}} if namespaces is None else namespaces,
        behaviour(minor, gates(minor, {})),
    )
    return [state.filter(nodes[name]) for name in ("a1", "b1", "x1")]


@pytest.mark.parametrize(
    ("incoming", "others", "expected"),
    [
        pytest.param(pod(WEB), [], [FEASIBLE] * 3, id="a pod without terms may go anywhere"),
        pytest.param(
            pod(DB, near=NEAR_WEB),
            [pod(WEB, node="a1")],
            [FEASIBLE, NO_AFFINITY, NO_AFFINITY],
            id="affinity allows the domains of matching pods",
        ),
        pytest.param(
            pod(DB, near=NEAR_WEB),
            [pod(WEB, node="gone")],
            [NO_AFFINITY] * 3,
            id="a pod on a node that does not exist attracts nothing",
        ),
        pytest.param(
            pod(DB, near=NEAR_WEB),
            [pod(WEB, node="a1", namespace="other")],
            [NO_AFFINITY] * 3,
            id="a term selects in the pod's own namespace",
        ),
        pytest.param(pod(DB, near=NEAR_WEB), [], [NO_AFFINITY] * 3, id="without matching pods no domain is allowed"),
        pytest.param(
            pod(WEB, near=NEAR_WEB),
            [],
            [FEASIBLE, FEASIBLE, NO_AFFINITY],
            id="the first pod of a group with affinity to itself may go to any node with the key",
        ),
        pytest.param(
            pod(WEB, near=NEAR_WEB),
            [pod(WEB, node="b1")],
            [NO_AFFINITY, FEASIBLE, NO_AFFINITY],
            id="the second pod of such a group follows the first",
        ),
        pytest.param(
            pod(WEB, near=affinity("podAffinity", term(key=ZONE), term(key=ZONE, selects=selector(DB)))),
            [pod(WEB, node="a1"), pod(DB, node="a1")],
            [NO_AFFINITY] * 3,
            id="a pod attracts only if all terms select it",
        ),
        pytest.param(
            pod(DB, near=AWAY_FROM_WEB),
            [pod(WEB, node="a1")],
            [AffinityAnswer.ANTI_AFFINITY, FEASIBLE, FEASIBLE],
            id="anti-affinity refuses the domains of matching pods",
        ),
        pytest.param(
            pod(WEB),
            [pod(DB, node="a1", near=AWAY_FROM_WEB)],
            [AffinityAnswer.EXISTING_ANTI_AFFINITY, FEASIBLE, FEASIBLE],
            id="the anti-affinity of another pod refuses its domain",
        ),
        pytest.param(
            pod(WEB),
            [pod(DB, node="a1", near=affinity("podAntiAffinity", term(key=ZONE), UNPARSEABLE))],
            [FEASIBLE] * 3,
            id="no term of another pod counts if one of them cannot be parsed",
        ),
        pytest.param(
            pod(WEB, near=affinity("podAffinity", UNPARSEABLE)),
            [],
            [AffinityAnswer.UNPARSEABLE] * 3,
            id="a selector that cannot be parsed refuses every node",
        ),
        pytest.param(
            pod(WEB, near=affinity("podAffinity", UNPARSEABLE, required=False)),
            [],
            [AffinityAnswer.UNPARSEABLE] * 3,
            id="so does a selector of a preferred term",
        ),
    ],
)
def test_required_terms_of_all_pods_decide(
    incoming: Json, others: Sequence[Json], expected: list[AffinityAnswer]
) -> None:
    assert answers(incoming, *others) == expected


@pytest.mark.parametrize(
    ("fields", "own_selected", "other_selected"),
    [
        pytest.param({}, True, False, id="neither: the pod's own namespace"),
        pytest.param({"namespaces": ["other"]}, False, True, id="namespaces: those only"),
        pytest.param({"namespaceSelector": selector({"team": "b"})}, False, True, id="a selector: the selected only"),
        pytest.param({"namespaceSelector": {}}, True, True, id="an empty selector: all"),
    ],
)
def test_a_term_selects_in_its_namespaces(fields: Json, own_selected: bool, other_selected: bool) -> None:
    incoming = pod(DB, near=affinity("podAffinity", term(key=ZONE, **fields)))
    namespaces = {"default": {"team": "a"}, "other": {"team": "b"}}
    own, other = (
        answers(incoming, pod(WEB, node="a1", namespace=namespace), namespaces=namespaces)[0]
        for namespace in ("default", "other")
    )
    assert (own is FEASIBLE, other is FEASIBLE) == (own_selected, other_selected)


def test_an_empty_namespace_selector_selects_namespaces_that_are_not_listed() -> None:
    incoming = pod(DB, near=affinity("podAffinity", term(key=ZONE, namespaceSelector={})))
    assert answers(incoming, pod(WEB, node="a1", namespace="other"), namespaces={})[0] is FEASIBLE


@pytest.mark.parametrize(("minor", "answer"), [(33, NO_AFFINITY), (34, FEASIBLE), (36, FEASIBLE), (37, NO_AFFINITY)])
def test_from_1_34_to_1_36_a_namespace_selector_of_absent_labels_selects_all(
    minor: int, answer: AffinityAnswer
) -> None:
    without_team = selector(None, requirement("team", "DoesNotExist"))
    incoming = pod(DB, near=affinity("podAffinity", term(key=ZONE, namespaceSelector=without_team)))
    namespaces = {"default": {"team": "a"}, "other": {"team": "b"}}
    other = pod(WEB, node="a1", namespace="other")
    assert answers(incoming, other, namespaces=namespaces, minor=minor)[0] is answer
