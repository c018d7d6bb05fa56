"""Commands are safe to paste, and name the cluster that was read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kubectl_spread.cli import cli
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.report.model import CommandLine, Operation
from kubectl_spread.rules.remedy import CommandFlags, flagged, patched
from tests import contract
from tests.audits import as_json, audit
from tests.builders import Json, constraint, requirement, selector
from tests.cli.test_check import run
from tests.simulate import clusters

WEB = ObjectRef("shop", "Deployment", "web")
HERE = Path(__file__).parent
MAX_SKEW = "/spec/template/spec/topologySpreadConstraints/0/maxSkew"


def test_a_patch_is_applied_by_one_command() -> None:
    operations = [Operation(op="test", path=MAX_SKEW, value=1), Operation(op="replace", path=MAX_SKEW, value=2)]
    assert str(flagged(patched(WEB, operations), CommandFlags(["--context", "prod eu"]))) == (
        "kubectl --context 'prod eu' patch deploy/web -n shop --type=json -p "
        f"""'[{{"op":"test","path":"{MAX_SKEW}","value":1}},{{"op":"replace","path":"{MAX_SKEW}","value":2}}]'"""
    )


def test_a_patch_that_only_removes_has_no_value() -> None:
    command = patched(WEB, [Operation(op="remove", path=MAX_SKEW)])
    assert command.words[-1] == f'[{{"op":"remove","path":"{MAX_SKEW}"}}]'


def test_flags_go_to_the_commands_that_contact_the_cluster() -> None:
    """``merge``, ``unmerge`` and ``patch --local`` read files alone."""
    words = (
        *("kubectl", "spread", "unmerge", "-f", "a b", "|", "kubectl", "patch", "--local", "-f", "-", ">", "new", "&&"),
        *("kubectl", "spread", "merge", "-f", "new", "&&", "kubectl", "replace", "-f", "new"),
    )
    assert str(flagged(CommandLine(words), CommandFlags(["--context", "prod"], ["-f", "cluster.json"]))) == (
        "kubectl spread unmerge -f 'a b' | kubectl patch --local -f - > new && "
        "kubectl spread merge -f new && kubectl --context prod replace -f new"
    )


def test_commands_of_the_plugin_read_the_same_files() -> None:
    flags = CommandFlags(["--context", "prod"], ["-f", "cluster 1.json"])
    plan = CommandLine(("kubectl", "spread", "plan", "-n", "shop"))
    assert str(flagged(plan, flags)) == "kubectl spread plan --context prod -n shop -f 'cluster 1.json'"
    delete = CommandLine(("kubectl", "delete", "pod", "web-1"))
    assert str(flagged(delete, flags)) == "kubectl --context prod delete pod web-1"


def commands(example: str, code: str) -> list[list[str]]:
    """Return the commands of each finding of a rule on an example."""
    result = CliRunner().invoke(cli, ["check", "-f", str(HERE / f"{example}.yaml"), "-o", "json", "--fail-on", "never"])
    findings = contract.loaded(result.stdout)["findings"]
    return [finding.get("commands", []) for finding in findings if finding["code"] == code]


def test_a_bare_pod_is_deleted_only_if_the_api_would_accept_its_successor() -> None:
    """The successor has no node, so that its constraints decide where it goes."""
    assert commands("SPR101/bad-bare-sibling", "SPR101") == [
        [
            "kubectl get pod web-0 -n default -o yaml > web-0.yaml",
            (
                "kubectl spread unmerge -f web-0.yaml | kubectl patch --local -f - --type=merge "
                """-p '{"spec":{"nodeName":null}}' -o yaml > web-0-unmerged.yaml"""
            ),
            "kubectl spread merge -f web-0-unmerged.yaml > /dev/null && kubectl replace --force -f web-0-unmerged.yaml",
        ]
    ]


@pytest.mark.parametrize("code", ["SPR106", "SPR401"])
def test_a_bare_pod_that_unmerge_cannot_correct_has_no_commands(code: str) -> None:
    assert commands("SPR106/bad-twice-in-expressions", code) == [[]]


def test_the_commands_of_a_finding_are_no_alternatives() -> None:
    """They are run one after the other, so deleting the pod and restarting all pods cannot both be commands."""
    assert commands("SPR101/bad-siblings-no-longer-count-it", "SPR101") == [["kubectl delete pod -n default web-0"]]


@pytest.mark.parametrize("name", ["--all", "../config", "a;b", "$(id)", "a b", "A"])
def test_nothing_is_typed_for_a_name_that_the_api_refuses(name: str, tmp_path: Path) -> None:
    """A file may have any name, and a shell or kubectl would read some of them as something else."""
    example = (HERE / "SPR101/bad-siblings-no-longer-count-it.yaml").read_text(encoding="utf-8")
    renamed = tmp_path / "renamed.yaml"
    renamed.write_text(example.replace("name: web-0", f"name: '{name}'"), encoding="utf-8")
    assert commands(str(renamed.with_suffix("")), "SPR101") == [[]]


@pytest.mark.parametrize(
    ("read", "fix"),
    [
        (True, "Wait with the patch: 1 new pod would find no node (its volume is in zone b; 1 node: cordoned"),
        (False, "Afterwards a new pod may find no node, because its claims and volumes were not read"),
    ],
)
def test_a_patch_is_tried_with_the_volumes_of_soft_constraints_too(*, read: bool, fix: str) -> None:
    """The node of the zone of one volume is cordoned."""
    spread = constraint(hard=False, match=("pod-template-hash",))
    objects = [clusters.node("a1"), clusters.node("b1", cordoned=True), *clusters.stateful_set("db", "ab", claims=True)]
    for each in objects:
        if each["kind"] == "StatefulSet":
            each["spec"]["template"]["spec"]["topologySpreadConstraints"] = [spread]
        elif each["kind"] == "Pod":
            each["spec"] |= {"topologySpreadConstraints": [spread], "nodeName": f"{each['spec']['nodeName']}1"}
    kept = [each for each in objects if read or not each["kind"].startswith("PersistentVolume")]
    assert fix in advised(*kept, code="SPR107")


def advised(*objects: Json, code: str) -> str:
    """Return the fix of the only finding of a rule."""
    answer = run("check", "-A", "--select", code, "-o", "json", "-f", "-", stdin="\n".join(map(json.dumps, objects)))
    (finding,) = contract.loaded(answer.stdout)["findings"]
    return str(finding["fix"])


@pytest.mark.parametrize(
    ("cpu", "full"),
    [(4, False), (1, True)],
)
def test_a_patch_says_that_a_full_zone_may_hold_the_minimum_afterwards(cpu: int, *, full: bool) -> None:
    """Each zone has a pod of the workload, so none holds the minimum alone."""
    spread = constraint(match=("pod-template-hsah",))
    nodes = [clusters.node("a1"), clusters.node("b1"), clusters.node("c1", cpu=cpu)]
    web = clusters.deployment("web", ["a1", "b1", "c1"], topologySpreadConstraints=[spread])
    assert ("(SPR307)" in advised(*nodes, *web, code="SPR107")) is full


@pytest.mark.parametrize("cordoned", [False, True])
def test_a_deletion_says_that_all_pods_may_be_on_one_node_afterwards(*, cordoned: bool) -> None:
    """The replacement has one node left if its own is cordoned."""
    nodes = [clusters.node("a1"), clusters.node("b1", cordoned=cordoned)]
    fix = advised(*nodes, *relabelled(hard=False), code="SPR101")
    assert ("all pods may be on one node (SPR501)" in fix) is cordoned


@pytest.mark.parametrize("domains", [2, 3])
def test_a_deletion_says_that_no_node_may_take_one_more_pod_afterwards(domains: int) -> None:
    """The pod with the other label does not count; with minDomains above the two zones, each may have one pod."""
    fix = advised(clusters.node("a1"), clusters.node("b1"), *relabelled(minDomains=domains), code="SPR101")
    assert ("Afterwards no node may take one more pod (SPR303)" in fix) is (domains == 3)


def relabelled(**fields: Any) -> list[Json]:
    """Return a Deployment with pods on a1 and b1, of which the latter has another label than its constraint selects."""
    merged = selector({"app": "web"}, requirement("rev", "In", "r1"))
    template, stored = (constraint(match=("rev",), selects=each, **fields) for each in (None, merged))
    web = clusters.deployment("web", ["a1", "b1"], topologySpreadConstraints=[template])
    for each in web:
        if each["kind"] == "Pod":
            each["metadata"]["labels"]["rev"] = "r2" if each["spec"]["nodeName"] == "b1" else "r1"
            each["spec"]["topologySpreadConstraints"] = [stored]
        else:
            each["spec"]["template"]["metadata"]["labels"]["rev"] = "r1"
    return web


@pytest.mark.parametrize(
    ("cluster", "left"),
    [
        pytest.param(
            [
                clusters.node("a1", cpu=1),
                clusters.node("b1"),
                *clusters.deployment("other", ["a1"]),
                *clusters.deployment("web", ["b1", ""]),
            ],
            "all pods may be on one node (SPR501)",
            id="a pending pod would join the others anyway",
        ),
        pytest.param(
            [
                clusters.node("a1", cordoned=True),
                clusters.node("b1", cpu=2),
                clusters.node("b2", cpu=1),
                *clusters.deployment("web", ["a1", "b1", "b2"]),
            ],
            "all pods may be in one zone (SPR502)",
            id="an old pod has to go first",
        ),
        pytest.param(
            [
                clusters.node("a1", cpu=4),
                clusters.node("b1", cpu=2),
                *clusters.deployment("web", ["b1", "a1", "b1"]),
            ],
            "all pods may be on one node (SPR501)",
            id="in one of five runs",
        ),
    ],
)
def test_the_advice_to_spread_says_that_all_pods_may_be_in_one_place_afterwards(cluster: list[Json], left: str) -> None:
    (finding,) = [each for each in as_json(audit(*cluster))["findings"] if each["code"] == "SPR504"]
    sentences = finding["fix"].split(". ")
    assert [sentence for sentence in sentences if sentence.startswith("Afterwards ") and left in sentence], sentences
