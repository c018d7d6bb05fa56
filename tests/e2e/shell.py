"""Lines that somebody pastes into a shell."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path


def paste(script: str, directory: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run lines in a shell that stops at the first that fails."""
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        cwd=directory,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
