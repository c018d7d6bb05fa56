"""Apiservers of two minors on one etcd, as during every upgrade, create siblings that differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.builders import Json, constraint
from tests.controlplane import binaries
from tests.controlplane.client import ApiError
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import require_built
from tests.e2e.manifests import pod
from tests.e2e.spread import Plugin, Report
from tests.e2e.verdicts import (
    ABSENT,
    BY_SCHEDULER,
    MERGED,
    PRE_UPGRADE,
    REMOVED,
    STALE,
    UNMERGED,
    UNMERGED_EDITED,
    PodVerdict,
    edit,
    evidence,
    look,
    pod_verdicts,
)
from tests.e2e.workloads import idle_replica_set

pytestmark = [pytest.mark.e2e, pytest.mark.nightly]

V1_33, V1_34 = binaries.OLDER_APISERVERS
SHOP = "shop"
BARE = {"app": "web"}
REV = {"app": "web", "rev": "r1"}


class Pair(NamedTuple):
    """The reports of each server on the same pods; ``refused`` is the error of 1.33 for an edit of a merged pod."""

    by_old: Report
    by_new: Report
    with_merge_since: Report
    refused: str


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, plugin: Plugin) -> Iterator[Pair]:
    """Create siblings through both servers in turn, and edit them through the newer server, which allows it."""
    for version in (V1_33, V1_34):
        require_built(version, ("kube-apiserver",))
    directory = tmp_path_factory.mktemp("mixed")
    with ControlPlane.start(directory, version=V1_34, scheduler=False, controllers=False) as cluster:
        older = cluster.add_apiserver(version=V1_33)
        cluster.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SHOP}})
        owner = idle_replica_set(cluster.api, _web("web", REV))
        for client, name in ((older.client, "old"), (cluster.api, "new")):
            for number in range(3):
                client.create(_web(f"{name}-sibling-{number}", REV, ownerReferences=[owner]))
            for state in ("kept", "changed", "removed", "back"):
                client.create(_web(f"{name}-{state}", REV))
            client.create(_web(f"{name}-late", BARE))
        # The older server creates pods again, so that creation times do not separate the two kinds.
        older.client.create(_web("old-afterwards", REV))
        changed = [f"{name}-{state}" for name in ("old", "new") for state in ("changed", "back", "sibling-2")]
        back = [f"{name}-{state}" for name in ("old", "new") for state in ("back", "late")]
        edit(cluster, SHOP, {"rev=r2": changed, "rev=r1": back, "rev-": ["old-removed", "new-removed"]})
        with pytest.raises(ApiError) as refused:
            older.client.patch(f"/api/v1/namespaces/{SHOP}/pods/new-kept", {"metadata": {"labels": {"rev": "r2"}}})
        since = cluster.api.get(f"/api/v1/namespaces/{SHOP}")["metadata"]["creationTimestamp"]
        by_new = plugin.on(cluster)
        yield Pair(
            by_old=look(plugin.on(cluster, older.kubeconfig), SHOP),
            by_new=look(by_new, SHOP),
            with_merge_since=look(by_new, SHOP, "--merge-since", since),
            refused=str(refused.value),
        )


def _web(name: str, labels: Json, **metadata: object) -> Json:
    return pod(name, [constraint(match=["rev"])], labels=labels, namespace=SHOP, metadata=metadata)


NEW = {
    "new-sibling-0": MERGED,
    "new-sibling-1": MERGED,
    "new-sibling-2": STALE,
    "new-kept": MERGED,
    "new-changed": STALE,
    "new-removed": REMOVED,
    "new-back": MERGED,
}


def test_the_newer_server_distinguishes_merged_and_unmerged_siblings(pair: Pair) -> None:
    """What the older server made is likely pre-upgrade where the owner's template has the label; else none is claimed.

    ``new-late`` was merged and ``old-changed`` was not, yet both look the same.
    """
    assert pod_verdicts(pair.by_new) == {
        **NEW,
        "new-late": UNMERGED_EDITED,
        "old-sibling-0": PRE_UPGRADE,
        "old-sibling-1": PRE_UPGRADE,
        "old-sibling-2": PRE_UPGRADE,
        "old-kept": UNMERGED,
        "old-afterwards": UNMERGED,
        "old-changed": UNMERGED_EDITED,
        "old-removed": ABSENT,
        "old-back": UNMERGED_EDITED,
        "old-late": UNMERGED_EDITED,
    }


def test_the_evidence_is_never_a_sibling_or_a_time(pair: Pair) -> None:
    """Merged siblings and the creator's label prove nothing; the template does."""
    names = ("old-sibling-0", "old-sibling-2", "old-kept", "old-changed")
    words = {name: evidence(pair.by_new, name) for name in names}
    assert words == {
        "old-sibling-0": ["the owner's pod template has the label rev"],
        "old-sibling-2": ["the owner's pod template has the label rev"],
        "old-kept": ["the cause cannot be determined from the API"],
        "old-changed": ["the cause cannot be determined from the API"],
    }


def test_siblings_are_one_workload_with_both_verdicts(pair: Pair) -> None:
    """The row of the owner counts both kinds."""
    assert pair.by_new.verdicts("ReplicaSet/web") == {"merged": 2, "stale-label": 1, "pre-upgrade": 3}


def test_the_older_server_leaves_missing_keys_to_the_scheduler(pair: Pair) -> None:
    """The same pods are evaluated as 1.33: stored requirements are evaluated, and missing ones are not a fault."""
    assert pair.by_old["cluster"]["evaluatedAs"] == "1.33"
    missing = ("sibling-0", "sibling-1", "sibling-2", "kept", "afterwards", "changed", "back", "late")
    assert pod_verdicts(pair.by_old) == {
        **NEW,
        "new-late": BY_SCHEDULER,
        "old-removed": ABSENT,
        **{f"old-{state}": BY_SCHEDULER for state in missing},
    }


def test_merge_since_before_all_pods_changes_nothing(pair: Pair) -> None:
    """With --merge-since a time before all pods, no pod is certain to be older."""
    assert pod_verdicts(pair.with_merge_since) == pod_verdicts(pair.by_new)
    assert PodVerdict("pre-upgrade") not in pod_verdicts(pair.with_merge_since).values()


def test_the_older_server_refuses_edits_of_merged_pods(pair: Pair) -> None:
    """A user of the older server cannot relabel a merged pod."""
    assert 'spec.topologySpreadConstraints[0].matchLabelKeys[0]: Invalid value: \\"rev\\"' in pair.refused


def test_siblings_that_differ_are_a_finding(pair: Pair) -> None:
    """Users of both servers see it: only servers of two versions create such siblings within seconds."""
    for report in (pair.by_new, pair.by_old):
        (siblings,) = (finding for finding in report["findings"] if finding["code"] == "SPR402")
        assert siblings["object"] == {"kind": "ReplicaSet", "name": "web"}
        assert {"old-sibling-0", "old-sibling-1"} <= set(siblings["pods"])
        assert siblings["values"]["merged"].startswith("new-sibling-")
        assert siblings["values"]["unmerged"].startswith("old-sibling-")


def test_the_older_server_reports_the_pods_that_nobody_can_edit(pair: Pair) -> None:
    """The text is the older apiserver's answer to a patch of labels. The newer server has no such finding."""
    findings = {
        finding["object"]["name"]: finding for finding in pair.by_old["findings"] if finding["code"] == "SPR401"
    }
    assert set(findings) == {"web", *(name for name in NEW if "sibling" not in name)}
    assert findings["new-kept"]["pods"] == ["new-kept"]
    errors = findings["new-kept"]["values"]["errors"]
    assert f'is invalid: {errors}"' in pair.refused.replace('\\"', '"')
    assert "SPR401" not in {finding["code"] for finding in pair.by_new["findings"]}
