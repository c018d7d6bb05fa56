"""SPR301 names a pod whose replacement finds a node in a lower domain, or says why none is named."""

from __future__ import annotations

from typing import Any

import pytest

from tests.audits import as_json, audit
from tests.builders import HOSTNAME, Json, affinity, constraint, node_json, pod_json, term

A, B = node_json("a1"), node_json("b1")
LEAVING = {"deletionTimestamp": "2026-09-01T11:00:00Z"}


def web(name: str, node: str, **fields: Any) -> Json:
    return pod_json(name, node=node, **{"owner": "Deployment/web", "constraints": [constraint()], **fields})


def requesting(name: str, node: str, cpu: str, owner: str = "Deployment/web") -> Json:
    containers = [{"name": "app", "resources": {"requests": {"cpu": cpu}}}]
    return web(name, node, containers=containers, owner=owner)


def with_cpu(node: Json, cpu: str) -> Json:
    return {**node, "status": {"allocatable": {"cpu": cpu, "pods": "110"}}}


def repelling(node: str) -> Json:
    """Return a pod whose required anti-affinity keeps web's pods from its host."""
    return pod_json("db", node=node, labels={"app": "db"}, affinity=affinity("podAntiAffinity", term()))


def named(*objects: Json) -> list[str]:
    """Return the pods in the commands of SPR301."""
    findings = [finding for finding in as_json(audit(*objects))["findings"] if finding["code"] == "SPR301"]
    assert findings
    return [command.split()[-1] for finding in findings for command in finding.get("commands", ())]


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([web("w1", "a1"), web("w2", "a1"), A, B], ["w1"], id="one of two"),
        pytest.param([web("w1", "a1"), web("w2", "a1"), repelling("b1"), A, B], [], id="repelled from the lower zone"),
        pytest.param([web("w1", "a1"), web("w2", "a1"), repelling("a1"), A, B], ["w1"], id="repelled from the fullest"),
        pytest.param(
            [
                requesting("other", "a1", "4", owner="Deployment/other"),
                requesting("w1", "a1", "1"),
                with_cpu(A, "8"),
                with_cpu(B, "1"),
            ],
            ["w1"],
            id="the replacement of the other workload does not fit",
        ),
        pytest.param(
            [requesting("w1", "a1", "1"), requesting("w2", "a1", "1"), with_cpu(A, "8"), with_cpu(B, "500m")],
            [],
            id="no replacement fits",
        ),
        pytest.param(
            [
                web("w0", "a1", metadata=LEAVING, constraints=[constraint(), constraint(key=HOSTNAME, max_skew=9)]),
                *(web(name, "a1", constraints=[constraint(), constraint(key=HOSTNAME, max_skew=9)]) for name in "xy"),
                A,
                B,
            ],
            [],
            id="while another pod is terminating",
        ),
    ],
)
def test_a_pod_is_named_whose_replacement_finds_a_node(objects: list[Json], expected: list[str]) -> None:
    assert named(*objects) == expected
