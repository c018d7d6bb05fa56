"""The GitHub Action: its schema, what its scripts may not do, and its steps run by bash as a runner runs them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from ruamel.yaml import YAML

from tests import contract
from tests.ci import checkout
from tests.generated import ROOT

HEALTHY = ROOT / "tests" / "e2e" / "healthy"
REFUSED = ROOT / "tests" / "threads" / "08-error-path-with-two-indices" / "input.yaml"
ACTION: Any = YAML(typ="safe").load(ROOT / "action.yml")
STEPS = ACTION["runs"]["steps"]
SCRIPTS = [step for step in STEPS if "run" in step]
EXPRESSION = re.compile(r"\$\{\{ (\S+) \}\}")
PINNED = re.compile(r"[\w-]+/[\w/-]+@[0-9a-f]{40}")


class Outcome(NamedTuple):
    """How a run of the action ended: its exit status, what it printed, its outputs, and the summary of the job."""

    status: int
    printed: str
    outputs: dict[str, str]
    summary: str


class Runner:
    """A runner: it runs the scripts of the action one after another, as GitHub's does."""

    def __init__(self, folder: Path) -> None:
        """Install the action from a copy of this checkout."""
        self._temp = folder / "temp"
        self._temp.mkdir()
        self._action = checkout.copied(folder / "action")
        status, printed = self._script(self._step("Install kubectl spread"), {}, folder)
        assert status == 0, printed

    def __call__(self, workspace: Path, **inputs: str) -> Outcome:
        """Run what follows the installation, in a workspace; an underscore in an input's name is a hyphen."""
        known = {f"inputs.{name}": one.get("default", "") for name, one in ACTION["inputs"].items()}
        known |= {f"inputs.{name.replace('_', '-')}": value for name, value in inputs.items()}
        for file in ("output", "summary"):
            (self._temp / file).write_text("", encoding="utf-8")
        status, printed = self._script(self._step("Check"), known, workspace)
        assert status == 0, printed
        lines = (self._temp / "output").read_text(encoding="utf-8").splitlines()
        outputs = dict(line.split("=", 1) for line in lines)
        known |= {f"steps.check.outputs.{name}": value for name, value in outputs.items()}
        ended, _ = self._script(self._step("Result"), known, workspace)
        return Outcome(ended, printed, outputs, (self._temp / "summary").read_text(encoding="utf-8"))

    @staticmethod
    def _step(name: str) -> Any:
        (found,) = (step for step in SCRIPTS if step["name"] == name)
        return found

    def _script(self, step: Any, known: Mapping[str, str], folder: Path) -> tuple[int, str]:
        known = {"steps.python.outputs.python-path": sys.executable, **known}
        given = {name: EXPRESSION.sub(lambda found: known[found[1]], text) for name, text in step["env"].items()}
        of_runner = {
            "GITHUB_ACTION_PATH": str(self._action),
            "GITHUB_OUTPUT": str(self._temp / "output"),
            "GITHUB_STEP_SUMMARY": str(self._temp / "summary"),
            "RUNNER_TEMP": str(self._temp),
        }
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
            cwd=folder,
            env={**os.environ, **checkout.OFFLINE, **of_runner, **given},
            check=False,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        return done.returncode, done.stdout


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    return Runner(tmp_path_factory.mktemp("runner"))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Return a workspace with a healthy manifest and one that would be refused."""
    (tmp_path / "manifests").mkdir()
    shutil.copy(HEALTHY / "coredns.yaml", tmp_path / "manifests" / "coredns.yaml")
    (tmp_path / "our shop").mkdir()
    shutil.copy(REFUSED, tmp_path / "our shop" / "refused.yaml")
    return tmp_path


def test_inputs_reach_scripts_through_the_environment_alone() -> None:
    assert [step["name"] for step in SCRIPTS if "${{" in step["run"]] == []
    used = {name for step in STEPS for name in EXPRESSION.findall(str(step)) if name.startswith("inputs.")}
    assert used == {f"inputs.{name}" for name in ACTION["inputs"]}


def test_other_actions_are_pinned_to_commits() -> None:
    assert [step["uses"] for step in STEPS if "uses" in step and not PINNED.fullmatch(step["uses"])] == []


def test_what_is_installed_is_the_action_itself(runner: Runner) -> None:
    assert (runner._temp / "kubectl-spread" / "kubectl_spread" / "__main__.py").exists()


def test_healthy_manifests_pass(runner: Runner, workspace: Path) -> None:
    outcome = runner(workspace, files="manifests\n\nmanifests/coredns.yaml\n", server_version="1.37")
    assert (outcome.status, outcome.outputs["exit-status"]) == (0, "0"), outcome.printed
    report = contract.loaded(Path(outcome.outputs["report"]).read_text(encoding="utf-8"))
    assert report["cluster"]["judgedAs"] == "1.37"
    assert outcome.summary


def test_findings_fail_the_job_and_are_shown(runner: Runner, workspace: Path) -> None:
    outcome = runner(workspace, files="manifests\nour shop", sarif_file="found.sarif")
    assert (outcome.status, outcome.outputs["exit-status"]) == (1, "1"), outcome.printed
    assert "::error " in outcome.printed
    assert "pods-refused" in outcome.summary
    assert outcome.outputs["sarif-file"] == "found.sarif"
    sarif = json.loads((workspace / "found.sarif").read_text(encoding="utf-8"))
    assert sarif["runs"][0]["results"][0]["ruleId"] == "SPR202"


def test_the_report_of_an_earlier_run_is_not_taken_for_this_one(runner: Runner, workspace: Path) -> None:
    runner(workspace, files="manifests")
    outcome = runner(workspace, files="missing")
    assert (outcome.status, outcome.outputs, outcome.summary) == (2, {"exit-status": "2"}, "")
    assert 'the path "missing" does not exist' in outcome.printed


def test_further_arguments_are_taken_line_by_line(runner: Runner, workspace: Path) -> None:
    shutil.move(workspace / "our shop", workspace / "manifests" / "our shop")
    assert runner(workspace, files="manifests").status == 0
    assert runner(workspace, files="manifests", args="-R").status == 1
    assert runner(workspace, files="manifests", args="-R\n--ignore\nSPR202\n").status == 0


@pytest.mark.parametrize("level", ["never", "error"])
def test_fail_on(runner: Runner, workspace: Path, level: str) -> None:
    outcome = runner(workspace, files="our shop", fail_on=level)
    assert outcome.status == (0 if level == "never" else 1)


def test_without_files_no_cluster_is_asked(runner: Runner, workspace: Path) -> None:
    outcome = runner(workspace, files="\n")
    assert outcome.status == 2
    assert "error: --manifests: no file is named" in outcome.printed


@pytest.mark.parametrize("name", ["files", "args", "fail_on", "server_version", "sarif_file"])
def test_inputs_are_data(runner: Runner, workspace: Path, name: str) -> None:
    evil = """$(touch hit)`touch hit`"; touch hit; "'; touch hit; '* && touch hit"""
    runner(workspace, **{"files": "manifests", name: evil})
    assert not (workspace / "hit").exists()


def test_an_input_cannot_add_outputs(runner: Runner, workspace: Path) -> None:
    outcome = runner(workspace, files="our shop", sarif_file="found.sarif\nexit-status=0")
    assert outcome.outputs["exit-status"] == "1"
    assert outcome.status == 1
