"""The manual pages have all that the help has, and man accepts them."""

from __future__ import annotations

import shutil
import subprocess

import click
import pytest

from kubectl_spread.cli import cli
from tests import manual
from tests.generated import ROOT

PATHS = manual.paths()


def test_each_command_has_a_page_and_no_other_file_is_among_them() -> None:
    names = {path.relative_to(ROOT).as_posix() for path in (ROOT / manual.DIRECTORY).iterdir()}
    assert names == set(PATHS)
    assert "man/kubectl-spread.1" in names
    assert len(names) == 1 + len(cli.list_commands(click.Context(cli)))


@pytest.mark.parametrize("name", cli.list_commands(click.Context(cli)))
def test_the_page_of_a_command_has_all_its_options(name: str) -> None:
    page = manual.page(name).replace("\\-", "-")
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert all(option in page for parameter in command.params for option in parameter.opts if option.startswith("-"))
    assert "\n.SH EXAMPLES\n" in page


def test_the_page_of_options_has_the_options_that_connect() -> None:
    assert "\n.SH CONNECTION\n" in manual.page("options")
    assert "\\-\\-certificate\\-authority" in manual.page("options")


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
@pytest.mark.parametrize("path", PATHS)
def test_groff_formats_each_page_without_warnings(path: str) -> None:
    command = ["groff", "-ww", "-K", "utf8", "-T", "utf8", "-man", str(ROOT / path)]
    completed = subprocess.run(command, check=True, capture_output=True, text=True)
    assert completed.stderr == ""
    assert "kubectl" in completed.stdout
