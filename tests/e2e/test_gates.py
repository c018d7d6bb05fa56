"""The apiserver is restarted on the same etcd with the merge switched off and on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from kubectl_spread.kube.features import Gate
from tests.builders import Json, constraint, selector
from tests.controlplane import kubeconfigs
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import require_built
from tests.e2e.manifests import deployment, pod
from tests.e2e.spread import Plugin, Report, Spread
from tests.e2e.workloads import label, roll_out, wait_for_rollout
from tests.faults import steps
from tests.faults.proxy import Proxy, Step

pytestmark = pytest.mark.e2e

HASH = "pod-template-hash"
READER = "reader"


class Upgrade(NamedTuple):
    """The reports while the merge was off and after it was on again, and the cluster."""

    cluster: ControlPlane
    spread: Spread
    off: Report
    on: Report


@pytest.fixture(scope="module")
def upgrade(tmp_path_factory: pytest.TempPathFactory, plugin: Plugin) -> Iterator[Upgrade]:
    """Make pods while the merge is off, then restart the apiserver with the merge on."""
    require_built()
    directory = tmp_path_factory.mktemp("upgrade")
    with ControlPlane.start(directory, feature_gates={Gate.SELECTOR_MERGE: False}, kubelet=True) as cluster:
        cluster.add_nodes(per_zone=1)
        spread = plugin.on(cluster)
        roll_out(cluster, deployment(constraints=[constraint(match=[HASH])]))
        with cluster.namespace("bare") as bare:
            labels = {"app": "web", "rev": "r1"}
            for name in ("kept", "changed"):
                cluster.apply(pod(name, [constraint(match=["rev"])], labels=labels, namespace=bare))
            cluster.apply(pod("late", [constraint(match=["rev"])], namespace=bare))
            off = spread.report("-A")
            cluster.restart_apiserver(feature_gates={})
            label(cluster, bare, "changed", "rev=r2")
            label(cluster, bare, "late", "rev=r1")
            yield Upgrade(cluster, spread, off, spread.report("-A"))


def test_a_merge_switched_off_is_read_from_the_metrics(upgrade: Upgrade) -> None:
    """The gate is off on a server that could merge, and the apiserver's own metrics say so."""
    cluster = upgrade.off["cluster"]
    assert cluster["gates"][Gate.SELECTOR_MERGE] is False
    assert cluster["gatesSource"] == "metrics"
    assert cluster["serverVersion"].startswith("1.37.")
    assert cluster["evaluatedAs"] == "1.37"


def test_unmerged_pods_under_a_closed_gate_are_merge_off(upgrade: Upgrade) -> None:
    """Every pod with the label is merge-off, and the effective selector still has the key: the scheduler adds it."""
    row = upgrade.off.row("Deployment/web")
    assert row["verdicts"] == {"merge-off": 3}
    assert row["selector"]["stored"] == {"matchLabels": {"app": "web"}}
    keys = [requirement["key"] for requirement in row["selector"]["effective"]["matchExpressions"]]
    assert keys == [HASH]
    assert list(upgrade.off.codes("Deployment/web")) == ["SPR104"]
    assert upgrade.off.verdicts("Pod/kept") == {"merge-off": 1}
    assert upgrade.off.verdicts("Pod/late") == {"absent-key": 1}


def test_pods_from_before_the_upgrade_are_pre_upgrade(upgrade: Upgrade) -> None:
    """The merge is on again. The verdict is likely, because every pod is created with pod-template-hash."""
    assert upgrade.on["cluster"]["gates"][Gate.SELECTOR_MERGE] is True
    assert upgrade.on["cluster"]["gatesSource"] == "metrics"
    assert upgrade.on.verdicts("Deployment/web") == {"pre-upgrade": 3}
    entries = [entry for entry in upgrade.on["pods"] if entry["workload"]["kind"] == "Deployment"]
    assert [entry["confidence"] for entry in entries] == ["likely"] * 3
    assert all(HASH in key["evidence"][0] for entry in entries for key in entry["keys"])
    assert list(upgrade.on.codes("Deployment/web")) == ["SPR103"]


def test_a_label_that_the_creator_owns_proves_nothing(upgrade: Upgrade) -> None:
    """The pod is bare, so it has no template, and its creator may have added the label within the same second."""
    entry = upgrade.on.verdict_of("kept")
    assert (entry["verdict"], entry["confidence"]) == ("unmerged", "unknown")
    assert entry["keys"][0]["evidence"] == ["the cause cannot be determined from the API"]


@pytest.mark.parametrize("name", ["changed", "late"])
def test_a_label_written_since_creation_proves_nothing(upgrade: Upgrade, name: str) -> None:
    """It may have been added after the upgrade, so the verdict is unmerged."""
    entry = upgrade.on.verdict_of(name)
    assert (entry["verdict"], entry["confidence"]) == ("unmerged", "unknown")
    assert entry["keys"][0]["changedBy"]["manager"] == "kubectl-label"


def test_a_rollout_after_the_upgrade_merges(upgrade: Upgrade) -> None:
    """Every pod of the next rollout is merged."""
    upgrade.cluster.kubectl("rollout", "restart", "deploy/web")
    wait_for_rollout(upgrade.cluster, "deploy/web", "default")
    assert upgrade.spread.report("-n", "default").verdicts("Deployment/web") == {"merged": 3}


def test_merge_since_makes_likely_verdicts_certain(upgrade: Upgrade) -> None:
    """The user gives the time since when every server merges."""
    report = upgrade.spread.report("-A", "--merge-since", "2100-01-01")
    assert report.verdict_of("changed")["verdict"] == "pre-upgrade"
    assert report.verdict_of("changed")["confidence"] == "certain"


class Switched(NamedTuple):
    """A cluster with a template that names a key twice, whose merge was switched off after the template was taken."""

    cluster: ControlPlane
    spread: Spread


def _overlapping(name: str) -> Json:
    overlap = constraint(match=["rev"], selects=selector({"rev": "r1"}))
    return deployment(name, [overlap], labels={"app": "web", "rev": "r1"})


@pytest.fixture(scope="module")
def switched(tmp_path_factory: pytest.TempPathFactory, plugin: Plugin) -> Iterator[Switched]:
    """Store a workload that only a merging API server takes, then stop merging; there are no pods."""
    require_built()
    directory = tmp_path_factory.mktemp("switched")
    tokens = {READER: ["system:masters"]}
    with ControlPlane.start(directory, scheduler=False, controllers=False, tokens=tokens) as cluster:
        cluster.apply(_overlapping("web"))
        assert plugin.on(cluster).report(status=1).codes("Deployment/web") == {"SPR202": []}
        cluster.restart_apiserver(feature_gates={Gate.SELECTOR_MERGE: False})
        yield Switched(cluster, plugin.on(cluster))


def test_a_template_is_refused_as_the_gates_of_the_server_say(switched: Switched) -> None:
    """The gates are read after the templates, and the API server agrees with the report."""
    report = switched.spread.report(status=1)
    assert report.codes("Deployment/web") == {"SPR201": []}
    assert (report["cluster"]["gates"][Gate.SELECTOR_MERGE], report["cluster"]["gatesSource"]) == (False, "metrics")
    another = json.dumps(_overlapping("another"))
    refused = switched.cluster.kubectl("create", "-f", "-", input=another, check=False)
    assert "exists in both matchLabelKeys and labelSelector" in refused.stderr


@pytest.mark.parametrize(
    "metrics",
    [
        pytest.param(steps.answer(200), id="empty"),
        pytest.param(steps.answer(200, b"<html><p>Please log in</p></html>", "text/html"), id="HTML"),
        pytest.param(steps.answer(200, b'kubernetes_feature_enabled{name="APIList",stage=""} 1\n'), id="other gates"),
    ],
)
def test_gates_are_assumed_where_metrics_do_not_name_them(switched: Switched, plugin: Plugin, metrics: Step) -> None:
    """The report says so."""
    security = switched.cluster._security
    proxy = Proxy(switched.cluster.api.server, security.authority.certificate, security.serving)
    with proxy.running():
        proxy.script("metrics", metrics)
        kubeconfig = switched.cluster.directory / "kubeconfigs" / "proxied.json"
        kubeconfigs.write(kubeconfig, proxy.url, security.authority.certificate, security.tokens[READER])
        answer = plugin.on(switched.cluster, kubeconfig)("check", "-o", "json")
    assert answer.report["cluster"]["gatesSource"] == "version"
    assert "feature gates are assumed from the version: /metrics of the API server does not name " in answer.error
