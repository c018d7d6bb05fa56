"""The oracle: a small Go program that links the real code of one Kubernetes version and answers questions.

Source and build: ``tests/conformance/oracle/``; binaries are cached by version and source.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Final, Self

from tests.controlplane import binaries

VERSIONS: Final[Mapping[int, str]] = {
    33: "v1.33.13",
    34: "v1.34.4",
    35: "v1.35.4",
    36: "v1.36.3",
    37: "v1.37.1",
}
"""The version whose code answers for a minor."""

_SOURCE: Final = Path(__file__).parent / "oracle"


def binary(minor: int) -> Path:
    """Return the oracle of a minor, built where missing.

    Raises:
        MissingToolError: Go is needed and not on PATH.
    """
    version = VERSIONS[minor]
    name = f"conformance-oracle-{_fingerprint()}"
    folder = binaries.cache_folder() / version
    with binaries._missing(folder, (name,)) as missing:
        if missing:
            for outdated in folder.glob("conformance-oracle-*"):
                outdated.unlink()
            _build(version, minor, folder / name)
    return folder / name


def _fingerprint() -> str:
    digest = hashlib.sha256()
    for path in sorted(_SOURCE.glob("*.go")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def _build(version: str, minor: int, target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        work = Path(scratch)
        for path in _SOURCE.glob("*.go"):
            shutil.copy(path, work)
        (work / "go.mod").write_text(binaries._kubernetes_module(version), encoding="utf-8")
        print(f"building the conformance oracle ({version})", file=sys.stderr, flush=True)
        flags = ("-mod=mod", "-trimpath", "-p=2", f"-tags=kube{minor}", f"-ldflags={binaries._version_flags(version)}")
        binaries._go("build", *flags, "-o", "oracle", ".", cwd=work)
        (work / "oracle").replace(target)


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
            RuntimeError: It stopped, because a question cannot be read; it says so on stderr.
        """
        writer = Thread(target=self._write, args=(questions,))
        writer.start()
        answers = [self._read() for _ in questions]
        writer.join()
        return answers

    def _write(self, questions: Sequence[bytes]) -> None:
        stdin = self._process.stdin
        # Where the oracle has stopped, reading says so.
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
    for wanted in map(int, sys.argv[1:]) if sys.argv[1:] else VERSIONS:
        print(binary(wanted))
