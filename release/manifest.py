"""The krew manifest, built from its template, the version and the archives."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Final

from kubectl_spread import __version__
from release.environments import REPOSITORY, ROOT
from release.platforms import PLATFORMS, Platform

MANIFEST: Final = ROOT / "plugin.yaml"
UNBUILT: Final = "0" * 64
"""The sha256 of an archive that was not built here; krew refuses every file, since none has it."""

_TEMPLATE: Final = ROOT / "release" / "plugin.template.yaml"
_PLATFORM: Final = Template("""\
    - selector:
        matchLabels:
          os: $system
          arch: $machine
      uri: $repository/releases/download/v$version/$archive
      sha256: "$digest"
      files:
        - from: kubectl-spread/*
          to: .
      bin: kubectl-spread$suffix
""")


def text(digests: Mapping[str, str], version: str = __version__) -> str:
    """Return the manifest with the sha256 of each archive by its name."""
    platforms = "".join(_entry(platform, digests.get(platform.archive, UNBUILT), version) for platform in PLATFORMS)
    template = Template(_TEMPLATE.read_text(encoding="utf-8"))
    return template.substitute(version=version, platforms=platforms)


def digests(directory: Path) -> dict[str, str]:
    """Map the name of each archive in a directory to its sha256."""
    archives = [directory / platform.archive for platform in PLATFORMS]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in archives if path.exists()}


def write(target: Path, directory: Path) -> None:
    """Write the manifest of the archives in a directory."""
    target.write_text(text(digests(directory)), encoding="utf-8", newline="\n")


def _entry(platform: Platform, digest: str, version: str) -> str:
    return _PLATFORM.substitute(
        repository=REPOSITORY,
        system=platform.system,
        machine=platform.machine,
        suffix=platform.suffix,
        archive=platform.archive,
        digest=digest,
        version=version,
    )
