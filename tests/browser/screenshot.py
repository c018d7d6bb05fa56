"""Write the pictures of docs/formats.md, of the sample cluster; run as a module (``make screenshot``)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Final

from tests import generated
from tests.browser.chromium import launched, opened, program

_PICTURES: Final[dict[str, dict[str, Any]]] = {
    "html.png": {"viewport": {"width": 1120, "height": 990}, "color_scheme": "light"},
    "html-phone.png": {
        "viewport": {"width": 390, "height": 844},
        "color_scheme": "dark",
        "device_scale_factor": 2,
        "is_mobile": True,
    },
}
"""Maps a file in docs to the settings of the browser."""
_SIMULATED: Final[dict[str, dict[str, Any]]] = {
    "html-simulate.png": {"viewport": {"width": 1120, "height": 800}, "color_scheme": "light"}
}
"""The same for the page of a simulation."""
_OUTAGE: Final = ("simulate", "--lose", "zone=a", "-A", "--runs", "20", "-f", generated.SAMPLE)


def main() -> None:
    """Open the pages about the sample cluster, and save each window."""
    path = program()
    if path is None:
        raise SystemExit("there is no Chromium")
    with tempfile.TemporaryDirectory() as directory, launched(path) as browser:
        for command, pictures in ((generated.CHECK, _PICTURES), (_OUTAGE, _SIMULATED)):
            file = Path(directory, "report.html")
            file.write_text(generated.run(*command, "-o", "html"), encoding="utf-8")
            for name, settings in pictures.items():
                with opened(browser, file, **settings) as view:
                    view.page.screenshot(path=generated.ROOT / "docs" / name)


if __name__ == "__main__":
    main()
