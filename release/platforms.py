"""The platforms of the archives, by their names in krew."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from typing import Final

_SYSTEMS: Final = {"linux": "linux", "darwin": "darwin", "win32": "windows"}
_MACHINES: Final = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


@dataclass(frozen=True, slots=True)
class Platform:
    """An operating system and a processor, as krew and Go call them."""

    system: str
    machine: str

    @property
    def suffix(self) -> str:
        """The ending of the names of programs."""
        return ".exe" if self.system == "windows" else ""

    @property
    def stem(self) -> str:
        """The name of the archive without its ending."""
        return f"kubectl-spread-{self.system}-{self.machine}"

    @property
    def archive(self) -> str:
        """The name of the archive."""
        return self.stem + (".zip" if self.system == "windows" else ".tar.gz")


PLATFORMS: Final = (
    Platform("linux", "amd64"),
    Platform("linux", "arm64"),
    Platform("darwin", "amd64"),
    Platform("darwin", "arm64"),
    Platform("windows", "amd64"),
)


def here() -> Platform:
    """Return the platform of this machine.

    Raises:
        LookupError: There is no archive for it.
    """
    current = Platform(_SYSTEMS.get(sys.platform, sys.platform), _MACHINES.get(platform.machine().lower(), ""))
    if current not in PLATFORMS:
        raise LookupError(f"no archive is built for {sys.platform} on {platform.machine()}")
    return current
