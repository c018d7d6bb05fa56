"""The hooks, run by the real pre-commit from a repository with the shipped files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.ci import checkout, shadows
from tests.ci.shadows import Shadows
from tests.generated import ROOT

HEALTHY = ROOT / "tests" / "e2e" / "healthy"
REFUSED = ROOT / "tests" / "threads" / "08-error-path-with-two-indices" / "input.yaml"
UNMATCHED = ROOT / "tests" / "threads" / "41-statefulset-asks-for-another-label" / "input.yaml"
EXAMPLE = ROOT / "docs" / "ci" / "pre-commit-config.yaml"
PRE_COMMIT = str(Path(sys.executable).parent / "pre-commit")


@dataclass(frozen=True)
class Hooks:
    """The repository of the hooks, its commit, and the environment of pre-commit."""

    repository: Path
    commit: str
    environment: dict[str, str]


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Hooks:
    directory = tmp_path_factory.mktemp("pre-commit")
    repository = checkout.copied(directory / "kubectl-spread")
    packages = checkout.borrowed(directory / "installed")
    checkout.lend(repository, packages)
    # pip finds the build backend by PYTHONPATH. The hook runs isolated, and finds its imports in the lent packages.
    paths = {"PRE_COMMIT_HOME": str(directory / "home"), "PYTHONPATH": str(packages)}
    return Hooks(repository, checkout.commit(repository), {**checkout.environment(), **checkout.OFFLINE, **paths})


@dataclass(frozen=True)
class Project:
    """A git repository with manifests, and a configuration of pre-commit."""

    directory: Path
    hooks: Hooks

    def add(self, path: Path, name: str) -> None:
        """Add a manifest, in the directory ``manifests``."""
        target = self.directory / "manifests" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)

    def configure(self, config: Any) -> None:
        """Write a configuration with the hooks of the copy of this checkout."""
        for repository in config["repos"]:
            repository.update(repo=str(self.hooks.repository), rev=self.hooks.commit)
        with (self.directory / ".pre-commit-config.yaml").open("w", encoding="utf-8") as file:
            YAML(typ="safe").dump(config, file)

    def run(self, *arguments: str, **variables: str) -> tuple[int, str]:
        """Commit all files, run pre-commit, and return its exit status and text."""
        checkout.commit(self.directory)
        completed = subprocess.run(
            [PRE_COMMIT, *arguments],
            cwd=self.directory,
            env={**self.hooks.environment, **variables},
            check=False,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        return completed.returncode, completed.stdout


@pytest.fixture
def project(tmp_path: Path, hooks: Hooks) -> Project:
    """Return a project with one healthy manifest, and the configuration of docs/ci.md."""
    new_project = Project(tmp_path, hooks)
    new_project.configure(YAML(typ="safe").load(EXAMPLE))
    new_project.add(HEALTHY / "coredns.yaml", "coredns.yaml")
    return new_project


def in_directories() -> Any:
    hook = {"id": "kubectl-spread-directories", "args": ["-f", "manifests", "-R", "--server-version=1.37"]}
    return {"repos": [{"hooks": [hook]}]}


def test_healthy_manifests_pass(project: Project) -> None:
    (project.directory / "values.yaml").write_text("replicas: 3\n")
    status, printed = project.run("run", "--all-files")
    assert (status, "Passed" in printed) == (0, True), printed


def test_manifests_that_the_api_would_refuse_fail(project: Project) -> None:
    project.add(REFUSED, "web shop/refused.yaml")
    status, printed = project.run("run", "--all-files")
    assert status == 1
    assert "exit code: 1" in printed
    assert "SPR202 pods-refused" in printed


def test_a_constraint_that_selects_nothing_fails(project: Project) -> None:
    """It is a warning, because its pods run; the level of the user holds."""
    project.add(UNMATCHED, "unmatched.yaml")
    status, printed = project.run("run", "--all-files")
    assert (status, "SPR206 self-mismatch" in printed) == (1, True), printed
    configuration = in_directories()
    configuration["repos"][0]["hooks"][0]["args"] += ["--fail-on", "error"]
    project.configure(configuration)
    assert project.run("run", "--all-files")[0] == 0


def test_only_the_files_that_are_passed_are_read(project: Project) -> None:
    project.add(REFUSED, "refused.yaml")
    status, printed = project.run("run", "--files", "manifests/coredns.yaml")
    assert (status, "Passed" in printed) == (0, True), printed


def test_a_file_that_cannot_be_read_fails(project: Project) -> None:
    (project.directory / "manifests" / "chart.yaml").write_text("kind: {{ .Values.kind }}\n")
    status, printed = project.run("run", "--all-files")
    assert status == 1
    assert "exit code: 2" in printed
    assert "error: manifests/chart.yaml:1" in printed


def test_directories_are_read_whatever_changes(project: Project) -> None:
    project.configure(in_directories())
    assert project.run("run", "--all-files")[0] == 0
    project.add(REFUSED, "deeper/refused.yaml")
    status, printed = project.run("run", "--files", "manifests/coredns.yaml")
    assert (status, "SPR202 pods-refused" in printed) == (1, True), printed


def test_pre_commit_try_repo_works(project: Project) -> None:
    named = ("kubectl-spread", "--files", "manifests/coredns.yaml")
    status, printed = project.run("try-repo", str(project.hooks.repository), *named)
    assert (status, "Passed" in printed) == (0, True), printed


@pytest.mark.parametrize("first", ["", f".{os.pathsep}"], ids=["borrowed", "the repository"])
def test_nothing_of_the_checked_repository_runs(
    project: Project, tmp_path_factory: pytest.TempPathFactory, first: str
) -> None:
    """PYTHONPATH, which pre-commit passes to its hooks, names the repository."""
    hostile = Shadows(project.directory, tmp_path_factory.mktemp("marks") / "marks")
    hostile.imports(tuple(name for name in shadows.IMPORTED if name not in {"ruamel", "yaml"}))
    project.add(REFUSED, "refused.yaml")
    path = first + project.hooks.environment["PYTHONPATH"]
    status, printed = project.run("run", "--all-files", PYTHONPATH=path)
    assert hostile.ran == []
    assert (status, "SPR202 pods-refused" in printed) == (1, True), printed
