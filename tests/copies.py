"""Copies of the checkout, for tests that change it or leave a part of it out."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.generated import ROOT


def copied(directory: Path, *, without: str | None = None) -> Path:
    """Copy the files of the checkout that git does not ignore, except those of one directory."""
    command = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file() and Path(name).parts[0] != without:
            target = directory / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)
    return directory
