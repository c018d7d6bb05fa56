"""The workloads of the pods in a domain, and the pods there that are not counted."""

from __future__ import annotations

from typing import Any

from tests.audits import audit, deployment, explained
from tests.builders import HOSTNAME, Json, constraint, node_json, pod_json, selector

WEB = {"app": "web"}
ABC = [node_json(name) for name in ("a1", "b1", "c1")]


def replica_set(name: str, revision: int = 0, *, owner: str = "Deployment/web") -> Json:
    workload = deployment(name, kind="ReplicaSet", owner=owner)
    workload["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": str(revision)} if revision else {}
    return workload


def pods(places: str, owner: str, *, labels: Json | None = None, deleted: bool = False) -> list[Json]:
    """Return a pod of an owner in each zone named in ``places``; "-" stands for a pending pod."""
    metadata = {"deletionTimestamp": "2026-09-01T11:00:00Z"} if deleted else {}
    return [
        pod_json(
            f"{owner.partition('/')[2]}-{index}{'-gone' if deleted else ''}",
            node="" if zone == "-" else f"{zone}1",
            labels={**WEB, **(labels or {})},
            owner=owner,
            constraints=[constraint()],
            metadata=metadata,
        )
        for index, zone in enumerate(places)
    ]


def hashed(places: str, name: str, **more: Any) -> list[Json]:
    return pods(places, f"ReplicaSet/{name}", labels={"pod-template-hash": name.removeprefix("web-")}, **more)


TWO = [deployment("web"), replica_set("web-old", 1), replica_set("web-new", 2)]


def rollup(*objects: Json) -> Any:
    return explained(audit(*objects))["rollup"]


def only(*objects: Json) -> Any:
    (row,) = rollup(*objects)["rows"]
    return row


def test_revisions_are_counted_separately_and_together_newest_first() -> None:
    row = only(*TWO, *ABC, *hashed("aab", "web-old"), *hashed("bc", "web-new"))
    assert row == {
        "row": 0,
        "path": "spec.topologySpreadConstraints[0]",
        "revisions": [
            {
                "revision": "new",
                "owner": {"kind": "ReplicaSet", "name": "web-new"},
                "number": 2,
                "counts": {"a": 0, "b": 1, "c": 1},
                "skew": 1,
            },
            {
                "revision": "old",
                "owner": {"kind": "ReplicaSet", "name": "web-old"},
                "number": 1,
                "counts": {"a": 2, "b": 1, "c": 0},
                "skew": 2,
            },
        ],
        "counted": {"a": 2, "b": 2, "c": 1},
        "skew": 1,
    }


def test_a_pending_pod_is_in_no_share() -> None:
    (share,) = only(*TWO, *ABC, *hashed("a", "web-old"), *hashed("-", "web-new"))["revisions"]
    assert share["revision"] == "old"


def test_terminating_pods_are_counted_separately() -> None:
    row = only(*TWO, *ABC, *hashed("aab", "web-new"), *hashed("cc", "web-old", deleted=True))
    assert (row["counted"], row["skew"]) == ({"a": 2, "b": 1, "c": 0}, 2)
    assert (row["terminating"], row["skewWithTerminating"]) == ({"a": 0, "b": 0, "c": 2}, 1)
    assert [share["revision"] for share in row["revisions"]] == ["new"]


def test_pods_of_other_workloads_are_counted_separately() -> None:
    other = [pod_json("load-1", node="c1", owner="Job/load"), pod_json("bare", node="c1")]
    row = only(*TWO, *ABC, *hashed("ab", "web-new"), *other)
    assert row["otherPods"] == {"a": 0, "b": 0, "c": 2}
    assert row["counted"] == {"a": 1, "b": 1, "c": 2}


def test_mirror_pods_count_as_other_pods() -> None:
    mirror = pod_json("static-a1", node="a1", metadata={"annotations": {"kubernetes.io/config.mirror": "x"}})
    assert only(*TWO, *ABC, *hashed("ab", "web-new"), mirror)["otherPods"] == {"a": 1, "b": 0, "c": 0}


def test_a_selector_that_counts_nothing_has_no_shares() -> None:
    empty = [constraint(selects=selector())]
    pod = pod_json("web-1", node="a1", owner="ReplicaSet/web-new", constraints=empty)
    gone = pod_json(
        "web-2", node="a1", constraints=empty, metadata={"deletionTimestamp": "2026-09-01T11:00:00Z"}, owner="Job/x"
    )
    row = rollup(*TWO, *ABC, pod, gone)["rows"][0]
    assert (row["revisions"], row["counted"]) == ([], {"a": 0, "b": 0, "c": 0})
    assert "terminating" not in row
    assert "otherPods" not in row


def owners(*objects: Json) -> list[tuple[str, list[str], int]]:
    return [
        (
            f"{owner['kind']}/{owner['name']}",
            [f"{above['kind']}/{above['name']}" for above in owner["above"]],
            owner["pods"],
        )
        for owner in rollup(*objects)["owners"]
    ]


def test_the_owner_of_the_pods_of_a_replica_set_is_its_deployment() -> None:
    owner_entries = owners(*TWO, *ABC, *hashed("aa", "web-old"), *hashed("b", "web-new"))
    assert owner_entries == [
        ("ReplicaSet/web-new", ["Deployment/web"], 1),
        ("ReplicaSet/web-old", ["Deployment/web"], 2),
    ]


def test_owners_are_followed_by_reference_alone() -> None:
    """An unknown kind is an owner like any other."""
    chain = [replica_set("web-new", owner="Rollout/web")]
    assert owners(*chain, *ABC, *hashed("ab", "web-new")) == [("ReplicaSet/web-new", ["Rollout/web"], 2)]
    assert owners(*ABC, *pods("ab", "CloneSet/web")) == [("CloneSet/web", [], 2)]


def test_jobs_of_a_cron_job_are_revisions_of_their_own() -> None:
    jobs = [deployment(name, kind="Job", owner="CronJob/night") for name in ("night-1", "night-2")]
    for job in jobs:
        job["apiVersion"] = "batch/v1"
    objects = [*jobs, *ABC, *pods("a", "Job/night-1"), *pods("bc", "Job/night-2")]
    assert owners(*objects) == [("Job/night-2", ["CronJob/night"], 2), ("Job/night-1", ["CronJob/night"], 1)]
    shares = only(*objects)["revisions"]
    assert [(share["owner"]["name"], "revision" in share, share["skew"]) for share in shares] == [
        ("night-2", False, 1),
        ("night-1", False, 1),
    ]


def test_revisions_of_a_stateful_set_have_no_owner_of_their_own() -> None:
    old = pods("a", "StatefulSet/db", labels={"controller-revision-hash": "db-1"})
    new = pods("bc", "StatefulSet/db", labels={"controller-revision-hash": "db-2"})
    new = [{**pod, "metadata": {**pod["metadata"], "name": f"new-{number}"}} for number, pod in enumerate(new)]
    for pod in new:
        pod["metadata"]["creationTimestamp"] = "2026-09-01T10:30:00Z"
    row = only(deployment("db", kind="StatefulSet"), *ABC, *old, *new)
    assert [(revision["revision"], "owner" in revision) for revision in row["revisions"]] == [
        ("db-2", False),
        ("db-1", False),
    ]


def test_a_pod_without_owner_is_its_own_workload() -> None:
    assert owners(*ABC, pod_json("bare", node="a1", constraints=[constraint()])) == [("Pod/bare", [], 1)]


def test_of_many_domains_only_those_with_pods_are_listed() -> None:
    nodes = [node_json(f"n{index}") for index in range(201)]
    pod = pod_json("p", node="n7", constraints=[constraint(key=HOSTNAME)], owner="ReplicaSet/web-new")
    assert only(*TWO, *nodes, pod)["counted"] == {"n7": 1}
