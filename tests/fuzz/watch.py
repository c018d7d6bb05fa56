"""Watching a run: what must never happen, whatever the input."""

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

from kubectl_spread.cli import unexpected
from tests.fuzz.outcome import Outcome
from tests.fuzz.targets import Target

LONGEST: Final = 20.0
"""How many seconds a case may take."""
_STATUSES: Final = (0, 1, 2)
_UNSAFE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_FREE: Final = 64 << 20
_FACTOR: Final = 400
"""A case may need so many bytes, and so many times the size of its input, more than any before it."""


class HangError(BaseException):
    """A case takes too long; no ``except Exception`` stops it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What must not happen, and did: ``kind`` is one of a few words, ``place`` tells findings of a kind apart."""

    kind: str
    place: str
    text: str


def watched(target: Target, body: bytes, chance: random.Random, *, longest: float = LONGEST) -> Finding | None:
    """Run a target on an input; return what is wrong with what it does."""
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
    """Return what is wrong with what came out of a run."""
    if isinstance(outcome.error, HangError):
        return _escaped("hang", outcome.error)
    if outcome.error is not None:
        return _escaped("traceback", outcome.error)
    if unexpected.ISSUES.encode() in outcome.stderr:
        # The last handler has hidden it.
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
    """Return the most memory that this process ever had, in bytes."""
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
