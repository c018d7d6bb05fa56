"""CI runs its stages in order, two at a time, and says how long each took."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import stages
from tests.controlplane.components import wait_for
from tests.stages import CI, NIGHTLY, ROOT, Stage

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "development.md").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z][\w-]*):", MAKEFILE, flags=re.MULTILINE))


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory with a Makefile of small stages, in which stages run."""
    lines = {
        "one": "echo of one; echo one >> order",
        "two": "echo of two; echo two >> order",
        "last": "echo of last; echo last >> order",
        "wrong": "echo it broke; exit 3",
        "long": "sleep 600 & echo $$! > long.pid; wait",
        "wrong-later": "while [ ! -s long.pid ]; do sleep 0.05; done; exit 3",
    }
    recipes = (f"{name}:\n\t@{command}\n" for name, command in lines.items())
    (tmp_path / "Makefile").write_text("\n".join(recipes), encoding="utf-8")
    monkeypatch.setattr(stages, "ROOT", tmp_path)
    return tmp_path


def test_the_makefile_has_each_stage() -> None:
    assert {stage.name for stage in NIGHTLY} <= TARGETS


@pytest.mark.parametrize("chosen", [CI, NIGHTLY], ids=["ci", "nightly"])
def test_a_stage_waits_for_earlier_ones_alone(chosen: tuple[Stage, ...]) -> None:
    """Otherwise a run would never end."""
    names = [stage.name for stage in chosen]
    for index, stage in enumerate(chosen):
        assert set(stage.after) <= set(names[:index]), stage


def test_the_page_has_the_seconds_of_each_stage() -> None:
    assert stages.expected(PAGE).keys() == {stage.name for stage in CI}


def test_stages_end_in_order_and_each_has_its_seconds(house: Path, capfd: pytest.CaptureFixture[str]) -> None:
    chosen = [Stage("one"), Stage("last", after=("one", "two")), Stage("two")]
    assert stages.run(chosen, "") == 0
    assert (house / "order").read_text().split()[-1] == "last"
    out = capfd.readouterr().out
    for name in ("one", "two", "last"):
        assert f"of {name}\n== {name}: 0 s" in out
        assert re.search(rf"^{name} +\d+$", out.partition("== seconds of each stage")[2], flags=re.MULTILINE)


def test_a_failure_ends_the_other_stage_and_begins_no_more(house: Path, capfd: pytest.CaptureFixture[str]) -> None:
    chosen = [Stage("long"), Stage("wrong-later"), Stage("last", after=("wrong-later",))]
    assert stages.run(chosen, "") == 2
    out = capfd.readouterr().out
    assert out.endswith('== stage "wrong-later" failed with exit status 2\n')
    assert not (house / "order").exists()
    pid = int((house / "long.pid").read_text())
    wait_for(lambda: _state(pid) in ("", "Z"), 10, "the program that the other stage started has ended")


def _state(pid: int) -> str:
    """Return the state of a process as ``ps`` has it: "" for none, Z for one that has ended."""
    done = subprocess.run(["ps", "-o", "s=", "-p", str(pid)], check=False, capture_output=True, text=True)
    return done.stdout.strip()


def test_the_output_of_a_failed_stage_is_printed(house: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert stages.run([Stage("wrong")], "") == 2
    assert "it broke" in capfd.readouterr().out


def test_a_stage_that_hangs_is_ended_and_shows_its_output(house: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert stages.run([Stage("long", limit=5), Stage("last", after=("long",))], "") == 1
    assert "== long was ended after 5 s" in capfd.readouterr().out
    assert not (house / "order").exists()
    pid = int((house / "long.pid").read_text())
    wait_for(lambda: _state(pid) in ("", "Z"), 10, "the program that the stage started has ended")


def test_twice_the_time_of_the_page_is_a_warning() -> None:
    page = "| `make e2e` | the suites | 100 |\n| `make test` | everything | 200 |\n"
    lines = stages.summary({"e2e": 201.0, "test": 400.0, "new": 9.0}, 601.0, stages.expected(page))
    assert [line for line in lines if line.startswith("warning")] == [
        "warning: e2e took 201 s; docs/development.md says 100 s"
    ]


def test_an_unknown_set_is_an_error() -> None:
    command = [sys.executable, "-m", "tests.stages", "nigthly"]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "error: unknown set of stages 'nigthly'; there are ci, nightly\n"
