"""Following a cluster: the run of `check` again on what is stored now, whenever something has changed."""

from __future__ import annotations

import concurrent.futures
import math
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Final

from kubectl_spread.errors import SourceError
from kubectl_spread.follow.store import Store, StoredRequests
from kubectl_spread.run import schedulers
from kubectl_spread.run.checkrun import CheckRun
from kubectl_spread.run.live import LiveRun
from kubectl_spread.run.options import CheckOptions
from kubectl_spread.sources.apiserver.clock import elapsed
from kubectl_spread.sources.apiserver.paging import background
from kubectl_spread.sources.apiserver.watch import WatchedCluster

_REST: Final = 3.0
"""An evaluation waits for so many times the length of the last one, so that all of them take a quarter of a core."""
_LOOK: Final = 60.0
"""Seconds between two looks at the API server itself, which an upgrade or another cluster replaces."""
_LOOK_AGAIN: Final = 1.0
"""Seconds between two looks while it may be another one, or does not answer."""
_TICK: Final = 0.05


class Following:
    """One cluster that is followed with the options of a check.

    Attributes:
        store: The lists of the cluster.
    """

    def __init__(self, options: CheckOptions, cluster: WatchedCluster, *, interval: float, events: bool) -> None:
        """Read nothing yet.

        Args:
            options: The options of the check.
            cluster: The connection.
            interval: The least number of seconds between the beginnings of two evaluations.
            events: Whether to read the events about pods that were refused; they are of no revision.

        Raises:
            UsageError: Options contradict each other.
            CombinedError: The scheduler's configuration has errors.
        """
        self._options = options
        self._cluster = cluster
        self._interval = interval
        self._events = events
        self.store = Store(cluster, options.scope(cluster.namespace), schedulers.profiles(options))
        self._again = self._failed = self._expects_gates = False
        self._earliest = -math.inf
        self._looking: Future[None] | None = None
        self._looked_at = elapsed()

    @property
    def unchanged(self) -> bool:
        """Whether an evaluation would give the answer of the last one."""
        return not (self._cluster.changed or self._failed or self._unsure)

    @property
    def due(self) -> bool:
        """Whether to evaluate again: there are changes, and the last evaluation was long enough ago."""
        if self._unsure or elapsed() < self._earliest or self.store.known_at() == -math.inf:
            return False
        return self._cluster.changed or self._failed

    @property
    def _unsure(self) -> bool:
        """Whether the lists may be those of two clusters."""
        return self._cluster.suspect or self._looking is not None

    @contextmanager
    def evaluation(self) -> Iterator[CheckRun]:
        """Evaluate what is stored now; the ``with`` block belongs to the evaluation.

        Raises:
            SourceError: Something else was needed, and could not be read.
        """
        began, again = elapsed(), self._again
        self._cluster.take_changes()
        self._failed = True
        try:
            requests = StoredRequests(self._cluster, self._options, self.store)
            live = LiveRun(
                self._options,
                self._cluster,
                requests,
                again=again,
                events=self._events,
                expects_gates=self._expects_gates,
            )
            yield live.collect()
            self._again, self._expects_gates, self._failed = True, live.needed_gates, False
        finally:
            ended = elapsed()
            # The first evaluation begins with the lists, and most of its length is theirs.
            self._earliest = max(began + self._interval, ended + _REST * (ended - began) * again)

    def wait(self, seconds: float) -> None:
        """Wait until an evaluation may be due, for some seconds at most.

        Raises:
            ForbiddenError: The user may list but not watch a resource.
            SourceError: A watch failed for a reason that does not pass.
        """
        rest = self._earliest - elapsed()
        if self._looking is not None:
            concurrent.futures.wait([self._looking], seconds)
        elif rest > 0 or self._cluster.suspect:
            time.sleep(min(seconds, max(rest, _TICK)))
        self._cluster.wait(0 if rest > 0 or self._unsure else seconds)
        self._look()

    def _look(self) -> None:
        """Look at the API server itself from time to time, in the background, and whenever it may be another one."""
        now = elapsed()
        if self._looking is None and now - self._looked_at > (_LOOK_AGAIN if self._cluster.suspect else _LOOK):
            self._looking, self._looked_at = background(self._cluster.look), now
        if self._looking is not None and self._looking.done():
            looking, self._looking = self._looking, None
            # While the API server is away its watches say so, and it is looked at again later.
            with suppress(SourceError):
                looking.result()
