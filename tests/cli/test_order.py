"""The order of findings on the screen: causes with pending pods first, and none of them is cut off."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

import pytest
from click.testing import CliRunner

from kubectl_spread.cli import cli
from tests.audits import deployment
from tests.builders import Json, constraint, node_json, pod_json, selector

TAINT = {"key": "gpu", "effect": "NoSchedule"}
SSD = {"disk": "ssd"}
NODES = [node_json("a1", labels=SSD), node_json("b1", labels=SSD), node_json("c1")]
TAINTED = [node_json("a1", labels=SSD), node_json("b1", labels=SSD), node_json("c1", taints=[TAINT])]


def blocked(name: str, *, each: int = 1, pending: int = 0) -> list[Json]:
    """Return a workload with pods in the zones a and b, for whose next pod the excluded zone c sets the minimum."""
    labels = {"app": name}
    spread_constraint = constraint(selects=selector(labels), max_skew=each, nodeAffinityPolicy="Ignore")
    owner = f"ReplicaSet/{name}-1"
    pods = [
        pod_json(
            f"{name}-{number}", node=node, labels=labels, constraints=[spread_constraint], owner=owner, nodeSelector=SSD
        )
        for number, node in enumerate([*("a1", "b1") * each, *[""] * pending])
    ]
    return [deployment(f"{name}-1", kind="ReplicaSet", labels=labels), *pods]


def checked(*objects: Json, form: str = "table", nodes: Sequence[Json] = NODES, arguments: Sequence[str] = ()) -> str:
    text = "\n".join(json.dumps(each) for each in (*nodes, *objects))
    outcome = CliRunner().invoke(cli, ["check", "-f", "-", "-o", form, "--fail-on", "never", *arguments], input=text)
    assert outcome.exit_code == 0, outcome.output
    return outcome.stdout


RUNNING = [each for number in range(6) for each in blocked(f"running-{number}")]
WAITING = [each for number in range(1, 6) for each in blocked(f"waiting-{number}", each=number, pending=number)]


def test_pods_that_run_are_a_warning_and_pending_pods_an_error() -> None:
    document = json.loads(checked(*blocked("idle"), *blocked("held", pending=2), form="json"))
    found = {finding["object"]["name"]: finding for finding in document["findings"] if finding["code"] == "SPR303"}
    assert {name: finding["severity"] for name, finding in found.items()} == {"idle-1": "warning", "held-1": "error"}
    assert found["held-1"]["pending"] == len(found["held-1"]["pods"]) == 2
    assert "pending" not in found["idle-1"]


def test_every_cause_with_pending_pods_is_printed_most_pending_pods_first() -> None:
    text = checked(*RUNNING, *WAITING)
    error, warning = text.index("error SPR303 blocked"), text.index("warning SPR303 blocked")
    places = [text.index(f"rs/waiting-{number}-1", error) for number in (5, 4, 3, 2, 1)]
    assert places == sorted(places)
    assert places[-1] < warning
    assert "with other values" not in text
    assert "more with other fixes" not in text[:warning]


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_other_formats_have_the_same_order(form: str) -> None:
    text = checked(*RUNNING, *WAITING, form=form)
    places = [text.index(f"No node takes the {number} pending pods") for number in (5, 4, 3, 2)]
    assert places == sorted(places)


def test_the_pending_pods_of_two_revisions_are_one_finding() -> None:
    """Each revision has a group of its own; both wait for the tainted zone."""
    labels, spread_constraint = {"app": "web"}, constraint()
    pods = [
        pod_json(
            f"web-{revision}-{number}",
            node=node,
            labels={**labels, "pod-template-hash": revision},
            constraints=[spread_constraint],
            owner=f"ReplicaSet/web-{revision}",
            tolerations=[{"key": revision}],
        )
        for revision, nodes in (("old", ["a1", "b1", ""]), ("new", [""]))
        for number, node in enumerate(nodes)
    ]
    owners = [deployment(f"web-{each}", kind="ReplicaSet", owner="Deployment/web") for each in ("old", "new")]
    document = json.loads(checked(deployment(), *owners, *pods, form="json", nodes=TAINTED))
    findings = [finding for finding in document["findings"] if finding["code"] == "SPR303"]
    assert [(finding["severity"], finding["pods"]) for finding in findings] == [("error", ["web-new-0", "web-old-2"])]


def test_a_missing_zone_is_one_cause_for_workloads_that_differ_in_min_domains() -> None:
    constraints = {
        "hard": constraint(max_skew=3),
        "soft": constraint(hard=False),
        "waits": constraint(max_skew=3, minDomains=3),
    }
    pods = [
        pod_json(f"{name}-{index}", node=node, labels={"app": "web"}, constraints=[each], owner=f"ReplicaSet/{name}")
        for name, each in constraints.items()
        for index, node in enumerate(("a1", "b1"))
    ]
    expect = ("--expect-domains", "zone=3")
    findings = json.loads(checked(*pods, form="json", nodes=NODES[:2], arguments=expect))["findings"]
    of_zone = [finding for finding in findings if finding["code"] == "SPR311"]
    assert [finding["object"]["name"] for finding in of_zone] == sorted(constraints)
    assert len({finding["group"] for finding in of_zone}) == 1
    text = checked(*pods, nodes=NODES[:2], arguments=expect)
    assert "warning SPR311 missing-domains: 3 workloads\n" in text
    assert text.count("Only 2 of the 3 domains of topology.kubernetes.io/zone have nodes.") == 1
    assert "Fix for rs/hard and 1 more: Add nodes in the missing domains, and set minDomains in" in text
    assert "Fix for rs/waits: Add nodes in the missing domains.\n" in text


def short_of_zones(*places: str, max_skew: int = 1) -> list[Json]:
    """Return pods that wait for three zones, with a policy that leaves out nodes with taints."""
    name = f"short-{max_skew}"
    labels = {"app": name}
    spread = constraint(selects=selector(labels), max_skew=max_skew, minDomains=3, nodeTaintsPolicy="Honor")
    return [
        pod_json(f"{name}-{index}", node=node, labels=labels, constraints=[spread], owner=f"ReplicaSet/{name}")
        for index, node in enumerate(places)
    ]


def test_zones_that_are_too_few_while_one_is_cordoned_are_in_the_group_of_the_cordoned_zone() -> None:
    node = node_json("c1", labels=SSD, taints=[{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}])
    node["spec"]["unschedulable"] = True
    cordoned = [*NODES[:2], node]
    objects = [
        *blocked("waiting", pending=1),
        *short_of_zones("a1", "b1", ""),
        *short_of_zones("a1", "a1", "b1", max_skew=2),
    ]
    findings = json.loads(checked(*objects, nodes=cordoned, form="json"))["findings"]
    of_zone = {finding["object"]["name"]: finding for finding in findings if "closed" in finding}
    assert {name: finding["code"] for name, finding in of_zone.items()} == {
        "waiting-1": "SPR303",
        "short-1": "SPR303",
        "short-2": "SPR304",
    }
    assert len({finding["group"] for finding in of_zone.values()}) == 1
    assert of_zone["short-1"]["fix"].startswith("Add nodes in 1 more domain, or lower minDomains")


def test_a_zone_that_lasting_taints_leave_out_is_not_opened_for_min_domains() -> None:
    findings = json.loads(checked(*short_of_zones("a1", "b1", ""), nodes=TAINTED, form="json"))["findings"]
    assert [finding["code"] for finding in findings if finding["severity"] == "error"] == ["SPR303"]
    assert all("closed" not in finding for finding in findings)


def test_explain_names_the_other_constraint_and_never_says_to_run_explain() -> None:
    """Zone b is at the minimum and its node is free, but the only rack is short of minDomains."""
    constraints = [constraint(), constraint(key="example.com/rack", minDomains=2)]
    pods = [
        pod_json(f"web-{number}", node=node, constraints=constraints, owner="ReplicaSet/web-1")
        for number, node in enumerate(["a1", ""])
    ]
    racked = [node_json(name, labels={"example.com/rack": "r1"}) for name in ("a1", "b1")]
    owner = deployment("web-1", kind="ReplicaSet")
    owner["spec"]["replicas"] = 2
    text = "\n".join(json.dumps(each) for each in (*racked, owner, *pods))
    outcome = CliRunner().invoke(cli, ["explain", "rs/web-1", "-f", "-"], input=text)
    words = " ".join(outcome.stdout.split())
    assert (
        "because zone b has none and no node there takes one; their constraint on rack (maxSkew 1) has fewer" in words
    )
    assert "Fix: Remove minDomains in their constraint on rack. Tried in a simulation" in words
    assert "kubectl spread explain" not in words


def test_a_blocked_pod_has_the_numbers_of_the_scheduler_and_of_explain() -> None:
    """A node that is cordoned and full of pods counts once, as cordoned, which the scheduler looks at first."""
    cordoned = node_json("a2", labels=SSD)
    cordoned["spec"]["unschedulable"] = True
    objects = (*TAINTED, cordoned, *blocked("web", pending=1))
    text = "\n".join(json.dumps(each) for each in objects)
    outcome = CliRunner().invoke(cli, ["explain", "rs/web-1", "-f", "-", "-o", "json"], input=text)
    explanation = json.loads(outcome.stdout)
    (finding,) = (finding for finding in explanation["findings"] if finding["code"] == "SPR303")
    assert finding["message"].startswith(
        "No node takes the pending pod: 2 nodes do not match the spread constraints, 1 node is cordoned and "
        "1 node has a taint that is not tolerated."
    )
    (waiting,) = explanation["waiting"]
    numbers = Counter[str]()
    for refusal in waiting["refused"]:
        numbers[refusal["filter"]] += len(refusal["nodes"])
    assert numbers == {"spread": 2, "cordon": 1, "taints": 1}
