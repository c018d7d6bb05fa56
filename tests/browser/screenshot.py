"""Write docs/html.png, the page of the sample cluster; run as a module (``make screenshot``)."""

from __future__ import annotations

import tempfile
from pathlib import Path

from playwright.sync_api import expect

from tests import generated
from tests.browser.chromium import launched, opened, program

_TARGET = generated.ROOT / "docs" / "html.png"
_SHOWN = "deploy/api"
_WIDTH, _HEIGHT = 1120, 990


def main() -> None:
    """Open the page of the sample cluster, show one workload, and save the window."""
    path = program()
    if path is None:
        raise SystemExit("there is no Chromium")
    with tempfile.TemporaryDirectory() as directory, launched(path) as browser:
        file = Path(directory, "report.html")
        file.write_text(generated.run(*generated.CHECK, "-o", "html"), encoding="utf-8")
        size = {"width": _WIDTH, "height": _HEIGHT}
        with opened(browser, file, viewport=size, color_scheme="light") as view:
            view.page.fill("#text", _SHOWN)
            expect(view.page.locator("#finding-list > li")).to_have_count(1)
            view.page.evaluate("document.activeElement.blur()")
            view.page.screenshot(path=_TARGET)


if __name__ == "__main__":
    main()
