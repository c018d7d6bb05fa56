"""An upgrade on one etcd from 1.33 to 1.34 to 1.37, and back: each pod has the verdict that can be proven."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pytest

from tests.builders import Json, affinity, constraint, requirement, selector, term
from tests.controlplane import binaries, nodes
from tests.controlplane.client import ApiError
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import require_built
from tests.e2e.manifests import pod, workload
from tests.e2e.spread import Plugin, Report, Spread
from tests.e2e.verdicts import (
    ABSENT,
    BY_SCHEDULER,
    MERGED,
    PRE_UPGRADE,
    REMOVED,
    STALE,
    STALE_UNTRACKED,
    UNMERGED,
    UNMERGED_EDITED,
    PodVerdict,
    edit,
    evidence,
    forget_managers,
    look,
    pod_verdicts,
)
from tests.e2e.workloads import idle_replica_set

pytestmark = pytest.mark.e2e

V1_33, V1_34 = binaries.OLDER_APISERVERS
SHOP = "shop"
REV = {"app": "web", "rev": "r1"}
BARE = {"app": "web"}
ANTI_AFFINITY = "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
LEGACY = (
    'spec.topologySpreadConstraints[0].matchLabelKeys[0]: Invalid value: "rev": '
    "exists in both matchLabelKeys and labelSelector"
)
UNPROCESSABLE = 422


class Journey(NamedTuple):
    """The cluster, back on 1.33, and the reports at each stop."""

    cluster: ControlPlane
    spread: Spread
    reports: Mapping[str, Report]
    began: str
    refused: str


@pytest.fixture(scope="module")
def journey(tmp_path_factory: pytest.TempPathFactory, plugin: Plugin) -> Iterator[Journey]:
    """Upgrade twice and go back, with pods made and relabelled at every stop."""
    for version in (V1_33, V1_34, binaries.KUBERNETES_VERSION):
        require_built(version, ("kube-apiserver",))
    directory = tmp_path_factory.mktemp("journey")
    with ControlPlane.start(directory, version=V1_33, scheduler=False, controllers=False) as cluster:
        spread = plugin.on(cluster)
        cluster.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SHOP}})
        reports = {}
        _live_on_1_33(cluster)
        reports["1.33"] = look(spread, SHOP)
        cluster.apply(_twice())
        reports["1.33, and then 1.34"] = look(spread, SHOP, "--to", "1.34")
        cluster.restart_apiserver(version=V1_34)
        refused = _refused_creation(cluster)
        reports["1.34, nothing done"] = look(spread, SHOP)
        began = _live_on_1_34(cluster)
        reports["1.34"] = look(spread, SHOP)
        cluster.restart_apiserver(version=binaries.KUBERNETES_VERSION)
        reports["1.37, nothing done"] = look(spread, SHOP)
        _live_on_1_37(cluster)
        reports["1.37"] = look(spread, SHOP)
        reports["1.37, and then 1.33"] = look(spread, SHOP, "--to", "1.33")
        reports["1.37, told since when"] = look(spread, SHOP, "--merge-since", began)
        cluster.restart_apiserver()
        reports["1.33 again"] = look(spread, SHOP)
        yield Journey(cluster, spread, reports, began, refused)


def _web(name: str, labels: Mapping[str, str], *keys: str, **more: Json) -> Json:
    return pod(name, [constraint(match=keys or ["rev"])], labels=labels, namespace=SHOP, **more)


def _live_on_1_33(cluster: ControlPlane) -> None:
    """Create one pod for each edit of its label, before or after the upgrade."""
    labelled = ("kept", "changed", "removed", "back", "emptied", "emptied-changed")
    later = ("late", "never", "by-creator")
    manifests = [_web(f"{when}-{what}", REV) for what in labelled for when in ("early", "old")]
    manifests += [_web(f"old-{what}", BARE) for what in later]
    manifests += [_web("early-late", BARE)]
    anti = affinity("podAntiAffinity", term(match=["rev"]))
    manifests += [_web("old-anti-changed", REV, affinity=anti)]
    owner = idle_replica_set(cluster.api, _web("owner", REV))
    manifests += [_web("old-owned-changed", REV, metadata={"ownerReferences": [owner]})]
    manifests += [_web("old-hashed", {**REV, "pod-template-hash": "h1"}, "pod-template-hash")]
    cluster.apply(manifests)
    _edit(cluster, "early")


def _twice() -> list[Json]:
    """Return a Deployment that lists a key twice, which 1.33 takes, and a pod as it makes them."""
    duplicate_keys = workload(
        "Deployment", "twice", [constraint(match=["rev", "rev"])], labels=REV, namespace=SHOP, replicas=0
    )
    return [duplicate_keys, _web("twice-1", REV, "rev", "rev")]


def _refused_creation(cluster: ControlPlane) -> str:
    """Return the answer to one more pod of the Deployment; the pod that is there can still be edited."""
    edit(cluster, SHOP, {"team=x": ["twice-1"]})
    with pytest.raises(ApiError) as refused:
        cluster.api.create(_web("twice-2", REV, "rev", "rev"))
    assert refused.value.status == UNPROCESSABLE
    cluster.kubectl("delete", "pod", "twice-1", "-n", SHOP)
    return str(refused.value).replace('\\"', '"')


def _edit(cluster: ControlPlane, when: str) -> None:
    """Edit the pods whose names begin with ``when``, as their names say."""
    forget_managers(cluster, SHOP, f"{when}-emptied", f"{when}-emptied-changed")
    changed = [f"{when}-{what}" for what in ("changed", "back", "emptied-changed")]
    edit(cluster, SHOP, {"rev=r2": changed, "rev=r1": [f"{when}-back", f"{when}-late"], "rev-": [f"{when}-removed"]})


def _live_on_1_34(cluster: ControlPlane) -> str:
    """Relabel pods of 1.33 and make new ones; return when the first of these was created."""
    first_pod = cluster.api.create(_web("new-kept", REV))
    _edit(cluster, "old")
    edit(cluster, SHOP, {"rev=r2": ["old-anti-changed", "old-owned-changed"]})
    cluster.apply(_web("old-by-creator", REV))
    labelled = ("changed", "removed", "back", "emptied", "emptied-changed")
    manifests = [_web(f"{when}-{what}", REV) for what in labelled for when in ("new", "mid")]
    manifests += [_web("new-late", BARE), _web("new-late-proven", BARE, "app", "rev")]
    manifests[-1]["spec"]["topologySpreadConstraints"][0]["labelSelector"] = {}
    written = selector({"app": "web"}, requirement("rev", "Exists"))
    manifests += [pod("new-written", [constraint(selects=written, match=["rev"])], namespace=SHOP)]
    cluster.apply(manifests)
    _edit(cluster, "new")
    edit(cluster, SHOP, {"rev=r1": ["new-late-proven"]})
    created: str = first_pod["metadata"]["creationTimestamp"]
    return created


def _live_on_1_37(cluster: ControlPlane) -> None:
    """Relabel pods of 1.34, and make new ones."""
    cluster.apply([_web("mid-late", BARE), _web("last-kept", REV)])
    _edit(cluster, "mid")


EARLY = {
    # Nothing distinguishes a label of the creation from one that the creator added within the same second.
    "early-kept": UNMERGED,
    # Nor a label changed on 1.33 from a label added there, or from the same edits on 1.34.
    "early-changed": UNMERGED_EDITED,
    "early-back": UNMERGED_EDITED,
    "early-late": UNMERGED_EDITED,
    "early-removed": ABSENT,
    "early-emptied": UNMERGED,
    "early-emptied-changed": UNMERGED,
}
OLD_LABELLED = ("old-kept", "old-changed", "old-removed", "old-back", "old-emptied", "old-emptied-changed")
OLD_PROVEN = ("old-anti-changed", "old-owned-changed", "old-hashed")
"""Pods whose affinity term, owner or label of a controller proves that they were created with the label."""
OLD_UNTOUCHED: Mapping[str, PodVerdict] = {
    **EARLY,
    **dict.fromkeys(OLD_LABELLED, UNMERGED),
    **dict.fromkeys(OLD_PROVEN, PRE_UPGRADE),
    **dict.fromkeys(("old-late", "old-never", "old-by-creator"), ABSENT),
}
ON_1_33 = {name: ABSENT if verdict == ABSENT else BY_SCHEDULER for name, verdict in OLD_UNTOUCHED.items()}
OLD_EDITED = {
    **EARLY,
    "old-kept": UNMERGED,
    "old-changed": UNMERGED_EDITED,
    "old-removed": ABSENT,
    "old-back": UNMERGED_EDITED,
    "old-emptied": UNMERGED,
    "old-emptied-changed": UNMERGED,
    "old-late": UNMERGED_EDITED,
    "old-never": ABSENT,
    "old-by-creator": PodVerdict("unmerged", "unknown", ("kubectl-client-side-apply",)),
    # Although the label was written later, other evidence proves that the pod was created with it.
    **dict.fromkeys(OLD_PROVEN, PRE_UPGRADE),
}
MADE_ON_1_34 = {
    "new-kept": MERGED,
    "new-changed": STALE,
    "new-removed": REMOVED,
    "new-back": MERGED,
    "new-emptied": MERGED,
    "new-emptied-changed": STALE_UNTRACKED,
    "new-late": UNMERGED_EDITED,
    "new-late-proven": PodVerdict("late-label", "certain", ("kubectl-label",)),
    "new-written": PodVerdict("authored"),
}
NOT_YET_EDITED = dict.fromkeys(("mid-changed", "mid-removed", "mid-back", "mid-emptied", "mid-emptied-changed"), MERGED)
EDITED_ON_1_37 = {
    "mid-changed": STALE,
    "mid-removed": REMOVED,
    "mid-back": MERGED,
    "mid-emptied": MERGED,
    "mid-emptied-changed": STALE_UNTRACKED,
    "mid-late": UNMERGED_EDITED,
    "last-kept": MERGED,
}
ON_1_34 = {**OLD_EDITED, **MADE_ON_1_34, **NOT_YET_EDITED}
ON_1_37 = {**ON_1_34, **EDITED_ON_1_37}


def test_nothing_is_found_on_1_33(journey: Journey) -> None:
    """The scheduler of 1.33 applies the keys itself, so no edit of a label is a fault."""
    report = journey.reports["1.33"]
    assert report["cluster"]["evaluatedAs"] == "1.33"
    assert report["cluster"]["serverVersion"].startswith("1.33.")
    assert pod_verdicts(report) == ON_1_33
    assert {finding["code"] for finding in report["findings"]} == {"SPR107"}


@pytest.mark.parametrize(
    ("stop", "expected"),
    [
        ("1.34, nothing done", OLD_UNTOUCHED),
        ("1.34", ON_1_34),
        ("1.37, nothing done", ON_1_34),
        ("1.37", ON_1_37),
    ],
)
def test_every_pod_has_the_verdict_that_can_be_proven(
    journey: Journey, stop: str, expected: Mapping[str, PodVerdict]
) -> None:
    """An upgrade itself changes no verdict; only edits of pods do."""
    report = journey.reports[stop]
    assert report["cluster"]["evaluatedAs"] == stop.partition(",")[0]
    assert pod_verdicts(report) == expected


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("old-kept", "the cause cannot be determined from the API"),
        ("old-anti-changed", "rev is merged in an affinity term of this pod"),
        ("old-owned-changed", "the owner's pod template has the label rev"),
        ("early-changed", "the cause cannot be determined from the API"),
        ("new-removed", "the API does not record whether a label was removed or never there"),
        ("new-late-proven", "app is merged"),
    ],
)
def test_each_verdict_has_its_evidence(journey: Journey, name: str, words: str) -> None:
    """The evidence says why the verdict is proven."""
    report = journey.reports["1.34"]
    if name == "new-late-proven":
        (entry,) = (entry for entry in report["pods"] if entry["name"] == name)
        assert words in entry["keys"][1]["evidence"][0]
    else:
        assert evidence(report, name) == [words]


def test_affinity_was_merged_on_1_33_already(journey: Journey) -> None:
    """An edit that leaves the constraint unmerged makes the affinity term stale, on every server."""
    assert pod_verdicts(journey.reports["1.33"], ANTI_AFFINITY) == {"old-anti-changed": MERGED}
    for stop in ("1.34", "1.37", "1.33 again"):
        assert pod_verdicts(journey.reports[stop], ANTI_AFFINITY) == {"old-anti-changed": STALE}


def test_merge_since_makes_older_pods_certainly_pre_upgrade(journey: Journey) -> None:
    """The pods have the label; newer pods are not pre-upgrade."""
    since = PodVerdict("pre-upgrade")
    older = {name: verdict if verdict == ABSENT else since for name, verdict in OLD_EDITED.items()}
    assert pod_verdicts(journey.reports["1.37, told since when"]) == {**ON_1_37, **older}


def test_back_on_1_33_merged_pods_stay_merged(journey: Journey) -> None:
    """Merged selectors stay valid, and the scheduler applies the missing keys again."""
    report = journey.reports["1.33 again"]
    stored = {name: verdict for name, verdict in ON_1_37.items() if verdict.verdict in STILL_TRUE}
    missing = {name: BY_SCHEDULER for name, verdict in ON_1_37.items() if verdict.verdict in LEFT_OUT}
    assert pod_verdicts(report) == {**stored, **missing}
    assert report["cluster"]["evaluatedAs"] == "1.33"
    assert "SPR103" not in {finding["code"] for finding in report["findings"]}
    stale = {pod for finding in report["findings"] if finding["code"] == "SPR101" for pod in finding["pods"]}
    assert stale == {"new-changed", "new-emptied-changed", "mid-changed", "mid-emptied-changed", "old-anti-changed"}


STILL_TRUE = ("merged", "stale-label", "removed-label", "authored", "absent-key")
LEFT_OUT = ("unmerged", "pre-upgrade", "late-label")


def _refusal(cluster: ControlPlane, name: str, change: Json) -> str:
    with pytest.raises(ApiError) as refused:
        cluster.api.patch(f"/api/v1/namespaces/{SHOP}/pods/{name}", change)
    assert refused.value.status == UNPROCESSABLE
    return str(refused.value)


@pytest.mark.parametrize("name", ["new-kept", "new-changed", "new-removed", "mid-back", "new-written"])
def test_back_on_1_33_nobody_edits_a_merged_pod(journey: Journey, name: str) -> None:
    """Labels, annotations and finalizers are all refused, by the rule that 1.33 has for authors."""
    cluster = journey.cluster
    completed = cluster.kubectl("label", "pod", name, "-n", SHOP, "--overwrite", "rev=r3", check=False)
    assert completed.stderr == f'The Pod "{name}" is invalid: {LEGACY}\n'
    changes: list[Json] = [{"annotations": {"a": "b"}}, {"finalizers": ["example.com/hold"]}]
    for change in changes:
        assert "exists in both matchLabelKeys and labelSelector" in _refusal(cluster, name, {"metadata": change})


def test_back_on_1_33_unmerged_pods_can_be_edited(journey: Journey) -> None:
    """Binding and deletion work for all pods."""
    cluster = journey.cluster
    edit(cluster, SHOP, {"team=x": ["old-kept", "old-never"]})
    cluster.api.request("POST", "/api/v1/nodes", nodes.node("a1", "a", {}))
    for name in ("last-kept", "old-late"):
        target = {"apiVersion": "v1", "kind": "Node", "name": "a1"}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        cluster.api.request("POST", f"/api/v1/namespaces/{SHOP}/pods/{name}/binding", binding)
    cluster.kubectl("delete", "pod", "new-emptied", "-n", SHOP)
    after = pod_verdicts(look(journey.spread, SHOP))
    assert after["last-kept"] == MERGED
    assert after["old-late"] == BY_SCHEDULER
    assert "new-emptied" not in after


def test_a_template_that_stops_working_is_reported_before_the_upgrade(journey: Journey) -> None:
    """The finding has the text with which 1.34 then refuses a pod; 1.33 accepts the template and its pods."""
    report = journey.reports["1.33, and then 1.34"]
    assert report["cluster"]["comparedWith"] == "1.34"
    assert {finding["code"] for finding in report["findings"]}.isdisjoint({"SPR201", "SPR401", "SPR406"})
    refused, bare = (finding for finding in report["findings"] if finding["code"] == "SPR404")
    assert (refused["severity"], refused["object"]["name"], refused["values"]["refused"]) == (
        "error",
        "twice",
        "every pod of this template",
    )
    assert bare["object"]["name"] == "twice-1"
    assert f'is invalid: {refused["values"]["errors"]}"' in journey.refused


def test_pods_that_nobody_can_edit_are_reported_before_the_downgrade(journey: Journey) -> None:
    """The report of 1.37 names the same pods as the later report of 1.33."""
    before = {
        name: finding["values"]["errors"]
        for finding in journey.reports["1.37, and then 1.33"]["findings"]
        if finding["code"] == "SPR404"
        for name in finding["pods"]
    }
    after = {
        name: finding["values"]["errors"]
        for finding in journey.reports["1.33 again"]["findings"]
        if finding["code"] == "SPR401"
        for name in finding["pods"]
    }
    assert before == after
    assert {"new-kept", "new-changed", "new-removed", "mid-back", "new-written"} <= after.keys()
    assert after["new-kept"] == LEGACY
    assert not {"old-kept", "old-never", "old-late"} & after.keys()
