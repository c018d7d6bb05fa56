"""The GitHub Action: its schema, the limits of its scripts, and its steps, run by bash as a runner does."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from ruamel.yaml import YAML

from tests import contract
from tests.ci import checkout, shadows, wheels
from tests.ci.shadows import Shadows
from tests.generated import ROOT

HEALTHY = ROOT / "tests" / "e2e" / "healthy"
REFUSED = ROOT / "tests" / "threads" / "08-error-path-with-two-indices" / "input.yaml"
UNMATCHED = ROOT / "tests" / "threads" / "41-statefulset-asks-for-another-label" / "input.yaml"
ACTION: Any = YAML(typ="safe").load(ROOT / "action.yml")
STEPS = ACTION["runs"]["steps"]
SCRIPTS = [step for step in STEPS if "run" in step]
EXPRESSION = re.compile(r"\$\{\{ (\S+) \}\}")
PINNED = re.compile(r"[\w-]+/[\w/-]+@[0-9a-f]{40}")


class Outcome(NamedTuple):
    """The exit status of a run of the action, its text, its outputs, and the summary of the job."""

    status: int
    printed: str
    outputs: dict[str, str]
    summary: str


class Runner:
    """Runs the scripts of the action one after another, as GitHub's runner does."""

    def __init__(self, directory: Path) -> None:
        """Prepare an interpreter with nothing but pip, and the action of a copy of this checkout."""
        self._temp = directory / "temp"
        self._temp.mkdir()
        self.action = checkout.copied(directory / "action")
        self.packages = directory / "packages"
        self.lock = self.action / "release" / "locks" / "archive.txt"
        self.lock.write_text(wheels.packed(self.packages), encoding="utf-8")
        venv.create(directory / "python", with_pip=True)
        self._python = str(directory / "python" / "bin" / "python")

    def install(self, workspace: Path, **variables: str) -> tuple[int, str]:
        """Run the installation in a workspace, and return its exit status and text."""
        offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.packages)}
        return self._script(self._step("Install kubectl spread"), {}, workspace, {**offline, **variables})

    def __call__(self, workspace: Path, variables: Mapping[str, str] | None = None, /, **inputs: str) -> Outcome:
        """Run the steps after the installation in a workspace; underscores in the names of inputs become hyphens."""
        context = {f"inputs.{name}": definition.get("default", "") for name, definition in ACTION["inputs"].items()}
        context |= {f"inputs.{name.replace('_', '-')}": value for name, value in inputs.items()}
        for file in ("output", "summary"):
            (self._temp / file).write_text("", encoding="utf-8")
        status, printed = self._script(self._step("Check"), context, workspace, variables)
        assert status == 0, printed
        lines = (self._temp / "output").read_text(encoding="utf-8").splitlines()
        outputs = dict(line.split("=", 1) for line in lines)
        context |= {f"steps.check.outputs.{name}": value for name, value in outputs.items()}
        ended, _ = self._script(self._step("Result"), context, workspace, variables)
        return Outcome(ended, printed, outputs, (self._temp / "summary").read_text(encoding="utf-8"))

    @staticmethod
    def _step(name: str) -> Any:
        (script,) = (step for step in SCRIPTS if step["name"] == name)
        return script

    def _script(
        self, step: Any, context: Mapping[str, str], directory: Path, variables: Mapping[str, str] | None = None
    ) -> tuple[int, str]:
        context = {"steps.python.outputs.python-path": self._python, **context}
        environment = {
            name: EXPRESSION.sub(lambda match: context[match[1]], text) for name, text in step["env"].items()
        }
        of_runner = {
            "GITHUB_ACTION_PATH": str(self.action),
            "GITHUB_OUTPUT": str(self._temp / "output"),
            "GITHUB_STEP_SUMMARY": str(self._temp / "summary"),
            "RUNNER_TEMP": str(self._temp),
        }
        completed = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
            cwd=directory,
            env={**os.environ, **of_runner, **environment, **(variables or {})},
            check=False,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        return completed.returncode, completed.stdout


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    directory = tmp_path_factory.mktemp("runner")
    ready = Runner(directory)
    status, printed = ready.install(directory)
    assert (status, printed) == (0, "")
    return ready


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


def test_the_action_installs_its_own_checkout(runner: Runner, tmp_path: Path) -> None:
    """A job may have the action twice, so the second installation replaces the first."""
    installed = runner._temp / "kubectl-spread" / "kubectl_spread"
    stray = installed / "stray.py"
    stray.touch()
    assert runner.install(tmp_path) == (0, "")
    assert not stray.exists()
    assert (installed / "__main__.py").read_bytes() == (ROOT / "kubectl_spread" / "__main__.py").read_bytes()


def test_a_package_with_another_hash_is_refused(runner: Runner, tmp_path: Path) -> None:
    """An index that serves other bytes under the same name and version ends the step."""
    served = tmp_path / "served"
    shutil.copytree(runner.packages, served, copy_function=os.link)
    (click,) = served.glob("click-*.whl")
    content = click.read_bytes()
    click.unlink()
    click.write_bytes(content + b"\n")
    status, printed = runner.install(tmp_path, PIP_FIND_LINKS=str(served), RUNNER_TEMP=str(tmp_path))
    assert status == 1
    assert "DO NOT MATCH THE HASHES" in printed


def test_healthy_manifests_pass(runner: Runner, workspace: Path) -> None:
    outcome = runner(workspace, files="manifests\n\nmanifests/coredns.yaml\n", server_version="1.37")
    assert (outcome.status, outcome.outputs["exit-status"]) == (0, "0"), outcome.printed
    report = contract.loaded(Path(outcome.outputs["report"]).read_text(encoding="utf-8"))
    assert report["cluster"]["evaluatedAs"] == "1.37"
    assert outcome.summary


def test_findings_fail_the_job_and_are_shown(runner: Runner, workspace: Path) -> None:
    outcome = runner(workspace, files="manifests\nour shop", sarif_file="found.sarif")
    assert (outcome.status, outcome.outputs["exit-status"]) == (1, "1"), outcome.printed
    assert "::error " in outcome.printed
    assert "pods-refused" in outcome.summary
    assert outcome.outputs["sarif-file"] == "found.sarif"
    sarif = json.loads((workspace / "found.sarif").read_text(encoding="utf-8"))
    assert sarif["runs"][0]["results"][0]["ruleId"] == "SPR202"


def test_the_report_of_an_earlier_run_is_removed(runner: Runner, workspace: Path) -> None:
    runner(workspace, files="manifests")
    outcome = runner(workspace, files="missing")
    assert (outcome.status, outcome.outputs, outcome.summary) == (2, {"exit-status": "2"}, "")
    assert 'the path "missing" does not exist' in outcome.printed


def test_each_line_is_one_argument(runner: Runner, workspace: Path) -> None:
    shutil.move(workspace / "our shop", workspace / "manifests" / "our shop")
    assert runner(workspace, files="manifests").status == 0
    assert runner(workspace, files="manifests", args="-R").status == 1
    assert runner(workspace, files="manifests", args="-R\n--ignore\nSPR202\n").status == 0


@pytest.mark.parametrize("level", ["never", "error"])
def test_fail_on_decides_the_exit_status(runner: Runner, workspace: Path, level: str) -> None:
    outcome = runner(workspace, files="our shop", fail_on=level)
    assert outcome.status == (0 if level == "never" else 1)


@pytest.mark.parametrize(("inputs", "status"), [({}, 1), ({"fail_on": "error"}, 0)])
def test_a_constraint_that_selects_nothing_fails_the_job_by_default(
    runner: Runner, workspace: Path, inputs: dict[str, str], status: int
) -> None:
    shutil.copy(UNMATCHED, workspace / "unmatched.yaml")
    outcome = runner(workspace, files="unmatched.yaml", **inputs)
    assert outcome.status == status
    assert "::warning title=SPR206 " in outcome.printed


def test_without_files_no_cluster_is_read(runner: Runner, workspace: Path) -> None:
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


LOCATIONS = {
    "nothing": {},
    "PYTHONPATH": {"PYTHONPATH": f".{os.pathsep}"},
    "PYTHONSTARTUP": {"PYTHONSTARTUP": "startup.py", "PYTHONUSERBASE": "."},
    "VIRTUAL_ENV": {"VIRTUAL_ENV": ".venv"},
}
"""Variables of an earlier step of the job that make Python search the workspace."""
UNEVEN = """\
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers: [{name: web, image: web}]
  topologySpreadConstraints:
  - maxSkew: 0
    topologyKey: topology.kubernetes.io/zone
    whenUnsatisfiable: DoNotSchedule
    labelSelector: {matchLabels: {app: web}}
"""


@pytest.fixture
def hostile(runner: Runner, workspace: Path, tmp_path_factory: pytest.TempPathFactory) -> Shadows:
    """Fill the workspace with modules, programs and packages that may run instead of the real ones."""
    traps = Shadows(workspace, tmp_path_factory.mktemp("marks") / "marks")
    traps.all(*(path.name for path in runner.packages.glob("[cmr]*.whl")))
    (workspace / "manifests" / "uneven.yaml").write_text(UNEVEN, encoding="utf-8")
    return traps


@pytest.mark.parametrize("variables", LOCATIONS.values(), ids=LOCATIONS)
def test_nothing_of_the_checked_repository_runs(
    runner: Runner, workspace: Path, hostile: Shadows, variables: dict[str, str]
) -> None:
    """A manifest with maxSkew 0 still fails."""
    assert runner.install(workspace, **variables) == (0, "")
    outcome = runner(workspace, variables, files="manifests")
    assert hostile.ran == []
    assert (outcome.status, outcome.outputs["exit-status"]) == (1, "1"), outcome.printed
    assert "maxSkew" in outcome.printed


@pytest.mark.parametrize("variables", [{"PIP_CONFIG_FILE": "pip.conf"}, {"XDG_CONFIG_HOME": ".config"}], ids=str)
def test_pip_builds_nothing_of_the_checked_repository(
    runner: Runner, workspace: Path, hostile: Shadows, variables: dict[str, str]
) -> None:
    """If pip is made to read settings that name the repository, the step fails."""
    status, printed = runner.install(workspace, RUNNER_TEMP=str(workspace.parent), **variables)
    assert hostile.ran == []
    assert status == 1
    assert "editable requirement" in printed


def test_each_hostile_file_runs_if_nothing_prevents_it(runner: Runner, workspace: Path, hostile: Shadows) -> None:
    """Otherwise the tests of the hostile repository would prove nothing."""
    step = {"run": '"$PYTHON" -S -c "import $NAME" || true', "env": {"PYTHON": runner._python, "NAME": "${{ name }}"}}
    for name in shadows.MODULES:
        runner._script(step, {"name": name}, workspace)
    calls = "".join(f"PATH=. {name}\n" for name in shadows.PROGRAMS)
    runner._script({"run": calls, "env": {}}, {}, workspace)
    interactive = '"$PYTHON" -S -i </dev/null || true'
    runner._script({**step, "run": interactive}, {"name": ""}, workspace, {"PYTHONSTARTUP": "startup.py"})
    assert set(hostile.ran) == {*shadows.MODULES, "startup", *(f"program-{name}" for name in shadows.PROGRAMS)}
