"""Every script of the workflows, and ``.ci/run``, under the shell options of GitHub; stubs stand for remote programs.

A stub writes its name and its arguments to a list. The text around the programs is what is tested: quoting, pipes,
exit statuses and outputs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from ruamel.yaml import YAML

from kubectl_spread import __version__
from release import manifest
from release.environments import ROOT
from release.platforms import PLATFORMS
from tests.commands import SPREAD

OPTIONS: Final = ("bash", "--noprofile", "--norc", "-eo", "pipefail")
"""How GitHub runs a step with ``shell: bash``."""
WORKFLOWS: Final[dict[str, Any]] = {
    path.name: YAML(typ="safe").load(path) for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))
}
DIGEST: Final = f"sha256:{'a1' * 32}"
IMAGE: Final = "ghcr.io/kubectl-spread/kubectl-spread-monitor"
CHART: Final = "ghcr.io/kubectl-spread/charts/kubectl-spread-monitor"
TAG: Final = {
    "GITHUB_REF_NAME": f"v{__version__}",
    "GITHUB_ACTOR": "somebody",
    "GH_TOKEN": "secret",
    "TOKEN": "secret",
    "ARCHITECTURE": "arm64",
}
RECORD: Final = """\
#!/bin/sh
printf '%s' "${{0##*/}}" >> "$CALLS"; printf ' %s' "$@" >> "$CALLS"; echo >> "$CALLS"
{rest}
"""


@dataclass(frozen=True)
class Run:
    """How a script is run.

    Attributes:
        variables: Its variables, also those that the workflow takes from an expression.
        stubs: Programs by name, as the rest of a shell script.
        copied: Whether it writes to the checkout, and so runs in a copy.
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    stubs: Mapping[str, str] = field(default_factory=dict)
    copied: bool = False


@dataclass(frozen=True)
class Outcome:
    """What a script did: its exit status, its text, the calls of stubs, and its outputs for later steps."""

    status: int
    printed: str
    calls: list[str]
    outputs: str


RUNS: Final[dict[tuple[str, str], Run]] = {
    ("ci.yml", "ci: Everything that .ci/run does"): Run({"STAGES": "ci"}, {"bash": ""}),
    ("ci.yml", "ci: The image of the monitor is built, and runs without rights"): Run(stubs={"docker": ""}),
    ("ci.yml", "audit: Known vulnerabilities of what is pinned"): Run(stubs={"uv": ""}),
    ("release.yml", "archive: The tag is the version"): Run(TAG),
    ("release.yml", "archive: Build from the lock files"): Run(
        stubs={"uv": 'echo "at $SOURCE_DATE_EPOCH" >> "$CALLS"'}
    ),
    ("release.yml", "archive: Run what was built"): Run({"PLUGIN": str(SPREAD)}),
    ("release.yml", "krew: The changelog has a section of this version"): Run(copied=True),
    ("release.yml", "krew: The manifest of all archives, as krew-index would take it"): Run(
        stubs={"go": 'ln -s /bin/true "$RUNNER_TEMP/validate-krew-manifest"'}, copied=True
    ),
    ("release.yml", "image: Build the image from the archive, and run it without rights"): Run(TAG, {"docker": ""}),
    ("release.yml", "image: Push the image of this architecture"): Run(
        TAG, {"docker": "[ $1 != login ] || cat >> $CALLS"}
    ),
    ("release.yml", "deploy: Package the chart"): Run(stubs={"helm": ""}),
    ("release.yml", "deploy: Push the index of the images"): Run(
        TAG, {"docker": f"case $3 in inspect) echo {DIGEST};; esac"}
    ),
    ("release.yml", "deploy: Push the chart"): Run(
        TAG, {"helm": f'[ $1 != push ] || {{ echo "Pushed: {CHART}"; echo "Digest: {DIGEST}"; }} >&2'}
    ),
    ("release.yml", "github: Upload what users and krew download"): Run(TAG, {"gh": ""}, copied=True),
}
"""Maps a script, by its file, job and name, to how it is run. None needs a network once its programs are stubs."""


def scripts() -> Iterator[tuple[str, str, dict[str, Any], dict[str, str]]]:
    """Yield the file, the job and name, the step and the variables of each script."""
    for file, workflow in WORKFLOWS.items():
        for name, job in workflow["jobs"].items():
            for step in job["steps"]:
                if "run" in step:
                    variables = {**workflow.get("env", {}), **job.get("env", {}), **step.get("env", {})}
                    yield file, f"{name}: {step['name']}", step, variables


SCRIPTS: Final = {(file, name): (step, variables) for file, name, step, variables in scripts()}


@dataclass
class Machine:
    """Runs scripts with stubs first on PATH."""

    directory: Path

    def run(self, file: str, name: str, **changed: Any) -> Outcome:
        """Run a script of a workflow; ``changed`` are fields of its ``Run``."""
        run = RUNS[file, name]
        stubs = changed.get("stubs", run.stubs)
        step, declared = SCRIPTS[file, name]
        values = {**declared, **changed.get("variables", run.variables)}
        assert [variable for variable, value in values.items() if "${{" in value] == [], "give these a value"
        script = self.directory / "step.sh"
        script.write_text(step["run"], encoding="utf-8")
        return self.bash([*OPTIONS, str(script)], self._checkout() if run.copied else ROOT, values, stubs)

    def bash(
        self, command: list[str], directory: Path, variables: Mapping[str, str], stubs: Mapping[str, str]
    ) -> Outcome:
        """Run a command with stubs."""
        programs = self.directory / "bin"
        programs.mkdir(exist_ok=True)
        for name, rest in stubs.items():
            (programs / name).write_text(RECORD.format(rest=rest), encoding="utf-8")
            (programs / name).chmod(0o755)
        calls, outputs = self.directory / "calls", self.directory / "outputs"
        calls.touch()
        outputs.touch()
        environment = {
            "PATH": f"{programs}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.directory),
            "CALLS": str(calls),
            "GITHUB_OUTPUT": str(outputs),
            "RUNNER_TEMP": str(self.directory),
            **variables,
        }
        real = shutil.which(command[0])
        assert real
        done = subprocess.run(
            [real, *command[1:]], cwd=directory, env=environment, check=False, capture_output=True, text=True
        )
        return Outcome(done.returncode, done.stdout + done.stderr, calls.read_text().splitlines(), outputs.read_text())

    def _checkout(self) -> Path:
        """Return a copy of the files that a release writes or reads, with an archive of each platform."""
        copy = self.directory / "checkout"
        if not copy.exists():
            for name in ("release", "kubectl_spread", "deploy"):
                shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
            (copy / "CHANGELOG.md").write_text(f"# Changelog\n\n## {__version__}\n\nThe [first](docs/install.md).\n")
            (copy / "dist").mkdir()
            for platform in PLATFORMS:
                (copy / "dist" / platform.archive).write_bytes(platform.stem.encode())
        return copy

    @property
    def checkout(self) -> Path:
        """The copy in which scripts run that write to the checkout."""
        return self._checkout()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Return a machine with empty directories."""
    return Machine(tmp_path)


def test_every_script_is_run() -> None:
    assert RUNS.keys() == SCRIPTS.keys()


def test_every_script_has_these_shell_options() -> None:
    """Without ``shell: bash`` GitHub leaves out pipefail, and Windows has another shell."""
    for file, workflow in WORKFLOWS.items():
        assert workflow["defaults"]["run"]["shell"] == "bash", file
        assert not [step for job in workflow["jobs"].values() for step in job["steps"] if "shell" in step]


@pytest.mark.parametrize(("file", "name"), SCRIPTS, ids=str)
def test_a_script_succeeds(file: str, name: str, machine: Machine) -> None:
    outcome = machine.run(file, name)
    assert outcome.status == 0, outcome.printed
    assert len(outcome.calls) >= len(RUNS[file, name].stubs)
    assert "secret" not in outcome.printed


def test_a_pipe_that_fails_ends_a_script(machine: Machine) -> None:
    """The shell is the one with pipefail: a plugin that exits with 2 before a pipe ended a release."""
    script = machine.directory / "pipe.sh"
    script.write_text("(echo refused; exit 2) | grep refused\necho reached\n")
    outcome = machine.bash([*OPTIONS, str(script)], ROOT, {}, {})
    assert (outcome.status, outcome.printed) == (2, "refused\n")


def test_another_tag_is_refused(machine: Machine) -> None:
    outcome = machine.run("release.yml", "archive: The tag is the version", variables={"GITHUB_REF_NAME": "v9.9.9"})
    assert outcome.status == 1


@pytest.mark.parametrize(
    "program",
    ["exit 0", "echo was refused; exit 0", "echo crashed; exit 2", 'case "$*" in *--version) exit 1;; esac'],
)
def test_a_program_that_does_not_work_is_refused(program: str, machine: Machine) -> None:
    plugin = machine.directory / "plugin"
    plugin.write_text(f"#!/bin/sh\n{program}\n")
    plugin.chmod(0o755)
    outcome = machine.run("release.yml", "archive: Run what was built", variables={"PLUGIN": str(plugin)})
    assert outcome.status != 0


def test_the_build_has_the_time_of_the_commit(machine: Machine) -> None:
    *_, call, moment = machine.run("release.yml", "archive: Build from the lock files").calls
    assert call == "uv run --no-project --managed-python --python 3.13 python -m release"
    assert re.fullmatch(r"at \d{10}", moment)


def test_a_build_that_fails_ends_the_job(machine: Machine) -> None:
    assert machine.run("release.yml", "archive: Build from the lock files", stubs={"uv": "exit 7"}).status == 7


def test_the_manifest_has_the_digest_of_each_archive(machine: Machine) -> None:
    step = "krew: The manifest of all archives, as krew-index would take it"
    assert machine.run("release.yml", step).status == 0
    written = (machine.checkout / "dist" / "spread.yaml").read_text()
    assert written == manifest.text(manifest.digests(machine.checkout / "dist"))
    assert manifest.UNBUILT not in written


def test_a_missing_archive_ends_a_release(machine: Machine) -> None:
    (machine.checkout / "dist" / PLATFORMS[-1].archive).unlink()
    outcome = machine.run("release.yml", "krew: The manifest of all archives, as krew-index would take it")
    assert outcome.status == 1
    assert outcome.printed.endswith("an archive is missing\n")
    assert outcome.calls == []


def test_a_version_without_a_section_is_not_published(machine: Machine) -> None:
    (machine.checkout / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\nSomething.\n")
    assert machine.run("release.yml", "krew: The changelog has a section of this version").status == 1
    outcome = machine.run("release.yml", "github: Upload what users and krew download")
    assert (outcome.status, outcome.calls) == (1, [])


def test_a_release_has_the_notes_of_its_version(machine: Machine) -> None:
    (call,) = machine.run("release.yml", "github: Upload what users and krew download").calls
    assert call.startswith(f"gh release create v{__version__} --verify-tag --title v{__version__} --notes-file ")
    assert call.endswith(
        " ".join(f"dist/{platform.archive}" for platform in sorted(PLATFORMS, key=lambda p: p.archive))
    )
    address = f"https://github.com/kubectl-spread/kubectl-spread/blob/v{__version__}/docs/install.md"
    assert (machine.directory / "notes.md").read_text() == f"The [first]({address}).\n"


def test_each_lock_is_audited_and_a_finding_fails(machine: Machine) -> None:
    step = "audit: Known vulnerabilities of what is pinned"
    calls = machine.run("ci.yml", step).calls
    assert [call.split()[-1] for call in calls] == [
        f"release/locks/{name}.txt" for name in ("archive", "audit", "development", "release")
    ]
    assert machine.run("ci.yml", step, stubs={"uv": "exit 1"}).status == 1


def test_the_image_of_an_architecture_is_pushed_with_its_name(machine: Machine) -> None:
    calls = machine.run("release.yml", "image: Push the image of this architecture").calls
    assert calls == [
        "docker login ghcr.io --username somebody --password-stdin",
        "secret",
        f"docker tag monitor {IMAGE}:{__version__}-arm64",
        f"docker push {IMAGE}:{__version__}-arm64",
    ]


def test_the_index_of_the_images_is_pushed_and_attested(machine: Machine) -> None:
    outcome = machine.run("release.yml", "deploy: Push the index of the images")
    tag = f"{IMAGE}:{__version__}"
    assert f"docker buildx imagetools create --tag {tag} {tag}-amd64 {tag}-arm64" in outcome.calls
    assert outcome.outputs == f"digest={DIGEST}\n"


def test_the_chart_is_pushed_and_attested(machine: Machine) -> None:
    outcome = machine.run("release.yml", "deploy: Push the chart")
    package = machine.directory / f"kubectl-spread-monitor-{__version__}.tgz"
    assert outcome.calls[-1] == f"helm push {package} oci://ghcr.io/kubectl-spread/charts"
    assert outcome.outputs == f"digest={DIGEST}\n"


@pytest.mark.parametrize(
    ("name", "program"), [("deploy: Push the index of the images", "docker"), ("deploy: Push the chart", "helm")]
)
def test_without_a_digest_nothing_is_attested(name: str, program: str, machine: Machine) -> None:
    outcome = machine.run("release.yml", name, stubs={program: ""})
    assert (outcome.status, outcome.outputs) == (1, "")


def test_the_jobs_attest_what_they_push() -> None:
    """The names of the subjects are those of the image and of the chart, by the digests of the steps before."""
    assert WORKFLOWS["release.yml"]["env"] == {"IMAGE": IMAGE, "CHART": CHART}
    steps = WORKFLOWS["release.yml"]["jobs"]["deploy"]["steps"]
    attested = [step["with"] for step in steps if "attest" in step.get("uses", "")]
    assert [(entry["subject-name"], entry["subject-digest"]) for entry in attested] == [
        ("${{ env.IMAGE }}", "${{ steps.image.outputs.digest }}"),
        ("${{ env.CHART }}", "${{ steps.chart.outputs.digest }}"),
    ]


@pytest.mark.parametrize(("user", "prefix"), [(0, ""), (1001, "sudo ")])
def test_a_fresh_machine_gets_its_packages_as_root(user: int, prefix: str, machine: Machine) -> None:
    """The user of a hosted runner is not root, and a container may have no sudo."""
    stubs = {
        "id": f"echo {user}",
        "apt-get": "",
        "sudo": '"$@"',
        "python3": 'case "$1" in -c) exit 1;; esac',
    }
    script = machine.directory / "ci" / "run"
    script.parent.mkdir()
    shutil.copy(ROOT / ".ci" / "run", script)
    # Nothing but these programs is found.
    (machine.directory / "bin").mkdir()
    for name in ("bash", "dirname", "env", "sh"):
        (machine.directory / "bin" / name).symlink_to(shutil.which(name) or name)
    outcome = machine.bash(
        ["bash", str(script), "nightly"], machine.directory, {"PATH": str(machine.directory / "bin")}, stubs
    )
    assert outcome.status == 0, outcome.printed
    calls = [call for call in outcome.calls if call.startswith(("sudo", "apt-get")) and "apt-get" in call]
    asked = [call for call in calls if call.startswith("sudo") == bool(prefix)]
    assert [call.split(" -qq")[0] for call in asked] == [
        f"{prefix}apt-get update",
        f"{prefix}env RUNLEVEL=1 apt-get install -y" if prefix else "apt-get install -y",
        f"{prefix}apt-get update",
        f"{prefix}apt-get install -y",
    ]
    assert outcome.calls[-1] == "python3 -m tests.stages nightly"
