"""The installers of Python programs; each function returns the directory of the installed programs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from tests.commands import BIN

_UV = ("tool", "install", "--quiet", "--no-python-downloads")
Route: TypeAlias = Callable[[Path, Path, Path], Path]
"""Takes the interpreter, the package and the directory."""


def pip(python: Path, package: Path, directory: Path) -> Path:
    """Install into a virtual environment."""
    subprocess.run([python, "-m", "venv", directory / "venv"], check=True)
    subprocess.run([directory / "venv" / "bin" / "pip", "install", "--quiet", package], check=True)
    return directory / "venv" / "bin"


def pipx(python: Path, package: Path, directory: Path) -> Path:
    """Install as an application of pipx."""
    settings = {
        "PIPX_HOME": str(directory / "home"),
        "PIPX_BIN_DIR": str(directory / "bin"),
        "PIPX_MAN_DIR": str(directory / "man"),
    }
    command = [str(BIN / "pipx"), "install", "--quiet", "--python", str(python), str(package)]
    subprocess.run(command, env={**os.environ, **settings}, check=True, capture_output=True)
    return directory / "bin"


def uv(python: Path, package: Path, directory: Path) -> Path:
    """Install as a tool of uv."""
    settings = {"UV_TOOL_DIR": str(directory / "tools"), "UV_TOOL_BIN_DIR": str(directory / "bin")}
    command = [str(BIN / "uv"), *_UV, "--python", str(python), str(package)]
    subprocess.run(command, env={**os.environ, **settings}, check=True, capture_output=True)
    return directory / "bin"
