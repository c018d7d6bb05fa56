"""Rows, groups and pods of the report: what is in them, in which order, and what is left out."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from kubectl_spread.audit.snapshot.scope import FieldRequirement, Scope, Target
from kubectl_spread.kube.api.labels import parse_labels
from kubectl_spread.report import projections
from tests.audits import as_json, audit, deployment, row, verdicts
from tests.builders import HOSTNAME, ZONE, Json, affinity, constraint, node_json, pod_json, requirement, selector, term

S = "spec.topologySpreadConstraints[0]"
WEB = {"app": "web"}
R1 = {"app": "web", "rev": "r1"}
R2 = {"app": "web", "rev": "r2"}
REV_IN_R1 = requirement("rev", "In", "r1")
REV_IN_R2 = requirement("rev", "In", "r2")
THREE = (node_json("a1"), node_json("b1"), node_json("c1"))
OWNER = "Deployment/web"
TERMINATING = {"deletionTimestamp": "2026-09-02T10:00:00Z"}


def web(name: str, node: str = "", *, labels: dict[str, str] | None = None, stored: str = "r1", **fields: Any) -> Json:
    """Return a pod of deploy/web whose selector was merged with ``stored``."""
    keyed = constraint(match=["rev"], selects=selector(WEB, requirement("rev", "In", stored)))
    return pod_json(
        name, node=node, labels=R1 if labels is None else labels, constraints=[keyed], owner=OWNER, **fields
    )


def test_the_keys_of_the_report_are_the_contract() -> None:
    """Further keys may be added to a row; these may not change."""
    stale = web(
        "w3",
        "b1",
        labels=R2,
        metadata={
            "managedFields": [
                {
                    "manager": "kubectl-label",
                    "time": "2026-09-01T10:31:00Z",
                    "fieldsV1": {"f:metadata": {"f:labels": {"f:rev": {}}}},
                }
            ]
        },
    )
    report = as_json(audit(web("w1", "a1"), web("w2", "a1"), stale, *THREE))
    assert list(report) == [
        "apiVersion",
        "kind",
        "cluster",
        "constraints",
        "groups",
        "pods",
        "findings",
        "summary",
    ]
    assert (report["apiVersion"], report["kind"]) == ("kubectl-spread/v1", "SpreadReport")
    merged = next(constraint for constraint in report["constraints"] if "merged" in constraint["verdicts"])
    assert merged == {
        "namespace": "default",
        "workload": {"kind": "Deployment", "name": "web"},
        "podCount": 2,
        "pending": 0,
        "path": S,
        "default": False,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "maxSkew": 1,
        "minDomains": 1,
        "nodeAffinityPolicy": "Honor",
        "nodeTaintsPolicy": "Ignore",
        "selector": {
            "authored": selector(WEB),
            "merged": selector(WEB, REV_IN_R1),
            "stored": selector(WEB, REV_IN_R1),
            "effective": selector(WEB, REV_IN_R1),
        },
        "diff": [],
        "verdicts": {"merged": 2},
        "domains": [
            {"value": "a", "nodes": 1, "matchNum": 2, "skew": 2},
            {"value": "b", "nodes": 1, "matchNum": 0, "skew": 0},
            {"value": "c", "nodes": 1, "matchNum": 0, "skew": 0},
        ],
        "minMatchNum": 0,
        "selfMatchNum": 1,
        "skew": 2,
        "next": {"allowed": ["b", "c"], "blocked": ["a"]},
    }
    assert next(group for group in report["groups"] if "w1" in group["pods"]) == {
        "namespace": "default",
        "workload": {"kind": "Deployment", "name": "web"},
        "pods": ["w1", "w2"],
        "pending": 0,
        "nodes": {"total": 3, "feasible": 2, "notMatching": 1, "missingLabel": 0},
    }
    (entry,) = report["pods"]
    assert entry == {
        "namespace": "default",
        "name": "w3",
        "node": "b1",
        "workload": {"kind": "Deployment", "name": "web"},
        "path": S,
        "verdict": "stale-label",
        "confidence": "certain",
        "keys": [
            {
                "key": "rev",
                "operator": "In",
                "verdict": "stale-label",
                "confidence": "certain",
                "stored": "r1",
                "label": "r2",
                "evidence": [],
                "changedBy": {"manager": "kubectl-label", "time": "2026-09-01T10:31:00Z", "bound": "atOrBefore"},
            }
        ],
    }
    finding = next(finding for finding in report["findings"] if finding["code"] == "SPR101")
    assert set(finding) == {
        "code",
        "name",
        "severity",
        "namespace",
        "object",
        "path",
        "pods",
        "podCount",
        "message",
        "values",
        "fix",
        "commands",
        "group",
        "rows",
    }
    assert (finding["object"], finding["pods"], finding["podCount"]) == (
        {"kind": "Deployment", "name": "web"},
        ["w3"],
        1,
    )
    assert set(report["summary"]) == {"pods", "workloads", "constraints", "findings", "silenced", "skipped"}
    assert set(report["summary"]["findings"]) == {"error", "warning", "info"}


def test_pending_pods_share_the_row_of_equal_bound_pods_and_are_not_counted() -> None:
    report = as_json(audit(web("w1", "a1"), web("w2"), *THREE))
    (only,) = report["constraints"]
    assert (only["podCount"], only["pending"]) == (2, 1)
    assert [domain["matchNum"] for domain in only["domains"]] == [1, 0, 0]
    assert [(group["pods"], group["pending"]) for group in report["groups"]] == [(["w1", "w2"], 1)]


def test_terminating_pods_are_evaluated_and_marked_and_not_counted() -> None:
    report = as_json(audit(web("w1", "a1", labels=R2, metadata=TERMINATING), web("w2", "b1", labels=R2), *THREE))
    (only,) = report["constraints"]
    assert (only["podCount"], only["terminating"]) == (2, 1)
    assert all(domain["matchNum"] == 0 for domain in only["domains"])
    assert [pod.get("terminating") for pod in report["pods"]] == [True, None]


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        pytest.param(web("w1", "a1", phase="Succeeded"), "finished", id="succeeded"),
        pytest.param(web("w1", "a1", phase="Failed"), "finished", id="failed"),
        pytest.param(
            web("w1", "a1", metadata={"annotations": {"kubernetes.io/config.mirror": ""}}), "mirror", id="mirror"
        ),
    ],
)
def test_a_pod_that_is_not_evaluated_is_skipped_with_its_reason(pod: Json, reason: str) -> None:
    report = as_json(audit(pod, *THREE))
    assert report["summary"]["skipped"] == {reason: 1}
    assert (report["constraints"], report["pods"], report["summary"]["pods"]) == ([], [], 0)


PLACEMENT = {"domains", "minMatchNum", "selfMatchNum", "skew", "next"}


def test_pods_of_another_scheduler_have_verdicts_and_no_counts() -> None:
    evaluation = audit(web("w1", "a1", labels=R2, schedulerName="mine"), *THREE)
    assert verdicts(evaluation) == {f"w1 {S}": "stale-label"}
    assert not PLACEMENT & set(row(evaluation))
    assert "nodes" not in as_json(evaluation)["groups"][0]


def test_pods_of_two_schedulers_do_not_share_a_row() -> None:
    report = as_json(audit(web("w1", "a1"), web("w2", "a1", schedulerName="mine"), *THREE))
    assert [constraint["podCount"] for constraint in report["constraints"]] == [1, 1]


def pinned(name: str, node: str) -> Json:
    term_of_name = {"matchFields": [requirement("metadata.name", "In", node)]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term_of_name]}}
    return web(name, node, affinity={"nodeAffinity": required})


def test_pods_of_a_daemon_set_share_one_row_without_counts() -> None:
    """Each is pinned to one node."""
    report = as_json(audit(pinned("w1", "a1"), pinned("w2", "b1"), *THREE))
    (only,) = report["constraints"]
    assert (only["podCount"], only["verdicts"]) == (2, {"merged": 2})
    assert not PLACEMENT & set(only)
    (group,) = report["groups"]
    assert group["pods"] == ["w1", "w2"]
    assert "nodes" not in group
    assert report["findings"] == []


def test_without_nodes_there_are_no_counts() -> None:
    assert not PLACEMENT & set(row(audit(web("w1", "a1"))))


@pytest.mark.parametrize(
    ("size", "listed", "empty", "following"),
    [
        pytest.param(200, 200, None, list, id="200 domains are listed"),
        pytest.param(201, 1, 200, int, id="of 201 those with pods, and the others are counted"),
    ],
)
def test_of_many_domains_only_those_with_pods_are_listed(
    size: int, listed: int, empty: int | None, following: type
) -> None:
    nodes = [node_json(f"n{index:03}") for index in range(size)]
    pod = pod_json("w1", node="n007", constraints=[constraint(key=HOSTNAME)])
    constraint_row = row(audit(pod, *nodes))
    assert (len(constraint_row["domains"]), constraint_row.get("emptyDomains")) == (listed, empty)
    assert type(constraint_row["next"]["allowed"]) is following
    assert type(constraint_row["next"]["blocked"]) is following
    if following is int:
        assert constraint_row["next"] == {"allowed": 200, "blocked": 1}
        assert constraint_row["domains"] == [{"value": "n007", "nodes": 1, "matchNum": 1, "skew": 1}]


def zoned(name: str, node: str, zone: str, **fields: Any) -> Json:
    return pod_json(name, node=node, labels={"app": "web", ZONE: zone}, **fields)


def test_inferred_nodes_give_lower_bounds_and_no_next_domains() -> None:
    """Domains are those that the pods' own labels show, whoever they belong to."""
    pod = zoned("w1", "a1", "a", constraints=[constraint(), constraint(key=HOSTNAME)])
    objects = (pod, zoned("w2", "a1", "a"), zoned("x", "b1", "b", namespace="other"))
    zone, hostname = as_json(audit(*objects, nodes="inferred"))["constraints"]
    assert [(domain["value"], domain["matchNum"]) for domain in zone["domains"]] == [("a", 2), ("b", 0)]
    assert (zone["skew"], zone["minMatchNum"], zone["lowerBound"]) == (2, 0, True)
    assert "next" not in zone
    assert not PLACEMENT & set(hostname)


@pytest.mark.parametrize(
    ("pod_constraint", "spec"),
    [
        pytest.param(constraint(), {"nodeSelector": {"pool": "web"}}, id="nodes could be excluded by affinity"),
        pytest.param(constraint(nodeTaintsPolicy="Honor"), {}, id="nodes could be excluded by taints"),
    ],
)
def test_inferred_nodes_give_no_counts_where_nodes_could_be_excluded(pod_constraint: Json, spec: Json) -> None:
    constraint_row = row(audit(zoned("w1", "a1", "a", constraints=[pod_constraint], **spec), nodes="inferred"))
    assert not PLACEMENT & set(constraint_row)


def test_no_selector_and_an_empty_selector_are_reported_differently() -> None:
    pod = pod_json(
        "w1", constraints=[constraint(labelSelector=None), constraint(key=HOSTNAME, selects={}), constraint(key="rack")]
    )
    none, empty, _ = as_json(audit(pod, *THREE))["constraints"]
    assert none["selector"] == {"authored": None, "merged": None, "stored": None, "effective": None}
    assert none["verdicts"] == {"no-selector": 1}
    assert none["selfMatchNum"] == 0
    assert empty["selector"] == {"authored": {}, "merged": {}, "stored": {}, "effective": {}}
    assert empty["verdicts"] == {}
    assert empty["selfMatchNum"] == 1


def test_zero_and_empty_are_never_left_out() -> None:
    constraint_row = row(audit(pod_json("w1", constraints=[constraint(key="rack", hard=False)]), *THREE))
    assert constraint_row["domains"] == []
    assert (constraint_row["skew"], constraint_row["minMatchNum"], constraint_row["pending"]) == (0, 0, 1)
    assert constraint_row["next"] == {"allowed": [], "blocked": []}
    assert constraint_row["diff"] == []
    assert constraint_row["verdicts"] == {}
    assert "minDomains" not in constraint_row


def test_empty_values_are_reported_and_absent_values_left_out() -> None:
    report = as_json(audit(web("w1", labels={"app": "web", "rev": ""}), web("w2", labels=WEB), web("w3", stored="")))
    keys = {pod["name"]: pod["keys"][0] for pod in report["pods"]}
    assert (keys["w1"]["stored"], keys["w1"]["label"]) == ("r1", "")
    assert "label" not in keys["w2"]
    assert (keys["w3"]["stored"], keys["w3"]["label"]) == ("", "r1")
    assert "node" not in report["pods"][0]


OTHERS = [web("w2", "a1"), pod_json("x1", node="b1", labels=R1, namespace="default")]


@pytest.mark.parametrize(
    "scope",
    [
        pytest.param(Scope(), id="everything"),
        pytest.param(Scope(namespace="default"), id="a namespace"),
        pytest.param(Scope(exclude_namespaces=frozenset({"other"})), id="all but a namespace"),
        pytest.param(Scope(labels=parse_labels("pick=me")), id="labels"),
        pytest.param(Scope(fields=(FieldRequirement("metadata.name", "w1", equal=True),)), id="a field"),
        pytest.param(Scope(fields=(FieldRequirement("spec.nodeName", "", equal=True),)), id="pending pods"),
        pytest.param(Scope(targets=(Target("Pod", "w1"),)), id="a name"),
        pytest.param(Scope(targets=(Target("Deployment", "web"),)), id="an owner"),
        pytest.param(Scope(targets=(Target("Deployment", ""),)), id="owners of a kind"),
    ],
)
def test_the_scope_selects_evaluated_pods_and_never_counted_pods(scope: Scope) -> None:
    requested = web("w1", labels={**R1, "pick": "me"})
    report = as_json(
        audit(requested, *OTHERS, pod_json("y", node="c1", labels=R1, namespace="other"), *THREE, scope=scope)
    )
    (only,) = [constraint for constraint in report["constraints"] if constraint["path"] == S]
    assert [(domain["value"], domain["matchNum"]) for domain in only["domains"]] == [("a", 1), ("b", 1), ("c", 0)]


def test_no_pod_is_evaluated_in_the_scope_of_another_namespace() -> None:
    assert as_json(audit(web("w1"), *THREE, scope=Scope(namespace="other")))["summary"]["pods"] == 0


def test_rows_are_split_by_stored_and_by_effective_selector() -> None:
    report = as_json(audit(web("w1"), web("w2"), web("w3", labels=R2), web("w4", labels=R2, stored="r2"), *THREE))
    reported = [
        (constraint["podCount"], constraint["selector"]["stored"], constraint["selector"]["effective"])
        for constraint in report["constraints"]
    ]
    expected = [
        (2, selector(WEB, REV_IN_R1), selector(WEB, REV_IN_R1)),
        (1, selector(WEB, REV_IN_R1), selector(WEB, REV_IN_R1, REV_IN_R2)),
        (1, selector(WEB, REV_IN_R2), selector(WEB, REV_IN_R2)),
    ]
    assert sorted(reported, key=str) == sorted(expected, key=str)


@pytest.mark.parametrize(
    ("first", "second", "rows"),
    [
        pytest.param({"nodeSelector": {"a": "b"}}, {}, 2, id="nodeSelector splits a row"),
        pytest.param(
            {"tolerations": [{"operator": "Exists"}]}, {}, 1, id="tolerations do not where taints are ignored"
        ),
        pytest.param({"priorityClassName": "x"}, {}, 1, id="a field that the plugin does not read does not"),
    ],
)
def test_pods_share_a_row_only_if_their_domains_are_equal(first: Json, second: Json, rows: int) -> None:
    report = as_json(audit(web("w1", **first), web("w2", **second), *THREE))
    assert len(report["constraints"]) == rows


def test_tolerations_split_a_row_where_taints_are_honoured() -> None:
    constraints = [constraint(nodeTaintsPolicy="Honor")]
    tolerant = pod_json("w1", constraints=constraints, owner=OWNER, tolerations=[{"operator": "Exists"}])
    report = as_json(audit(tolerant, pod_json("w2", constraints=constraints, owner=OWNER), *THREE))
    assert [constraint["podCount"] for constraint in report["constraints"]] == [1, 1]


def test_tolerations_always_split_groups() -> None:
    report = as_json(audit(web("w1", tolerations=[{"operator": "Exists"}]), web("w2"), *THREE))
    assert [group["pods"] for group in report["groups"]] == [["w1"], ["w2"]]


def test_bound_pods_leave_binding_labels_out_of_their_effective_selector() -> None:
    """Pending and bound pods of one template share a row thanks to that."""
    constraints = [constraint(match=[ZONE])]
    bound = pod_json("w1", node="a1", labels={**WEB, ZONE: "a"}, constraints=constraints, owner=OWNER)
    pending = pod_json("w2", labels=WEB, constraints=constraints, owner=OWNER)
    (only,) = as_json(audit(bound, pending, *THREE))["constraints"]
    assert only["selector"]["effective"] == selector(WEB)
    assert only["selector"]["merged"] == selector(WEB)
    assert only["verdicts"] == {"absent-key": 1, "bind-label": 1}


def test_merged_is_not_applicable_where_the_scheduler_merges() -> None:
    pod = pod_json("w1", labels=R1, constraints=[constraint(match=["rev"])])
    constraint_row = row(audit(pod, *THREE, minor=33))
    assert "merged" not in constraint_row["selector"]
    assert "diff" not in constraint_row
    assert constraint_row["selector"]["effective"] == selector(WEB, REV_IN_R1)


@pytest.mark.parametrize(
    ("stored", "labels", "diff"),
    [
        pytest.param(selector(WEB, REV_IN_R1), R1, [], id="merged: none"),
        pytest.param(
            selector(WEB, REV_IN_R1),
            R2,
            ["-matchExpressions[0].values[0]: r1", "+matchExpressions[0].values[0]: r2"],
            id="stale: the value",
        ),
        pytest.param(
            selector(WEB, REV_IN_R1),
            WEB,
            ['-matchExpressions: [{"key":"rev","operator":"In","values":["r1"]}]'],
            id="removed: what is too much",
        ),
        pytest.param(
            selector(WEB),
            R1,
            ['+matchExpressions: [{"key":"rev","operator":"In","values":["r1"]}]'],
            id="unmerged: what is missing",
        ),
        pytest.param(
            selector(WEB, requirement("x", "Exists")),
            R1,
            ['+matchExpressions[1]: {"key":"rev","operator":"In","values":["r1"]}'],
            id="unmerged, behind the author's own",
        ),
    ],
)
def test_the_difference_names_stored_and_merged_values(stored: Json, labels: dict[str, str], diff: list[str]) -> None:
    pod = pod_json("w1", labels=labels, constraints=[constraint(match=["rev"], selects=stored)])
    assert row(audit(pod))["diff"] == diff


def test_rows_groups_and_pods_are_sorted() -> None:
    """By namespace, kind, name and path, whose indices are numbers; pods by code point."""
    many = [constraint(key=f"k{index}") for index in range(11)]
    objects = [
        pod_json("b", namespace="n2", constraints=many),
        pod_json("é", namespace="n1", constraints=[constraint()], owner="StatefulSet/x"),
        pod_json("z", namespace="n1", constraints=[constraint()], owner="StatefulSet/x"),
        pod_json("q", namespace="n1", constraints=[constraint()], owner="Deployment/y"),
        pod_json("Z", namespace="n1", constraints=[constraint()], owner="Deployment/b"),
    ]
    report = as_json(audit(*objects, *reversed(THREE)))
    places = [
        (constraint["namespace"], constraint["workload"]["kind"], constraint["workload"]["name"])
        for constraint in report["constraints"]
    ]
    assert places[:3] == [("n1", "Deployment", "b"), ("n1", "Deployment", "y"), ("n1", "StatefulSet", "x")]
    assert [constraint["path"] for constraint in report["constraints"][3:]] == [
        f"spec.topologySpreadConstraints[{index}]" for index in range(11)
    ]
    assert report["groups"][2]["pods"] == ["z", "é"]
    assert [domain["value"] for domain in report["constraints"][0]["domains"]] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("objects", "workload"),
    [
        pytest.param([], {"kind": "Pod", "name": "w1"}, id="a bare pod is its own workload"),
        pytest.param([deployment("web-1", kind="ReplicaSet")], {"kind": "ReplicaSet", "name": "web-1"}, id="its owner"),
        pytest.param(
            [deployment("web-1", kind="ReplicaSet", owner="Deployment/web")],
            {"kind": "Deployment", "name": "web"},
            id="the owner's owner, read or not",
        ),
        pytest.param(
            [deployment("web-1", kind="ReplicaSet", owner="ReplicaSet/web-1")],
            {"kind": "ReplicaSet", "name": "web-1"},
            id="an owner that owns itself ends the search",
        ),
    ],
)
def test_the_workload_is_the_root_owner(objects: list[Json], workload: Json) -> None:
    owner = "ReplicaSet/web-1" if objects else ""
    constraint_row = row(audit(*objects, pod_json("w1", constraints=[constraint()], owner=owner)))
    assert constraint_row["workload"] == workload


def test_an_owner_that_is_not_the_controller_is_not_the_workload() -> None:
    """Garbage collection follows every owner, and a pod belongs to the workload of its controller."""
    budget = {"apiVersion": "example.com/v1", "kind": "Budget", "name": "shop", "uid": "1"}
    controller = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "2", "controller": True}
    pod = pod_json("w1", constraints=[constraint()], metadata={"ownerReferences": [budget, controller]})
    assert row(audit(pod))["workload"] == {"kind": "StatefulSet", "name": "web"}


def test_a_term_with_keys_has_a_row_without_counts() -> None:
    preferred = affinity("podAntiAffinity", term(match=["rev"], selects=selector(WEB, REV_IN_R1)), required=False)
    (only,) = as_json(audit(pod_json("w1", node="a1", labels=R2, affinity=preferred), *THREE))["constraints"]
    assert set(only) == {
        "namespace",
        "workload",
        "podCount",
        "pending",
        "path",
        "topologyKey",
        "selector",
        "diff",
        "verdicts",
    }
    assert only["path"] == (
        "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm"
    )
    assert only["selector"]["effective"] == only["selector"]["stored"]


def test_the_self_match_of_a_row_is_that_of_most_pods() -> None:
    """One pod of three lost the label that the selector asks for."""
    objects = [
        pod_json(f"w{index}", node="a1", labels=labels, constraints=[constraint()], owner=OWNER)
        for index, labels in enumerate((WEB, WEB, {"app": "lost"}))
    ]
    assert row(audit(*objects, *THREE))["selfMatchNum"] == 1
    assert row(audit(*reversed(objects), *THREE))["selfMatchNum"] == 1
    assert row(audit(*objects[1:], *THREE)) == row(audit(*reversed(objects[1:]), *THREE))


def test_a_finding_quotes_the_pod_that_is_first_by_name() -> None:
    """Not the pod that was read first."""
    objects = [
        pod_json(f"w{index}", labels=labels, constraints=[constraint(selects=selector(WEB))], owner=OWNER)
        for index, labels in enumerate(({"app": "lost"}, {"app": "other"}))
    ]
    for pods in (objects, objects[::-1]):
        (finding,) = (entry for entry in as_json(audit(*pods))["findings"] if entry["code"] == "SPR206")
        assert finding["values"]["have"] == "app=lost"


def test_finished_pods_that_the_user_names_are_not_reported_as_missing() -> None:
    targets = (Target("Pod", "w1"), Target("Pod", "gone"), Target("Deployment", "web"), Target("Job", ""))
    evaluation = audit(web("w1", phase="Succeeded"), web("w2"), scope=Scope(targets=targets))
    assert evaluation.snapshot.unmet() == [Target("Pod", "gone")]


def test_the_report_survives_json() -> None:
    """Labels may hold any character."""
    pod = pod_json(
        "w1", labels={"app": "\u202e\x1b[31m"}, constraints=[constraint(selects={"matchLabels": {"a": "\n"}})]
    )
    assert json.dumps(as_json(audit(pod)))


def test_zones_have_their_nodes_and_the_evaluated_pods_on_them() -> None:
    nodes = [node_json(name) for name in ("b1", "a1", "a2", "c1")]
    pods = [web("w1", "a1"), web("w2", "a2"), web("w3", "x1"), web("w4"), web("w5", "c1")]
    snapshot = audit(*nodes, node_json("x1", without=[ZONE]), *pods).snapshot
    pods_on = Counter(pod.node for pod in snapshot.pods)
    zones = projections.zones(snapshot.nodes, pods_on.__getitem__)
    assert [(zone.zone, zone.nodes, zone.pods) for zone in zones] == [
        ("a", 2, 2),
        ("b", 1, 0),
        ("c", 1, 1),
    ]
