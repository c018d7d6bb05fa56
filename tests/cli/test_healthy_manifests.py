"""Manifests of healthy workloads have only the expected findings, with every minor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_check import run
from tests.e2e.healthy_directory import DESERVED, DIRECTORY, place, serious

MINORS = ("1.33", "1.34", "1.37")


def report(*arguments: str) -> Any:
    outcome = run("check", "-f", str(DIRECTORY), *arguments, "-o", "json")
    assert outcome.exit_code == 0, outcome.stderr
    return json.loads(outcome.stdout)


@pytest.mark.parametrize("minor", MINORS)
def test_healthy_manifests_have_only_the_expected_findings(minor: str) -> None:
    json_report = report("--server-version", minor)
    assert serious(json_report["findings"]) == DESERVED.keys()
    assert json_report["summary"]["templates"] >= 60


@pytest.mark.parametrize("minor", MINORS)
def test_healthy_manifests_have_few_infos(minor: str) -> None:
    """They concern constraints that count all revisions, or are on hostname alone, and components with one selector."""
    infos = [finding for finding in report("--server-version", minor)["findings"] if finding["severity"] == "info"]
    assert sorted({place(info) for info in infos}) == [
        ("SPR208", "calico-system/Deployment/calico-typha"),
        ("SPR208", "cert-manager/Deployment/cert-manager"),
        ("SPR208", "cert-manager/Deployment/cert-manager-webhook"),
        ("SPR208", "inference/Deployment/llm-server"),
        ("SPR208", "keda/Deployment/keda-operator"),
        ("SPR219", "keda/Deployment/keda-operator"),
        *(("SPR314", f"loki/StatefulSet/loki-ingester-zone-{zone}") for zone in "abc"),
    ]


@pytest.mark.parametrize(("before", "after"), [("1.33", "1.34"), ("1.33", "1.37"), ("1.34", "1.37")])
def test_upgrades_add_no_findings(before: str, after: str) -> None:
    assert serious(report("--server-version", before, "--to", after)["findings"]) == DESERVED.keys()


@pytest.mark.parametrize("path", sorted(DIRECTORY.glob("*.yaml")), ids=lambda path: path.stem)
def test_each_file_by_itself_has_only_its_expected_findings(path: Path) -> None:
    """A chart is checked before its installation, without the other workloads."""
    document = json.loads(run("check", "-f", str(path), "--server-version", "1.37", "-o", "json").stdout)
    expected = {finding for finding in DESERVED if finding[1].rpartition("/")[2] == path.stem}
    assert serious(document["findings"]) == expected
