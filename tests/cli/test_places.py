"""Destinations of outputs: no path that the same run reads, and no path for two outputs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.audits import deployment
from tests.builders import constraint, pod_json


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a directory with a manifest in a subdirectory."""
    inputs = tmp_path / "in"
    inputs.mkdir()
    objects = (pod_json("p", constraints=[constraint()]), deployment(constraints=[constraint()]))
    (inputs / "in.json").write_text("\n".join(map(json.dumps, objects)), encoding="utf-8")
    return tmp_path


def check(directory: Path, *arguments: str) -> tuple[int, str]:
    """Return the exit status and the last line of stderr of a check."""
    command = [sys.executable, "-m", "kubectl_spread", "check", *arguments]
    completed = subprocess.run(command, cwd=directory, check=False, capture_output=True, text=True)
    assert "Traceback" not in completed.stderr
    return completed.returncode, (completed.stderr.splitlines() or [""])[-1]


@pytest.mark.parametrize("output", ["in/in.json", "./in/../in/in.json"])
@pytest.mark.parametrize("inputs", [["-f", "in/in.json"], ["-f", "in", "-f", "./in/in.json"]], ids=str)
def test_an_input_is_not_replaced(directory: Path, inputs: list[str], output: str) -> None:
    before = (directory / "in" / "in.json").read_bytes()
    outcome = check(directory, *inputs, "-o", f"yaml={output}")
    assert outcome == (2, f"error: -o would replace {output}, and -f reads that file: name another file")
    assert (directory / "in" / "in.json").read_bytes() == before


@pytest.mark.parametrize(
    "option",
    ["baseline", "scheduler-config", "kubeconfig", "certificate-authority", "client-certificate", "client-key"],
)
def test_no_file_that_an_option_reads_is_replaced(directory: Path, option: str) -> None:
    """The error comes before the file is read."""
    (directory / "file").write_text("kept", encoding="utf-8")
    files = ["-f", "in"] if option in {"baseline", "scheduler-config"} else []
    outcome = check(directory, *files, f"--{option}", "file", "-o", "json=./file")
    assert outcome == (
        2,
        f"error: -o would replace ./file, and --{option} reads that file: name another file",
    )
    assert (directory / "file").read_text(encoding="utf-8") == "kept"


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_report_in_the_directory_is_replaced_by_the_next_one(directory: Path, form: str) -> None:
    target = directory / "in" / f"report.{form}"
    assert check(directory, "-f", "in", "-o", f"{form}={target}")[0] == 0
    target.write_bytes(target.read_bytes() + b"\n")
    status, message = check(directory, "-f", "in", "-o", f"{form}={target}")
    assert "would replace" not in message
    assert status == 0
    assert not target.read_bytes().endswith(b"\n\n")
    assert check(directory, "-f", "in", "-f", str(target), "-o", f"{form}={target}")[0] == 2


@pytest.mark.parametrize("second", ["new", "./new", "in/../new"])
def test_two_outputs_do_not_go_to_one_path(directory: Path, second: str) -> None:
    outcome = check(directory, "-f", "in", "-o", "json=new", "-o", f"yaml={second}")
    assert outcome == (2, "error: several -o go to new: write -o FORMAT=FILE")
    assert not (directory / "new").exists()


def test_a_link_leads_to_the_file_that_is_replaced(directory: Path) -> None:
    (directory / "report").touch(0o640)
    (directory / "report").chmod(0o640)
    (directory / "link").symlink_to("report")
    assert check(directory, "-f", "in", "-o", "json=link")[0] == 0
    assert (directory / "link").is_symlink()
    assert (directory / "report").stat().st_mode & 0o777 == 0o640
    assert json.loads((directory / "report").read_bytes())["kind"] == "SpreadReport"


def test_a_removed_current_directory_is_an_error_in_one_line(directory: Path) -> None:
    """A relative path can then neither be resolved nor written."""
    (directory / "gone").mkdir()
    command = ["sh", "-c", 'cd gone && rmdir ../gone && exec "$@"', "sh", sys.executable, "-I", "-m", "kubectl_spread"]
    arguments = ["check", "-f", str(directory / "in"), "-o", "json=x"]
    completed = subprocess.run([*command, *arguments], cwd=directory, check=False, capture_output=True, text=True)
    assert completed.returncode == 2
    assert completed.stderr.splitlines()[-1] == "error: cannot write x: No such file or directory"


def test_different_files_are_all_written(directory: Path) -> None:
    for name in ("a/report", "b/report", "report"):
        (directory / name).parent.mkdir(exist_ok=True)
    outputs = [word for name in ("a/report", "b/report", "report") for word in ("-o", f"json={name}")]
    assert check(directory, "-f", "in", *outputs)[0] == 0
    assert len({(directory / name).read_bytes() for name in ("a/report", "b/report", "report")}) == 1
