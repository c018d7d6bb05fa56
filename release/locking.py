"""Pin the dependencies of development, releases and audits; run as ``python -m release.locking`` (``make lock``)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from release.environments import ROOT

LOCKS: Final = {
    "archive.txt": ("pyproject.toml",),
    "audit.txt": ("--group", "audit"),
    "development.txt": ("pyproject.toml", "--group", "dev"),
    "release.txt": ("--group", "release"),
}
"""Maps a lock file to the dependencies that it pins, for all platforms and versions of Python at once."""
_OPTIONS: Final = (
    "--universal",
    "--python-version",
    "3.11",
    "--generate-hashes",
    "--upgrade",
    "--quiet",
    "--no-header",
)


def main() -> None:
    """Write the lock files."""
    uv = Path(sys.executable).parent / "uv"
    for name, inputs in LOCKS.items():
        target = str(Path("release", "locks", name))
        command = [str(uv), "pip", "compile", *_OPTIONS, *inputs, "--output-file", target]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
