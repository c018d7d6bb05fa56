"""Measure programs while a cluster is quiet and while it changes."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.monitored.churn import Churn, Marks
from benchmarks.monitored.programs import Program, Usage

_LOOK: Final = 2.0
"""Seconds between two looks at the memory of the programs."""
_MARKS_A_SECOND: Final = 5.0
_LAST_CHANGES: Final = 20.0
"""Seconds to wait at the end for the changes that no scrape has shown yet."""


class Scrape(NamedTuple):
    """One scrape: its coding, the seconds that it took, its bytes and the series in it."""

    coding: str
    seconds: float
    size: int
    series: int


class Figures(NamedTuple):
    """What one program needed in one phase.

    Attributes:
        program: The name of the program.
        phase: The name of the phase.
        cores: The processor time for each second.
        usages: What it used, from time to time.
        scrapes: The scrapes.
        delays: The seconds from each measured change to the end of the scrape that shows it.
        unseen: The measured changes that no scrape has shown.
    """

    program: str
    phase: str
    cores: float
    usages: Sequence[Usage]
    scrapes: Sequence[Scrape]
    delays: Sequence[float]
    unseen: int


class Scraper:
    """A process that scrapes a program.

    Attributes:
        scrapes: The scrapes so far.
    """

    def __init__(self, program: Program, interval: float, marks: Marks | None) -> None:
        """Start to scrape; ``marks`` receives the numbers in its workloads."""
        self.scrapes: list[Scrape] = []
        self._marks = marks
        command = [sys.executable, str(Path(__file__).with_name("scrapes.py")), str(program.port), str(interval)]
        self._process = subprocess.Popen(
            [*command, *([] if marks else ["count"])], stdout=subprocess.PIPE, text=True, bufsize=1
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for text in self._process.stdout or ():
            line = json.loads(text)
            self.scrapes.append(Scrape(line["coding"], line["ended"] - line["began"], line["size"], line["series"]))
            if self._marks:
                self._marks.seen(line["ended"], line["marks"])

    @property
    def delays(self) -> Sequence[float]:
        """The seconds from each measured change to the end of the scrape that showed it."""
        return [*self._marks.delays] if self._marks else ()

    @property
    def unseen(self) -> int:
        """The measured changes that no scrape has shown yet."""
        return self._marks.pending if self._marks else 0

    def end(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.wait()


def _measured(
    programs: Sequence[Program], scrapers: Sequence[Scraper], marks: Marks, run: Callable[[], str]
) -> Iterator[Figures]:
    """Yield the figures of programs while ``run`` is called, which returns the name of the phase."""
    marks.delays.clear()
    counts = [len(scraper.scrapes) for scraper in scrapers]
    usages = [[program.usage()] for program in programs]
    stop, begin = threading.Event(), time.monotonic()

    def look() -> None:
        while not stop.wait(_LOOK):
            for program, of_program in zip(programs, usages, strict=True):
                of_program.append(program.usage())

    thread = threading.Thread(target=look)
    thread.start()
    name = run()
    stop.set()
    thread.join()
    seconds = time.monotonic() - begin
    for program, of_program in zip(programs, usages, strict=True):
        of_program.append(program.usage())
    scrapes = [scraper.scrapes[count:] for scraper, count in zip(scrapers, counts, strict=True)]
    deadline = time.monotonic() + _LAST_CHANGES
    while any(scraper.unseen for scraper in scrapers) and time.monotonic() < deadline:
        time.sleep(0.1)
    for program, scraper, of_program, of_phase in zip(programs, scrapers, usages, scrapes, strict=True):
        cores = (of_program[-1].processor - of_program[0].processor) / seconds
        yield Figures(program.name, name, cores, of_program, of_phase, scraper.delays, scraper.unseen)


class Plan(NamedTuple):
    """How to measure: rates of changes of pods in a second, seconds of phases, and between scrapes or node changes."""

    rates: Sequence[float]
    seconds: float
    quiet: float
    scrape: float
    scrape_peer: float
    node: float


def measure(programs: Sequence[Program], churn: Churn, marks: Marks, plan: Plan) -> list[Figures]:
    """Scrape programs that are ready while the cluster is quiet, and while it changes at each rate.

    Nodes change too in a last phase, at the last rate, if the plan has node changes.
    """
    figures: list[Figures] = []
    scrapers = [
        Scraper(program, plan.scrape, marks) if "monitor" in program.name else Scraper(program, plan.scrape_peer, None)
        for program in programs
    ]
    watched = any("monitor" in program.name for program in programs)
    phases = [(rate, 0.0) for rate in plan.rates] + [(plan.rates[-1], plan.node)] * (plan.node > 0)

    def rest() -> str:
        time.sleep(plan.quiet)
        return "no changes"

    try:
        figures += _measured(programs, scrapers, marks, rest)
        for rate, node in phases:
            change = partial(_change, churn, marks if watched else None, plan.seconds, rate, node)
            figures += _measured(programs, scrapers, marks, change)
    finally:
        for scraper in scrapers:
            scraper.end()
    return figures


def _change(churn: Churn, marks: Marks | None, seconds: float, rate: float, node: float) -> str:
    """Make changes, and return the name of the phase, with the rate that was reached."""
    with ThreadPoolExecutor() as pool:
        marking = pool.submit(marks.run, seconds, _MARKS_A_SECOND) if marks else None
        reached = churn.run(rate, seconds, node)
        if marking:
            marking.result()
    return f"{reached:.0f} changes a second" + f", a node every {node:g} s" * (node > 0)


def rows(figures: Sequence[Figures]) -> Iterator[str]:
    """Yield the rows of a Markdown table; scrapes without metrics are counted in the last column."""
    yield (
        "| program | | cores | memory | peak | change to metric p50, p99 | scrape p50, p99 | in gzip | MB, in gzip "
        "| series | refused |"
    )
    yield "|---" * 11 + "|"
    for each in figures:
        plain, packed = (
            [scrape for scrape in each.scrapes if scrape.coding == coding and scrape.size]
            for coding in ("identity", "gzip")
        )
        memory = statistics.median(usage.proportional for usage in each.usages)
        yield (
            f"| {each.program} | {each.phase} | {each.cores:.2f} | {memory:.0f} MiB | {each.usages[-1].peak:.0f} MiB "
            f"| {_delays(each)} | {_times(plain)} | {_times(packed)} | {_size(plain)}, {_size(packed)} "
            f"| {max((scrape.series for scrape in plain), default=0):,} "
            f"| {sum(not scrape.size for scrape in each.scrapes)} of {len(each.scrapes)} |"
        )


def percentiles(values: Sequence[float]) -> tuple[float, float]:
    """Return the median, and the 99th percentile: the value that at most one in a hundred exceeds."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]


def _delays(figures: Figures) -> str:
    if not figures.delays:
        return ""
    half, most = percentiles(figures.delays)
    return f"{half:.1f}, {most:.1f} s of {len(figures.delays)}" + f", {figures.unseen} not seen" * (figures.unseen > 0)


def _times(scrapes: Sequence[Scrape]) -> str:
    if not scrapes:
        return ""
    half, most = percentiles([scrape.seconds for scrape in scrapes])
    return f"{1000 * half:.0f}, {1000 * most:.0f} ms"


def _size(scrapes: Sequence[Scrape]) -> str:
    return f"{max(scrape.size for scrape in scrapes) / 1e6:.1f}" if scrapes else "-"
