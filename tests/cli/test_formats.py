"""Several formats at once, and files that are written whole."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kubectl_spread.cli import cli, formats
from tests.audits import deployment
from tests.builders import constraint, pod_json


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.json"
    objects = (pod_json("p", constraints=[constraint()]), deployment(constraints=[constraint()]))
    path.write_text("\n".join(map(json.dumps, objects)), encoding="utf-8")
    return path


def check(manifest: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["check", "-f", str(manifest), *arguments])


def test_each_format_goes_to_its_file(manifest: Path, tmp_path: Path) -> None:
    json_file, names_file = tmp_path / "report.json", tmp_path / "names"
    outcome = check(manifest, "-o", f"json={json_file}", "-o", "wide", "-o", f"name={names_file}")
    assert outcome.exit_code == 0
    assert json_file.read_text(encoding="utf-8") == check(manifest, "-o", "json").stdout
    assert names_file.read_text(encoding="utf-8") == check(manifest, "-o", "name").stdout
    assert outcome.stdout == check(manifest, "-o", "wide").stdout


def test_a_table_in_a_file_is_that_of_stdout(manifest: Path, tmp_path: Path) -> None:
    target = tmp_path / "table"
    outcome = check(manifest, "-o", f"table={target}")
    assert (outcome.exit_code, outcome.stdout) == (0, "")
    assert target.read_text(encoding="utf-8") == check(manifest).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-o", "json", "-o", "yaml"), "several -o go to standard output: write -o FORMAT=FILE"),
        (("-o", "json=x", "-o", "yaml=x"), "several -o go to x: write -o FORMAT=FILE"),
        (("-o", "json="), '"json=" names no file'),
        (("-o", "json=-"), "- is not the name of an output file: without a file the report goes to standard output"),
        (("-o", "xml"), 'unable to match a printer suitable for the output format "xml", allowed formats are: '),
        (("-o", "json=missing/x"), "cannot write missing/x: No such file or directory"),
        (("-o", "json=."), "cannot write .: Is a directory"),
    ],
)
def test_a_file_that_cannot_be_written_is_an_error(manifest: Path, arguments: tuple[str, ...], message: str) -> None:
    outcome = check(manifest, *arguments)
    assert outcome.exit_code == 2
    assert message in outcome.stderr
    assert len(outcome.stderr.splitlines()) <= 2


def test_a_file_is_replaced_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    target = tmp_path / "report"
    target.write_text("before", encoding="utf-8")
    target.chmod(0o640)
    with target.open(encoding="utf-8") as reader:
        formats.write("after", str(target))
        assert reader.read() == "before"
    assert target.read_text(encoding="utf-8") == "after"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [target]


def test_a_new_file_has_the_mode_that_a_shell_would_give(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        formats.write("text", str(tmp_path / "report"))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "report").stat().st_mode) == 0o640


def test_the_target_of_a_link_is_written(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("report")
    formats.write("text", str(tmp_path / "link"))
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "report").read_text(encoding="utf-8") == "text"


def test_a_device_is_not_replaced() -> None:
    formats.write("text", os.devnull)
    assert not Path(os.devnull).is_file()


def test_every_format_prints_the_report(manifest: Path) -> None:
    for name in formats.names("check"):
        assert check(manifest, "-o", name).exit_code == 0, name


@pytest.mark.parametrize("form", formats.names("check"))
def test_every_format_prints_an_empty_report(form: str, tmp_path: Path) -> None:
    (tmp_path / "service.json").write_text('{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}')
    outcome = check(tmp_path / "service.json", "-o", form)
    assert outcome.exit_code == 0
    assert bool(outcome.stdout) is not (formats.FORMATS[form].silent or form == "github")
    assert ("no pods or pod templates" in outcome.stderr) is formats.FORMATS[form].silent
