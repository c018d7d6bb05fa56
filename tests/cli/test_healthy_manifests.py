"""The manifests of healthy workloads by themselves: nothing but what is deserved, whatever the minor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_check import run
from tests.e2e.healthy_directory import DESERVED, DIRECTORY, place, serious

MINORS = ("1.33", "1.34", "1.37")


def report(*arguments: str) -> Any:
    result = run("check", "-f", str(DIRECTORY), *arguments, "-o", "json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize("minor", MINORS)
def test_only_what_is_deserved(minor: str) -> None:
    actual = report("--server-version", minor)
    assert serious(actual["findings"]) == DESERVED.keys()
    assert actual["summary"]["templates"] >= 60


@pytest.mark.parametrize("minor", MINORS)
def test_few_infos(minor: str) -> None:
    """A constraint over hosts that counts all revisions, and charts whose components share what is selected."""
    infos = [finding for finding in report("--server-version", minor)["findings"] if finding["severity"] == "info"]
    assert [place(info) for info in infos if info["code"] != "SPR314"] == [
        ("SPR208", "cert-manager/Deployment/cert-manager-webhook")
    ]
    assert [place(info)[1] for info in infos if info["code"] == "SPR314"] == [
        "flux-system/Deployment/helm-controller",
        "flux-system/Deployment/kustomize-controller",
        *(f"loki/StatefulSet/loki-ingester-zone-{zone}" for zone in "abc"),
    ]


@pytest.mark.parametrize(("before", "after"), [("1.33", "1.34"), ("1.33", "1.37"), ("1.34", "1.37")])
def test_upgrades_are_quiet(before: str, after: str) -> None:
    assert serious(report("--from", before, "--to", after)["findings"]) == DESERVED.keys()


@pytest.mark.parametrize("path", sorted(DIRECTORY.glob("*.yaml")), ids=lambda path: path.stem)
def test_each_file_stands_alone(path: Path) -> None:
    """A chart is checked before it is installed, without its neighbours."""
    document = json.loads(run("check", "-f", str(path), "--server-version", "1.37", "-o", "json").stdout)
    expected = {item for item in DESERVED if item[1].rpartition("/")[2] == path.stem}
    assert serious(document["findings"]) == expected
