"""The monitor: follows a cluster, evaluates what changes, and publishes each state."""

from __future__ import annotations

import gc
import itertools
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from kubectl_spread.app import schedulers
from kubectl_spread.app.checkrun import ClusterIdentity, Nodes, cluster_header
from kubectl_spread.app.hints import unknown_keys
from kubectl_spread.app.monitoring.answers import Answers
from kubectl_spread.app.monitoring.mirrored import MirrorStore, mirrored
from kubectl_spread.app.monitoring.telemetry import Telemetry
from kubectl_spread.app.options import CheckOptions
from kubectl_spread.app.target_version import TargetVersion, target_for
from kubectl_spread.diagnosis import gates
from kubectl_spread.errors import SourceError
from kubectl_spread.kube import features
from kubectl_spread.monitor import current
from kubectl_spread.monitor.current import CurrentReport
from kubectl_spread.monitor.world import World
from kubectl_spread.phrases import plural
from kubectl_spread.render.openmetrics.exposition import Exposition, MetricsPage
from kubectl_spread.report import model
from kubectl_spread.rules import RULES
from kubectl_spread.rules.selection import SelectedRules
from kubectl_spread.sources.apiserver.cluster import ServerVersion
from kubectl_spread.sources.apiserver.paging import background
from kubectl_spread.sources.apiserver.resources import BUDGETS, NODES
from kubectl_spread.sources.apiserver.watch import WatchedCluster

_LOOK: Final = 60.0
"""Seconds between two looks at the version of the API server, which an upgrade changes."""
_GIVES_WAY: Final = 0.1
"""The most seconds of each refresh in which answers have precedence."""
_NODES_REST: Final = 3.0
"""Changes of nodes wait for so many times the time that the evaluation with the last ones took."""
_COLLECTED: Final = 1_000
"""Intervals between two collections of garbage among all objects."""


class Published(msgspec.Struct, frozen=True, eq=False):
    """One published state.

    Attributes:
        metrics: Its metrics.
        parts: The parts of its report.
        cluster: The cluster, with the resourceVersion of each resource.
        skipped: The number of pods in scope that were not evaluated, by reason.
        expires_at: The ``time.monotonic`` after which it may no longer be true.
    """

    metrics: MetricsPage
    parts: Sequence[model.Report]
    cluster: model.Cluster
    skipped: Mapping[str, int]
    expires_at: float

    def report(self) -> model.Report:
        """Return the whole report."""
        return current.merged(self.parts, self.cluster, self.skipped)


class _Server(msgspec.Struct, frozen=True):
    """What was read of the API server itself; the gates are None where they were not read, or may not be read."""

    version: ServerVersion
    gates: Mapping[str, bool] | None
    gates_read: bool
    uid: str


class Monitor:
    """One cluster and the current state of its report.

    Attributes:
        answers: The answers that are being sent; evaluation gives way to them.
    """

    _server: _Server
    _current: CurrentReport

    def __init__(
        self,
        options: CheckOptions,
        cluster: WatchedCluster,
        telemetry: Telemetry,
        *,
        max_age: float,
        say: Callable[[str], None],
    ) -> None:
        """Prepare to read.

        Args:
            options: The options for scope and rules.
            cluster: The connection.
            telemetry: Receives the metrics about the monitor itself.
            max_age: Seconds after which a state that is no longer known to be true is withdrawn.
            say: Receives notes.

        Raises:
            UsageError: An option is not valid.
            CombinedError: The scheduler's configuration has errors.
        """
        self._options = options
        self._selected = SelectedRules(RULES, options.selection)
        _refuse(options)
        self._cluster = cluster
        self._telemetry = telemetry
        self.answers = Answers()
        self._max_age = max_age
        self._say = say
        self._scope = options.scope(cluster.namespace)
        self._world = World(self._scope, schedulers.profiles(options))
        self._lock = threading.Lock()
        self._exposition = Exposition()
        self._stores: Mapping[str, MirrorStore[Any]] = {}
        self._published: Published | None = None
        self._looked_at = time.monotonic()
        self._looking: Future[_Server] | None = None
        self._lost = ""
        self._was_ready = False
        self._nodes_rest_until = 0.0
        cluster.observe = telemetry.count
        telemetry.show_readiness(lambda: self.state() is not None)

    def state(self) -> Published | None:
        """Return the last published state; None if there is none yet, or it may no longer be true."""
        published = self._published
        return None if published is None or time.monotonic() > published.expires_at else published

    def start(self) -> None:
        """Read the cluster, and publish the first state.

        Raises:
            UsageError: The version of the API server is not supported.
            ForbiddenError: The user may not list something that is needed.
            SourceError: Something cannot be read for another reason.
        """
        self._server = _Server(self._cluster.version(), None, gates_read=False, uid=self._cluster.uid())
        target_version = self._target_version()
        for text in (*target_version.problems, *target_version.warnings):
            self._say(text)
        facts = target_version.facts(self._options)
        self._current = CurrentReport(self._world, facts, self._selected, self._options.kubectl_flags)
        self._stores = mirrored(self._cluster, self._world, self._lock, self._scope.namespace)
        if BUDGETS.plural not in self._stores:
            self._say(f"this user may not list {BUDGETS.full_name}: budgets may forbid what a fix deletes")
        for resource, store in self._stores.items():
            self._telemetry.expect(resource, store.age)
        with self._lock:
            self._evaluate()
            unanswered = unknown_keys(self._options, self._world.nodes, listed=True)
        for text in unanswered:
            self._say(text)
        if self._wants_gates():
            self._judge_by(self._look(wants_gates=True))
        self.refresh()
        _collect()

    def run(self, stop: threading.Event, interval: float) -> None:
        """Publish a state after each interval in seconds until ``stop`` is set.

        Raises:
            SourceError: Watching failed for a reason that does not pass.
        """
        pause = interval
        for number in itertools.count(1):
            if stop.wait(pause):
                return
            began = time.monotonic()
            self._cluster.wait(0)
            self._tell_connection()
            self._look_again()
            self.refresh()
            _collect(everything=number % _COLLECTED == 0)
            # While changes are many, their evaluation takes a part of the interval.
            pause = max(interval / 4, interval - (time.monotonic() - began))

    def refresh(self) -> None:
        """Evaluate what has changed, and publish the state; while a list is read there is none to publish."""
        with self._lock:
            if not all(store.mirror.complete for store in self._stores.values()):
                # Held events would fill the memory until the list is complete.
                self._stores[NODES.plural].release()
                self._tell_readiness(0)
                return
            self._take_nodes_and_evaluate()
            known_at = min(store.known_at for store in self._stores.values())
            parts, skipped, header = self._current.parts(), self._world.skipped, self._header(known_at)
            summary = self._current.summary()
        metrics = self._exposition.publish(header, summary)
        self._published = Published(metrics, parts, header, skipped, known_at + self._max_age)
        self._tell_readiness(summary.pods)

    def _take_nodes_and_evaluate(self) -> None:
        """Evaluate what has changed, with the changes of nodes if these may come already.

        A changed node may concern everything. So that nodes which change all the time leave time for pods, their next
        changes wait for some times the time that these took.
        """
        began = time.monotonic()
        takes = began >= self._nodes_rest_until and self._stores[NODES.plural].release()
        self._evaluate()
        if takes:
            ended = time.monotonic()
            self._nodes_rest_until = ended + min(_NODES_REST * (ended - began), self._max_age / 4)

    def _evaluate(self) -> None:
        """Evaluate what has changed, and render its metrics."""
        with self._telemetry.evaluation():
            let_pass = self.answers.let_pass(_GIVES_WAY)
            refreshed = self._current.refresh(let_pass)
            for group in refreshed.gone:
                self._exposition.remove(group)
            for group in refreshed.evaluated:
                let_pass()
                self._exposition.put(group, group.part, group.running_pods)

    def _target_version(self) -> TargetVersion:
        return target_for(self._options, self._server.version.behaves_as, self._server.gates)

    def _header(self, known_at: float) -> model.Cluster:
        now, age = self._cluster.now(), timedelta(seconds=time.monotonic() - known_at)
        identity = ClusterIdentity(
            context=self._cluster.context,
            name=self._cluster.name,
            uid=self._server.uid,
            read_at=None if now is None else now - age,
            server_version=self._server.version.text,
        )
        return cluster_header(
            self._target_version(),
            identity,
            Nodes(self._world.nodes, self._world.nodes_known, self._world.evaluated_on),
            flag_name=self._options.cluster_name,
            namespace=self._scope.namespace,
            resource_versions={resource: store.mirror.version for resource, store in self._stores.items()},
        )

    def _wants_gates(self) -> bool:
        """Tell whether an answer may depend on feature gates that the version does not decide."""
        if self._options.minor is not None:
            return False
        target_version = self._target_version()
        decide_counts = gates.decide_counts(target_version.minor)
        return bool(target_version.upgrade) or decide_counts or self._current.needs_gates

    def _look(self, *, wants_gates: bool) -> _Server:
        """Read what was not read since the connection was lost."""
        version = self._cluster.version()
        served = self._cluster.feature_gates() if wants_gates else None
        if served is not None and not served.keys() >= set(features.merge_gates(self._target_version().minor)):
            served = None
        return _Server(version, served, gates_read=wants_gates, uid=self._cluster.uid())

    def _look_again(self) -> None:
        """Look at the API server from time to time, in the background; evaluate everything by another version."""
        wants_gates, now = self._wants_gates(), time.monotonic()
        overdue = now - self._looked_at > _LOOK or (wants_gates and not self._server.gates_read)
        if self._looking is None and overdue:
            self._cluster.forget_version()
            self._looking, self._looked_at = background(lambda: self._look(wants_gates=wants_gates)), now
        if self._looking is not None and self._looking.done():
            future, self._looking = self._looking, None
            # While the API server is away its watches say so, and the version is read again later.
            with suppress(SourceError):
                self._judge_by(future.result())

    def _judge_by(self, server: _Server) -> None:
        if server != self._server:
            self._server = server
            self._current.set_context(self._target_version().facts(self._options))

    def _tell_readiness(self, pods: int) -> None:
        """Print when the state is served, and when it is not any more."""
        ready = self.state() is not None
        if ready and not self._was_ready:
            self._say(f"ready: {plural(pods, 'pod')} evaluated")
        elif self._was_ready and not ready:
            self._say("not ready: the API server has not confirmed the state for longer than --max-age")
        self._was_ready = ready

    def _tell_connection(self) -> None:
        """Print once that the connection is lost, and once that it is back."""
        lost = self._cluster.lost
        if lost and not self._lost:
            self._say(f"the connection is lost, and tried again: {lost}")
        if self._lost and not lost:
            self._say("reconnected")
            # The API server may be another one than before.
            self._looked_at = -math.inf
        self._lost = lost


def _refuse(options: CheckOptions) -> None:
    """Refuse options before anything is sent; which feature gates there are depends on the version of the server.

    Raises:
        UsageError: An option is not valid.
    """
    if options.gate_overrides and options.minor is None:
        options = replace(options, feature_gates="")
    target_for(options, None).facts(options)


def _collect(*, everything: bool = False) -> None:
    """Collect the garbage of an interval; the objects that are left are not looked at again by the next collections.

    While garbage is collected no scrape is answered. With 150,000 pods a collection among all objects takes a second,
    and Python's own would come every few seconds, so the command line leaves that off.
    """
    if everything:
        gc.unfreeze()
    gc.collect()
    gc.freeze()
