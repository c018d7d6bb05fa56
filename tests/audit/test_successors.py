"""The next pod of a workload is like those that its controller would make now."""

from __future__ import annotations

from typing import Any

import pytest

from tests.audits import audit, explained
from tests.builders import Json, constraint, node_json, pod_json, requirement, selector

MERGED = [constraint(match=["rev"], selects=selector({"app": "web"}, requirement("rev", "In", "r1")))]
LEAVING = {"deletionTimestamp": "2026-09-01T11:00:00Z"}


def replica_set(name: str, revision: int) -> Json:
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "annotations": {"deployment.kubernetes.io/revision": str(revision)},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "controller": True}],
        },
        "spec": {
            "replicas": 1,
            "template": {"metadata": {"labels": {"app": "web", "rev": "r1", "pod-template-hash": name}}},
        },
    }


def web(name: str, owner: str = "new", *, rev: str = "r1", **more: Any) -> Json:
    labels = {"app": "web", "rev": rev, "pod-template-hash": owner}
    return pod_json(name, node="a1", labels=labels, owner=f"ReplicaSet/{owner}", constraints=MERGED, **more)


def placed(*pods: Json) -> list[list[str]]:
    explanation = explained(
        audit(node_json("a1"), node_json("b1"), replica_set("old", 1), replica_set("new", 2), *pods)
    )
    return [placing_entry["pods"] for placing_entry in explanation["placing"]]


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([web("a-old", "old"), web("b-new")], [["b-new"]], id="of an older revision"),
        pytest.param([web("a", rev="r2"), web("b")], [["b"]], id="relabelled"),
        pytest.param([web("a", metadata=LEAVING), web("b"), web("c")], [["b", "c"]], id="terminating"),
        pytest.param([web("a", rev="r2"), web("b", metadata=LEAVING)], [["a"], ["b"]], id="nothing else is there"),
    ],
)
def test_the_next_pod_is_placed_like_the_pods_that_the_controller_would_make_now(
    pods: list[Json], expected: list[list[str]]
) -> None:
    assert sorted(placed(*pods)) == expected


def test_pods_without_a_label_of_the_template_are_not_like_the_next_pod() -> None:
    """Without keys to match there is no verdict, but no new pod will be like it."""
    pods = [
        pod_json(
            name,
            node="a1",
            labels={"app": app, "pod-template-hash": "new"},
            owner="ReplicaSet/new",
            constraints=[constraint()],
        )
        for name, app in (("a", "canary"), ("b", "web"))
    ]
    assert len(placed(*pods)) == 2  # the template has rev, which neither has
    relabelled = [
        {**pod, "metadata": {**pod["metadata"], "labels": {**pod["metadata"]["labels"], "rev": "r1"}}} for pod in pods
    ]
    assert placed(*relabelled) == [["b"]]
