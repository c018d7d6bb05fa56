"""Pods that only their template pins: the fix names nodeSelector, and never says that there is nothing to do."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from kubectl_spread.cli import cli
from tests.audits import deployment
from tests.builders import HOSTNAME, ZONE, Json, constraint, node_json, pod_json

NODES = [node_json(name) for name in ("a1", "a2", "b1", "c1")]
UNPIN = "Let nodeSelector or node affinity in the pod template match nodes of more domains, or remove it."


def fixes(spread_constraint: Json, places: list[str], selects: dict[str, str]) -> Any:
    workload = deployment(constraints=[spread_constraint], nodeSelector=selects)
    workload["metadata"]["uid"] = "web"
    pods = [
        pod_json(
            f"web-{number}", node=node, constraints=[spread_constraint], owner="Deployment/web", nodeSelector=selects
        )
        for number, node in enumerate(places)
    ]
    text = "\n".join(json.dumps(each) for each in (*NODES, workload, *pods))
    outcome = CliRunner().invoke(cli, ["check", "-f", "-", "-o", "json", "--fail-on", "never"], input=text)
    assert outcome.exit_code == 0, outcome.output
    return {finding["code"]: finding["fix"] for finding in json.loads(outcome.stdout)["findings"]}


@pytest.mark.parametrize(
    ("code", "spread_constraint", "places", "selects"),
    [
        pytest.param("SPR313", constraint(), ["a1", "a2"], {ZONE: "a"}, id="the only zone"),
        pytest.param("SPR313", constraint(key=HOSTNAME), ["a1", "a1"], {HOSTNAME: "a1"}, id="the only node"),
        pytest.param("SPR301", constraint(nodeAffinityPolicy="Ignore"), ["a1", "a2"], {ZONE: "a"}, id="hard"),
        pytest.param(
            "SPR302", constraint(hard=False, nodeAffinityPolicy="Ignore"), ["a1", "a2"], {ZONE: "a"}, id="soft"
        ),
        pytest.param(
            "SPR307", constraint(hard=False, nodeAffinityPolicy="Ignore"), ["a1", "a2"], {ZONE: "a"}, id="the minimum"
        ),
    ],
)
def test_the_template_is_named_where_only_it_excludes_other_domains(
    code: str, spread_constraint: Json, places: list[str], selects: dict[str, str]
) -> None:
    answers = fixes(spread_constraint, places, selects)
    assert answers[code] == UNPIN
    assert not [fix for fix in answers.values() if fix.startswith("Nothing to do")]


def test_more_domains_are_not_asked_of_the_cluster_where_the_template_excludes_them() -> None:
    answers = fixes(constraint(minDomains=2), ["a1", ""], {ZONE: "a"})
    assert answers["SPR303"].startswith(
        "Let nodeSelector or node affinity match 1 more domain, or lower minDomains in the pod template to 1."
    )
