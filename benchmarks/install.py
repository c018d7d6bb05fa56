"""The cost of each way to install the plugin: on disk, at the first start and at later ones, compared with kubectl.

Run as ``python -m benchmarks.install`` after ``make dist``.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from benchmarks.sidebyside import Median, medians, run
from release.environments import ROOT
from release.platforms import here
from tests.builders import constraint
from tests.controlplane import binaries
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import deployment
from tests.e2e.workloads import roll_out
from tests.install import routes
from tests.install.krew import Krew

_DIST: Final = ROOT / "dist"
_HELP: Final = ("--help",)
_FILE: Final = ("check", "-f", str(ROOT / "examples" / "cluster.json"))
_LIVE: Final = ("check",)


def main() -> None:
    """Install in every way, and print two tables: wall and, in brackets, processor time, and peak memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    with (
        tempfile.TemporaryDirectory() as directory,
        ControlPlane.start(Path(directory, "cluster"), kubelet=True) as cluster,
    ):
        cluster.add_nodes()
        roll_out(cluster, deployment(constraints=[constraint(match=["pod-template-hash"])], replicas=3))
        # As installed: with the modules compiled, where the installer or the first start compiles them.
        environment = {**cluster.environment(), "PYTHONDONTWRITEBYTECODE": ""}
        installed = _install(Path(directory))
        print("| installed by | on disk | first start | second |", "|---|---|---|---|", sep="\n")
        for name, (place, program) in installed.items():
            print(_first(name, place, program, environment))
        print("", *_later({name: program for name, (_, program) in installed.items()}, environment, rounds), sep="\n")


def _install(directory: Path) -> dict[str, tuple[Path, Path]]:
    """Map each way to the directory that it filled and the program in it."""
    (wheel,) = _DIST.glob("*.whl")
    # The interpreter of this environment would pass on its packages.
    python = Path(sys.executable).resolve()
    installed_by = {}
    for name, route in (("pip", routes.pip), ("pipx", routes.pipx), ("uv", routes.uv)):
        place = directory / name
        place.mkdir()
        installed_by[name] = (place, route(python, wheel, place) / "kubectl-spread")
    place = directory / "krew"
    place.mkdir()
    krew = Krew(place)
    krew("install", f"--manifest={_DIST / 'spread.yaml'}", f"--archive={_DIST / here().archive}")
    installed_by["krew"] = (krew.root / "store", krew.root / "bin" / "kubectl-spread")
    return installed_by


def _first(name: str, place: Path, program: Path, environment: Mapping[str, str]) -> str:
    """Return a line of the first table; before the first start no file of the plugin is in memory."""
    files = [path for path in place.rglob("*") if path.is_file() and not path.is_symlink()]
    size = sum(path.stat().st_size for path in files)
    os.sync()
    for path in files:
        with path.open("rb") as opened:
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    first, second = (run([str(program), *_HELP], environment).wall for _ in range(2))
    return f"| {name} | {size / 2**20:.0f} MiB | {first:.2f} s | {second:.2f} s |"


def _later(programs: Mapping[str, Path], environment: Mapping[str, str], rounds: int) -> list[str]:
    """Return the lines of the second table: medians of all commands, run in turn."""
    kubectl = str(binaries.kubectl())
    commands = {
        "kubectl version --client": [kubectl, "version", "--client"],
        "kubectl get pods": [kubectl, "get", "pods"],
    }
    for name, program in programs.items():
        for arguments in (_HELP, _FILE, _LIVE):
            commands[_named(name, arguments)] = [str(program), *arguments]
    times = medians(commands, environment, rounds, "kubectl get pods")
    lines = ["| installed by | `--help` | `check -f` | live `check` |", "|---|---|---|---|"]
    for name in programs:
        cells = (_cell(times[_named(name, arguments)]) for arguments in (_HELP, _FILE, _LIVE))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    base_names = ("kubectl version --client", "kubectl get pods")
    return [*lines, "", *(f"`{name}`: {_cell(times[name])}" for name in base_names)]


def _named(name: str, arguments: tuple[str, ...]) -> str:
    return f"{name} {' '.join(arguments[:2])}"


def _cell(median: Median) -> str:
    return f"{median.wall:.2f} s ({median.processor:.2f} s), {median.memory:.0f} MiB"


if __name__ == "__main__":
    main()
