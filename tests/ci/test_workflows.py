"""The workflows are valid for GitHub, and no outsider decides what they run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from release.environments import ROOT
from tests.install.programs import program

BIN = Path(sys.executable).parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ISSUES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
DEPENDABOT = ROOT / ".github" / "dependabot.yml"
STEP = re.compile(r"\buses: +(\S+)(.*)")
COMMIT = re.compile(r"[\w-]+/[\w./-]+@[0-9a-f]{40}")
RELEASE = re.compile(r" # v\d+\.\d+\.\d+")
DIGEST = re.compile(r"[\w./-]+@sha256:[0-9a-f]{64}")
UNSAFE = {
    "unpinned-uses": "steps: [{uses: actions/checkout@v4, with: {persist-credentials: false}}]",
    "unpinned-images": "container: quay.io/pypa/manylinux_2_28_x86_64:latest\n    steps: [{run: make}]",
    "template-injection": "steps: [{run: 'echo ${{ github.event.issue.title }}'}]",
    "excessive-permissions": "permissions: write-all\n    steps: [{run: make}]",
}
"""Maps an audit of zizmor to a job with a finding of it."""


def zizmor(directory: Path) -> subprocess.CompletedProcess[str]:
    """Run zizmor without a network on the files that GitHub reads."""
    command = [str(BIN / "zizmor"), "--offline", "--no-progress", "--color=never", "--persona=pedantic", "."]
    return subprocess.run(command, cwd=directory, check=False, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        *(("vendor.github-workflows", path) for path in WORKFLOWS),
        ("vendor.dependabot", DEPENDABOT),
        *((f"vendor.github-issue-{'config' if path.stem == 'config' else 'forms'}", path) for path in ISSUES),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_files_are_valid_for_their_schemas(schema: str, path: Path) -> None:
    command = [str(BIN / "check-jsonschema"), "--builtin-schema", schema, str(path)]
    completed = subprocess.run(command, check=False, capture_output=True, text=True)
    assert completed.returncode == 0, completed.stdout


def test_zizmor_finds_nothing() -> None:
    completed = zizmor(ROOT)
    assert completed.returncode == 0, completed.stdout
    assert all(f"completed ./{path.relative_to(ROOT)}" in completed.stderr for path in (*WORKFLOWS, DEPENDABOT))
    assert "completed ./action.yml" in completed.stderr


@pytest.mark.parametrize("audit", UNSAFE)
def test_zizmor_finds_each_seeded_fault(audit: str, tmp_path: Path) -> None:
    directory = tmp_path / ".github" / "workflows"
    directory.mkdir(parents=True)
    job = f"name: unsafe\non: issues\njobs:\n  unsafe:\n    runs-on: ubuntu-latest\n    {UNSAFE[audit]}\n"
    (directory / "unsafe.yml").write_text(job, encoding="utf-8")
    completed = zizmor(tmp_path)
    assert completed.returncode > 10
    assert f"[{audit}]" in completed.stdout


@pytest.mark.parametrize("path", [*WORKFLOWS, ROOT / "action.yml"], ids=lambda path: path.name)
def test_actions_are_named_by_commit(path: Path) -> None:
    """The comment names the release, for readers and for dependabot."""
    used = STEP.findall(path.read_text(encoding="utf-8"))
    assert used
    assert [name for name, _ in used if not COMMIT.fullmatch(name)] == []
    assert [name for name, comment in used if not RELEASE.fullmatch(comment)] == []


def test_an_action_has_one_commit() -> None:
    """Otherwise an update may have missed one of several uses."""
    files = [*WORKFLOWS, ROOT / "action.yml", ROOT / "docs" / "ci" / "github.yml"]
    used = {name for path in files for name, _ in STEP.findall(path.read_text(encoding="utf-8"))}
    actions = [name.partition("@")[0] for name in used]
    assert sorted(actions) == sorted(set(actions))


def test_containers_are_named_by_digest() -> None:
    matrix: Any = YAML(typ="safe").load(ROOT / ".github" / "workflows" / "release.yml")["jobs"]["archive"]
    images = [entry["container"] for entry in matrix["strategy"]["matrix"]["include"] if entry["container"]]
    assert len(images) == 2
    assert [image for image in images if not DIGEST.fullmatch(image)] == []


def test_dependabot_watches_every_pinned_version() -> None:
    updates = YAML(typ="safe").load(DEPENDABOT)["updates"]
    watched = {(update["package-ecosystem"], update["directory"]) for update in updates}
    assert all((ROOT / directory.lstrip("/")).is_dir() for _, directory in watched)
    assert {ecosystem for ecosystem, _ in watched} == {"github-actions", "pip", "docker", "gomod", "npm"}


@pytest.mark.workflows
def test_actionlint_finds_nothing() -> None:
    """It checks expressions, runners, permissions and the quoting of scripts."""
    completed = subprocess.run([program("actionlint"), *WORKFLOWS], check=False, capture_output=True, text=True)
    assert completed.returncode == 0, completed.stdout


@pytest.mark.workflows
def test_actionlint_finds_a_seeded_fault(tmp_path: Path) -> None:
    path = tmp_path / "wrong.yml"
    path.write_text("on: push\njobs: {a: {runs-on: ubuntu-latest, steps: [{run: 'echo ${{ nothing.here }}'}]}}\n")
    completed = subprocess.run([program("actionlint"), path], check=False, capture_output=True, text=True)
    assert completed.returncode == 1
    assert 'undefined variable "nothing"' in completed.stdout
