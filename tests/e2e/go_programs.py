"""Programs that tests run on a control plane, such as helm, built from their Go modules."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Final

from tests.controlplane import binaries

HELM: Final = ("helm.sh/helm/v3", "v3.22.0", "cmd/helm")
KUBE_RBAC_PROXY: Final = ("github.com/brancz/kube-rbac-proxy", "v0.19.1", "cmd/kube-rbac-proxy")
THANOS: Final = ("github.com/thanos-io/thanos", "v0.40.1", "cmd/thanos", "slicelabels")
"""The newest version that Go 1.26.8 builds, with the tag of its releases, without which it sends wrong labels."""


def binary(module: str, version: str, package: str, tags: str = "") -> Path:
    """Return the program of a Go module, built with the versions that its own go.mod pins, where it is missing.

    Raises:
        MissingToolError: Go is needed and not on PATH.
    """
    name = package.rpartition("/")[2]
    directory = binaries.cache_directory() / f"{name}-{version}"
    with binaries._missing(directory, (name,)) as missing:
        if missing:
            packages = {name: f"{module}/{package}"}
            binaries._build(_go_mod(module, version), packages, directory, ldflags="-s -w", tags=tags)
    return directory / name


def _go_mod(module: str, version: str) -> str:
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        (directory / "go.mod").write_text("module download\n", encoding="utf-8")
        download = json.loads(binaries._go("mod", "download", "-json", f"{module}@{version}", cwd=directory))
    body = re.sub(
        r"^module .*$", "module program", Path(download["GoMod"]).read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    return f"{body}\nrequire {module} {version}\n"
