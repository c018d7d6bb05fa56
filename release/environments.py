"""The two environments of a build: the tools, and the contents of the archive."""

from __future__ import annotations

import os
import subprocess
import sysconfig
import venv
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
REPOSITORY: Final = "https://github.com/kubectl-spread/kubectl-spread"
_LOCKS: Final = ROOT / "release" / "locks"
# Wheels only, since the build of a package is neither pinned nor reproducible.
_INSTALL: Final = ("install", "--quiet", "--no-compile", "--disable-pip-version-check", "--only-binary", ":all:")


class Environment:
    """A virtual environment with the distributions of one lock file, and nothing else."""

    def __init__(self, directory: Path, lock: str, *, installer: Environment | None = None) -> None:
        """Create it in ``directory``; it gets a pip of its own unless another environment installs into it."""
        windows = os.name == "nt"
        venv.create(directory, clear=True, symlinks=not windows, with_pip=installer is None)
        self.programs = Path(sysconfig.get_path("scripts", "venv", {"base": str(directory)}))
        self.packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(directory)}))
        self.python = self.programs / ("python.exe" if windows else "python")
        self._installer = installer or self
        self.install("--require-hashes", "--requirement", str(_LOCKS / lock))

    def install(self, *arguments: str) -> None:
        """Run ``pip install`` with these arguments."""
        self._installer.run("-m", "pip", "--python", str(self.python), *_INSTALL, *arguments)

    def run(self, *arguments: str, variables: dict[str, str] | None = None) -> str:
        """Run its Python and return the output.

        Raises:
            subprocess.CalledProcessError: It failed; the reason is on stderr.
        """
        command = [str(self.python), *arguments]
        done = subprocess.run(command, cwd=ROOT, env=variables, check=True, stdout=subprocess.PIPE, text=True)
        return done.stdout
