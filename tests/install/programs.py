"""Programs for the tests of installation and workflows, built from the Go modules that ``tools/go.mod`` pins."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from tests.controlplane import binaries

_TOOLS: Final = Path(__file__).with_name("tools")
PACKAGES: Final = {
    "actionlint": "github.com/rhysd/actionlint/cmd/actionlint",
    "krew": "sigs.k8s.io/krew/cmd/krew",
    "validate-krew-manifest": "sigs.k8s.io/krew/cmd/validate-krew-manifest",
}


def program(name: str) -> Path:
    """Return one of the programs, built where missing and kept with the other Kubernetes binaries.

    Raises:
        MissingToolError: Go is needed and not on PATH.
    """
    pinned = hashlib.sha256((_TOOLS / "go.sum").read_bytes()).hexdigest()[:12]
    directory = binaries.cache_directory() / f"install-{pinned}"
    with binaries._missing(directory, (name,)) as missing:
        if missing:
            built = directory / f".{name}"
            binaries._go("build", "-trimpath", "-o", str(built), PACKAGES[name], cwd=_TOOLS)
            # An interrupted build leaves no file of this name.
            built.replace(directory / name)
    return directory / name
