"""`check` and `plan` name the same pods for the same skew."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kubectl_spread.cli import output
from kubectl_spread.errors import CombinedError
from kubectl_spread.report.model import CommandLine, Finding
from kubectl_spread.run import collect as checks
from kubectl_spread.run.plan import PlanOptions, planner
from kubectl_spread.run.simulate import collect
from tests.plan.small import cluster_of

ROOT = Path(__file__).parents[2]
CAPTURES = sorted(
    path
    for directory in ("examples", "tests/threads", "tests/rules/SPR301", "tests/rules/SPR302")
    for path in (ROOT / directory).glob("**/*.[jy]*")
    if "kind: Node" in (text := path.read_text(encoding="utf-8")) or '"Node"' in text
)

UNKNOWN = ("not ready", "owners of pods are missing")
"""Reasons of plans that `check` cannot know: it does not read whether running pods are ready, nor wants all owners."""


def named(finding: Finding) -> set[tuple[str, str]]:
    """Return the pods that the commands of a finding delete or evict."""
    commands: list[CommandLine] = finding.commands if isinstance(finding.commands, list) else []
    return {(finding.namespace, pod) for command in commands for pod in command.pods}


def planned(arguments: dict[str, object], finding: Finding, *, soft: bool) -> tuple[list[set[tuple[str, str]]], str]:
    """Return the pods of each wave of the plan for the workload of a finding, and why some skew stays."""
    words = (f"{finding.object.kind}/{finding.object.name}",)
    try:
        run = collect({**arguments, "arguments": words, "namespace": finding.namespace}, output)
    except CombinedError as error:
        return [], str(error)
    plan = planner(run, PlanOptions(runs=10, seed=0, soft=soft, max_per_workload=1), run.world()).plan()
    waves = [{(step.record.namespace, step.record.name) for step in wave} for wave in plan.waves]
    return waves, str(plan.left)


def differing(path: Path) -> tuple[int, list[str]]:
    """Return the number of findings that name pods, and those that do not begin the plan for their workload."""
    arguments: dict[str, object] = {"filename": (str(path),), "server_version": "1.37"}
    run = checks.collect({**arguments, "all_namespaces": True}, output)
    number, others = 0, list[str]()
    for finding in run.report().findings:
        pods = named(finding) if finding.code in ("SPR301", "SPR302") else set()
        if pods:
            number += 1
            waves, why = planned(arguments, finding, soft=finding.code == "SPR302")
            if not any(pods <= wave for wave in waves[:1]) and not any(reason in why for reason in UNKNOWN):
                others.append(f"{finding.object.name} {finding.path}: {sorted(pods)} and {waves}, {why}")
    return number, others


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: str(path.relative_to(ROOT)))
def test_check_names_the_pods_with_which_the_plan_begins(path: Path) -> None:
    assert differing(path)[1] == []


def test_check_names_the_pods_with_which_the_plans_of_random_clusters_begin(tmp_path: Path) -> None:
    numbers = []
    for seed in range(30):
        path = tmp_path / f"{seed}.json"
        path.write_text("\n".join(map(json.dumps, cluster_of(f"same {seed}", varied=True))), encoding="utf-8")
        number, others = differing(path)
        assert others == [], seed
        numbers.append(number)
    assert sum(numbers) >= 10
