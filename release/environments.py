"""The two environments of a build: one with its tools, one with what goes into the archive."""

from __future__ import annotations

import os
import subprocess
import sysconfig
import venv
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
_LOCKS: Final = ROOT / "release" / "locks"
# Only wheels: what a package's own build does is neither pinned nor the same twice.
_INSTALL: Final = ("install", "--quiet", "--no-compile", "--disable-pip-version-check", "--only-binary", ":all:")


class Environment:
    """A virtual environment that holds what one lock file says, and nothing else."""

    def __init__(self, directory: Path, lock: str, *, installer: Environment | None = None) -> None:
        """Make it in ``directory``; without another's pip to install with, it gets its own."""
        windows = os.name == "nt"
        venv.create(directory, clear=True, symlinks=not windows, with_pip=installer is None)
        self.programs = Path(sysconfig.get_path("scripts", "venv", {"base": str(directory)}))
        self.packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(directory)}))
        self.python = self.programs / ("python.exe" if windows else "python")
        self._installer = installer or self
        self.install("--require-hashes", "--requirement", str(_LOCKS / lock))

    def install(self, *arguments: str) -> None:
        """Install what pip understands by ``arguments``."""
        self._installer.run("-m", "pip", "--python", str(self.python), *_INSTALL, *arguments)

    def run(self, *arguments: str, variables: dict[str, str] | None = None) -> str:
        """Run its Python and return what that prints.

        Raises:
            subprocess.CalledProcessError: It failed; what it said is on stderr.
        """
        command = [str(self.python), *arguments]
        done = subprocess.run(command, cwd=ROOT, env=variables, check=True, stdout=subprocess.PIPE, text=True)
        return done.stdout
