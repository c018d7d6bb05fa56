"""The queries of docs/fleet.md, asked of Thanos over the monitors of two control planes, each under a Prometheus."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Final, NamedTuple

import pytest

from tests.builders import constraint
from tests.controlplane import binaries
from tests.controlplane.cluster import ControlPlane
from tests.e2e import consumers
from tests.e2e.consumers import Prometheus
from tests.e2e.manifests import pod
from tests.e2e.monitored import monitoring
from tests.e2e.spread import Plugin
from tests.e2e.test_fleet import uid
from tests.generated import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.nightly]

PAGE: Final = (ROOT / "docs" / "fleet.md").read_text(encoding="utf-8")
ERRORS, SKEWS, OLD, TWICE = re.findall(r"^\| [^`|]+ \| `(.+)` \|$", PAGE, re.MULTILINE)
OLDER, _ = binaries.OLDER_APISERVERS


class Fleet(NamedTuple):
    """Thanos over the Prometheus of three names, of which two are of one cluster, and the UIDs of the clusters."""

    thanos: Prometheus
    uids: Mapping[str, str]

    def by(self, label: str, query: str) -> dict[str, float]:
        """Return the values of a query by a label."""
        return {each["metric"][label]: float(each["value"][1]) for each in self.thanos.query(query)}


@pytest.fixture(scope="module")
def fleet(own_control_plane: ControlPlane, plugin: Plugin, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Return a fleet: ``eu`` and ``east`` are one cluster with a waiting pod, and ``us`` is one with an even pair."""
    eu = own_control_plane
    for number, node in enumerate(eu.add_nodes(("a", "b"), per_zone=1)):
        eu.api.create(pod(f"web-{number}", [constraint(minDomains=3)], nodeName=node))
    eu.api.create(pod("web-2", [constraint(minDomains=3)]))
    with ExitStack() as running:
        directory = tmp_path_factory.mktemp("us")
        us = running.enter_context(ControlPlane.start(directory, version=OLDER, scheduler=False, controllers=False))
        for number, node in enumerate(us.add_nodes(("a", "b"), per_zone=1)):
            us.api.create(pod(f"web-{number}", [constraint()], nodeName=node))
        stores = {}
        for cluster, names in ((eu, ("eu", "east")), (us, ("us",))):
            monitor = running.enter_context(monitoring(plugin.on(cluster).environment))
            for name in names:
                of_store = tmp_path_factory.mktemp(name)
                jobs = {"spread": {"static_configs": [{"targets": [monitor.addresses[0]]}]}}
                store = running.enter_context(consumers.prometheus(of_store, jobs, interval="1s", cluster=name))
                stores[of_store] = store
        over = running.enter_context(consumers.thanos(tmp_path_factory.mktemp("thanos"), stores))
        found = Fleet(over, {"eu": uid(eu), "us": uid(us)})
        over.wait_until(lambda: found.by("cluster", "kube_spread_info").keys() == {"eu", "east", "us"})
        yield found


def test_errors_are_counted_by_cluster(fleet: Fleet) -> None:
    fleet.thanos.wait_until(lambda: fleet.by("cluster", ERRORS) == {"eu": 1, "east": 1})


def test_no_constraint_is_above_its_max_skew(fleet: Fleet) -> None:
    assert fleet.by("cluster", SKEWS) == {}
    assert fleet.by("cluster", SKEWS.replace(" > ", " <= ")).keys() == {"eu", "east", "us"}


def test_no_report_is_old(fleet: Fleet) -> None:
    assert fleet.by("cluster", OLD) == {}
    assert fleet.by("cluster", OLD.replace("> 3600", "< 60")).keys() == {"eu", "east", "us"}


def test_one_cluster_has_two_names(fleet: Fleet) -> None:
    assert fleet.by("cluster_uid", TWICE) == {fleet.uids["eu"]: 2}
