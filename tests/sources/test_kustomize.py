"""``-k`` where kubectl fails: a small program takes its place. ``tests/e2e`` has what the real kubectl renders."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from kubectl_spread.cli import cli
from kubectl_spread.errors import SourceError
from kubectl_spread.sources.files import chosen

SYSTEM = "/usr/bin:/bin"


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory that commands run in, with a directory for ``-k``; no kubeconfig can be found from there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{SYSTEM}")
    (tmp_path / "bin").mkdir()
    (tmp_path / "prod").mkdir()
    return tmp_path


def kubectl(script: str, path: str = "bin/kubectl") -> None:
    """Write a program in the place of kubectl."""
    Path(path).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    Path(path).chmod(0o755)


def check(*arguments: str) -> tuple[int, str, str]:
    """Run ``check`` on the directory; return its exit status, stdout and stderr."""
    outcome = CliRunner().invoke(cli, ["check", "-k", "prod", *arguments])
    return outcome.exit_code, outcome.stdout, outcome.stderr


def test_the_messages_of_kubectl_are_shown_without_control_characters() -> None:
    kubectl(
        "printf '%s\\n' '# Warning: commonLabels is deprecated.' 'error: no such file: a\033[2J.yaml' >&2\n"
        "printf 'second line\\n\\n' >&2\n"
        "exit 1"
    )
    assert check() == (2, "", "error: no such file: a\\x1b[2J.yaml second line\n")


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("exit 3", "kubectl kustomize prod failed with exit status 3"),
        ("kill -9 $$", "kubectl kustomize prod was ended by signal 9"),
        ("exit 0", "kubectl kustomize prod printed nothing, so there is nothing to check"),
        ("echo; echo", "kubectl kustomize prod printed nothing, so there is nothing to check"),
        ("echo 'a: [1'; exit 1", "kubectl kustomize prod failed with exit status 1"),
    ],
)
def test_a_failure_without_a_message_is_named(script: str, problem: str) -> None:
    kubectl(script)
    assert check() == (2, "", f"error: {problem}\n")


def test_output_that_is_not_yaml_is_an_error_at_its_line() -> None:
    kubectl("echo 'kind: Pod'; echo '  a: [1'")
    status, _, stderr = check("-o", "json")
    assert status == 2
    assert stderr.startswith("error: prod:2: ")


def test_without_kubectl_on_path_the_error_says_so(monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    monkeypatch.setenv("PATH", str(directory / "bin"))
    assert check() == (2, "", "error: -k needs kubectl on PATH: kubectl kustomize renders the manifests\n")


@pytest.mark.parametrize("entry", [".", "bin", "", "prod/../bin"])
def test_a_kubectl_of_the_working_directory_never_runs(monkeypatch: pytest.MonkeyPatch, entry: str) -> None:
    """The working directory may be a repository that somebody else wrote."""
    kubectl("touch ran")
    kubectl("touch ran", "kubectl")
    monkeypatch.setenv("PATH", f"{entry}:/no/where")
    status, stdout, stderr = check()
    assert (status, stdout) == (2, "")
    assert stderr.startswith("error: -k")
    assert not Path("ran").exists()


def test_a_kubectl_that_cannot_be_run_is_an_error(directory: Path) -> None:
    Path("bin/kubectl").write_bytes(b"\x7fELF nonsense")
    Path("bin/kubectl").chmod(0o755)
    assert check() == (2, "", f"error: cannot run {directory}/bin/kubectl: exec format error\n")


def test_a_kubectl_that_does_not_end_is_stopped() -> None:
    kubectl("exec sleep 60")
    started = time.monotonic()
    with pytest.raises(SourceError, match=r"^kubectl kustomize prod did not end within 0\.5 seconds$"):
        chosen.render("prod", longest=0.5)
    assert time.monotonic() - started < 30


def test_kubectl_has_no_standard_input_and_takes_the_directory_as_it_is() -> None:
    kubectl('cat; printf "<%s>" "$@" >&2; exit 1')
    Path("--help").mkdir()
    outcome = CliRunner().invoke(cli, ["check", "-k", "--help"], input="kind: Pod")
    assert outcome.stderr == "error: <kustomize><--><--help>\n"
    outcome = CliRunner().invoke(cli, ["check", "-k", "prod/"], input="kind: Pod")
    assert outcome.stderr == "error: <kustomize><--><prod/>\n"


@pytest.mark.parametrize("command", ["check", "explain deploy/web", "merge", "unmerge"])
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("-k prod -f prod", "only one of -f or -k can be specified"),
        ("-k prod -R", "the -k flag can't be used with -f or -R"),
        ("-k none", 'the path "none" does not exist'),
        ("-k bin/kubectl", 'the path "bin/kubectl" is not a directory'),
        ("-k https://github.com/shop/api", 'the path "https://github.com/shop/api" does not exist'),
        ("-k -", 'the path "-" does not exist'),
    ],
)
def test_only_one_local_directory_is_taken(command: str, arguments: str, problem: str) -> None:
    """The words about options are those of kubectl 1.37."""
    kubectl("touch ran")
    outcome = CliRunner().invoke(cli, [*command.split(), *arguments.split()])
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    error = outcome.stderr.splitlines()[-1]
    assert error.partition(" (")[0] == f"error: {problem}"
    assert not Path("ran").exists()


@pytest.mark.parametrize("command", ["merge", "unmerge"])
def test_a_filter_needs_files(command: str) -> None:
    outcome = CliRunner().invoke(cli, [command])
    assert (outcome.exit_code, outcome.stderr) == (2, "error: must specify one of -f and -k\n")


def test_a_directory_is_not_watched() -> None:
    kubectl("touch ran")
    assert check("--watch") == (2, "", "error: --watch: only a cluster can be watched, not files (-f, -k)\n")
    assert not Path("ran").exists()
