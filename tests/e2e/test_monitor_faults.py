"""Each state that the monitor publishes is that of a fresh check, whatever the network and the API server do."""

from __future__ import annotations

import difflib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import msgspec
import pytest
import urllib3

from kubectl_spread.follow import following
from kubectl_spread.follow.monitor import Monitor, Published, Telemetry, main_pages, telemetry_pages
from kubectl_spread.follow.server import Servers, listen
from kubectl_spread.render import openmetrics, structured
from kubectl_spread.report import model
from kubectl_spread.run.options import CheckOptions
from kubectl_spread.sources.apiserver import transport, watch
from kubectl_spread.sources.apiserver.paging import background
from kubectl_spread.sources.apiserver.transport import elapsed
from kubectl_spread.sources.apiserver.watch import WatchedCluster
from kubectl_spread.sources.auth.connection import ConnectionFlags
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.components import wait_for
from tests.controlplane.fixtures import require_built
from tests.controlplane.nodes import FakeKubelet
from tests.controlplane.processes import LOOPBACK
from tests.e2e.churn import Churn
from tests.e2e.exact import ExactCluster
from tests.faults.disorder import Disorder
from tests.faults.proxy import Exchange, Proxy, Request, Step, passed
from tests.kubeconfigs import config

pytestmark = [pytest.mark.e2e, pytest.mark.long]

_DEFAULT: Final = "300" if os.environ.get("ALL") else "60"
COMPARISONS: Final = int(os.environ.get("KUBECTL_SPREAD_MONITOR_COMPARISONS", _DEFAULT))
"""The states to compare, a third of them with each of the options."""
SEED: Final = int(os.environ.get("KUBECTL_SPREAD_MONITOR_FIRST_SEED", "1"))
OPTIONS: Final = CheckOptions(all_namespaces=True)
FURTHER: Final = CheckOptions(all_namespaces=True, defaults=True, recreate=True, to_version="1.38")
FIELDS: Final = CheckOptions(all_namespaces=True, field_selector="spec.nodeName!=")
RESTART_EVERY: Final = max(min(40, COMPARISONS // 3), COMPARISONS // 60)
"""Comparisons between two restarts of the API server."""
SILENCE: Final = 3.0
"""Seconds without a byte after which the monitor gives up a connection."""
MAX_AGE: Final = 20.0
PATIENCE: Final = 60.0
"""Seconds to wait for a state. Whether the scheduler still runs plays no part: after an API server has restarted, that
of v1.37.1 takes a pod that was made again on another node for the old one, and ends (UpdatePod in
pkg/scheduler/backend/cache/cache.go)."""
PATHS: Final = ("/metrics", "/report.json", "/", "/readyz")
USERS: Final = {"monitor": ["system:masters"]}
_MOST_LINES: Final = 200


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Return a control plane that keeps all versions, so that the state of each can be listed."""
    require_built()
    directory = tmp_path_factory.mktemp("monitor-faults")
    flags = ("--etcd-compaction-interval=0",)
    with ControlPlane.start(directory, tokens=USERS, extra_flags=flags) as cluster:
        # It lists all pods, and the comparisons need the processor too.
        cluster.kubelet = FakeKubelet(cluster.api, deletions=True, interval=1.0)
        cluster.kubelet.start()
        yield cluster


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the pauses between attempts, and the silence after which a watch is started again."""
    monkeypatch.setattr(transport, "_FIRST_BACKOFF", 0.05)
    monkeypatch.setattr(transport, "LONGEST_BACKOFF", 0.5)
    monkeypatch.setattr(watch, "_SILENCE", SILENCE)
    monkeypatch.setattr(following, "_LOOK", SILENCE)
    monkeypatch.setattr(following, "_LOOK_AGAIN", 0.1)


@contextmanager
def proxied(cluster: ControlPlane, choose: Callable[[Request], Step]) -> Iterator[tuple[Proxy, Path]]:
    """Run a proxy before the API server; yield it with a kubeconfig for it."""
    security = cluster._security
    proxy = Proxy(cluster.api.server, security.authority.certificate, security.serving, choose)
    with proxy.running():
        path = cluster.directory / "kubeconfigs" / "faulty-monitor.json"
        user = {"token": security.tokens["monitor"]}
        path.write_text(json.dumps(config(proxy.url, security.authority.certificate, user)), encoding="utf-8")
        yield proxy, path


class Comparing(Monitor):
    """A monitor that compares each state that it publishes with a fresh check, until enough are compared.

    Attributes:
        exact: The API server without faults.
        restart: Restarts the API server.
        stop: Is set when it is enough.
        compared: The number of states that were compared.
        restarts: The restarts that began.
    """

    exact: ExactCluster
    restart: Callable[[], None]
    stop: threading.Event
    compared = 0
    restarts: list[Future[None]]
    _versions: Mapping[str, str] | None = None

    def refresh(self) -> bool:
        """Publish a state, and compare it unless its versions are those of the last one."""
        evaluated = super().refresh()
        published = self._published
        if published is None or published.report.cluster.resource_versions == self._versions:
            return evaluated
        self._versions = published.report.cluster.resource_versions
        compare(published, self.exact, self._following._options)
        self.compared += 1
        if self.compared % 100 == 0:
            print(time.strftime("%X"), self.compared, "states compared", flush=True)
        if self.compared % RESTART_EVERY == 0:
            self.restarts.append(background(self.restart))
        if self.compared >= COMPARISONS // 3:
            self.stop.set()
        return evaluated


def compare(published: Published, exact: ExactCluster, options: CheckOptions) -> None:
    """Compare a state, and its metrics, with a fresh check at its versions."""
    report = published.report
    run = exact.check(report.cluster.resource_versions, options)
    fresh = run.report()
    if options.to_version:
        assert report.cluster.gates_source == fresh.cluster.gates_source == "metrics"
    fresh = msgspec.structs.replace(fresh, cluster=about(report.cluster, fresh.cluster))
    text = openmetrics.text(fresh, run.running_pods())
    served = published.metrics.decode()
    differences = [
        *compared(structured.json(fresh).splitlines(), structured.json(report).splitlines()),
        *compared(sorted(text.splitlines()), sorted(served.splitlines())),
    ]
    assert not differences, "\n".join([str(report.cluster.resource_versions), *differences[:_MOST_LINES]])


def about(published: model.Cluster, fresh: model.Cluster) -> model.Cluster:
    """Return what a state says about the cluster, with the nodes of a fresh check."""
    nodes = {name: getattr(fresh, name) for name in ("nodes", "node_count", "zone_count", "zones")}
    return msgspec.structs.replace(published, **nodes)


def compared(fresh: list[str], published: list[str]) -> list[str]:
    """Return the differences of lines; it takes much longer to find them than to see that there are none."""
    return [] if fresh == published else [*difflib.unified_diff(fresh, published, "fresh", "published", n=12)]


@pytest.mark.parametrize("options", [OPTIONS, FURTHER, FIELDS], ids=["plain", "further", "fields"])
def test_each_published_state_is_that_of_a_fresh_check(
    cluster: ControlPlane, impatient: None, options: CheckOptions
) -> None:
    disorder = Disorder(SEED)
    with (
        Churn(cluster, SEED, pause=0.1) as churn,
        proxied(cluster, disorder) as (proxy, kubeconfig),
        closing(ExactCluster.connect(ConnectionFlags(kubeconfig=str(cluster.kubeconfig), chunk_size=0))) as exact,
        closing(WatchedCluster.connect(ConnectionFlags(kubeconfig=str(kubeconfig), chunk_size=7))) as watched,
    ):
        monitor = Comparing(options, watched, Telemetry(), interval=0.01, max_age=3600, say=print)
        monitor.exact, monitor.restart, monitor.stop = exact, cluster.restart_apiserver, threading.Event()
        monitor.restarts = []
        # An error at the start would end the monitor.
        disorder.spares_lists.set()
        monitor.start()
        disorder.spares_lists.clear()
        monitor.run(monitor.stop)
        for restart in monitor.restarts:
            restart.result()
        print(monitor.compared, "states compared,", churn.changes, "changes,", len(proxy.requests), "requests")


def prompt(request: Request) -> Step:
    """Pass requests on, and have the API server watch for seconds, so that bookmarks come every few seconds."""

    def watching(exchange: Exchange) -> None:
        exchange.pass_on(exchange.request.with_query(timeoutSeconds="8"))

    return watching if request.watches else passed


@contextmanager
def serving(monitor: Monitor, telemetry: Telemetry) -> Iterator[tuple[str, str]]:
    """Run a monitor with its servers; yield the addresses of both ports."""
    stop = threading.Event()
    sockets = [listen("--listen", f"{LOOPBACK}:0") for _ in range(2)]
    applications = (main_pages(monitor.state), telemetry_pages(monitor.state, telemetry))
    servers = Servers(dict(zip(sockets, applications, strict=True)), ended=stop.set)
    running = background(lambda: monitor.run(stop))
    servers.start()
    main, own = (f"http://{LOOPBACK}:{listening.getsockname()[1]}" for listening in sockets)
    try:
        yield main, own
    finally:
        stop.set()
        running.result()
        servers.stop()


def status(url: str) -> int:
    return urllib3.request("GET", url, retries=3).status


def test_a_state_that_may_be_old_is_not_served(cluster: ControlPlane, impatient: None) -> None:
    """It is withdrawn while nothing comes, although no connection ends, and served again afterwards."""
    telemetry = Telemetry()
    with (
        proxied(cluster, prompt) as (proxy, kubeconfig),
        closing(WatchedCluster.connect(ConnectionFlags(kubeconfig=str(kubeconfig)))) as watched,
    ):
        monitor = Monitor(OPTIONS, watched, telemetry, interval=0.1, max_age=MAX_AGE, say=print)
        monitor.start()
        with serving(monitor, telemetry) as (main, own):
            assert {status(f"{main}{path}") for path in PATHS} == {200}
            proxy.swallows.set()
            wait_for(lambda: status(f"{main}/readyz") == 503, PATIENCE, what="the state is withdrawn")
            assert {status(f"{main}{path}") for path in PATHS} == {503}
            assert (status(f"{own}/readyz"), status(f"{own}/livez"), status(f"{main}/livez")) == (503, 200, 200)
            assert b"kubectl_spread_ready 0.0" in urllib3.request("GET", f"{own}/metrics").data
            proxy.swallows.clear()
            wait_for(lambda: status(f"{main}/readyz") == 200, PATIENCE, what="it is served again")
            assert {status(f"{main}{path}") for path in PATHS} == {200}


def test_connections_that_are_dropped_silently_are_made_again(cluster: ControlPlane, impatient: None) -> None:
    with (
        proxied(cluster, prompt) as (proxy, kubeconfig),
        closing(WatchedCluster.connect(ConnectionFlags(kubeconfig=str(kubeconfig)))) as watched,
    ):
        monitor = Monitor(OPTIONS, watched, Telemetry(), interval=0.1, max_age=MAX_AGE, say=print)
        monitor.start()
        proxy.drop_connections()
        dropped = elapsed()

        def told_again() -> bool:
            monitor._following.wait(0.1)
            monitor.refresh()
            state = monitor.state()
            return state is not None and state.expires_at > dropped + SILENCE + MAX_AGE

        wait_for(told_again, PATIENCE, what="the API server has told the state of each resource again")
