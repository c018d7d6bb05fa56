"""A server of 1.34 has the merge on, off, on again, and disabled by an emulated version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pytest

from kubectl_spread.kube.features import Gate
from tests.builders import Json, constraint
from tests.controlplane import binaries
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import require_built
from tests.e2e.manifests import pod
from tests.e2e.spread import Plugin, Report
from tests.e2e.verdicts import (
    ABSENT,
    BY_SCHEDULER,
    MERGED,
    STALE,
    UNMERGED,
    UNMERGED_EDITED,
    PodVerdict,
    edit,
    look,
    pod_verdicts,
)

pytestmark = [pytest.mark.e2e, pytest.mark.nightly]

_, V1_34 = binaries.OLDER_APISERVERS
SHOP = "shop"
OFF = PodVerdict("merge-off", "likely")


class Stops(NamedTuple):
    """The reports on the same pods at each position of the switch."""

    off: Report
    on: Report
    emulated: Report


@pytest.fixture(scope="module")
def stops(tmp_path_factory: pytest.TempPathFactory, plugin: Plugin) -> Iterator[Stops]:
    """Create and edit pods at each position of the switch."""
    require_built(V1_34, ("kube-apiserver",))
    directory = tmp_path_factory.mktemp("switches")
    with ControlPlane.start(directory, version=V1_34, scheduler=False, controllers=False) as cluster:
        spread = plugin.on(cluster)
        cluster.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SHOP}})
        _make(cluster, "first")
        cluster.restart_apiserver(feature_gates={Gate.SELECTOR_MERGE: False})
        _make(cluster, "off")
        # A pod that is merged can be edited here: the old rule is not applied to what breaks it already.
        edit(cluster, SHOP, {"rev=r2": ["first-changed", "off-changed"], "rev=r1": ["off-late"]})
        off = look(spread, SHOP)
        cluster.restart_apiserver()
        _make(cluster, "on")
        edit(cluster, SHOP, {"rev=r2": ["on-changed", "off-changed-later"]})
        on = look(spread, SHOP)
        cluster.restart_apiserver(extra_flags=["--emulated-version=1.33"])
        _make(cluster, "emulated")
        edit(cluster, SHOP, {"rev=r2": ["on-changed-later", "emulated-changed"]})
        yield Stops(off, on, look(spread, SHOP))


def _make(cluster: ControlPlane, when: str) -> None:
    labels: Json = {"app": "web", "rev": "r1"}
    keys = [constraint(match=["rev"])]
    pods = [pod(f"{when}-{what}", keys, labels=labels, namespace=SHOP) for what in ("kept", "changed", "changed-later")]
    cluster.apply([*pods, pod(f"{when}-late", keys, namespace=SHOP)])


FIRST = {"first-kept": MERGED, "first-changed": STALE, "first-changed-later": MERGED, "first-late": ABSENT}
MADE_OFF: Mapping[str, PodVerdict] = {
    "off-kept": UNMERGED,
    "off-changed": UNMERGED_EDITED,
    "off-changed-later": UNMERGED_EDITED,
    "off-late": UNMERGED_EDITED,
}
MADE_ON = {"on-kept": MERGED, "on-changed": STALE, "on-changed-later": MERGED, "on-late": ABSENT}


def test_pods_made_while_the_merge_is_off_are_merge_off(stops: Stops) -> None:
    """Pods that were merged before keep their verdicts."""
    assert stops.off["cluster"]["gates"][Gate.SELECTOR_MERGE] is False
    assert pod_verdicts(stops.off) == {**FIRST, **dict.fromkeys(MADE_OFF, OFF)}


def test_pods_made_while_it_was_off_are_like_those_from_before_an_upgrade(stops: Stops) -> None:
    """The merge is on again. The pods are bare, so nothing shows that they had the label at creation."""
    assert stops.on["cluster"]["gates"][Gate.SELECTOR_MERGE] is True
    assert pod_verdicts(stops.on) == {**FIRST, **MADE_OFF, **MADE_ON}


def test_the_emulated_version_is_the_one_that_counts(stops: Stops) -> None:
    """A server of 1.34 that emulates 1.33 does not merge, and its scheduler behaves as that of 1.33."""
    cluster = stops.emulated["cluster"]
    assert cluster["serverVersion"].startswith("1.34.")
    assert (cluster["evaluatedAs"], cluster["versionSource"]) == ("1.33", "live")
    assert Gate.SELECTOR_MERGE not in cluster["gates"]
    assert pod_verdicts(stops.emulated) == {
        **FIRST,
        **dict.fromkeys(MADE_OFF, BY_SCHEDULER),
        **MADE_ON,
        "on-changed-later": STALE,
        **dict.fromkeys(("emulated-kept", "emulated-changed", "emulated-changed-later"), BY_SCHEDULER),
        "emulated-late": ABSENT,
    }
    assert {finding["code"] for finding in stops.emulated["findings"]} == {"SPR101", "SPR107", "SPR401"}
