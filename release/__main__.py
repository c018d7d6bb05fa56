"""Build a release for this platform; run as ``python -m release`` (``make dist``)."""

from __future__ import annotations

import argparse
import os
import subprocess
from pathlib import Path
from typing import Final

from kubectl_spread import __version__
from release import archiving, bundling, changelog, manifest, requirements, sbom
from release.environments import ROOT, Environment
from release.platforms import here

_DIST: Final = ROOT / "dist"


def main() -> None:
    """Build into ``--output``, with temporary files in ``--work``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "part",
        nargs="?",
        choices=("all", "manifest", "notes"),
        default="all",
        help="manifest: write the manifest of the archives that exist; notes: print the changelog of this version",
    )
    parser.add_argument("--output", type=Path, default=_DIST)
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "release")
    arguments = parser.parse_args()
    if arguments.part == "notes":
        print(changelog.current(), end="")
        return
    output, work = arguments.output.absolute(), arguments.work.absolute()
    output.mkdir(parents=True, exist_ok=True)
    if arguments.part == "all":
        work.mkdir(parents=True, exist_ok=True)
        _build(output, work)
    # krew needs this name.
    manifest.write(output / "spread.yaml", output)
    if output == _DIST:
        manifest.write(manifest.MANIFEST, output)
    for path in sorted(output.iterdir()):
        print(f"{path.stat().st_size:>12,}  {path.name}")


def _build(output: Path, work: Path) -> None:
    """Write wheel, sdist, the wheel's lock file, the archive of this platform and its SBOM."""
    moment = _moment()
    settled = {**os.environ, "SOURCE_DATE_EPOCH": str(moment)}
    tools = Environment(work / "tools", "release.txt")
    tools.run("-m", "build", "--no-isolation", "--outdir", str(output), str(ROOT), variables=settled)
    environment = Environment(work / "environment", "archive.txt", installer=tools)
    wheel = output / f"kubectl_spread-{__version__}-py3-none-any.whl"
    requirements.write(output / "requirements.txt", wheel)
    environment.install("--no-deps", "--no-index", str(wheel))
    directory = bundling.bundle(tools, environment, work)
    platform = here()
    programs = frozenset(f"{point.name}{platform.suffix}" for point in bundling.programs(environment.packages))
    archiving.write(output / platform.archive, directory, programs, moment)
    sbom.write(
        output / f"{platform.stem}.cdx.json", tools, environment, bundling.bundled_distributions(environment, directory)
    )


def _moment() -> int:
    """Return the modification time of all files, by default that of the commit, in seconds since 1970."""
    value = os.environ.get("SOURCE_DATE_EPOCH")
    if value:
        return int(value)
    command = ["git", "log", "-1", "--format=%ct"]
    return int(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout)


if __name__ == "__main__":
    main()
