"""The examples of docs/ci.md: held to the schemas of those who read them, and run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from ruamel.yaml import YAML

from tests.ci import checkout
from tests.generated import ROOT

EXAMPLES = ROOT / "docs" / "ci"
HEALTHY = ROOT / "tests" / "e2e" / "healthy"
REFUSED = ROOT / "tests" / "threads" / "08-error-path-with-two-indices" / "input.yaml"
BIN = Path(sys.executable).parent
READERS = {
    "action.yml": "vendor.github-actions",
    "docs/ci/github.yml": "vendor.github-workflows",
    "docs/ci/gitlab-ci.yml": "vendor.gitlab-ci",
    ".github/workflows/ci.yml": "vendor.github-workflows",
}


@pytest.mark.parametrize("path", READERS)
def test_who_reads_it_takes_it(path: str) -> None:
    command: list[str | Path] = [BIN / "check-jsonschema", "--builtin-schema", READERS[path], ROOT / path]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", ["cronjob", "argo-cd"])
def test_manifests_that_run_the_check_pass_it(name: str) -> None:
    command: list[str | Path] = [BIN / "kubectl-spread", "check", "-f", EXAMPLES / f"{name}.yaml", "--fail-on", "info"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_workflow_gives_the_action_what_it_takes() -> None:
    reader = YAML(typ="safe")
    (step,) = (
        one
        for one in reader.load(EXAMPLES / "github.yml")["jobs"]["spread"]["steps"]
        if one["uses"].startswith("kubectl-spread/")
    )
    assert step["with"].keys() <= reader.load(ROOT / "action.yml")["inputs"].keys()


@pytest.mark.parametrize(("manifest", "status"), [(HEALTHY / "coredns.yaml", 0), (REFUSED, 1)], ids=["pass", "fail"])
def test_the_gitlab_job_runs(tmp_path: Path, manifest: Path, status: int) -> None:
    (tmp_path / "manifests").mkdir()
    shutil.copy(manifest, tmp_path / "manifests" / "one.yaml")
    job = YAML(typ="safe").load(EXAMPLES / "gitlab-ci.yml")["spread"]
    script = "\n".join(job["script"])
    environment = {**os.environ, **checkout.OFFLINE, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-e", "-c", script], cwd=tmp_path, env=environment, check=False)
    assert done.returncode == status
    report = ET.parse(tmp_path / job["artifacts"]["reports"]["junit"]).getroot()
    assert bool(list(report.iter("failure"))) == bool(status)
