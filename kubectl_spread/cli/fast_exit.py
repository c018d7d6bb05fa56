"""End the process at once; freeing all objects one by one would take a second."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Final, NoReturn

_referenced: list[object] = []

_ENDING: Final = (
    "SIGINT",
    "SIGHUP",
    "SIGQUIT",
    "SIGTERM",
    "SIGALRM",
    "SIGUSR1",
    "SIGUSR2",
    "SIGXCPU",
    "SIGVTALRM",
    "SIGPROF",
    "SIGIO",
    "SIGPWR",
    "SIGSTKFLT",
    "SIGBREAK",
)
"""Signals that end a program by default and that it may catch; a platform may lack some.

SIGPIPE and SIGXFSZ are an error of the call that writes.
"""
_SIGNALLED: Final = 128
"""Shells add the number of the signal to this, for the exit status."""


_PAUSE: Final = 0.01
"""Seconds after which a signal is sent again whose exception was lost."""
_WAKING: Final = (0.02, 0.1, 0.5)
"""Seconds between the attempts to wake the main thread."""


class SignalExit(SystemExit):
    """The exit for a signal."""

    def __init__(self, number: int) -> None:
        super().__init__(_SIGNALLED + number)
        self.number = number


def exit_on_signals() -> None:
    """Make signals end the program by ``SystemExit``, so that it removes temporary files and restores the terminal.

    A signal that is ignored, as nohup does with SIGHUP, stays ignored.
    """
    sys.unraisablehook = _send_again
    for name in _ENDING:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)
    if sys.platform != "win32":
        signal.signal(signal.SIGURG, _wake)
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        threading.Thread(target=_wake_main_thread, args=(reader,), daemon=True).start()


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    raise SignalExit(number)


def _wake(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: the handlers of other signals run too."""


def _wake_main_thread(reader: int) -> None:
    """Interrupt the main thread after each signal, so that it runs the handler.

    Python runs handlers in the main thread only. A signal that arrives after Python's last look at signals and before
    the system call that waits, as while the thread gives the lock of the interpreter to another, does not end the wait.
    """
    while signals := os.read(reader, 64):
        if signals.strip(bytes([signal.SIGURG])):
            for pause in _WAKING:
                time.sleep(pause)
                _send(signal.SIGURG)


def _send_again(unraisable: sys.UnraisableHookArgs) -> None:
    """Send a signal again if it came while an object was freed, where Python drops the exception."""
    if not isinstance(unraisable.exc_value, SignalExit):
        sys.__unraisablehook__(unraisable)
        return
    timer = threading.Timer(_PAUSE, _send, [unraisable.exc_value.number])
    timer.daemon = True
    timer.start()


def _send(number: int) -> None:
    if sys.platform == "win32":
        signal.raise_signal(number)
    else:
        # Sent to the main thread, so that it ends a wait of this thread.
        signal.pthread_kill(threading.main_thread().ident or 0, number)


def keep(*objects: object) -> None:
    """Keep references to objects until the program ends, so that they are never freed."""
    _referenced.extend(objects)


def run(program: Callable[[], object]) -> None:
    """Run a program to its ``sys.exit``, and end the process after all other exit handlers.

    Raises:
        SystemExit: The program has ended.
    """
    statuses: list[int] = []

    def end() -> None:
        if statuses and _flushed():
            os._exit(statuses[0])

    # The handler that is registered first is called last.
    atexit.register(end)
    try:
        program()
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            statuses.append(ended.code or 0)
        raise


def _flushed() -> bool:
    """Flush stdout and stderr; return whether that worked, because the interpreter reports a failure itself."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return False
    return True
