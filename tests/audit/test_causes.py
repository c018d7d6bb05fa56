"""A cause is reported if the evidence proves it, and not if a part of the proof is missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from kubectl_spread.kube.api.types import TopologySpreadConstraint
from kubectl_spread.kube.scheduler.configuration import Profile
from tests.audits import audit, deployment, explained
from tests.builders import Json, affinity, constraint, node_json, pod_json, requirement, selector, term

WEB = {"app": "web"}
OLD, NEW = "web-old", "web-new"
ROOT = deployment("web")
REPELLING = pod_json("db", node="c1", labels={"app": "db"}, affinity=affinity("podAntiAffinity", term()))
CORDONED: Json = {"unschedulable": True}
TAINTED: Json = {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}
STALE = selector(WEB, requirement("rev", "In", "r1"))


def replica_set(name: str, revision: int, created: str) -> Json:
    workload = deployment(name, kind="ReplicaSet", owner="Deployment/web")
    workload["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": str(revision)}
    workload["metadata"]["creationTimestamp"] = f"2026-09-01T{created}Z"
    return workload


BOTH = [ROOT, replica_set(OLD, 1, "09:00:00"), replica_set(NEW, 2, "09:59:50")]


def nodes(*names: str, created: str = "08:00:00", **spec: object) -> list[Json]:
    manifests = [node_json(name) for name in names]
    for node in manifests:
        node["metadata"]["creationTimestamp"] = f"2026-09-01T{created}Z"
        node["spec"].update(spec)
    return manifests


def web(
    places: str,
    *,
    owner: str = NEW,
    created: str = "10:00:00",
    labels: Json | None = None,
    deleted: bool = False,
    **more: Any,
) -> list[Json]:
    """Return a pod for each zone named in ``places``, on its first node; "-" stands for a pending pod."""
    more = {"constraints": [constraint()], **more}
    own = {**WEB, "pod-template-hash": owner.removeprefix("web-"), **(labels or {})}
    metadata = {"creationTimestamp": f"2026-09-01T{created}Z"}
    if deleted:
        metadata["deletionTimestamp"] = "2026-09-01T11:00:00Z"
    return [
        pod_json(
            f"{owner}-{created}-{index}{'-gone' if deleted else ''}-{len(own)}",
            node="" if zone == "-" else f"{zone}1",
            labels=own,
            owner=f"ReplicaSet/{owner}",
            metadata=metadata,
            **more,
        )
        for index, zone in enumerate(places)
    ]


def event(about: str, reason: str, message: str, last: str) -> Json:
    kind, _, name = about.partition("/")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.{last}", "namespace": "default"},
        "involvedObject": {"kind": kind, "name": name, "namespace": "default"},
        "reason": reason,
        "message": message,
        "lastTimestamp": f"2026-09-01T{last}Z",
        "count": 1,
    }


def scaled(name: str, change: str, last: str) -> Json:
    return event("Deployment/web", "ScalingReplicaSet", f"Scaled down replica set {name} {change}", last)


def rescaled(time: str) -> Json:
    entry = {"manager": "kubectl", "operation": "Update", "time": f"2026-09-01T{time}Z", "subresource": "scale"}
    entry["fieldsV1"] = {"f:spec": {"f:replicas": {}}}  # type: ignore[assignment]
    return {**ROOT, "metadata": {**ROOT["metadata"], "managedFields": [entry]}}


def recreated() -> Json:
    return {**ROOT, "spec": {**ROOT["spec"], "strategy": {"type": "Recreate"}}}


def others(places: str, **more: Any) -> list[Json]:
    return [pod_json(f"job-{index}", node=f"{zone}1", owner="Job/load", **more) for index, zone in enumerate(places)]


ABC = nodes("a1", "b1", "c1")
UNEVEN = web("aab")
ONCE = [ROOT, replica_set(NEW, 1, "08:30:00")]
PINNED: Json = {"nodeSelector": {"disk": "ssd"}, "constraints": [constraint(nodeAffinityPolicy="Ignore")]}
HUNGRY: Json = {"containers": [{"name": "app", "resources": {"requests": {"cpu": "2"}}}]}
SMALL = {**nodes("c1")[0], "status": {"allocatable": {"cpu": "1", "pods": "9"}}}
BIG = [{**node, "status": {"allocatable": {"cpu": "9", "pods": "9"}}} for node in nodes("a1", "b1")]
SSD = [
    {**node, "metadata": {**node["metadata"], "labels": {**node["metadata"]["labels"], "disk": "ssd"}}}
    for node in nodes("a1", "b1")
]
STALE_WEB: Json = {"constraints": [constraint(match=["rev"], selects=STALE)]}

PROVEN = {
    "a rollout that continues": ([*BOTH, *ABC, *web("a", owner=OLD), *web("ab")], "rollout", "certain"),
    "a rollout that is over, by its events": (
        [*BOTH, *ABC, *UNEVEN, scaled(OLD, "from 3 to 2", "10:00:01"), scaled(OLD, "from 1 to 0", "10:00:05")],
        "rollout",
        "certain",
    ),
    "a rollout in the words of before 1.27": (
        [*BOTH, *ABC, *UNEVEN, scaled(OLD, "to 0", "10:00:05")],
        "rollout",
        "certain",
    ),
    "a rollout that is over, without events": ([*BOTH, *ABC, *UNEVEN], "rollout", "likely"),
    "a scale-down of the newest": (
        [*ONCE, *ABC, *UNEVEN, scaled(NEW, "from 6 to 3", "10:30:00")],
        "scale-down",
        "certain",
    ),
    "a scale-down in the words of before 1.27": (
        [*ONCE, *ABC, *UNEVEN, scaled(NEW, "to 3", "10:30:00")],
        "scale-down",
        "certain",
    ),
    "a deletion by the ReplicaSet": (
        [*ONCE, *ABC, *UNEVEN, event(f"ReplicaSet/{NEW}", "SuccessfulDelete", "Deleted pod: web-new-9", "10:30:00")],
        "scale-down",
        "certain",
    ),
    "replicas that were written": ([rescaled("10:30:00"), ONCE[1], *ABC, *UNEVEN], "scale-down", "likely"),
    "a cordoned zone": ([*ONCE, *nodes("a1", "b1"), *nodes("c1", **CORDONED), *UNEVEN], "drained-domain", "certain"),
    "a cordoned zone that holds a pending pod up": (
        [*ONCE, *nodes("a1", "b1"), *nodes("c1", **CORDONED), *web("ab-")],
        "drained-domain",
        "certain",
    ),
    "a zone that the anti-affinity of another pod closes": (
        [*ONCE, *nodes("a1", "b1", "c1"), REPELLING, *UNEVEN],
        "pod-affinity",
        "certain",
    ),
    "a tainted zone": ([*ONCE, *nodes("a1", "b1"), *nodes("c1", **TAINTED), *UNEVEN], "tainted-domain", "certain"),
    "a full zone": ([*ONCE, *BIG, SMALL, *web("aab", **HUNGRY)], "full-domain", "certain"),
    "a zone that affinity excludes": ([*ONCE, *SSD, *nodes("c1"), *web("aab", **PINNED)], "node-affinity", "certain"),
    "a node that came late": (
        [*ONCE, *nodes("a1", "b1"), *nodes("c1", created="10:30:00"), *web("aab")],
        "late-node",
        "likely",
    ),
    "pods of another workload": ([*ONCE, *ABC, *web("abc"), *others("aa")], "other-pods", "certain"),
    "pods of another workload with the same constraint": (
        [*ONCE, *ABC, *web("abc"), *others("aa", constraints=[constraint()])],
        "other-pods",
        "likely",
    ),
    "a rollout of which only the newest ReplicaSet was read": (
        [ROOT, replica_set(NEW, 2, "09:55:00"), *ABC, *UNEVEN],
        "rollout",
        "likely",
    ),
    "pods that are leaving": ([*ONCE, *ABC, *web("aab"), *web("c", deleted=True)], "terminating", "certain"),
    "a preference": ([*ONCE, *ABC, *web("aab", constraints=[constraint(hard=False)])], "soft-constraint", "likely"),
    "a pending pod that was relabelled": (
        [*ONCE, *ABC, *web("-", labels={"rev": "r2"}, **STALE_WEB)],
        "stale-selector",
        "certain",
    ),
    "a pending pod that lost its label": ([*ONCE, *ABC, *web("-", **STALE_WEB)], "stale-selector", "certain"),
    "a running pod that was relabelled": (
        [*ONCE, *ABC, *web("aab", labels={"rev": "r1"}, **STALE_WEB), *web("c", labels={"rev": "r2"}, **STALE_WEB)],
        "stale-selector",
        "certain",
    ),
    "nothing that is known": ([*ONCE, *ABC, *UNEVEN], "unknown", "unknown"),
}

NEAR = {
    "a skew within maxSkew": ([*BOTH, *ABC, *web("abc")], None),
    "a rollout whose selector tells revisions apart": (
        [*BOTH, *ABC, *web("aab", constraints=[constraint(selects=selector({**WEB, "pod-template-hash": "new"}))])],
        "rollout",
    ),
    "a pod that was created after the rollout": (
        [*BOTH, *ABC, *web("ab"), *web("a", created="10:20:00"), scaled(OLD, "from 1 to 0", "10:00:05")],
        "rollout",
    ),
    "pods that are much younger than their revision": ([*BOTH, *ABC, *web("aab", created="12:00:00")], "rollout"),
    "a rollout that takes the old pods away first": ([recreated(), *BOTH[1:], *ABC, *UNEVEN], "rollout"),
    "an only revision": ([*ONCE, *ABC, *UNEVEN], "rollout"),
    "a scale-down of an older revision": ([*BOTH, *ABC, *UNEVEN, scaled(OLD, "from 3 to 0", "10:30:00")], "scale-down"),
    "a pod that was created after the scale-down": (
        [*ONCE, *ABC, *web("aa"), *web("b", created="10:40:00"), scaled(NEW, "from 6 to 3", "10:30:00")],
        "scale-down",
    ),
    "replicas that were written before the newest pod": ([rescaled("09:30:00"), ONCE[1], *ABC, *UNEVEN], "scale-down"),
    "a zone with one node that is open": (
        [*ONCE, *nodes("a1", "b1", "c2"), *nodes("c1", **CORDONED), *UNEVEN],
        "drained-domain",
    ),
    "a full zone that is not low": ([*ONCE, *nodes("b1", "c1"), *nodes("a1", **CORDONED), *UNEVEN], "drained-domain"),
    "a zone with an old node": (
        [*ONCE, *nodes("a1", "b1", "c2"), *nodes("c1", created="10:30:00"), *UNEVEN],
        "late-node",
    ),
    "a pod elsewhere that is younger than the late node": (
        [*ONCE, *nodes("a1", "b1"), *nodes("c1", created="10:30:00"), *web("ab"), *web("a", created="10:40:00")],
        "late-node",
    ),
    "other pods that do not make the skew": ([*ONCE, *ABC, *web("aaab"), *others("a")], "other-pods"),
    "leaving pods that would not even it out": ([*ONCE, *ABC, *web("aaaab"), *web("c", deleted=True)], "terminating"),
    "a requirement": ([*ONCE, *ABC, *UNEVEN], "soft-constraint"),
    "a preference that no node could meet": (
        [*ONCE, *nodes("a1", "b1"), *nodes("c1", **CORDONED), *web("aab", constraints=[constraint(hard=False)])],
        "soft-constraint",
    ),
    "a relabelled pod that would not even it out": (
        [*ONCE, *ABC, *web("aaab", labels={"rev": "r1"}, **STALE_WEB), *web("c", labels={"rev": "r2"}, **STALE_WEB)],
        "stale-selector",
    ),
}


def causes_of(objects: Sequence[Json]) -> list[Any]:
    causes = explained(audit(*objects))["causes"]
    assert isinstance(causes, list)
    return causes


@pytest.mark.parametrize("name", PROVEN)
def test_a_proven_cause_is_reported_with_evidence(name: str) -> None:
    objects, cause, confidence = PROVEN[name]
    (only,) = [entry for entry in causes_of(objects) if entry["cause"] == cause]
    assert only["confidence"] == confidence
    assert only["path"] == "spec.topologySpreadConstraints[0]"
    assert only["evidence"]
    assert all(text.endswith((".", "Z")) for text in only["evidence"])


@pytest.mark.parametrize("name", NEAR)
def test_a_cause_without_proof_is_not_reported(name: str) -> None:
    objects, cause = NEAR[name]
    causes = [entry["cause"] for entry in causes_of(objects)]
    assert causes == [] if cause is None else cause not in causes


def test_certain_causes_come_before_likely_causes() -> None:
    objects = [*BOTH, *nodes("a1", "b1"), *nodes("c1", **CORDONED), *UNEVEN]
    assert [(entry["cause"], entry["confidence"]) for entry in causes_of(objects)] == [
        ("drained-domain", "certain"),
        ("rollout", "likely"),
    ]


def test_the_evidence_is_quoted_with_its_numbers() -> None:
    objects = [*BOTH, *ABC, *UNEVEN, scaled(OLD, "from 3 to 2", "10:00:01"), scaled(OLD, "from 1 to 0", "10:00:05")]
    (only,) = causes_of(objects)
    (text,) = only["evidence"]
    assert text == (
        "Its pods were created while 3 pods of the older revision still counted. Event: "
        '"Scaled down replica set web-old from 1 to 0" at 2026-09-01T10:00:05Z'
    )


def test_an_unknown_cause_lists_the_causes_that_were_examined() -> None:
    (only,) = causes_of([*ONCE, *ABC, *UNEVEN])
    assert "Checked were" in only["evidence"][0]


def test_an_unknown_cause_mentions_min_domains() -> None:
    pods = web("ab-", constraints=[constraint(minDomains=3)])
    (only,) = causes_of([*ONCE, *nodes("a1", "b1"), *pods])
    assert only["cause"] == "unknown"
    assert "minDomains is 3, but only 2 domains are eligible" in only["evidence"][1]


def test_each_row_has_its_own_causes() -> None:
    soft = constraint(key="kubernetes.io/hostname", hard=False)
    causes = causes_of([*ONCE, *ABC, *web("aab", constraints=[constraint(), soft])])
    assert {(cause["row"], cause["path"]) for cause in causes} == {
        (0, "spec.topologySpreadConstraints[0]"),
        (1, "spec.topologySpreadConstraints[1]"),
    }


def test_the_evidence_names_the_zone() -> None:
    (only,) = causes_of([*ONCE, *nodes("a1", "b1"), *nodes("c1", **CORDONED), *UNEVEN])
    assert only["evidence"] == ["Zone c has no pods and cannot take one (1 node: cordoned)."]


def test_pending_pods_with_the_same_changed_label_are_reported_together() -> None:
    (only,) = causes_of([*ONCE, *ABC, *web("---", labels={"rev": "r2"}, **STALE_WEB)])
    assert only["evidence"] == [
        (
            "Label rev of web-new-10:00:00-0-3, web-new-10:00:00-1-3, web-new-10:00:00-2-3 was r1 at creation and is "
            "r2 now. The selector requires both values, so it matches no pod."
        )
    ]


def test_default_constraints_are_a_cause() -> None:
    """The scheduler adds them to pods that have no constraints of their own."""
    defaults = (msgspec.convert({**constraint(), "labelSelector": None}, TopologySpreadConstraint),)
    schedulers = {"default-scheduler": Profile(defaults=defaults, system_defaults=False)}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": WEB},
    }
    pods = web("aab", constraints=[])
    causes = explained(audit(*ONCE, service, *ABC, *pods, schedulers=schedulers))["causes"]
    assert [cause["cause"] for cause in causes] == ["default-constraints"]


def test_too_few_domains_alone_make_a_skew() -> None:
    """All domains have equally many pods; the minimum is 0 because of minDomains."""
    pods = web("aabb", constraints=[constraint(minDomains=3)])
    (only,) = causes_of([*ONCE, *nodes("a1", "b1"), *pods])
    assert (only["cause"], len(only["evidence"])) == ("unknown", 2)


def test_a_rollout_of_argo_is_a_certain_cause() -> None:
    """Its ReplicaSets have no revision number, and its events have another text."""
    sets = [replica_set(OLD, 0, "09:00:00"), replica_set(NEW, 0, "09:59:50")]
    for objects in sets:
        objects["metadata"]["ownerReferences"][0].update(kind="Rollout", apiVersion="argoproj.io/v1alpha1")
    output = "Scaled down ReplicaSet web-old (revision 1) from 4 to 0"
    argo = event("Rollout/web", "ScalingReplicaSet", output, "10:00:05")
    (only,) = causes_of([*sets, *ABC, *UNEVEN, argo])
    assert (only["cause"], only["confidence"]) == ("rollout", "certain")
    assert "4 pods of the older revision" in only["evidence"][0]
