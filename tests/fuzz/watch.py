"""The faults that no input may cause, and how a run is checked for them."""

from __future__ import annotations

import random
import resource
import signal
import traceback
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Final

from kubectl_spread.errors import ISSUES
from tests.fuzz.outcome import Outcome
from tests.fuzz.targets import Target

LONGEST: Final = 20.0
"""The seconds that a case may take."""
_STATUSES: Final = (0, 1, 2)
_UNSAFE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_FREE: Final = 64 << 20
_FACTOR: Final = 400
"""A case may need 64 MiB and 400 times the size of its input more than any case before it."""


class HangError(BaseException):
    """A case takes too long; no ``except Exception`` stops it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault: ``kind`` is one of a few words, and ``place`` distinguishes findings of a kind."""

    kind: str
    place: str
    text: str


def watched(target: Target, body: bytes, chance: random.Random, *, longest: float = LONGEST) -> Finding | None:
    """Run a target on an input; return the fault, or None."""
    before = _peak()
    try:
        with _time_limit(longest):
            outcome = target.run(body, chance)
    except HangError as error:
        return _escaped("hang", error)
    grown = _peak() - before
    if grown > _FREE + _FACTOR * len(body):
        return Finding("memory", target.name, f"{grown >> 20} MiB for {len(body)} bytes")
    return problem(outcome)


def problem(outcome: Outcome) -> Finding | None:
    """Return the fault of an outcome, or None."""
    if isinstance(outcome.error, HangError):
        return _escaped("hang", outcome.error)
    if outcome.error is not None:
        return _escaped("traceback", outcome.error)
    if ISSUES.encode() in outcome.stderr:
        # The last handler has caught the error.
        text = outcome.stderr.decode(errors="replace")
        return Finding("traceback", text.splitlines()[-1], text)
    if outcome.status not in _STATUSES:
        return Finding("status", str(outcome.status), outcome.stderr.decode(errors="replace"))
    for name, body in (("stdout", b"" if outcome.copies else outcome.stdout), ("stderr", outcome.stderr)):
        try:
            text = body.decode()
        except UnicodeDecodeError as error:
            return Finding("not UTF-8", f"{name} of {outcome.command}", str(error))
        unsafe = sorted({char for char in set(text) if unicodedata.category(char) in _UNSAFE} - {"\n"})
        if unsafe:
            return Finding(
                "control character", f"{name} of {outcome.command}", " ".join(f"U+{ord(char):04X}" for char in unsafe)
            )
    return None


def _escaped(kind: str, error: BaseException) -> Finding:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "kubectl_spread" in frame.filename] or frames
    last = f"{own[-1].filename.rpartition('/')[2]}:{own[-1].name}" if own else ""
    text = "".join(traceback.format_exception(error, limit=-12))
    return Finding(kind, f"{type(error).__name__} in {last}", text)


def _peak() -> int:
    """Return the peak memory of this process, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    def end(_signal: int, _frame: FrameType | None) -> None:
        raise HangError

    former = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
