"""The real krew with a directory of its own, and the real kubectl, which finds the installed plugin."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.controlplane import binaries
from tests.controlplane.processes import LOOPBACK
from tests.e2e.spread import Program
from tests.install.programs import program
from tests.loopback import QuietRequests, serving


class Krew:
    """``kubectl krew``, and the plugins that it has installed."""

    def __init__(self, directory: Path, index: str = "no-such-index") -> None:
        """Run krew in an existing directory; ``index`` is a git repository of manifests."""
        (directory / "kubectl-krew").symlink_to(program("krew"))
        self.root = directory / "krew"
        self._directory = directory
        self._settings = {"KREW_ROOT": str(self.root), "KREW_DEFAULT_INDEX_URI": index, "KREW_NO_UPGRADE_CHECK": "1"}

    def __call__(self, *arguments: str) -> str:
        """Run ``kubectl krew`` and return its stderr."""
        path = f"{self._directory}{os.pathsep}{os.environ['PATH']}"
        completed = subprocess.run(
            [binaries.kubectl(), "krew", *arguments],
            env={**os.environ, **self._settings, "PATH": path},
            stdin=subprocess.DEVNULL,
            check=False,
            capture_output=True,
            text=True,
        )
        assert completed.returncode == 0, completed.stderr
        return completed.stderr

    def spread(self, environment: Mapping[str, str] = os.environ) -> Program:
        """Return ``kubectl spread`` as krew has installed it."""
        return Program(self.root / "bin", environment)

    @property
    def program(self) -> Path:
        """The target of the link that krew made."""
        return (self.root / "bin" / "kubectl-spread").resolve()


class Index:
    """A git repository of manifests, like krew-index, whose archives are on a server on loopback."""

    def __init__(self, directory: Path) -> None:
        """Make an empty repository."""
        self.directory = directory
        (directory / "plugins").mkdir(parents=True)
        self._git("init", "--quiet", "--initial-branch=master")

    def publish(self, manifest: str) -> None:
        """Commit the manifest of the plugin."""
        (self.directory / "plugins" / "spread.yaml").write_text(manifest, encoding="utf-8")
        self._git("add", "--all")
        self._git("-c", "user.name=index", "-c", "user.email=index@example.com", "commit", "--quiet", "-m", "publish")

    def _git(self, *arguments: str) -> None:
        subprocess.run(["git", "-C", self.directory, *arguments], check=True)


class _Handler(QuietRequests, SimpleHTTPRequestHandler):
    pass


@contextmanager
def served(directory: Path) -> Iterator[str]:
    """Serve a directory by HTTP on loopback and yield its address."""
    with serving(ThreadingHTTPServer((LOOPBACK, 0), partial(_Handler, directory=str(directory)))) as port:
        yield f"http://{LOOPBACK}:{port}"
