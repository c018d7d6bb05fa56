"""GitHub would understand the workflows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from release.environments import ROOT
from tests.install.programs import program

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_fits_its_schema(workflow: Path) -> None:
    checker = Path(sys.executable).parent / "check-jsonschema"
    command = [str(checker), "--builtin-schema", "vendor.github-workflows", str(workflow)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.install
def test_actionlint_finds_nothing() -> None:
    """Expressions, runners, permissions and the scripts' quoting."""
    done = subprocess.run([program("actionlint"), *WORKFLOWS], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
