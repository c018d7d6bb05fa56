"""``kubectl spread monitor``: follow a cluster, and serve its current report as metrics and as a page."""

from __future__ import annotations

import signal
import threading
from contextlib import ExitStack, closing
from types import FrameType
from typing import NoReturn

from kubectl_spread.cli import options, output
from kubectl_spread.cli.commandline import EVALUATE, SERVE
from kubectl_spread.errors import UsageError


def _serving(name: str, default: str, metavar: str, about: str) -> options.Decorator:
    return options.option(name, default=default, show_default=True, metavar=metavar, help=about, group=SERVE)


@options.command(
    examples={
        "kubectl spread monitor -A": "Serve the metrics of all namespaces to this machine, at port 8080",
        "kubectl spread monitor -n shop --listen :8080": "Serve those of one namespace to other machines too",
    },
    statuses={
        0: "The monitor was stopped by SIGTERM or SIGINT.",
        2: "The cluster cannot be followed, or the command line is wrong.",
    },
)
@options.following
@options.severity("Serve findings of this severity or higher. [default: info]", EVALUATE)
@_serving(
    "--listen", "127.0.0.1:8080", "[HOST]:PORT", "Serve the report here: /metrics, / and /report.json, /livez, /readyz."
)
@_serving(
    "--telemetry",
    "127.0.0.1:8081",
    "[HOST]:PORT",
    "Serve metrics about the monitor itself here: /metrics, /livez, /readyz.",
)
@options.option(
    "--accept-hosts",
    metavar="REGEX,...",
    help="Accept requests for these host names only. [default: any; at a loopback address: localhost, 127.0.0.1, ::1]",
    group=SERVE,
)
@_serving("--interval", "15s", "TIME", "Evaluate changes at most once in this time; a large cluster takes longer.")
@_serving("--max-age", "3m", "TIME", "Serve no state that the API server has not confirmed for this long.")
@options.connection
def monitor(
    *,
    listen: str,
    telemetry: str,
    accept_hosts: str,
    interval: str,
    max_age: str,
    **parameters: object,
) -> None:
    """Serve the current skew and findings of a cluster as metrics and as a page.

    The cluster is followed by watches, and evaluated again after changes. Nothing is written to it.
    """
    from kubectl_spread.follow import monitor as following  # noqa: PLC0415 - completion of flags does not need it
    from kubectl_spread.follow import server  # noqa: PLC0415 - likewise
    from kubectl_spread.run.options import check_options, options_of  # noqa: PLC0415 - likewise
    from kubectl_spread.sources.apiserver.watch import WatchedCluster  # noqa: PLC0415 - likewise
    from kubectl_spread.sources.auth.connection import ConnectionFlags  # noqa: PLC0415 - likewise

    pause, oldest = _seconds("--interval", interval), _seconds("--max-age", max_age)
    if pause >= oldest:
        raise UsageError(f"--interval {interval} is not shorter than --max-age {max_age}: each state would be too old")
    own, stop = following.Telemetry(), threading.Event()
    with ExitStack() as stack:
        cluster = WatchedCluster.connect(options_of(parameters, ConnectionFlags), output.note, output.progress)
        stack.enter_context(closing(cluster))
        monitored = following.Monitor(
            check_options(parameters), cluster, own, interval=pause, max_age=oldest, say=output.note
        )
        main, side = (
            stack.enter_context(closing(server.listen(option, address)))
            for option, address in (("--listen", listen), ("--telemetry", telemetry))
        )
        hosts, of_side = (server.accepted_hosts(listening, accept_hosts) for listening in (main, side))
        servers = server.Servers(
            {
                main: following.main_pages(monitored.state, hosts),
                side: following.telemetry_pages(monitored.state, own, of_side),
            },
            ended=stop.set,
        )
        _end_by(stop)
        servers.start()
        stack.callback(servers.stop)
        output.note(f"reading the cluster; metrics at {listen}, the monitor's own at {telemetry}")
        monitored.start()
        monitored.run(stop)


def _end_by(stop: threading.Event) -> None:
    """Let SIGINT and SIGTERM end the program with status 0, even while the cluster is read for the first time."""

    def end(_number: int, _frame: FrameType | None) -> NoReturn:
        # Python loses an exception that is raised while an object is freed; the loop ends nevertheless.
        stop.set()
        raise SystemExit(0)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)


def _seconds(option: str, text: str) -> float:
    """Return a duration in seconds.

    Raises:
        UsageError: The text is not a duration above 0.
    """
    from kubectl_spread.sources.auth import connection  # noqa: PLC0415 - completion of flags does not need it

    try:
        seconds = connection.seconds(text)
    except UsageError:
        seconds = 0.0
    if seconds <= 0:
        raise UsageError(f'{option}: "{text}" is not a time above 0 with a unit (write 2s, 3m)')
    return seconds
