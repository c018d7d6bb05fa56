"""``check`` with a clock at its phases: where the wall time of a check goes.

Run as ``python -m benchmarks.phases check -A``, it prints the seconds of each phase as JSON, the last line on stderr.
A request in the background counts in the phase that waits for it. ``--processor`` before the command measures the
processor time of these threads instead.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final

_PROCESSOR: Final = "--processor"
_NOW: Final = time.thread_time if _PROCESSOR in sys.argv else time.perf_counter
_IN_A_THREAD: Final = "_read_pods"
"""The function that the main thread waits for while another one runs it."""
_BEGIN: Final = _NOW()


class Clock:
    """Seconds of each phase; an outer phase does not contain the seconds of a phase inside it."""

    def __init__(self) -> None:
        """Start without phases."""
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._inner = [0.0]
        self._threads = {threading.main_thread()}

    def at(self, owner: Any, name: str, phase: str) -> None:
        """Add the time in a function, which is an attribute of a module or class, to a phase."""
        attribute = getattr(owner, name)
        function: Callable[..., Any] = getattr(attribute, "__func__", attribute)

        def timed(*arguments: Any, **options: Any) -> Any:
            if name == _IN_A_THREAD:
                self._threads.add(threading.current_thread())
            if threading.current_thread() not in self._threads:
                return function(*arguments, **options)
            self._inner.append(0.0)
            begin = _NOW()
            try:
                return function(*arguments, **options)
            finally:
                seconds = _NOW() - begin
                self.seconds[phase] += seconds - self._inner.pop()
                self._inner[-1] += seconds

        setattr(owner, name, classmethod(timed) if function is not attribute else timed)


def main() -> None:
    """Run the command line with the clock at its phases."""
    from kubectl_spread.audit.snapshot.snapshot import Snapshot  # noqa: PLC0415 - imports are a phase
    from kubectl_spread.cli import formats  # noqa: PLC0415
    from kubectl_spread.cli import main as command  # noqa: PLC0415
    from kubectl_spread.render import table  # noqa: PLC0415
    from kubectl_spread.run import live  # noqa: PLC0415
    from kubectl_spread.run.requests import Requests  # noqa: PLC0415
    from kubectl_spread.run.run import CheckRun  # noqa: PLC0415
    from kubectl_spread.sources.apiserver import responses  # noqa: PLC0415
    from kubectl_spread.sources.apiserver.cluster import LiveCluster  # noqa: PLC0415

    clock = Clock()
    clock.seconds["start"] = _NOW() - _BEGIN
    clock.at(LiveCluster, "connect", "connect")
    clock.at(Requests, "_read_pods", "decode")
    clock.at(Future, "result", "list")
    clock.at(responses.ListDecoder, "page", "parse")
    clock.at(Snapshot, "add_sparse", "group")
    clock.at(live.LiveRun, "_nodes", "owners and nodes")
    clock.at(live.LiveRun, "_owners", "owners and nodes")
    clock.at(live, "evaluate", "evaluate")
    clock.at(CheckRun, "report", "rules")
    clock.at(table, "check", "render")
    clock.at(formats, "write", "render")
    sys.argv = [argument for argument in sys.argv if argument != _PROCESSOR]
    try:
        command()
    finally:
        print(json.dumps(clock.seconds), file=sys.stderr)


if __name__ == "__main__":
    main()
