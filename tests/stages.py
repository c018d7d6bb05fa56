"""Run the stages of CI, two at a time: ``python -m tests.stages [ci | nightly]``.

The standard library is enough, because the first stage makes the virtual environment. The output of a stage is printed
in one piece when it ends, the first failure ends the others, and the last lines say how long each stage took. CI ends a
stage that takes longer than half an hour, so that its output is seen before the machine is taken away.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Condition
from typing import IO, Final

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "development.md"
AT_ONCE: Final = 2
_TERMINATED: Final = 143
_LIMIT: Final = 1800.0
_SLOW: Final = 2
"""A stage that takes this many times its entry in the page is reported."""


@dataclass(frozen=True)
class Stage:
    """A target of the Makefile, more goals and variables for make, and the stages that must have ended before.

    Attributes:
        limit: The seconds after which the stage is ended as a failure.
    """

    name: str
    after: tuple[str, ...] = ()
    goals: tuple[str, ...] = ()
    limit: float | None = _LIMIT

    @property
    def command(self) -> tuple[str, ...]:
        """The command line."""
        return ("make", "--no-print-directory", self.name, *self.goals)


CI: Final = (
    # Later stages find the virtual environment complete: two of them must not make it at the same time.
    Stage("demo", goals=(".venv/developed",)),
    Stage("tools", after=("demo",)),
    Stage("test", after=("demo",)),
    # Its workers need both cores, and its programs time out where others take them.
    Stage("e2e", after=("tools", "test")),
    Stage("dist", after=("e2e",)),
    Stage("browser", after=("e2e",)),
    Stage("growth", after=("e2e",)),
    Stage("conformance", after=("e2e",)),
    Stage("workflows", after=("e2e",)),
    Stage("test-install", after=("dist",)),
)
NIGHTLY: Final = tuple(
    Stage(stage.name, stage.after, (*stage.goals, "ALL=1"), limit=None)
    for stage in (*CI, Stage("mutants", after=("test",)), Stage("bounds", after=("dist",)))
)
_SETS: Final[Mapping[str, tuple[Stage, ...]]] = {"ci": CI, "nightly": NIGHTLY}


@dataclass
class Run:
    """The state of a run; changes are made with ``changed`` held.

    Attributes:
        seconds: The stages that have ended, and how long each took.
        failed: The first stage that failed, and its exit status.
    """

    stages: Sequence[Stage]
    changed: Condition = field(default_factory=Condition)
    seconds: dict[str, float] = field(default_factory=dict)
    failed: tuple[str, int] | None = None
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _begun: set[str] = field(default_factory=set)

    def work(self) -> None:
        """Run one stage after the other, until none is left or one has failed."""
        while stage := self._next():
            with tempfile.TemporaryFile() as output:
                self._run(stage, output)

    def stop(self) -> None:
        """End the stages that run, with the programs that they started."""
        for process in self._running.values():
            # Each is the first process of a session of its own.
            os.killpg(process.pid, signal.SIGTERM)

    def _next(self) -> Stage | None:
        """Return the next stage whose predecessors have ended; wait for them."""
        with self.changed:
            while self.failed is None:
                left = [stage for stage in self.stages if stage.name not in self._begun]
                if not left:
                    return None
                for stage in left:
                    if set(stage.after) <= self.seconds.keys():
                        self._begun.add(stage.name)
                        return stage
                self.changed.wait()
            return None

    def _run(self, stage: Stage, output: IO[bytes]) -> None:
        began = time.monotonic()
        with self.changed:
            if self.failed:
                return
            print(f"== {stage.name}: begins", flush=True)
            process = subprocess.Popen(
                stage.command,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self._running[stage.name] = process
        try:
            status = process.wait(stage.limit)
        except subprocess.TimeoutExpired as hung:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()
            # Its own would depend on which of its processes the signal reached first.
            status = 1
            output.write(f"== {stage.name} was ended after {hung.timeout:.0f} s\n".encode())
        with self.changed:
            seconds = time.monotonic() - began
            del self._running[stage.name]
            if status and self.failed:
                # It was ended because the other one failed.
                return
            _show(stage, output, f"== {stage.name}: {seconds:.0f} s")
            if status:
                self.failed = stage.name, status
                self.stop()
            self.seconds[stage.name] = seconds
            self.changed.notify_all()


def run(stages: Sequence[Stage], page: str) -> int:
    """Run the stages; return the exit status of the first that fails, or else 0."""
    began = time.monotonic()
    current = Run(stages)
    with ThreadPoolExecutor(AT_ONCE) as workers:
        try:
            for worker in [workers.submit(current.work) for _ in range(AT_ONCE)]:
                worker.result()
        except BaseException:
            with current.changed:
                current.failed = current.failed or ("the run", 1)
                current.stop()
                current.changed.notify_all()
            raise
    print("\n".join(summary(current.seconds, time.monotonic() - began, expected(page))))
    if current.failed:
        name, status = current.failed
        print(f'== stage "{name}" failed with exit status {status}', flush=True)
        return status if status > 0 else 1
    return 0


def summary(seconds: Mapping[str, float], total: float, table: Mapping[str, float]) -> list[str]:
    """Return a line for each stage, and one for each that took twice its entry in the table."""
    lines = ["== seconds of each stage"]
    lines += [f"{name:<14}{taken:>7.0f}" for name, taken in seconds.items()]
    lines += [f"{'in all':<14}{total:>7.0f}"]
    for name, taken in seconds.items():
        if name in table and taken > _SLOW * table[name]:
            lines.append(f"warning: {name} took {taken:.0f} s; {PAGE.relative_to(ROOT)} says {table[name]:.0f} s")
    return lines


def expected(page: str) -> dict[str, float]:
    """Return the seconds of each stage that a page says: the third cell of each row that begins with a target."""
    rows = re.findall(r"^\| `make (\S+)` \|[^|]*\| *(\d+) *\|", page, flags=re.MULTILINE)
    return {name: float(taken) for name, taken in rows}


def _show(stage: Stage, output: IO[bytes], last: str) -> None:
    output.seek(0)
    text = output.read().decode(errors="replace")
    print(f"\n== {' '.join(stage.command)}\n{text}{last}\n", flush=True)


def main(arguments: Sequence[str]) -> int:
    """Run the stages of CI, or those of the night; return the exit status."""
    name = arguments[0] if arguments else "ci"
    if name not in _SETS:
        print(f"error: unknown set of stages {name!r}; there are {', '.join(_SETS)}", file=sys.stderr)
        return 2
    # The stages run in sessions of their own: who ends this program ends them too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))
    return run(_SETS[name], PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
