"""The HTML page of large reports: its size, and how long a browser takes until it can be used.

Run as ``python -m benchmarks.html``; it needs Chromium, and no cluster.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser

from kubectl_spread.render import html
from kubectl_spread.report.model import Report
from tests.browser import synthetic
from tests.browser.chromium import launched, opened, program

_REPORTS: Final[dict[str, Callable[[], Report]]] = {
    "10,000 constraints, 200 nodes": lambda: synthetic.report(5000, pods_each=12, hosts=200),
    "150,000 pods, 5,000 nodes": lambda: synthetic.report(5000),
    "150,000 pods, a finding each": lambda: synthetic.report(5000, finding_each=1),
}
_FILTERED: Final = """(text) => new Promise((done) => {
    const begin = performance.now();
    const drawn = () => requestAnimationFrame(() => setTimeout(() => done((performance.now() - begin) / 1000)));
    new MutationObserver(drawn).observe(document.getElementById("found"), { childList: true });
    document.getElementById("text").value = text;
    document.getElementById("text").dispatchEvent(new Event("input"));
})"""
"""Types a text into the filter, and returns the seconds until the matches are on the screen."""


def _measured(name: str, report: Report, browser: Browser, rounds: int) -> str:
    """Return a line of the table; the seconds of writing are of the processor, all others are medians."""
    begin = time.process_time()
    text = html.page(report)
    rendered = time.process_time() - begin
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "report.html")
        file.write_text(text, encoding="utf-8")
        timings = [_used(browser, file) for _ in range(rounds)]
    ready, filtered = (statistics.median(timing[step] for timing in timings) for step in range(2))
    size = len(text.encode()) / 1e6
    summary = report.summary
    counts = f"{summary.pods:,} | {summary.constraints:,} | {len(report.findings):,}"
    return f"| {name} | {counts} | {size:.1f} MB | {rendered:.1f} s | {ready:.2f} s | {filtered:.2f} s |"


def _used(browser: Browser, file: Path) -> tuple[float, float]:
    """Return the seconds until a page is drawn, and until a filter by text is applied."""
    begin = time.monotonic()
    with opened(browser, file) as view:
        ready = time.monotonic() - begin
        return ready, float(view.page.evaluate(_FILTERED, "service-04998"))


def main() -> None:
    """Make the reports, open them, and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    path = program()
    if path is None:
        parser.error("there is no Chromium")
    print("| report | pods | constraints | findings | page | written in | open in Chromium | filtered in |")
    print("|---|---|---|---|---|---|---|---|")
    with launched(path) as browser:
        for name, make in _REPORTS.items():
            print(_measured(name, make(), browser, options.rounds))


if __name__ == "__main__":
    main()
