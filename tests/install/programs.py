"""Programs that installing is tested with, built from their Go modules as ``tools/go.mod`` pins them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from tests.controlplane import binaries

_TOOLS: Final = Path(__file__).with_name("tools")
_NAMES: Final = ("actionlint", "krew", "validate-krew-manifest")


def program(name: str) -> Path:
    """Return one of the programs, built where missing and kept with the other Kubernetes binaries.

    Raises:
        MissingToolError: Go is needed and not on PATH.
    """
    pinned = hashlib.sha256((_TOOLS / "go.sum").read_bytes()).hexdigest()[:12]
    folder = binaries.cache_folder() / f"install-{pinned}"
    with binaries._missing(folder, _NAMES) as missing:
        if missing:
            binaries._go("build", "-trimpath", "-o", f"{folder}/", "tool", cwd=_TOOLS)
    return folder / name
