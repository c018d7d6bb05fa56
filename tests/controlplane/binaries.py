"""Build the real Kubernetes binaries from their Go modules, cached by version; ``make tools`` builds them."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

KUBERNETES_VERSION = "v1.37.1"
OLDER_APISERVERS = ("v1.33.13", "v1.34.4")
ETCD_VERSION = "v3.6.5"
CONTROL_PLANE = ("kube-apiserver", "kube-scheduler", "kube-controller-manager")


class MissingToolError(RuntimeError):
    """A tool that the real control plane needs is not on this machine."""


def cache_directory() -> Path:
    """Return where built binaries are kept, outside any checkout."""
    default = Path.home() / ".cache" / "kubectl-spread-tests"
    return Path(os.environ.get("KUBECTL_SPREAD_TEST_CACHE", default))


def kubernetes(version: str = KUBERNETES_VERSION, names: tuple[str, ...] = CONTROL_PLANE) -> Path:
    """Return the directory with the binaries ``names`` of one Kubernetes version, built where missing.

    Raises:
        MissingToolError: Go is needed and not on PATH.
    """
    directory = cache_directory() / version
    with _missing(directory, names) as missing:
        if missing:
            packages = {name: f"k8s.io/kubernetes/cmd/{name}" for name in missing}
            _build(_kubernetes_module(version), packages, directory, ldflags=_version_flags(version))
    return directory


def etcd(version: str = ETCD_VERSION) -> Path:
    """Return the etcd binary, built where missing.

    Raises:
        MissingToolError: Go is needed and not on PATH.
    """
    directory = cache_directory() / f"etcd-{version}"
    with _missing(directory, ("etcd",)) as missing:
        if missing:
            module = f"module etcd\n\ngo 1.24\n\nrequire go.etcd.io/etcd/server/v3 {version}\n"
            _build(module, {"etcd": "go.etcd.io/etcd/server/v3"}, directory, ldflags="-s -w")
    return directory / "etcd"


def kubectl() -> Path:
    """Return the kubectl on PATH, or else a kubectl built from the same Kubernetes module."""
    on_path = shutil.which("kubectl")
    if on_path:
        return Path(on_path)
    return kubernetes(names=("kubectl",)) / "kubectl"


def not_built(version: str = KUBERNETES_VERSION, names: tuple[str, ...] = CONTROL_PLANE) -> list[Path]:
    """Return the missing binaries of a control plane of ``version``."""
    needed = [cache_directory() / version / name for name in names]
    needed.append(cache_directory() / f"etcd-{ETCD_VERSION}" / "etcd")
    if not shutil.which("kubectl"):
        needed.append(cache_directory() / KUBERNETES_VERSION / "kubectl")
    return [binary for binary in needed if not binary.exists()]


@contextmanager
def _missing(directory: Path, names: tuple[str, ...]) -> Iterator[list[str]]:
    """Yield the names missing from ``directory``, locked against other processes that build there."""
    if all((directory / name).exists() for name in names):
        yield []
        return
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Checked again, since another process may have built them before it released the lock.
        yield [name for name in names if not (directory / name).exists()]


def _go(*arguments: str, cwd: Path) -> str:
    go = shutil.which("go")
    if go is None:
        message = "go is not on PATH: the real control plane is built from its Go modules"
        raise MissingToolError(message)
    done = subprocess.run([go, *arguments], cwd=cwd, check=False, capture_output=True, text=True)
    if done.returncode:
        # `go mod download -json` reports its errors on stdout.
        raise RuntimeError(f"go {' '.join(arguments)} failed:\n{done.stderr}{done.stdout}")
    return done.stdout


def _kubernetes_module(version: str) -> str:
    """Return a go.mod that pins Kubernetes and every staging module to its v0 twin."""
    module = f"k8s.io/kubernetes@{version}"
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        (directory / "go.mod").write_text("module download\n", encoding="utf-8")
        document = json.loads(_go("mod", "download", "-json", module, cwd=directory))
    upstream = Path(document["GoMod"]).read_text(encoding="utf-8")
    # Exactly v0.0.0: v0.0.0-<date> is a real version, of a module released on its own.
    unreleased = r"^\s*(k8s\.io/\S+) v0\.0\.0(?!-)"
    staging = sorted(set(re.findall(unreleased, upstream, flags=re.MULTILINE)))
    twin = version.replace("v1.", "v0.", 1)
    without_replace = re.sub(r"^replace \((?:.|\n)*?^\)\n", "", upstream, flags=re.MULTILINE)
    body = re.sub(r"^module .*$", "module controlplane", without_replace, flags=re.MULTILINE)
    pins = "\n".join(f"\t{name} => {name} {twin}" for name in staging)
    return f"{body}\nrequire k8s.io/kubernetes {version}\n\nreplace (\n{pins}\n)\n"


def _version_flags(version: str) -> str:
    major, minor, _ = version.removeprefix("v").split(".")
    package = "k8s.io/component-base/version"
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return " ".join(["-s -w", *(f"-X {package}.{name}={value}" for name, value in values.items())])


def _build(module: str, packages: dict[str, str], directory: Path, *, ldflags: str, tags: str = "") -> None:
    """Build each package of one module; a binary appears in ``directory`` only when complete."""
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        work = Path(scratch)
        (work / "go.mod").write_text(module, encoding="utf-8")
        flags = ("-mod=mod", "-trimpath", f"-tags={tags}", f"-ldflags={ldflags}")
        for name, package in packages.items():
            print(f"building {name} ({directory.name})", file=sys.stderr, flush=True)
            _go("build", *flags, "-o", name, package, cwd=work)
            (work / name).replace(directory / name)
