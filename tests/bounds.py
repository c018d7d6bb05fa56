"""Test the wheel with the lowest releases of its dependencies that pyproject.toml allows, and with the newest.

``make bounds`` runs it after ``make dist``; arguments replace the tests. The checkout that the tests run
in has no ``kubectl_spread``, so they import the one that was installed from the wheel.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.commands import BIN
from tests.copies import copied
from tests.generated import ROOT
from tests.install.pythons import oldest_and_newest

CORE: Final = tuple(f"tests/{name}" for name in ("kube", "audit", "rules", "render", "merge"))
EDGES: Final = (
    *(f"tests/cli/test_{name}.py" for name in ("completion", "formats", "help", "mistakes")),
    "tests/follow/test_server.py",
    "tests/sources/test_incluster.py",
)
"""Tests of what the core does not use: click, uvicorn and kubernetes."""
_NEEDED: Final = (
    "click-man",
    "cryptography",
    "grafana-foundation-sdk",
    "hypothesis",
    "jsonschema",
    "junit2html",
    "markdown-it-py",
    "pexpect",
    "pyte",
    "pytest",
    "pytest-xdist",
    "xmlschema",
)
"""What these tests import."""


def main(tests: Sequence[str]) -> int:
    """Run the tests with both sets of releases; return the exit status of the first that fails, or else 0."""
    wheels = sorted((ROOT / "dist").glob("*.whl"))
    if not wheels:
        print("error: there is no wheel in dist/: run make dist", file=sys.stderr)
        return 2
    pythons = oldest_and_newest()
    for resolution, python in (("lowest-direct", pythons[0]), ("highest", pythons[-1])):
        with tempfile.TemporaryDirectory() as directory:
            status = _run(Path(directory), wheels[-1], resolution, python, tests or CORE + EDGES)
        if status:
            print(f"error: the tests fail with {resolution} and {python}", file=sys.stderr)
            return status
    return 0


def _run(directory: Path, wheel: Path, resolution: str, python: Path, tests: Sequence[str]) -> int:
    """Install the wheel with one set of releases, and run the tests."""
    chosen, pins = str(directory / "venv" / "bin" / "python"), str(directory / "pins.txt")
    uv("venv", "--python", str(python), str(directory / "venv"))
    uv("pip", "compile", "--python", chosen, "pyproject.toml", "--resolution", resolution, "--output-file", pins)
    uv("pip", "install", "--python", chosen, "--constraint", pins, str(wheel), *_NEEDED)
    checkout = copied(directory / "checkout", without="kubectl_spread")
    # Some tests ask git for the files of the checkout.
    for command in (["init", "--quiet"], ["add", "--all"]):
        subprocess.run(["git", *command], cwd=checkout, check=True)
    print(f"== {resolution}, {python}", flush=True)
    suite = [chosen, "-m", "pytest", "--quiet", "-p", "no:cacheprovider", *tests]
    return subprocess.run(suite, cwd=checkout, check=False).returncode


def uv(*arguments: str) -> None:
    """Run uv in the checkout without its output.

    Raises:
        subprocess.CalledProcessError: It failed; the reason is on stderr.
    """
    command = [str(BIN / "uv"), "--quiet", "--no-python-downloads", *arguments]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
