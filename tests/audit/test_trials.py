"""The trials of fixes give the same answers in whichever order pods are read."""

from __future__ import annotations

import pytest

from kubectl_spread.diagnosis.trials import Trials
from tests.audits import audit, deployment
from tests.builders import HOSTNAME, Json, constraint, node_json, pod_json

NODES = [node_json(name) for name in ("a1", "b1", "c1")]
SOFT = constraint(key=HOSTNAME, when="ScheduleAnyway")


def pod(name: str, node: str, labels: dict[str, str]) -> Json:
    return pod_json(name, node=node, constraints=[SOFT], owner="Deployment/web", labels={"app": "web", **labels})


@pytest.mark.parametrize("last", ["b1", "c1"])
def test_pods_that_differ_in_a_label_of_their_own_have_equal_replacements(last: str) -> None:
    """The first pod of each class, which stands for all of them, is on another node."""
    pods = [pod("web-1", "a1", {}), pod("web-2", last, {"debug": "yes"}), pod("web-3", "a1", {"debug": "yes"})]
    orders = [pods, pods[::-1]]
    removed = []
    for order in orders:
        evaluation = audit(deployment(constraints=[SOFT]), *order, *NODES)
        crowded = sorted((each for each in evaluation.pods if each.node == "a1"), key=lambda each: each.name)
        removed.append([each.name for each in Trials(evaluation).removable(crowded).pods])
    assert removed == [["web-1", "web-3"]] * 2
