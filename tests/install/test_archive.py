"""The archive has the properties that krew and its users rely on."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from kubectl_spread.cli import formats
from release.environments import ROOT
from tests.ci.shadows import Shadows
from tests.commands import BIN, SPREAD
from tests.install.krew import Krew

pytestmark = pytest.mark.install

_LARGEST = 30 << 20
_SAMPLE = ("-f", "examples/cluster.json", "--server-version", "1.37")


def test_it_holds_plain_files_of_nobody(archive: Path) -> None:
    """Its entries are directories and files only (krew takes no others), sorted, of one time, and owned by root."""
    with tarfile.open(archive) as opened:
        entries = opened.getmembers()
    assert all(entry.isreg() or entry.isdir() for entry in entries)
    assert {(entry.uid, entry.gid, entry.uname, entry.gname) for entry in entries} == {(0, 0, "", "")}
    assert len({entry.mtime for entry in entries}) == 1
    assert {entry.mode for entry in entries if entry.isdir()} == {0o755}
    assert not [entry.name for entry in entries if ".." in entry.name or not entry.name.startswith("kubectl-spread")]
    programs = {path.name for path in BIN.glob("kubectl*spread")}
    assert {Path(entry.name).name for entry in entries if entry.isreg() and entry.mode & 0o111} == programs


def test_it_is_small(archive: Path) -> None:
    assert archive.stat().st_size < _LARGEST


def test_it_has_the_licence_of_each_package(krew: Krew) -> None:
    """Every package whose modules it holds has its licence in the notices."""
    notices = (krew.program.parent / "THIRD-PARTY-NOTICES.txt").read_text()
    for name in ("Python", "OpenSSL", "kubernetes", "PyYAML", "wcwidth", "protobuf", "certifi"):
        assert f"\n{name}" in notices, name
    assert "Mozilla Public License" in notices


def test_it_searches_no_directory_of_its_builder(krew: Krew) -> None:
    """Libraries are searched in the archive and in the directories of the system."""
    libraries = list(krew.program.parent.rglob("*.so*"))
    assert libraries
    for library in libraries:
        tags = subprocess.run(["objdump", "-p", library], check=True, capture_output=True, text=True).stdout
        searched = [line for line in tags.splitlines() if "PATH" in line]
        assert all("$ORIGIN" in line for line in searched), (library, searched)


@pytest.mark.nightly
def test_a_second_build_has_the_same_bytes(dist: Path, archive: Path, tmp_path: Path) -> None:
    """The second build runs in another directory and another process."""
    again = ["-m", "release", "--output", str(tmp_path / "dist"), "--work", str(tmp_path / "work")]
    subprocess.run([sys.executable, *again], cwd=ROOT, check=True, capture_output=True)
    for path in (tmp_path / "dist").iterdir():
        assert path.read_bytes() == (dist / path.name).read_bytes(), path.name


@pytest.mark.parametrize("form", formats.names("check"))
def test_it_writes_every_format(form: str, krew: Krew, monkeypatch: pytest.MonkeyPatch) -> None:
    """No module that is imported late is missing."""
    monkeypatch.chdir(ROOT)
    expected, archived = _both(["check", *_SAMPLE, "-o", form], krew)
    assert archived.stdout
    assert (archived.returncode, archived.stdout, archived.stderr) == (
        expected.returncode,
        expected.stdout,
        expected.stderr,
    )


@pytest.mark.parametrize(
    "command",
    [
        ["rules", "-o", "json"],
        ["explain", "SPR101"],
        ["explain", "deploy/cart", "-n", "shop", *_SAMPLE],
        ["merge", "-f", "examples/cluster.json"],
        ["check", "--no-such-flag"],
        ["monitor", "--server=http://127.0.0.1:1", "--listen=127.0.0.1:0", "--telemetry=127.0.0.1:0"],
    ],
    ids=" ".join,
)
def test_its_commands_answer_as_those_of_the_checkout(
    command: list[str], krew: Krew, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    expected, archived = _both(command, krew)
    assert (archived.returncode, archived.stdout, archived.stderr) == (
        expected.returncode,
        expected.stdout,
        expected.stderr,
    )
    assert archived.stdout or archived.stderr


def _both(command: list[str], krew: Krew) -> list[subprocess.CompletedProcess[str]]:
    """Run a command with the program of the checkout, and with that of the archive."""
    programs = [SPREAD, krew.program]
    return [subprocess.run([program, *command], check=False, capture_output=True, text=True) for program in programs]


@pytest.mark.parametrize("variable", ["PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONSTARTUP"])
def test_it_runs_nothing_of_the_current_directory(krew: Krew, tmp_path: Path, variable: str) -> None:
    """The archive's Python ignores variables that add the current directory to the path of imports."""
    hostile = Shadows(tmp_path / "repository", tmp_path / "marks")
    hostile.all()
    completed = subprocess.run(
        [krew.program, "check", "-f", ROOT / "examples" / "cluster.json", "--server-version", "1.37"],
        cwd=tmp_path / "repository",
        env={**os.environ, variable: "startup.py" if variable == "PYTHONSTARTUP" else "."},
        check=False,
        capture_output=True,
        text=True,
    )
    assert "18 pods" in completed.stdout, completed.stderr
    assert hostile.ran == []
