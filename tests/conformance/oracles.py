"""The oracle: a Go program that answers questions with the real code of one Kubernetes version.

Source and build: ``tests/conformance/oracle/``; binaries are cached by version and source.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Final, Self

from tests.conformance import overlays
from tests.conformance.overlays import Change
from tests.controlplane import binaries

VERSIONS: Final[Mapping[int, str]] = {
    33: "v1.33.13",
    34: "v1.34.4",
    35: "v1.35.4",
    36: "v1.36.3",
    37: "v1.37.1",
    38: "v1.37.1",
}
"""The version whose code answers for a minor; an older version has the changes of ``overlays.CHANGES``."""

_SOURCE: Final = Path(__file__).parent / "oracle"
_KUBERNETES: Final = "k8s.io/kubernetes"


def binary(minor: int) -> Path:
    """Return the oracle of a minor; it is built if it is missing.

    Raises:
        MissingToolError: Go is needed and not on PATH.
    """
    return built("conformance-oracle", _SOURCE, minor)


def built(program: str, source: Path, minor: int) -> Path:
    """Return the program in the directory ``source``, linked with the code of a minor; it is built if it is missing.

    Raises:
        MissingToolError: Go is needed and not on PATH.
    """
    version = VERSIONS[minor]
    changes = overlays.CHANGES.get(minor, ())
    name = f"{program}-{_fingerprint(source, changes)}"
    directory = binaries.cache_directory() / (f"v1.{minor}-from-{version}" if changes else version)
    with binaries._missing(directory, (name,)) as missing:
        if missing:
            for outdated in directory.glob(f"{program}-*"):
                outdated.unlink()
            print(f"building {program} ({directory.name})", file=sys.stderr, flush=True)
            _build(version, minor, changes, source, directory / name)
    return directory / name


def _fingerprint(source: Path, changes: Sequence[Change]) -> str:
    digest = hashlib.sha256("".join(map(repr, changes)).encode())
    for path in sorted(source.glob("*.go")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def _build(version: str, minor: int, changes: Sequence[Change], source: Path, target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        work = Path(scratch)
        for path in source.glob("*.go"):
            shutil.copy(path, work)
        (work / "go.mod").write_text(binaries._kubernetes_module(version), encoding="utf-8")
        overlay = _overlay(version, changes, work) if changes else ()
        flags = ("-mod=mod", "-trimpath", "-p=2", f"-tags=kube{minor}", f"-ldflags={binaries._version_flags(version)}")
        binaries._go("build", *flags, *overlay, "-o", "oracle", ".", cwd=work)
        (work / "oracle").replace(target)


def _overlay(version: str, changes: Sequence[Change], work: Path) -> tuple[str, ...]:
    """Return the flag that builds with ``changes``.

    Go refuses to overlay files of its module cache, so go.mod points to a link to the module instead.
    """
    document = json.loads(binaries._go("mod", "download", "-json", f"{_KUBERNETES}@{version}", cwd=work))
    (work / "kubernetes").symlink_to(document["Dir"])
    with (work / "go.mod").open("a", encoding="utf-8") as module:
        module.write(f"\nreplace {_KUBERNETES} => ./kubernetes\n")
    overlay = overlays.write(changes, work / "kubernetes", work / "changed")
    (work / "overlay.json").write_text(json.dumps({"Replace": overlay}), encoding="utf-8")
    return ("-overlay=overlay.json",)


class Process:
    """A running oracle; a context manager."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start it."""
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, _type: type[BaseException] | None, _error: object, _trace: TracebackType | None) -> None:
        """Stop it."""
        self.close()

    def close(self) -> None:
        """Stop it."""
        if self._process.stdin is not None and self._process.stdout is not None:
            self._process.stdin.close()
            self._process.stdout.close()
        self._process.wait()

    def ask(self, questions: Sequence[bytes]) -> list[bytes]:
        """Return one answer for each question, JSON for JSON.

        Raises:
            RuntimeError: The oracle stopped because it cannot read a question; its stderr has the reason.
        """
        writer = Thread(target=self._write, args=(questions,))
        writer.start()
        answers = [self._read() for _ in questions]
        writer.join()
        return answers

    def _write(self, questions: Sequence[bytes]) -> None:
        stdin = self._process.stdin
        # Reading reports an oracle that has stopped.
        with contextlib.suppress(BrokenPipeError):
            if stdin is not None:
                stdin.write(b"".join(question + b"\n" for question in questions))
                stdin.flush()

    def _read(self) -> bytes:
        answer = b"" if self._process.stdout is None else self._process.stdout.readline()
        if not answer:
            raise RuntimeError("the oracle stopped")
        return answer


class Oracle(Process):
    """A running oracle of one minor and one set of feature gates; a context manager."""

    def __init__(self, minor: int, gates: Mapping[str, bool]) -> None:
        """Start it."""
        values = ",".join(f"{gate}={str(value).lower()}" for gate, value in sorted(gates.items()))
        super().__init__([str(binary(minor)), f"--feature-gates={values}"])


if __name__ == "__main__":
    for minor in map(int, sys.argv[1:]) if sys.argv[1:] else VERSIONS:
        print(binary(minor))
