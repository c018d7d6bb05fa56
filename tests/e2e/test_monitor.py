"""``kubectl spread monitor`` of a real API server serves what a fresh check prints."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse

from kubectl_spread.kube.features import PRE_RELEASES
from tests.builders import Json, constraint, selector
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import deployment
from tests.e2e.monitored import MONITOR, PATIENCE, RunningMonitor, monitoring
from tests.e2e.spread import Plugin, Spread
from tests.e2e.users import allow
from tests.e2e.workloads import wait_for_rollout

pytestmark = pytest.mark.e2e

OF_THE_MOMENT = ("kube_spread_read_timestamp_seconds ",)
OPENMETRICS = {"Accept": "application/openmetrics-text;version=1.0.0", "Accept-Encoding": "gzip"}
NAMESPACED = ["pods", "persistentvolumeclaims", "replicationcontrollers"]


@pytest.fixture(scope="module")
def cluster(own_control_plane: ControlPlane) -> ControlPlane:
    own_control_plane.add_nodes(("a", "b", "c"), per_zone=2)
    own_control_plane.apply(web(4))
    wait_for_rollout(own_control_plane, "deployment/web", "default")
    return own_control_plane


@pytest.fixture(scope="module")
def spread(cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Spread:
    return Plugin(tmp_path_factory.mktemp("plugin")).on(cluster)


@pytest.fixture(scope="module")
def monitor(spread: Spread) -> Iterator[RunningMonitor]:
    with monitoring(spread.environment, "-A", "--interval=200ms") as running:
        yield running


def web(replicas: int) -> Json:
    spread = constraint(selects=selector({"app": "web"}), match=["pod-template-hash"])
    return deployment("web", [spread], replicas=replicas, labels={"app": "web"}, namespace="default")


def lines(metrics: str) -> list[str]:
    """Return the lines that do not depend on the time."""
    return sorted(line for line in metrics.splitlines() if line and not line.startswith((*OF_THE_MOMENT, "# EOF")))


def lasting(report: Json) -> Json:
    """Return a report without what differs between two lists of the same objects."""
    cluster = {key: part for key, part in report["cluster"].items() if key not in ("readAt", "resourceVersions")}
    return {**report, "cluster": cluster}


@pytest.mark.parametrize("replicas", [6, 3])
def test_it_serves_what_a_check_prints(
    cluster: ControlPlane, monitor: RunningMonitor, spread: Spread, replicas: int
) -> None:
    cluster.apply(web(replicas))
    wait_for_rollout(cluster, "deployment/web", "default")
    metrics = lines(spread("check", "-A", "-o", "openmetrics").stdout)
    monitor.until(lambda: lines(monitor.metrics()) == metrics)
    report = lasting(json.loads(spread("check", "-A", "-o", "json").stdout))
    monitor.until(lambda: lasting(json.loads(monitor.get("/report.json").text)) == report)


def test_the_page_shows_the_workloads(monitor: RunningMonitor) -> None:
    page = monitor.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "web" in page.text


def test_metrics_have_the_format_and_the_coding_that_a_scraper_accepts(monitor: RunningMonitor) -> None:
    plain = monitor.get("/metrics")
    assert plain.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    openmetrics = monitor.get("/metrics", headers=OPENMETRICS)
    assert openmetrics.headers["content-type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert openmetrics.headers["content-encoding"] == "gzip"
    assert {family.name for family in parse(plain.text)} == {
        family.name for family in parse_openmetrics(openmetrics.text)
    }


def test_its_own_metrics_are_on_the_second_port(monitor: RunningMonitor) -> None:
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in parse(monitor.get("/metrics", telemetry=True).text)
        for sample in family.samples
    }
    assert samples["kubectl_spread_list_total", ("resource", "pods"), ("result", "success")] == 1
    assert samples["kubectl_spread_watch_total", ("resource", "nodes"), ("result", "error")] == 0
    assert samples["kubectl_spread_state_age_seconds", ("resource", "deployments")] < PATIENCE * 2
    assert samples[("kubectl_spread_ready",)] == 1
    assert monitor.get("/livez", telemetry=True).status == 200
    assert monitor.get("/readyz", telemetry=True).status == 200


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_status_0(spread: Spread, by: signal.Signals) -> None:
    running = RunningMonitor([*MONITOR, "-A"], spread.environment)
    running.until(running.ready)
    assert running.end(by) == 0
    assert set(running.printed.splitlines()[1:]) <= {"ready: 3 pods evaluated"}


def test_a_resource_that_may_not_be_listed_is_an_error(cluster: ControlPlane, tmp_path: Path) -> None:
    allow(cluster, "blind", [{"apiGroups": [""], "resources": NAMESPACED, "verbs": ["list", "watch"]}])
    environment = Plugin(tmp_path).on(cluster, cluster.kubeconfig_for("blind")).environment
    running = RunningMonitor([*MONITOR, "-A"], environment)
    assert running.wait() == 2
    assert running.printed.splitlines()[-1] == (
        'Error from server (Forbidden): nodes is forbidden: User "blind" cannot list resource "nodes" in API group "" '
        "at the cluster scope"
    )


def test_the_log_has_the_warnings_of_a_check(spread: Spread) -> None:
    flags = ("-A", "--to", f"1.{min(PRE_RELEASES)}")
    (warning,) = [line for line in spread("check", *flags).stderr.splitlines() if "pre-release" in line]
    with monitoring(spread.environment, *flags) as running:
        assert warning in running.printed.splitlines()


def test_a_loopback_address_answers_to_loopback_names(monitor: RunningMonitor) -> None:
    """Both ports do; a web page may point a name of its own there."""
    for telemetry in (False, True):
        answers = [
            monitor.get("/metrics", telemetry=telemetry, headers={"Host": host})
            for host in ("localhost", "evil.example:8080")
        ]
        assert [answer.status for answer in answers] == [200, 403]
        assert answers[1].text == (
            'the host name "evil.example:8080" is not accepted: ask localhost, or set --accept-hosts\n'
        )


def test_a_proxy_on_the_machine_may_pass_on_host_names(spread: Spread) -> None:
    with monitoring(spread.environment, "-A", "--accept-hosts=.*") as running:
        assert running.get("/metrics", headers={"Host": "monitor.shop.svc:8443"}).status == 200
