"""What came out of a run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to.

    Attributes:
        status: The exit status.
        stdout: What it wrote.
        stderr: What it said.
        error: What escaped; None: nothing did.
        command: What was run.
        copies: Whether ``stdout`` is, in part, the input as it is.
    """

    status: int
    stdout: bytes = b""
    stderr: bytes = b""
    error: BaseException | None = None
    command: str = ""
    copies: bool = False
