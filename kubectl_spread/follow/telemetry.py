"""Telemetry: the monitor's metrics about itself, on a port of their own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.exposition import choose_encoder
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from kubectl_spread import __version__

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
        self._requests = {
            "list": Counter("kubectl_spread_list", "Lists that were read.", ["resource", "result"], registry=registry),
            "watch": Counter(
                "kubectl_spread_watch", "Watches that were started.", ["resource", "result"], registry=registry
            ),
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
