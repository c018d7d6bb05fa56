"""The oracle: a Go program with the scheduling package of one version of Karpenter; and Karpenter itself.

Source: ``oracle/``.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.conformance.oracles import Process, _fingerprint
from tests.controlplane import binaries

VERSION: Final = "v1.14.1"
"""Version 1.14.3 and later need a newer Go."""

_MODULE: Final = "sigs.k8s.io/karpenter"
_DEFINITIONS: Final = ("pkg/apis/crds", "kwok/apis/crds")
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


def kwok() -> Path:
    """Return Karpenter with its kwok provider, next to ``crds`` with its resources; it is built if it is missing.

    Raises:
        MissingToolError: Go is needed and not on PATH.
    """
    directory = binaries.cache_directory() / f"karpenter-{VERSION}"
    with binaries._missing(directory, ("kwok",)) as missing:
        if missing:
            print("building karpenter with its kwok provider", file=sys.stderr, flush=True)
            _build_kwok(directory / "kwok")
    return directory / "kwok" / "karpenter"


def _build(target: Path) -> None:
    with _module(target.parent) as (work, _):
        shutil.copy(_SOURCE / "main.go", work)
        binaries._go("build", "-mod=mod", "-trimpath", "-p=2", "-o", "oracle", ".", cwd=work)
        (work / "oracle").replace(target)


def _build_kwok(target: Path) -> None:
    with _module(target.parent) as (work, source):
        made = work / "kwok"
        for directory in _DEFINITIONS:
            shutil.copytree(source / directory, made / "crds", dirs_exist_ok=True, copy_function=shutil.copyfile)
        binaries._go("build", "-mod=mod", "-trimpath", "-p=2", "-o", "kwok/karpenter", f"{_MODULE}/kwok", cwd=work)
        made.replace(target)


@contextmanager
def _module(parent: Path) -> Iterator[tuple[Path, Path]]:
    """Yield a module that requires what Karpenter does, and Karpenter itself, with the directory of its source."""
    with tempfile.TemporaryDirectory(dir=parent) as scratch:
        work = Path(scratch)
        (work / "go.mod").write_text("module download\n", encoding="utf-8")
        document = json.loads(binaries._go("mod", "download", "-json", f"{_MODULE}@{VERSION}", cwd=work))
        upstream = Path(document["GoMod"]).read_text(encoding="utf-8")
        module = re.sub(r"^module .*$", "module oracle", upstream, flags=re.MULTILINE)
        (work / "go.mod").write_text(f"{module}\nrequire {_MODULE} {VERSION}\n", encoding="utf-8")
        yield work, Path(document["Dir"])
