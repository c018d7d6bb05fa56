"""Errors of ``check --watch``; watches of a cluster are in ``tests/e2e/test_watch.py``."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from kubectl_spread.cli import cli, formats

WATCHED = {"json", "name", "table", "wide"}
ONE_FORMAT = "error: --watch prints one format to standard output, and writes no files\n"


def watch(*arguments: str) -> tuple[int, str, str]:
    """Return the exit status, stdout and stderr of a watch; no server listens at its address."""
    outcome = CliRunner().invoke(cli, ["check", "--watch", "--server", "http://127.0.0.1:1", *arguments])
    return outcome.exit_code, outcome.stdout, outcome.stderr


def test_files_cannot_be_watched(tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text("kind: Pod")
    outcome = CliRunner().invoke(cli, ["check", "--watch", "-f", str(tmp_path)])
    error = "error: --watch: only a cluster can be watched, not files (-f, -k)\n"
    assert (outcome.exit_code, outcome.stdout, outcome.stderr) == (2, "", error)


@pytest.mark.parametrize("form", sorted(set(formats.names("check")) - WATCHED))
def test_other_formats_cannot_be_watched(form: str) -> None:
    output = f"error: --watch: -o {form} cannot be watched: choose json, name, table, wide\n"
    assert watch("-o", form) == (2, "", output)


@pytest.mark.parametrize("arguments", [("-o", "json=a.json"), ("-o", "wide", "-o", "json=a"), ("-o", "table=a")])
def test_no_files_are_written(arguments: tuple[str, ...]) -> None:
    assert watch(*arguments) == (2, "", ONE_FORMAT)


def test_several_formats_cannot_be_watched(tmp_path: Path) -> None:
    assert watch("-o", "wide", "-o", f"json={tmp_path / 'a'}") == (2, "", ONE_FORMAT)


@pytest.mark.parametrize("form", sorted(WATCHED))
def test_a_server_that_does_not_answer_at_the_beginning_is_an_error(form: str) -> None:
    status, stdout, stderr = watch("-o", form)
    assert (status, stdout) == (2, "")
    assert stderr == "The connection to the server 127.0.0.1:1 was refused - did you specify the right host or port?\n"
