"""The oracle: a Go program that answers with the real descheduler, its plugin, its evictor and its policy defaults.

Source: ``oracle/``. The counts of the plugin are local to its Balance. Therefore the build copies the module, adds
``oracle/plugin/`` to the plugin's package and one line to Balance, which passes the counts on. Nothing else is changed.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.conformance.oracles import Process
from tests.controlplane import binaries

VERSION: Final = "v0.36.0"

_MODULE: Final = "sigs.k8s.io/descheduler"
_SOURCE: Final = Path(__file__).parent / "oracle"
_PLUGIN: Final = Path("pkg/framework/plugins/removepodsviolatingtopologyspreadconstraint")
_ANCHOR: Final = "if topologyIsBalanced(constraintTopologies, tsc) {"
_OBSERVE: Final = "observe(namespace, tsc, constraintTopologies)"


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
    name = f"conformance-oracle-{_fingerprint()}"
    directory = binaries.cache_directory() / f"descheduler-{VERSION}"
    with binaries._missing(directory, (name,)) as missing:
        if missing:
            for outdated in directory.glob("conformance-oracle-*"):
                outdated.unlink()
            _build(directory / name)
    return directory / name


def _fingerprint() -> str:
    digest = hashlib.sha256(f"{_ANCHOR}\0{_OBSERVE}".encode())
    for path in sorted(path for path in _SOURCE.rglob("*") if path.is_file()):
        digest.update(str(path.relative_to(_SOURCE)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def _build(target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        work = Path(scratch) / "oracle"
        shutil.copytree(_SOURCE, work, ignore=shutil.ignore_patterns("plugin"))
        (work / "go.mod").write_text("module oracle\n", encoding="utf-8")
        upstream = work / "upstream"
        _copy(
            Path(json.loads(binaries._go("mod", "download", "-json", f"{_MODULE}@{VERSION}", cwd=work))["Dir"]),
            upstream,
        )
        _add_observation(upstream / _PLUGIN)
        (work / "go.mod").write_text(_module((upstream / "go.mod").read_text(encoding="utf-8")), encoding="utf-8")
        shutil.copy(upstream / "go.sum", work)
        print(f"building the conformance oracle (descheduler {VERSION})", file=sys.stderr, flush=True)
        binaries._go("build", "-mod=mod", "-trimpath", "-p=2", "-ldflags=-s -w", "-o", "built", ".", cwd=work)
        (work / "built").replace(target)


def _copy(module: Path, upstream: Path) -> None:
    """Copy what is compiled of a module, writable: the module cache is not, and Go takes no overlay of it."""
    for name in ("cmd", "metrics", "pkg", "go.mod", "go.sum"):
        for path in [module / name, *(module / name).rglob("*")]:
            if path.is_file():
                copied = upstream / path.relative_to(module)
                copied.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copied)


def _add_observation(plugin: Path) -> None:
    path = plugin / "topologyspreadconstraint.go"
    head, *rest = path.read_text(encoding="utf-8").split(_ANCHOR)
    if len(rest) != 1:
        raise ValueError(f"{path.name} has {len(rest)} places, not one, where counts are complete: {_ANCHOR}")
    path.write_text(f"{head}{_OBSERVE}\n\t\t\t{_ANCHOR}{rest[0]}", encoding="utf-8")
    for added in (_SOURCE / "plugin").glob("*.go"):
        shutil.copyfile(added, plugin / added.name)


def _module(upstream: str) -> str:
    """Return a go.mod with the versions that the descheduler is released with."""
    body = re.sub(r"^module .*$", "module oracle", upstream, flags=re.MULTILINE)
    return f"{body}\nrequire {_MODULE} {VERSION}\n\nreplace {_MODULE} => ./upstream\n"


if __name__ == "__main__":
    print(binary())
