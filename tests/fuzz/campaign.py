"""Campaigns run many cases of several targets in turn, each with a seed of its own."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from tests.fuzz.targets import Target
from tests.fuzz.watch import LONGEST, Finding, watched


@dataclass(slots=True)
class Tally:
    """The cases of one target: their number, their seconds, the longest of them, and the number of each finding."""

    cases: int = 0
    seconds: float = 0.0
    longest: float = 0.0
    findings: dict[tuple[str, str], int] = field(default_factory=dict)


@dataclass(slots=True)
class Campaign:
    """Cases in turn, until a time or a number is reached.

    Attributes:
        targets: The targets to run.
        seed: The same seed gives the same cases.
        out: The stream for findings; each kind at each place is reported once.
        keep: The directory for the input of each finding, and of the present case.
        longest: The seconds that a case may take.
    """

    targets: Sequence[Target]
    seed: int
    out: TextIO
    keep: Path | None = None
    longest: float = LONGEST
    tallies: dict[str, Tally] = field(default_factory=dict)

    def run(self, *, minutes: float, cases: int | None = None) -> None:
        """Run cases for a number of minutes, and at most ``cases`` of each target."""
        end = time.monotonic() + 60 * minutes
        number = 0
        while time.monotonic() < end and number != cases:
            for target in self.targets:
                self.case(target, number)
            number += 1

    def case(self, target: Target, number: int) -> Finding | None:
        """Run one case."""
        chance = random.Random(f"{self.seed} {target.name} {number}")
        body = target.make(chance)
        self._save("current", body)
        tally = self.tallies.setdefault(target.name, Tally())
        start = time.monotonic()
        outcome = watched(target, body, chance, longest=self.longest)
        seconds = time.monotonic() - start
        tally.cases += 1
        tally.seconds += seconds
        tally.longest = max(tally.longest, seconds)
        if outcome:
            key = (outcome.kind, outcome.place)
            tally.findings[key] = tally.findings.get(key, 0) + 1
            if tally.findings[key] == 1:
                self._save(f"{target.name}-{self.seed}-{number}", body)
                print(
                    f"{target.name} {number}: {outcome.kind}: {outcome.place}\n{outcome.text}",
                    file=self.out,
                    flush=True,
                )
        return outcome

    def summary(self) -> str:
        """Return a table of cases and findings."""
        lines = [f"{'target':<12}{'cases':>9}{'seconds':>9}{'longest':>9}{'findings':>10}{'distinct':>10}"]
        lines += [
            f"{name:<12}{tally.cases:>9}{tally.seconds:>9.0f}{tally.longest:>9.2f}"
            f"{sum(tally.findings.values()):>10}{len(tally.findings):>10}"
            for name, tally in self.tallies.items()
        ]
        return "\n".join(lines)

    def _save(self, name: str, body: bytes) -> None:
        if self.keep is not None:
            (self.keep / name).write_bytes(body)
