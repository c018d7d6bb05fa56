"""pip, pipx and uv install the wheel and the sdist, as users do."""

from __future__ import annotations

import re
import subprocess
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from kubectl_spread import __version__
from release.environments import REPOSITORY, ROOT
from tests.bounds import uv
from tests.commands import BIN
from tests.controlplane.cluster import ControlPlane
from tests.e2e.spread import Program
from tests.install import routes
from tests.install.pythons import oldest_and_newest

pytestmark = pytest.mark.install

_SAMPLE = ("check", "-f", str(ROOT / "examples" / "cluster.json"), "--server-version", "1.37")


def _routes() -> Iterator[ParameterSet]:
    """Yield each way to install, with each Python; CI has pip with the newest."""
    *older, newest = oldest_and_newest()
    yield pytest.param(routes.pip, "*.whl", newest, id=f"pip-{newest}")
    nightly = [
        *((routes.pip, "*.whl", python) for python in older),
        *((routes.pip, "kubectl_spread-*.tar.gz", python) for python in (*older, newest)),
        *((route, "*.whl", python) for route in (routes.pipx, routes.uv) for python in (*older, newest)),
    ]
    for install, package, python in nightly:
        yield pytest.param(
            install, package, python, id=f"{install.__name__}-{package}-{python}", marks=pytest.mark.nightly
        )


@pytest.mark.parametrize(("install", "package", "python"), [*_routes()])
def test_kubectl_finds_what_is_installed(
    *, install: routes.Route, package: str, python: Path, dist: Path, web: ControlPlane, tmp_path: Path
) -> None:
    """All programs are on PATH, and kubectl runs the plugin on files and on the real cluster."""
    (built,) = dist.glob(package)
    programs = install(python, built, tmp_path)
    declared = distribution("kubectl-spread").entry_points.select(group="console_scripts")
    assert {point.name for point in declared} <= {path.name for path in programs.iterdir()}
    spread = Program(programs, web.environment())
    assert spread("--version").stdout.startswith(f"Client Version: v{__version__}\n")
    assert "18 pods in 5 workloads" in spread(*_SAMPLE).stdout
    assert spread.report().row("Deployment/web")["verdicts"] == {"merged": 3}


def test_the_wheel_has_the_marker_of_types(dist: Path) -> None:
    """Type checkers read annotations only of packages that have it."""
    (wheel,) = dist.glob("*.whl")
    assert "kubectl_spread/py.typed" in zipfile.ZipFile(wheel).namelist()


def test_links_and_pictures_of_the_readme_work_on_the_index(dist: Path) -> None:
    """PyPI shows the text alone, so they name the files of the tag."""
    (wheel,) = dist.glob("*.whl")
    metadata = zipfile.ZipFile(wheel).read(f"kubectl_spread-{__version__}.dist-info/METADATA").decode()
    assert re.findall(r"\]\((?!https://|#)[^)]*", metadata) == []
    raw = f"https://raw.githubusercontent.com/kubectl-spread/kubectl-spread/v{__version__}"
    assert f"]({raw}/docs/html.png)" in metadata
    assert f"]({REPOSITORY}/blob/v{__version__}/LICENSE)" in metadata
    for kind in ("Homepage", "Changelog", "Issues"):
        assert f"\nProject-URL: {kind}, {REPOSITORY}" in metadata


def test_the_wheel_has_the_manual_pages(dist: Path) -> None:
    """Installers put them below share/man of the environment, where pipx links them for man."""
    (wheel,) = dist.glob("*.whl")
    prefix = f"kubectl_spread-{__version__}.data/data/share/man/man1/"
    pages = {name.removeprefix(prefix) for name in zipfile.ZipFile(wheel).namelist() if name.startswith(prefix)}
    assert pages == {path.name for path in (ROOT / "man").iterdir()}


def test_the_index_would_take_them(dist: Path) -> None:
    """PyPI renders the README and knows every classifier."""
    packages = [*dist.glob("*.whl"), *dist.glob("kubectl_spread-*.tar.gz")]
    command = [str(BIN / "twine"), "check", "--strict", *map(str, packages)]
    completed = subprocess.run(command, check=False, capture_output=True, text=True)
    assert completed.returncode == 0, completed.stdout
    assert completed.stdout.count("PASSED") == len(packages) == 2


def test_the_lowest_releases_are_the_declared_bounds(tmp_path: Path) -> None:
    """Nobody has tested a bound below the lowest release that all bounds together allow."""
    pins = tmp_path / "pins.txt"
    chosen = ("--resolution", "lowest-direct", "--no-annotate", "--no-header")
    uv("pip", "compile", "--python", str(oldest_and_newest()[0]), "pyproject.toml", *chosen, "--output-file", str(pins))
    pinned = dict(line.split("==") for line in pins.read_text(encoding="utf-8").splitlines())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for requirement in map(Requirement, project["dependencies"]):
        (bound,) = requirement.specifier
        assert bound.operator == ">="
        assert Version(pinned[canonicalize_name(requirement.name)]) == Version(bound.version), requirement.name
