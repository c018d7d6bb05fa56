"""The Chromium of the machine, driven by Playwright, and a page in it that records forbidden requests and errors."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, Route, sync_playwright

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
PAINTED = "() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"
"""Waits until the changes of the script are on the screen."""


def program() -> str | None:
    """Return the path of Chromium; None if it is not installed."""
    return next((program for name in _PROGRAMS if (program := shutil.which(name))), None)


@contextmanager
def launched(path: str) -> Iterator[Browser]:
    """Run a Chromium without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path)
        yield browser
        browser.close()


@dataclass(slots=True)
class Opened:
    """An open page, its requests other than for itself, and its errors."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


@contextmanager
def opened(browser: Browser, file: Path, fragment: str = "", **settings: Any) -> Iterator[Opened]:
    """Open a file in a new browser profile; all other requests are blocked.

    Args:
        browser: The browser.
        file: The file.
        fragment: The fragment of the address, without ``#``; "" for none.
        settings: Settings of the browser's profile, as Playwright calls them.
    """
    context = browser.new_context(**settings)
    view = Opened(context.new_page())
    address = file.as_uri()

    def judge(route: Route) -> None:
        if route.request.url.partition("#")[0] == address:
            route.continue_()
        else:
            view.requests.append(route.request.url)
            route.abort()

    view.page.route("**/*", judge)
    view.page.on("console", lambda message: view.complaints.append(message.text))
    view.page.on("pageerror", lambda error: view.complaints.append(str(error)))
    view.page.goto(f"{address}#{fragment}" if fragment else address)
    if settings.get("java_script_enabled", True):
        view.page.evaluate(PAINTED)
    yield view
    context.close()
