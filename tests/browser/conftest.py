"""Fixtures of the tests in a browser."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from kubectl_spread.render import html
from kubectl_spread.report.model import Report
from tests.browser import chromium, synthetic
from tests.browser.chromium import Opened

_AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
Open = Callable[..., AbstractContextManager[Opened]]


def _missing(what: str) -> None:
    """Skip the test for want of a tool; on CI, fail."""
    reason = f"{what} is missing: `make browser` says what it needs"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Return the Chromium of the machine."""
    path = chromium.program()
    if path is None:
        _missing("chromium")
    with chromium.launched(str(path)) as chrome:
        yield chrome


@pytest.fixture(scope="session")
def axe() -> str:
    """Return the source of the accessibility checker."""
    if not _AXE.exists():
        _missing("axe-core")
    return _AXE.read_text(encoding="utf-8")


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Open:
    """Return a function that opens the page of a report, or a page, with a fragment and settings of the profile."""

    def opened(report: Report | str, fragment: str = "", **settings: Any) -> AbstractContextManager[Opened]:
        file = tmp_path / "report.html"
        file.write_text(report if isinstance(report, str) else html.page(report), encoding="utf-8")
        return chromium.opened(browser, file, fragment, **settings)

    return opened


@pytest.fixture(scope="session")
def large() -> Report:
    """Return a report of 400 workloads, 100 of them with a finding."""
    return synthetic.report(400, pods_each=6, hosts=300, finding_each=4)
