"""The examples of docs/ci.md are valid for the schemas of their readers, and run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from ruamel.yaml import YAML

from release import requirements
from tests.ci import checkout, wheels
from tests.ci.shadows import Shadows
from tests.generated import ROOT

EXAMPLES = ROOT / "docs" / "ci"
HEALTHY = ROOT / "tests" / "e2e" / "healthy"
REFUSED = ROOT / "tests" / "threads" / "08-error-path-with-two-indices" / "input.yaml"
BIN = Path(sys.executable).parent
JOBS = {"cronjob": ("spec", "jobTemplate", "spec", "template", "spec"), "argo-cd": ("spec", "template", "spec")}
"""Maps the manifest of a job to the path of its pod."""
UPSTREAM = re.compile(r"[\w./-]+@[0-9a-f]{40} # v[\d.]+|kubectl-spread/kubectl-spread@v[\d.]+")
DIGEST = re.compile(r"python:[\w.-]+@sha256:[0-9a-f]{64}")
READERS = {
    "action.yml": "vendor.github-actions",
    "docs/ci/github.yml": "vendor.github-workflows",
    "docs/ci/gitlab-ci.yml": "vendor.gitlab-ci",
    ".github/workflows/ci.yml": "vendor.github-workflows",
}


@pytest.mark.parametrize("path", READERS)
def test_examples_are_valid_for_their_schemas(path: str) -> None:
    command: list[str | Path] = [BIN / "check-jsonschema", "--builtin-schema", READERS[path], ROOT / path]
    completed = subprocess.run(command, check=False, capture_output=True, text=True)
    assert completed.returncode == 0, completed.stdout


@pytest.mark.parametrize("name", ["cronjob", "argo-cd"])
def test_manifests_that_run_the_check_pass_it(name: str) -> None:
    command: list[str | Path] = [BIN / "kubectl-spread", "check", "-f", EXAMPLES / f"{name}.yaml", "--fail-on", "info"]
    completed = subprocess.run(command, check=False, capture_output=True, text=True)
    assert completed.returncode == 0, completed.stdout


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with wheels of the plugin and its dependencies, and the lock file of a release for them."""
    directory = tmp_path_factory.mktemp("index") / "wheels"
    locked = wheels.packed(directory, live=True)
    wheel = wheels.of_the_plugin(directory)
    (directory / "requirements.txt").write_text(requirements.text(wheel.read_bytes(), locked), encoding="utf-8")
    return directory


@pytest.mark.parametrize("name", JOBS)
def test_the_containers_of_a_job_install_by_the_lock_and_run(name: str, index: Path, tmp_path: Path) -> None:
    """Their commands run with an interpreter that has only pip, in a directory full of modules that must not run."""
    pod = list(YAML(typ="safe").load_all(EXAMPLES / f"{name}.yaml"))[-1]
    for key in JOBS[name]:
        pod = pod[key]
    (install,), (check,) = pod["initContainers"], pod["containers"]
    venv.create(tmp_path / "python", with_pip=True)
    hostile = Shadows(tmp_path / "directory", tmp_path / "marks")
    hostile.all()

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        places = {"/plugin": str(tmp_path / "plugin"), "/lock/": f"{index}/"}
        command = [re.sub("/plugin|/lock/", lambda match: places[match[0]], word) for word in words]
        assert command[0] == "python"
        command[0] = str(tmp_path / "python" / "bin" / "python")
        environment = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index), "PIP_NO_COMPILE": "1"}
        directory = tmp_path / "directory"
        return subprocess.run(command, cwd=directory, env=environment, check=False, capture_output=True, text=True)

    installed = run(*install["command"], *install["args"])
    assert (installed.returncode, installed.stdout, installed.stderr) == (0, "", "")
    checked = run(*check["command"], "check", "-f", str(REFUSED))
    assert (checked.returncode, "SPR202" in checked.stdout) == (1, True), checked.stderr
    assert hostile.ran == []


def test_examples_name_images_by_digest_and_actions_by_commit() -> None:
    """The reader fills in the version of the plugin's own action."""
    files = [*EXAMPLES.iterdir(), ROOT / "docs" / "ci.md"]
    named = [
        image for path in files for image in re.findall(r"(?:image:|FROM) (\S+)", path.read_text(encoding="utf-8"))
    ]
    assert len(named) >= 6
    assert [image for image in named if not DIGEST.fullmatch(image)] == []
    assert len(set(named)) == 1
    used = re.findall(r"uses: (.+)", (EXAMPLES / "github.yml").read_text(encoding="utf-8"))
    assert [action for action in used if not UPSTREAM.fullmatch(action)] == []


def test_the_workflow_sets_only_inputs_of_the_action() -> None:
    reader = YAML(typ="safe")
    (step,) = (
        step
        for step in reader.load(EXAMPLES / "github.yml")["jobs"]["spread"]["steps"]
        if step["uses"].startswith("kubectl-spread/")
    )
    assert step["with"].keys() <= reader.load(ROOT / "action.yml")["inputs"].keys()


@pytest.mark.parametrize(("manifest", "status"), [(HEALTHY / "coredns.yaml", 0), (REFUSED, 1)], ids=["pass", "fail"])
def test_the_gitlab_job_runs(tmp_path: Path, manifest: Path, status: int) -> None:
    (tmp_path / "manifests").mkdir()
    shutil.copy(manifest, tmp_path / "manifests" / "one.yaml")
    job = YAML(typ="safe").load(EXAMPLES / "gitlab-ci.yml")["spread"]
    script = "\n".join(job["script"])
    environment = {**os.environ, **checkout.OFFLINE, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    completed = subprocess.run(["bash", "-e", "-c", script], cwd=tmp_path, env=environment, check=False)
    assert completed.returncode == status
    report = ET.parse(tmp_path / job["artifacts"]["reports"]["junit"]).getroot()
    assert bool(list(report.iter("failure"))) == bool(status)
