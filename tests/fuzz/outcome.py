"""The outcome of a run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a run.

    Attributes:
        status: The exit status.
        stdout: The bytes on stdout.
        stderr: The bytes on stderr.
        error: The exception that escaped, or None.
        command: The command line.
        copies: Whether ``stdout`` contains unchanged parts of the input.
    """

    status: int
    stdout: bytes = b""
    stderr: bytes = b""
    error: BaseException | None = None
    command: str = ""
    copies: bool = False
