"""The mixin in a Prometheus that scrapes a real monitor of a real cluster: healthy, then with faults, then away.

The rules are those of the mixin, but alerts fire after a second.
"""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.builders import Json
from tests.commands import SPREAD
from tests.controlplane.cluster import ControlPlane
from tests.e2e import alarming, consumers
from tests.e2e.consumers import Page, Prometheus
from tests.e2e.faulty import Faulty
from tests.e2e.monitored import RunningMonitor, monitoring
from tests.e2e.spread import Plugin
from tests.e2e.users import allow
from tests.faults import steps
from tests.faults.proxy import passed
from tests.mixin import rendering
from tests.mixin.queries import choices, expressions, substituted

pytestmark = pytest.mark.e2e

_DURATIONS: Final = (
    *("skewFor", "blockedFor", "pendingFor", "staleSelectorFor", "oneDomainFor", "errorFor", "notCheckedFor"),
    *("monitorFor", "listsFailFor", "reportOldFor", "keepFiringFor"),
)
_MAX_AGE: Final = 90
"""Seconds; an API server sends a bookmark each minute."""
_FILE: Final = "/kubectl_spread.prom"
_BOUND_PODS: Final = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
_TELLING: Final = ("workload", "cluster", "topology_key", "code", "resource", "reason")
"""The labels that tell alerts of one name apart."""
Alert = tuple[str, ...]
"""The name of an alert, and these labels."""
FAULTS: Final[set[Alert]] = {
    ("KubeSpreadSkew", "skewed", "east", "topology.kubernetes.io/zone"),
    ("KubeSpreadBlocked", "capped", "east", "SPR303"),
    ("KubeSpreadPodsPending", "capped", "east"),
    ("KubeSpreadStaleSelector", "stale", "east", "SPR101"),
    ("KubeSpreadAllInOneDomain", "east"),
    ("KubeSpreadError", "refused", "east", "SPR202"),
    # What a cron job wrote about another cluster, whose nodes it may not list.
    ("KubeSpreadNotChecked", "west", "forbidden"),
    ("KubeSpreadReportOld", "west"),
}


class Watched(NamedTuple):
    """A cluster, its monitor, and a Prometheus that scrapes both ports of it and a file."""

    cluster: ControlPlane
    monitor: RunningMonitor
    prometheus: Prometheus
    pages: dict[str, Page]

    def firing(self) -> set[Alert]:
        """Return the alerts that fire."""
        return _firing(self.prometheus)


def _firing(prometheus: Prometheus) -> set[Alert]:
    return {
        (alert["labels"]["alertname"], *(alert["labels"][label] for label in _TELLING if label in alert["labels"]))
        for alert in prometheus.alerts()
        if alert["state"] == "firing"
    }


@pytest.fixture(scope="module")
def watched(own_control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """Return a healthy cluster under observation."""
    cluster, directory = own_control_plane, tmp_path_factory.mktemp("alerts")
    pages: dict[str, Page] = {_FILE: ("text/plain", "")}
    cluster.add_nodes()
    alarming.make_healthy(cluster)
    environment = Plugin(directory / "plugins").on(cluster).environment
    with (
        monitoring(environment, "-A", "--interval=200ms", f"--max-age={_MAX_AGE}s") as monitor,
        consumers.serving_pages(pages) as file,
        consumers.prometheus(directory, _jobs(monitor, file), interval="1s", rules=_rules(directory)) as running,
    ):
        yield Watched(cluster, monitor, running, pages)


def _rules(directory: Path) -> Path:
    """Write the rules with short times."""
    rules = directory / "alerts.yaml"
    durations = dict.fromkeys(_DURATIONS, "1s")
    rules.write_text(rendering.alerts(**durations, stateAgeSeconds=_MAX_AGE), encoding="utf-8")
    return rules


def _jobs(monitor: RunningMonitor, file: str) -> dict[str, Json]:
    return {"kubectl-spread": _job("east", *monitor.addresses), "node": {**_job("west", file), "metrics_path": _FILE}}


def _job(cluster: str, *targets: str) -> Json:
    return {"static_configs": [{"targets": targets, "labels": {"cluster": cluster}}]}


@pytest.fixture(scope="module")
def faulty(watched: Watched) -> Watched:
    """Return the cluster with the faults, and the file."""
    allow(watched.cluster, "blind", _BOUND_PODS)
    blind = watched.cluster.environment(watched.cluster.kubeconfig_for("blind"))
    command = [str(SPREAD), "check", "-A", "-o", "openmetrics"]
    written = subprocess.run(command, env=blind, check=False, stdout=subprocess.PIPE, text=True)
    watched.pages[_FILE] = ("text/plain", re.sub(r"(read_timestamp_seconds) (\d+)", _hours_ago, written.stdout))
    alarming.make_harmless(watched.cluster)
    alarming.make_faults(watched.cluster)
    return watched


def _hours_ago(line: re.Match[str]) -> str:
    return f"{line[1]} {int(line[2]) - 7200}"


def test_nothing_fires_on_a_healthy_cluster(watched: Watched) -> None:
    """The first evaluation may precede the first scrape, when there is no report yet."""
    scrapes = "count_over_time(kube_spread_info[1m]) > 5"
    watched.prometheus.wait_until(lambda: watched.prometheus.query(scrapes))
    assert watched.firing() == set()
    assert watched.prometheus.query('ALERTS{alertname!="KubeSpreadReportMissing"}[1m]') == []


def test_each_fault_fires_its_alert_and_no_other(faulty: Watched) -> None:
    """Nor does a workload whose pods wait for CPU, or whose next pod would be refused."""
    waiting = 'kube_spread_constraint_pending_pods{workload="hungry"} == 1'
    harmless = f'{waiting} or kube_spread_finding{{workload="at-limit", code="SPR303"}}'
    faulty.prometheus.wait_until(lambda: len(faulty.prometheus.query(harmless)) == 2 and faulty.firing() == FAULTS)


@pytest.mark.parametrize("query", expressions())
def test_each_query_of_the_dashboard_returns_data(faulty: Watched, query: str) -> None:
    faulty.prometheus.wait_until(lambda: numbers(faulty.prometheus, query))


@pytest.mark.parametrize(("label", "choice"), [("cluster", "east"), ("namespace", "shop"), ("workload", "web")])
def test_each_variable_of_the_dashboard_has_choices(faulty: Watched, label: str, choice: str) -> None:
    series = faulty.prometheus.query(substituted(choices()[label]))
    assert choice in {each["metric"].get(label) for each in series}
    assert len(choices()) == 3


def numbers(prometheus: Prometheus, query: str) -> list[str]:
    """Return the values of a query, without those that are not numbers."""
    values = [series["value"][1] for series in prometheus.query(substituted(query))]
    return [value for value in values if value != "NaN"]


def test_an_annotation_ends_an_alert(faulty: Watched) -> None:
    """As docs/alerts.md says. Pods on one node are in one zone too."""
    packed = {("KubeSpreadAllInOneDomain", "east")}
    annotate = ("annotate", "deploy/packed", "-n", alarming.NAMESPACE)
    faulty.prometheus.wait_until(lambda: faulty.firing() == FAULTS)
    faulty.cluster.kubectl(*annotate, "kubectl-spread/ignore=SPR501,SPR502")
    faulty.prometheus.wait_until(lambda: faulty.firing() == FAULTS - packed)
    faulty.cluster.kubectl(*annotate, "kubectl-spread/ignore-")
    faulty.prometheus.wait_until(lambda: faulty.firing() == FAULTS)


def test_a_monitor_without_its_api_server_fires_alerts_and_ends_the_others(faulty: Watched) -> None:
    """Alerts about workloads must not last when nobody knows whether they are still true."""
    away = {("KubeSpreadReportMissing", "east"), ("KubeSpreadStateOld", "east")}
    of_the_file = {alert for alert in FAULTS if "west" in alert}
    faulty.cluster._server.stop()
    try:
        faulty.prometheus.wait_until(lambda: faulty.firing() == away | of_the_file, patience=_MAX_AGE + 30)
    finally:
        # Later modules use the same cluster.
        faulty.cluster.restart_apiserver()


def test_lists_that_fail_are_named(behind: Faulty, tmp_path: Path) -> None:
    """A watch of nodes ends, the next is refused because its version is too old, and every list after it fails.

    The monitor still serves its last state, which is not too old yet.
    """
    ended = threading.Event()
    gone = steps.status(410, "Expired", "too old resource version")
    failing = steps.status(500, "InternalError", "etcd is away")
    behind.proxy.script("nodes", passed, lambda watch: watch.pass_on(until=ended), gone, *[failing] * 500)
    with monitoring(behind.spread.environment, "-A", "--request-timeout=2s") as monitor:
        ended.set()
        jobs = {"kubectl-spread": _job("east", *monitor.addresses)}
        with consumers.prometheus(tmp_path, jobs, interval="1s", rules=_rules(tmp_path)) as running:
            running.wait_until(lambda: _firing(running) == {("KubeSpreadListsFail", "east", "nodes")})
