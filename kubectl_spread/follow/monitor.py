"""The monitor: publishes the report of a followed cluster for as long as it is certainly true, and its pages."""

from __future__ import annotations

import gc
import gzip
import itertools
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.exposition import choose_encoder, gzip_accepted
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from kubectl_spread import __version__
from kubectl_spread.errors import SourceError
from kubectl_spread.follow.following import Following
from kubectl_spread.follow.server import ANY_HOST, Handler, HostNames, Pages, Request, ServedPage, message
from kubectl_spread.phrases import plural
from kubectl_spread.render import html, openmetrics, structured
from kubectl_spread.report import model, projections
from kubectl_spread.report.model import Report
from kubectl_spread.rules import RULES
from kubectl_spread.rules.model import SelectedRules
from kubectl_spread.run import hints
from kubectl_spread.run.options import CheckOptions, target_for
from kubectl_spread.run.run import CheckRun
from kubectl_spread.sources.apiserver.transport import elapsed
from kubectl_spread.sources.apiserver.watch import WatchedCluster

_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Seconds; a change of some pods takes milliseconds, and one of a node in a cluster of 150,000 pods ten seconds."""
_RESULTS: Final = ("success", "error")


class Telemetry:
    """Counters and gauges about lists, watches and evaluations; stability EXPERIMENTAL."""

    def __init__(self) -> None:
        """Start at 0, in a registry of its own."""
        # Half of the lines would be times at which counters began.
        disable_created_metrics()
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        build = Gauge("kubectl_spread_build_info", "The version of the monitor.", ["version"], registry=registry)
        build.labels(__version__).set(1)
        requests = {"list": "Lists that were read.", "watch": "Watches that were started."}
        self._requests = {
            verb: Counter(f"kubectl_spread_{verb}", about, ["resource", "result"], registry=registry)
            for verb, about in requests.items()
        }
        self._duration = Histogram(
            "kubectl_spread_evaluation_duration_seconds",
            "Time to evaluate what has changed.",
            registry=registry,
            buckets=_BUCKETS,
        )
        self._evaluated_at = Gauge(
            "kubectl_spread_last_evaluation_timestamp_seconds", "When the last evaluation ended.", registry=registry
        )
        self._age = Gauge(
            "kubectl_spread_state_age_seconds",
            "Time since the API server last said what a resource's state is: a list, an event or a bookmark.",
            ["resource"],
            registry=registry,
        )
        self._ready = Gauge(
            "kubectl_spread_ready",
            "1 where the state is younger than --max-age, so that it is served.",
            registry=registry,
        )

    def expect(self, resource: str, age: Callable[[], float]) -> None:
        """Show the age of a resource's state, and its lists and watches from 0 on."""
        self._age.labels(resource).set_function(age)
        for counter in self._requests.values():
            for result in _RESULTS:
                counter.labels(resource, result)

    def show_readiness(self, ready: Callable[[], bool]) -> None:
        """Show whether the state is served."""
        self._ready.set_function(ready)

    def count(self, verb: str, resource: str, *, success: bool) -> None:
        """Count a list or a watch."""
        self._requests[verb].labels(resource, _RESULTS[0] if success else _RESULTS[1]).inc()

    @contextmanager
    def evaluation(self) -> Iterator[None]:
        """Measure an evaluation."""
        with self._duration.time():
            yield
        self._evaluated_at.set(time.time())

    def page(self, accept: str) -> tuple[bytes, str]:
        """Return the page in the format that an Accept header chooses, and its content type."""
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type


_TICK: Final = 1.0
"""The most seconds until a state is withdrawn, and a lost connection is reported."""
_COLLECTED: Final = 100
"""Evaluations between two collections of garbage among all objects."""


class Published(msgspec.Struct, frozen=True, eq=False):
    """One published state.

    Attributes:
        report: Its report.
        metrics: Its metrics, for readers of both text formats.
        compressed: The same in gzip.
        expires_at: The ``elapsed`` after which it may no longer be true.
    """

    report: model.Report
    metrics: bytes
    compressed: bytes
    expires_at: float


class Monitor:
    """One cluster and the current state of its report."""

    def __init__(
        self,
        options: CheckOptions,
        cluster: WatchedCluster,
        telemetry: Telemetry,
        *,
        interval: float,
        max_age: float,
        say: Callable[[str], None],
    ) -> None:
        """Prepare to read.

        Args:
            options: The options for scope and rules.
            cluster: The connection.
            telemetry: Receives the metrics about the monitor itself.
            interval: The least number of seconds between the beginnings of two evaluations.
            max_age: Seconds after which a state that is no longer known to be true is withdrawn.
            say: Receives notes.

        Raises:
            UsageError: An option is not valid.
            CombinedError: The scheduler's configuration has errors.
        """
        _refuse(options)
        self._cluster = cluster
        self._telemetry = telemetry
        self._interval = interval
        self._max_age = max_age
        self._say = say
        self._following = Following(options, cluster, interval=interval, events=False)
        self._published: Published | None = None
        self._published_at = -math.inf
        self._report: model.Report | None = None
        self._lines = b""
        self._messages: list[str] = []
        self._lost = ""
        self._was_ready = False
        cluster.observe = telemetry.count
        telemetry.show_readiness(lambda: self.state() is not None)

    def state(self) -> Published | None:
        """Return the last published state; None if there is none yet, or it may no longer be true."""
        published = self._published
        return None if published is None or elapsed() > published.expires_at else published

    def start(self) -> None:
        """Read the cluster, and publish the first state.

        Raises:
            UsageError: The version of the API server is not supported.
            ForbiddenError: The user may not list something that is needed.
            SourceError: Something cannot be read for another reason.
        """
        self._cluster.version()
        self._following.store.follow_all(self._telemetry.expect)
        self._evaluate()
        self._tell_readiness()

    def run(self, stop: threading.Event) -> None:
        """Publish the states of the cluster until ``stop`` is set.

        Raises:
            SourceError: Watching failed for a reason that does not pass.
        """
        for number in itertools.count(1):
            self._following.wait(min(_TICK, self._interval))
            if stop.is_set():
                return
            self._tell_connection()
            if self.refresh():
                _collect(everything=number % _COLLECTED == 0)

    def refresh(self) -> bool:
        """Bring the published state up to date, as far as that is due; tell whether it was evaluated."""
        following = self._following
        # Read before the question whether there are changes, so that they are those of the last evaluation.
        known_at, versions = following.store.known_at(), following.store.versions()
        evaluates = following.due
        if evaluates:
            try:
                self._evaluate()
            except SourceError:
                # The API server is away, and its watches say so.
                evaluates = False
        elif known_at == -math.inf:
            self._published = None
        elif self._report is not None and following.unchanged and elapsed() >= self._published_at + self._interval:
            self._publish(self._report, known_at, versions)
        self._tell_readiness()
        return evaluates

    def _evaluate(self) -> None:
        known_at = self._following.store.known_at()
        with self._telemetry.evaluation(), self._following.evaluation() as run:
            # A list that the run did not need is as new as the others.
            versions = {**self._following.store.versions(), **run.resource_versions}
            self._report = run.report()
            self._tell(run)
            self._lines = openmetrics.lines(openmetrics.of_report(self._report, run.running_pods()))
            self._publish(self._report, known_at, versions)

    def _publish(self, report: model.Report, known_at: float, versions: Mapping[str, str]) -> None:
        """Publish a report as one of these resourceVersions; only its header depends on them."""
        now, age = self._cluster.now(), timedelta(seconds=elapsed() - known_at)
        read_at = report.cluster.read_at if now is None else projections.timestamp(now - age)
        cluster = replace(report.cluster, read_at=read_at, resource_versions=dict(versions))
        totals = openmetrics.lines(openmetrics.of_totals(cluster, report.summary))
        metrics = totals + self._lines + openmetrics.END
        self._published = Published(
            replace(report, cluster=cluster), metrics, gzip.compress(metrics, compresslevel=1), known_at + self._max_age
        )
        self._published_at = elapsed()

    def _tell(self, run: CheckRun) -> None:
        """Print the messages of a run that the last one did not have."""
        hints.add(run)
        before, self._messages = self._messages, [*run.problems, *run.notes]
        for text in self._messages:
            if text not in before:
                self._say(text)

    def _tell_readiness(self) -> None:
        """Print when the state is served, and when it is not any more."""
        state = self.state()
        if state and not self._was_ready:
            self._say(f"ready: {plural(state.report.summary.pods, 'pod')} evaluated")
        elif self._was_ready and not state:
            self._say("not ready: the API server has not confirmed the state for longer than --max-age")
        self._was_ready = state is not None

    def _tell_connection(self) -> None:
        """Print once that the connection is lost, and once that it is back."""
        lost = self._cluster.lost
        if lost and not self._lost:
            self._say(f"the connection is lost, and tried again: {lost}")
        if self._lost and not lost:
            self._say("reconnected")
        self._lost = lost


def _refuse(options: CheckOptions) -> None:
    """Refuse options before anything is sent; which feature gates there are depends on the version of the server.

    Raises:
        UsageError: An option is not valid.
    """
    SelectedRules(RULES, options.selection)
    if options.gate_overrides and options.minor is None:
        options = replace(options, feature_gates="")
    target_for(options, None).facts(options)


def _collect(*, everything: bool) -> None:
    """Collect the garbage of an evaluation; the objects that are left are not looked at again by the next collections.

    While garbage is collected no scrape is answered. With 150,000 pods a collection among all objects takes a second,
    and Python's own would come every few seconds, so the command line leaves that off.
    """
    if everything:
        gc.unfreeze()
    gc.collect()
    gc.freeze()


_OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
_VARY: Final = {"vary": "accept, accept-encoding"}
_GZIP: Final = {"content-encoding": "gzip"}
State: TypeAlias = Callable[[], Published | None]
"""Returns the current state; None if there is none."""


class _Document:
    """A document about the current state, which is rendered when somebody asks for it first."""

    def __init__(self, current: State, render: Callable[[Report], str], content_type: str) -> None:
        self._current = current
        self._render = render
        self._content_type = content_type
        self._lock = threading.Lock()
        self._of: Published | None = None
        self._body = b""

    def page(self, request: Request) -> ServedPage:
        """Return the document; 503 where there is no current state."""
        with self._lock:
            state = self._current()
            if state is not self._of:
                # The old document is forgotten first: that of a large cluster has tens of megabytes.
                self._of, self._body = state, b""
                self._body = b"" if state is None else gzip.compress(self._render(state.report).encode(), 1)
            if state is None:
                return _unready()
            if gzip_accepted(request.accept_encoding):
                return ServedPage(200, self._content_type, self._body, {**_VARY, **_GZIP})
            return ServedPage(200, self._content_type, gzip.decompress(self._body), _VARY)


def main_pages(current: State, hosts: HostNames = ANY_HOST) -> Pages:
    """Return the pages about the cluster, for requests of these hosts."""

    def metrics(request: Request) -> ServedPage:
        state = current()
        if state is None:
            return _unready()
        openmetrics = choose_encoder(request.accept)[1].startswith("application/openmetrics-text")
        content_type = _OPENMETRICS if openmetrics else _TEXT
        if gzip_accepted(request.accept_encoding):
            return ServedPage(200, content_type, state.compressed, {**_VARY, **_GZIP})
        return ServedPage(200, content_type, state.metrics, _VARY)

    documents = {
        "/": _Document(current, html.page, "text/html; charset=utf-8"),
        # Indented it would be twice as large.
        "/report.json": _Document(current, structured.json_line, "application/json"),
    }
    return Pages(
        {"/metrics": metrics, **_health(current)},
        {path: document.page for path, document in documents.items()},
        hosts=hosts,
    )


def telemetry_pages(current: State, telemetry: Telemetry, hosts: HostNames = ANY_HOST) -> Pages:
    """Return the pages about the monitor itself, for requests of these hosts."""

    def metrics(request: Request) -> ServedPage:
        body, content_type = telemetry.page(request.accept)
        return ServedPage(200, content_type, body)

    return Pages({"/metrics": metrics, **_health(current)}, hosts=hosts)


def _health(current: State) -> dict[str, Handler]:
    return {
        "/livez": lambda _: message(200, "ok"),
        "/readyz": lambda _: message(200, "ok") if current() else _unready(),
    }


def _unready() -> ServedPage:
    return message(503, "no current state: nothing was read yet, or the state is older than --max-age")
