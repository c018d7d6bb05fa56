"""pip, pipx and uv install the wheel and the sdist, as users do."""

from __future__ import annotations

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
from release.environments import ROOT
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


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("resolution", "python"), [("lowest-direct", oldest_and_newest()[0]), ("highest", oldest_and_newest()[-1])], ids=str
)
def test_it_works_with_the_oldest_and_the_newest_releases(
    resolution: str, python: Path, dist: Path, tmp_path: Path
) -> None:
    """The tests without Kubernetes pass with the oldest and with the newest releases of the dependencies."""
    (wheel,) = dist.glob("*.whl")
    chosen, pins = str(tmp_path / "bin" / "python"), str(tmp_path / "pins.txt")
    _uv("venv", "--allow-existing", "--python", str(python), str(tmp_path))
    _uv("pip", "compile", "--python", chosen, "pyproject.toml", "--resolution", resolution, "--output-file", pins)
    _uv("pip", "install", "--python", chosen, "--group", "dev", "--constraint", pins, str(wheel))
    directories = [
        f"tests/{name}" for name in ("audit", "cli", "kube", "merge", "monitor", "render", "rules", "sources")
    ]
    command = [chosen, "-m", "pytest", "--quiet", "-p", "no:cacheprovider", *directories]
    completed = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert completed.returncode == 0, completed.stdout[-5000:]


def test_the_lowest_releases_are_the_declared_bounds(tmp_path: Path) -> None:
    """Nobody has tested a bound below the lowest release that all bounds together allow."""
    pins = tmp_path / "pins.txt"
    chosen = ("--resolution", "lowest-direct", "--no-annotate", "--no-header")
    _uv(
        "pip", "compile", "--python", str(oldest_and_newest()[0]), "pyproject.toml", *chosen, "--output-file", str(pins)
    )
    pinned = dict(line.split("==") for line in pins.read_text(encoding="utf-8").splitlines())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for requirement in map(Requirement, project["dependencies"]):
        (bound,) = requirement.specifier
        assert bound.operator == ">="
        assert Version(pinned[canonicalize_name(requirement.name)]) == Version(bound.version), requirement.name


def _uv(*arguments: str) -> None:
    command = [str(BIN / "uv"), "--quiet", "--no-python-downloads", *arguments]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
