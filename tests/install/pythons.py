"""The versions of Python on this machine."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Final

_OLDEST: Final = 11
_NEWEST: Final = 16
_ASK: Final = "import sys; print(*sys.version_info[:2], sys.executable)"


@cache
def oldest_and_newest() -> list[Path]:
    """Return the oldest and the newest interpreter on this machine that the plugin supports."""
    interpreters: dict[int, Path] = {}
    for minor in range(_OLDEST, _NEWEST):
        for candidate in _candidates(f"python3.{minor}"):
            completed = subprocess.run([candidate, "-c", _ASK], check=False, capture_output=True, text=True)
            # pyenv has shims of versions that are switched off, which fail.
            if completed.returncode == 0:
                interpreters.setdefault(minor, Path(completed.stdout.split(maxsplit=2)[2].strip()))
    chosen = {min(interpreters), max(interpreters)} if interpreters else set()
    return [interpreters[minor] for minor in sorted(chosen)] or [Path(sys.executable)]


def _candidates(name: str) -> list[Path]:
    on_path = shutil.which(name)
    pyenv = sorted((Path.home() / ".pyenv" / "versions").glob(f"*/bin/{name}"))
    return [*([Path(on_path)] if on_path else []), *pyenv]
