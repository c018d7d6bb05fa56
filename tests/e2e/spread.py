"""``kubectl spread`` on a cluster: in the process of the tests, or as users run it, with the real kubectl."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from kubectl_spread.cli import cli
from tests import contract
from tests.commands import SPREAD
from tests.controlplane import binaries
from tests.controlplane.cluster import ControlPlane

Json = dict[str, Any]


def install(directory: Path) -> Path:
    """Link the plugin into ``directory``, as krew does."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "kubectl-spread").symlink_to(SPREAD)
    return directory


@dataclass(frozen=True)
class Answer:
    """The output of a command and its exit status."""

    status: int
    stdout: str
    stderr: str

    @property
    def report(self) -> Report:
        """The report that ``-o json`` printed."""
        assert self.stdout, f"exit status {self.status}: {self.stderr}"
        return Report(contract.loaded(self.stdout))

    @property
    def error(self) -> str:
        """The one line on stderr; nothing else was printed there."""
        assert "Traceback" not in self.stderr
        (line,) = self.stderr.splitlines()
        return line


class Spread:
    """The commands, run by one user of one cluster in the process of the tests; a start of Python would take longer."""

    def __init__(self, plugins: Path, environment: Mapping[str, str]) -> None:
        """Find the plugin in ``plugins``; the environment says which cluster and user."""
        self.environment = {**environment, "PATH": f"{plugins}{os.pathsep}{environment['PATH']}"}

    def __call__(self, *arguments: str, input: str | None = None) -> Answer:  # noqa: A002 - as subprocess.run calls it
        """Run a command with these arguments."""
        removed = dict.fromkeys(os.environ.keys() - self.environment.keys())
        runner = CliRunner(env={**self.environment, **removed})
        result = runner.invoke(cli, arguments, input=input, prog_name="kubectl spread")
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Answer(result.exit_code, result.stdout, result.stderr)

    def report(self, *arguments: str, status: int = 0) -> Report:
        """Return the report of ``kubectl spread check``, which ends with this exit status."""
        answer = self("check", *arguments, "-o", "json")
        assert answer.status == status, answer.stderr
        return answer.report


class Program(Spread):
    """``kubectl spread`` as a process."""

    def __call__(self, *arguments: str, input: str | None = None) -> Answer:  # noqa: A002 - as subprocess.run calls it
        """Run ``kubectl spread`` with these arguments."""
        completed = subprocess.run(
            [binaries.kubectl(), "spread", *arguments],
            input=input,
            check=False,
            capture_output=True,
            text=True,
            env=self.environment,
            timeout=120,
        )
        return Answer(completed.returncode, completed.stdout, completed.stderr)


class Plugin:
    """The installed plugin, for any cluster and user."""

    def __init__(self, directory: Path) -> None:
        """Install the plugin into ``directory``."""
        self.directory = install(directory)

    def on(self, cluster: ControlPlane, kubeconfig: Path | None = None) -> Spread:
        """Return the commands on a cluster, as the user with all rights unless given a kubeconfig."""
        return Spread(self.directory, cluster.environment(kubeconfig))

    def program(self, cluster: ControlPlane) -> Program:
        """Return ``kubectl spread`` on a cluster, as the user with all rights."""
        return Program(self.directory, cluster.environment())


class Report:
    """A report, with shortcuts for tests."""

    def __init__(self, document: Json) -> None:
        """Wrap the decoded JSON of a report."""
        self.document = document

    def __getitem__(self, part: str) -> Any:
        """Return one part: ``cluster``, ``constraints``, ``groups``, ``pods``, ``findings`` or ``summary``."""
        return self.document[part]

    def rows(self, workload: str, path: str = "spec.topologySpreadConstraints[0]") -> list[Json]:
        """Return the rows of one workload, written ``Kind/name``, for one path."""
        return [row for row in self["constraints"] if named(row["workload"]) == workload and row["path"] == path]

    def row(self, workload: str, path: str = "spec.topologySpreadConstraints[0]") -> Json:
        """Return the only row of one workload for one path."""
        (row,) = self.rows(workload, path)
        return row

    def verdicts(self, workload: str, path: str = "spec.topologySpreadConstraints[0]") -> Counter[str]:
        """Count the pods of one workload for one path by verdict."""
        verdicts = Counter[str]()
        for row in self.rows(workload, path):
            verdicts.update(row["verdicts"])
        return verdicts

    def verdict_of(self, pod: str) -> Json:
        """Return the only entry of one pod."""
        (entry,) = (entry for entry in self["pods"] if entry["name"] == pod)
        assert isinstance(entry, dict)
        return entry

    def codes(self, workload: str) -> dict[str, list[str]]:
        """Map the code of each finding on one workload to the pods it names."""
        return {
            finding["code"]: finding["pods"] for finding in self["findings"] if named(finding["object"]) == workload
        }


def named(workload: Mapping[str, str]) -> str:
    """Return a workload as ``Kind/name``."""
    return f"{workload['kind']}/{workload['name']}"


def counts(row: Json) -> dict[str, int]:
    """Map each eligible domain of a row to its matchNum."""
    return {domain["value"]: domain["matchNum"] for domain in row["domains"]}
