"""Default constraints: which pods get them, which pods they select, and how the scheduler respects them.

The selectors and counts were compared with kube-scheduler v1.37.1 (tests/conformance, tests/e2e/test_defaults.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.types import TopologySpreadConstraint
from kubectl_spread.kube.scheduler.configuration import SYSTEM, Profile
from tests.audits import as_json, audit, deployment, explained, row
from tests.builders import (
    HOSTNAME,
    ZONE,
    Json,
    affinity,
    constraint,
    decode_selector,
    node_json,
    pod_json,
    requirement,
    selector,
    term,
)

HASHED = {"app": "web", "pod-template-hash": "h1"}
ZONES = tuple(node_json(name) for name in ("a1", "b1", "c1"))
FIRST = "defaultConstraints[0]"
PINNED = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a1"]}]},
            ]
        }
    }
}


def listing(*unselective: Json, **fields: Any) -> Profile:
    """Return a profile with default constraints of its own."""
    constraints = msgspec.convert(
        [{**constraint, "labelSelector": None} for constraint in unselective], tuple[TopologySpreadConstraint, ...]
    )
    return Profile(defaults=constraints, system_defaults=False, **fields)


HARD = {"default-scheduler": listing(constraint())}


def owned(kind: str, selects: Json | None, *, api_version: str = "apps/v1", name: str = "web") -> Json:
    workload = deployment(name, kind=kind)
    return {**workload, "apiVersion": api_version, "spec": {**workload["spec"], "selector": selects}}


def service(selects: Mapping[str, str] | None, name: str = "web", namespace: str = "default") -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {} if selects is None else {"selector": dict(selects)},
    }


def controller(name: str) -> dict[str, Any]:
    """Return the metadata of a pod of a ReplicationController."""
    owner = {"apiVersion": "v1", "kind": "ReplicationController", "name": name, "uid": name, "controller": True}
    return {"metadata": {"ownerReferences": [owner]}}


def default_rows(evaluation: Audit) -> list[Any]:
    return [constraint for constraint in as_json(evaluation)["constraints"] if constraint["default"] is True]


def effective(evaluation: Audit) -> str:
    """Return the selector of the first default row in words; "" without such a row."""
    rows = [row for row in default_rows(evaluation) if row["path"] == FIRST]
    return labelselectors.describe(decode_selector(rows[0]["selector"]["effective"])) if rows else ""


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param(
            [
                pod_json(labels=HASHED, owner="ReplicaSet/web"),
                owned("ReplicaSet", selector(HASHED)),
            ],
            "app In [web], pod-template-hash In [h1]",
            id="a ReplicaSet's, with pod-template-hash",
        ),
        pytest.param(
            [
                pod_json(owner="StatefulSet/web"),
                owned("StatefulSet", selector({"app": "web"}, requirement("x", "DoesNotExist"))),
            ],
            "app In [web], x DoesNotExist",
            id="a StatefulSet's, with expressions",
        ),
        pytest.param(
            [pod_json(**controller("web")), owned("ReplicationController", {"app": "web"}, api_version="v1")],
            "app=web",
            id="a ReplicationController's",
        ),
        pytest.param(
            [pod_json(owner="DaemonSet/web"), owned("DaemonSet", selector({"app": "web"}))], "", id="DaemonSet"
        ),
        pytest.param([pod_json(owner="Job/web")], "", id="Job"),
        pytest.param([pod_json()], "", id="no owner, no Service"),
        pytest.param([pod_json(), service({"app": "web"})], "app=web", id="a Service"),
        pytest.param([pod_json(), service({"app": "api"})], "", id="a Service that selects others"),
        pytest.param([pod_json(), service({"app": "web"}, namespace="other")], "", id="a Service elsewhere"),
        pytest.param([pod_json(), service(None)], "", id="a Service without selector"),
        pytest.param([pod_json(), service({})], "", id="a Service with an empty one"),
        pytest.param(
            [pod_json(labels={"app": "web", "tier": "x"}), service({"app": "web"}), service({"tier": "x"}, "tier")],
            "app=web, tier=x",
            id="all Services that select the pod",
        ),
        pytest.param(
            [
                pod_json(labels={**HASHED, "tier": "x"}, owner="ReplicaSet/web"),
                service({"tier": "x", "app": "web"}),
                owned("ReplicaSet", selector(HASHED)),
            ],
            "app=web, tier=x, pod-template-hash In [h1]",
            id="a Service's and a ReplicaSet's, each requirement once",
        ),
        pytest.param(
            [pod_json(owner="DaemonSet/web"), service({"app": "web"})], "app=web", id="a Service of a DaemonSet's pods"
        ),
        pytest.param([pod_json(owner="ReplicaSet/gone")], "", id="an owner that does not exist adds nothing"),
        pytest.param(
            [pod_json(owner="Deployment/web"), owned("Deployment", selector({"app": "web"}))],
            "",
            id="a Deployment that owns pods itself adds nothing",
        ),
    ],
)
def test_the_selector_is_deduced_from_services_and_owners(objects: list[Json], expected: str) -> None:
    evaluation = audit(*objects, *ZONES, schedulers=SYSTEM)
    assert effective(evaluation) == expected
    # Services and owners may be read in any order.
    assert effective(audit(*reversed(objects), *ZONES, schedulers=SYSTEM)) == expected


def test_no_default_constraints_are_added_without_a_scheduler_configuration() -> None:
    evaluation = audit(pod_json(), service({"app": "web"}), *ZONES)
    assert default_rows(evaluation) == []
    assert evaluation.groups == ()


@pytest.mark.parametrize("schedulers", [SYSTEM, HARD])
def test_a_pod_with_a_constraint_of_its_own_gets_no_default_constraints(schedulers: Mapping[str, Profile]) -> None:
    own = pod_json(constraints=[constraint(hard=False)])
    assert default_rows(audit(own, service({"app": "web"}), *ZONES, schedulers=schedulers)) == []


def test_a_default_row_as_a_whole() -> None:
    pods = [pod_json(f"web-{number}", node="a1") for number in range(2)]
    evaluation = audit(*pods, service({"app": "web"}), *ZONES, schedulers=HARD)
    web = {"matchLabels": {"app": "web"}}
    first, second = default_rows(evaluation)
    assert first == {
        "namespace": "default",
        "workload": {"kind": "Pod", "name": "web-0"},
        "podCount": 1,
        "pending": 0,
        "path": FIRST,
        "default": True,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "maxSkew": 1,
        "minDomains": 1,
        "nodeAffinityPolicy": "Honor",
        "nodeTaintsPolicy": "Ignore",
        "selector": {"authored": web, "stored": web, "effective": web},
        "verdicts": {},
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
    assert second["workload"]["name"] == "web-1"
    assert as_json(evaluation)["groups"][0]["nodes"] == {"total": 3, "feasible": 2, "notMatching": 1, "missingLabel": 0}


def test_default_constraints_come_before_affinity_terms() -> None:
    spread = affinity("podAntiAffinity", term(match=["rev"]))
    pod = pod_json(labels={"app": "web", "rev": "r1"}, affinity=spread)
    report = as_json(audit(pod, service({"app": "web"}), *ZONES, schedulers=SYSTEM))
    assert [constraint["path"] for constraint in report["constraints"]] == [
        "defaultConstraints[0]",
        "defaultConstraints[1]",
        "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]",
    ]
    assert [constraint["verdicts"] for constraint in report["constraints"]] == [{}, {}, {"late-label": 1}]


def test_match_label_keys_of_a_default_constraint_have_no_effect() -> None:
    keyed = {"default-scheduler": listing(constraint(match=["rev"]))}
    pod = pod_json(labels={"app": "web", "rev": "r1"})
    assert effective(audit(pod, service({"app": "web"}), *ZONES, schedulers=keyed)) == "app=web"


def test_pods_that_may_run_on_one_node_only_are_not_counted() -> None:
    pod = pod_json(node="a1", owner="DaemonSet/web", affinity=PINNED)
    (default_row,) = default_rows(audit(pod, service({"app": "web"}), *ZONES, schedulers=HARD))
    assert "domains" not in default_row
    assert "next" not in default_row


BOTH = [constraint(), constraint(key=HOSTNAME, hard=False)]


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        pytest.param(listing(*BOTH), {0: True, 1: True}, id="both"),
        pytest.param(listing(*BOTH, filters=False), {1: True}, id="nodes are not filtered"),
        pytest.param(listing(*BOTH, scores=False), {0: True}, id="nodes are not scored"),
        pytest.param(
            Profile(filters=False, scores=False, defaults=(), system_defaults=False), {}, id="plugin disabled"
        ),
        pytest.param(listing(), {}, id="an empty list"),
    ],
)
def test_constraints_that_a_profile_does_not_respect_have_no_row(profile: Profile, expected: dict[int, bool]) -> None:
    schedulers = {**SYSTEM, "other": profile}
    evaluation = audit(pod_json(schedulerName="other"), service({"app": "web"}), *ZONES, schedulers=schedulers)
    rows = {int(row["path"][len("defaultConstraints[") : -1]): "domains" in row for row in default_rows(evaluation)}
    assert rows == expected


@pytest.mark.parametrize(
    ("schedulers", "hard", "soft"),
    [
        pytest.param({}, False, False, id="not a profile"),
        pytest.param({"other": Profile()}, True, True, id="a profile"),
        pytest.param({"other": listing(filters=False)}, False, True, id="nodes are not filtered"),
        pytest.param({"other": listing(scores=False)}, True, False, id="nodes are not scored"),
        pytest.param({"other": listing(filters=False, scores=False)}, False, False, id="disabled"),
    ],
)
def test_only_constraints_that_the_scheduler_respects_have_counts(
    schedulers: Mapping[str, Profile], *, hard: bool, soft: bool
) -> None:
    pod = pod_json(constraints=[constraint(), constraint(key=HOSTNAME, hard=False)], schedulerName="other")
    report = as_json(audit(pod, *ZONES, schedulers=schedulers))
    assert ["domains" in constraint for constraint in report["constraints"]] == [hard, soft]
    assert [constraint["default"] for constraint in report["constraints"]] == [False, False]
    assert ("nodes" in report["groups"][0]) is hard
    unknown = [finding for finding in report["findings"] if finding["code"] == "SPR212"]
    assert bool(unknown) is not (hard or soft)
    disabled = "other" in schedulers
    assert [finding["severity"] for finding in unknown] == ["warning" if disabled else "info"] * len(unknown)


@pytest.mark.parametrize("name", ["", "default-scheduler"])
def test_a_configuration_without_the_default_scheduler_is_reported(name: str) -> None:
    """Otherwise a misspelt profile would end all findings about placement."""
    pod = pod_json(constraints=[constraint(), constraint(key=HOSTNAME)], schedulerName=name)
    report = as_json(audit(pod, *ZONES, schedulers={"defualt-scheduler": Profile()}))
    (unknown,) = (finding for finding in report["findings"] if finding["code"] == "SPR212")
    assert (unknown["severity"], unknown["values"]["scheduler"]) == ("warning", "default-scheduler")
    assert unknown["fix"] == "Add a profile of default-scheduler to the file of --scheduler-config."


def test_a_scheduler_that_the_configuration_does_not_name_has_no_counts() -> None:
    evaluation = audit(pod_json(constraints=[constraint()]), *ZONES, schedulers={"other": Profile()})
    assert "domains" not in row(evaluation)


ZONELESS = node_json("x1", without=[ZONE])
NAMELESS = node_json("y1", without=[HOSTNAME], zone="a")


def test_for_system_defaults_nodes_without_the_key_are_a_domain() -> None:
    pods = [pod_json(f"p{number}", node=node) for number, node in enumerate(("a1", "x1", "x1", "y1"))]
    evaluation = audit(pod_json("p"), *pods, service({"app": "web"}), *ZONES, ZONELESS, NAMELESS, schedulers=SYSTEM)
    by_path = {row["path"]: row for row in default_rows(evaluation) if row["workload"]["name"] == "p"}
    hosts, zones = (by_path[f"defaultConstraints[{index}]"] for index in (0, 1))
    assert {domain["value"]: (domain["nodes"], domain["matchNum"]) for domain in zones["domains"]} == {
        "": (1, 2),
        "a": (2, 2),
        "b": (1, 0),
        "c": (1, 0),
    }
    # Hosts are counted one by one: a node without a name is none.
    assert {domain["value"]: domain["matchNum"] for domain in hosts["domains"]} == {"a1": 1, "b1": 0, "c1": 0, "x1": 2}
    assert zones["next"] == {"allowed": ["", "a", "b", "c"], "blocked": []}
    codes = {finding["code"] for finding in as_json(evaluation)["findings"]}
    assert not {"SPR305", "SPR306"} & codes


def test_for_listed_defaults_nodes_without_a_key_do_not_count() -> None:
    soft = {"default-scheduler": listing(constraint(hard=False), constraint(key=HOSTNAME, hard=False))}
    evaluation = audit(pod_json(node="x1"), service({"app": "web"}), *ZONES, ZONELESS, schedulers=soft)
    assert [[domain["value"] for domain in row["domains"]] for row in default_rows(evaluation)] == [
        ["a", "b", "c"],
        ["a1", "b1", "c1"],
    ]


def test_node_affinity_makes_the_domains_of_system_defaults() -> None:
    pod = pod_json(nodeSelector={ZONE: "a"})
    evaluation = audit(pod, service({"app": "web"}), *ZONES, ZONELESS, schedulers=SYSTEM)
    zones = default_rows(evaluation)[1]
    assert [domain["value"] for domain in zones["domains"]] == ["a"]


def test_without_nodes_there_are_only_selectors() -> None:
    evaluation = audit(pod_json(), service({"app": "web"}), schedulers=SYSTEM)
    assert [row["default"] for row in default_rows(evaluation)] == [True, True]
    assert all("domains" not in row for row in default_rows(evaluation))


def test_inferred_zones_have_no_domain_without_zone() -> None:
    pods = [pod_json("p", node="a1", labels={"app": "web", ZONE: "a"}), pod_json("q", node="n2")]
    evaluation = audit(*pods, service({"app": "web"}), nodes="inferred", schedulers=SYSTEM)
    rows = [row for row in default_rows(evaluation) if "domains" in row]
    assert {row["topologyKey"] for row in rows} == {ZONE}
    assert {domain["value"] for row in rows for domain in row["domains"]} == {"a"}


def findings(profile: Mapping[str, Profile], nodes: Sequence[Json], *pods: Json) -> dict[str, str]:
    actual_findings = as_json(audit(*pods, service({"app": "web"}), *nodes, schedulers=profile))["findings"]
    return {finding["code"]: finding["severity"] for finding in actual_findings if finding["path"] == FIRST}


CROWDED = [pod_json(f"p{number}", node="a1", owner="StatefulSet/web") for number in range(3)]
TAINTED = [node_json("a1"), *(node_json(name, taints=[{"key": "x", "effect": "NoSchedule"}]) for name in ("b1", "c1"))]


@pytest.mark.parametrize(
    ("hard", "nodes", "expected"),
    [
        pytest.param(True, ZONES, {"SPR301": "warning"}, id="a hard skew is a warning"),
        pytest.param(True, TAINTED, {"SPR301": "info", "SPR303": "warning"}, id="blocked is a warning"),
        pytest.param(False, ZONES, {"SPR302": "info"}, id="a soft skew is worth knowing"),
        pytest.param(False, TAINTED, {"SPR302": "info", "SPR307": "info"}, id="soft defaults never block"),
        pytest.param(
            False,
            [*ZONES, node_json("x1", zone="")],
            {"SPR302": "info", "SPR306": "info"},
            id="an empty value of a soft default",
        ),
        pytest.param(
            True,
            [*ZONES, ZONELESS],
            {"SPR301": "warning", "SPR305": "warning"},
            id="a hard default needs the key",
        ),
    ],
)
def test_the_severity_of_a_skew_by_default_constraints_depends_on_nodes(
    *, hard: bool, nodes: Sequence[Json], expected: dict[str, str]
) -> None:
    profile = {"default-scheduler": listing(constraint(hard=hard))}
    assert findings(profile, nodes, *CROWDED) == expected


def test_a_finding_says_that_own_constraints_replace_the_default() -> None:
    findings = as_json(audit(*CROWDED, service({"app": "web"}), *ZONES, schedulers=HARD))["findings"]
    assert findings[0]["fix"].endswith(
        ". This is a default of the scheduler, which topologySpreadConstraints in the pod template replace."
    )


def test_rules_about_the_text_of_constraints_do_not_apply_to_defaults() -> None:
    odd = {"default-scheduler": listing(constraint(key="failure-domain.beta.kubernetes.io/zone", match=["a", "a"]))}
    findings = as_json(audit(*CROWDED, service({"app": "web"}), *ZONES, schedulers=odd))["findings"]
    assert not [
        finding for finding in findings if finding["code"].startswith(("SPR1", "SPR2")) and finding["path"] == FIRST
    ]


def test_explain_places_pods_by_defaults() -> None:
    explanation = explained(audit(pod_json(), service({"app": "web"}), *ZONES, schedulers=HARD), replicas=2)
    (next_pods,) = explanation["nextPods"]
    assert [step["assumed"] for step in next_pods["steps"]] == ["a", "b"]
