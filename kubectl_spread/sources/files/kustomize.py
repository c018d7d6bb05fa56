"""The manifests that ``kubectl kustomize`` renders from a directory."""

from __future__ import annotations

import os
import shutil
import subprocess
from io import BytesIO
from typing import BinaryIO, Final

from kubectl_spread.errors import SourceError
from kubectl_spread.sources.paths import reason

PROGRAM: Final = "kubectl"
LONGEST: Final = 300.0
"""The seconds until kubectl is stopped; it gives up each ``git fetch`` of a remote base after 27."""
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
    call, program = f"{PROGRAM} kustomize {directory}", _kubectl()
    try:
        # In a session of its own it has no terminal, so git cannot ask for a password.
        completed = subprocess.run(  # noqa: S603 - the first kubectl on PATH, as a shell would run it
            [program, "kustomize", "--", directory],
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=longest,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        raise SourceError(f"{call} did not end within {longest:g} seconds") from None
    except (OSError, ValueError) as error:
        raise SourceError(f"cannot run {program}: {reason(error)}") from error
    status, messages = completed.returncode, completed.stderr.decode(errors="backslashreplace")
    lines = [line for line in messages.splitlines() if line.strip()]
    if status:
        ending = f"was ended by signal {-status}" if status < 0 else f"failed with exit status {status}"
        words = " ".join(line for line in lines if not line.startswith(_WARNING)).split()
        raise SourceError(" ".join(words).removeprefix(_ERROR) or f"{call} {ending}")
    if not completed.stdout.strip():
        raise SourceError(f"{call} printed nothing, so there is nothing to check")
    return BytesIO(completed.stdout), lines


def _kubectl() -> str:
    program = shutil.which(PROGRAM)
    if program is None:
        raise SourceError(f"-k needs {PROGRAM} on PATH: {PROGRAM} kustomize renders the manifests")
    # The working directory may be a repository that somebody else wrote.
    if not os.path.isabs(program):  # noqa: PTH117 - the answer for a path as it is written
        raise SourceError(f"-k: {program} is not run: PATH names its directory relative to the working directory")
    return program
