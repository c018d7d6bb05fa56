"""The oracle: a Go program with the scheduling package of one version of Karpenter.

Source: ``oracle/``.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.conformance.oracles import Process, _fingerprint
from tests.controlplane import binaries

VERSION: Final = "v1.14.1"
"""Version 1.14.3 and later need a newer Go."""

_MODULE: Final = "sigs.k8s.io/karpenter"
_SOURCE: Final = Path(__file__).parent / "oracle"


def oracle() -> Process:
    """Start the oracle.

    Raises:
        MissingToolError: Go is needed and not on PATH.
    """
    return Process([str(binary())])


def binary() -> Path:
    """Return the oracle; it is built if it is missing.

    Raises:
        MissingToolError: Go is needed and not on PATH.
    """
    name = f"newnodes-oracle-{_fingerprint(_SOURCE, ())}"
    directory = binaries.cache_directory() / f"karpenter-{VERSION}"
    with binaries._missing(directory, (name,)) as missing:
        if missing:
            print(f"building {name}", file=sys.stderr, flush=True)
            _build(directory / name)
    return directory / name


def _build(target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        work = Path(scratch)
        shutil.copy(_SOURCE / "main.go", work)
        (work / "go.mod").write_text("module download\n", encoding="utf-8")
        document = json.loads(binaries._go("mod", "download", "-json", f"{_MODULE}@{VERSION}", cwd=work))
        upstream = Path(document["GoMod"]).read_text(encoding="utf-8")
        module = re.sub(r"^module .*$", "module oracle", upstream, flags=re.MULTILINE)
        (work / "go.mod").write_text(f"{module}\nrequire {_MODULE} {VERSION}\n", encoding="utf-8")
        binaries._go("build", "-mod=mod", "-trimpath", "-p=2", "-o", "oracle", ".", cwd=work)
        (work / "oracle").replace(target)
