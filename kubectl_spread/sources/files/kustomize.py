"""The manifests that ``kubectl kustomize`` renders from a directory."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from typing import BinaryIO, Final

from kubectl_spread.errors import SourceError
from kubectl_spread.sources.paths import reason

PROGRAM: Final = "kubectl"
LONGEST: Final = 300.0
"""The seconds until kubectl is stopped; it gives up each ``git fetch`` of a remote base after 27."""
_MOST_MESSAGES: Final = 64 << 10
"""The most bytes of kubectl's messages that are printed."""
_ERROR: Final = "error: "
_WARNING: Final = "# Warning: "


def render(directory: str, *, longest: float = LONGEST) -> tuple[BinaryIO, list[str]]:
    """Return the manifests that ``kubectl kustomize`` prints for a local directory, and its warnings.

    Args:
        directory: The directory of a kustomization; kubectl would fetch a URL.
        longest: The seconds until kubectl is stopped.

    Raises:
        SourceError: There is no kubectl, or it does not end or prints nothing, or it fails; the words are then its own.
    """
    call = f"{PROGRAM} kustomize {directory}"
    status, manifests, messages = _ran([_kubectl(), "kustomize", "--", directory], call, longest)
    lines = [line for line in messages[:_MOST_MESSAGES].decode(errors="backslashreplace").splitlines() if line.strip()]
    if status:
        ending = f"was ended by signal {-status}" if status < 0 else f"failed with exit status {status}"
        words = " ".join(line for line in lines if not line.startswith(_WARNING)).split()
        raise SourceError(" ".join(words).removeprefix(_ERROR) or f"{call} {ending}")
    if not manifests.strip():
        raise SourceError(f"{call} printed nothing, so there is nothing to check")
    return BytesIO(manifests), lines


def files(directory: str) -> Iterator[str]:
    """Yield the paths of all files in a directory, also in directories inside it."""
    for path, _, names in os.walk(directory):
        yield from (os.path.join(path, name) for name in names)  # noqa: PTH118 - pathlib would normalize the path


def _kubectl() -> str:
    program = shutil.which(PROGRAM)
    if program is None:
        raise SourceError(f"-k needs {PROGRAM} on PATH: {PROGRAM} kustomize renders the manifests")
    # The working directory may be a repository that somebody else wrote.
    if not os.path.isabs(program):  # noqa: PTH117 - the answer for a path as it is written
        raise SourceError(f"-k: {program} is not run: PATH names its directory relative to the working directory")
    return program


def _ran(command: list[str], call: str, longest: float) -> tuple[int, bytes, bytes]:
    """Run a program to its end, and return its exit status, its standard output and its standard error.

    It has no terminal and no standard input, so git cannot ask for a password.
    """
    try:
        process = subprocess.Popen(  # noqa: S603 - the first kubectl on PATH, as a shell would run it
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise SourceError(f"cannot run {command[0]}: {reason(error)}") from error
    with process:
        try:
            output, messages = process.communicate(timeout=longest)
        except BaseException as error:
            _stop(process)
            if isinstance(error, subprocess.TimeoutExpired):
                raise SourceError(f"{call} did not end within {longest:g} seconds") from None
            raise
    return process.returncode, output, messages


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a program and, where the system has process groups, the programs that it started."""
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
