"""The section of ``explain`` about new nodes, and the sentence of ``check``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from kubectl_spread.cli import cli
from tests.contract import loaded, validator

DOCS: Final = Path(__file__).parents[2] / "docs" / "autoscalers"
CAPTURES: Final = sorted(DOCS.glob("*.yaml"))


def run(command: str, path: Path | str, text: str | None = None) -> str:
    arguments = [*command.split(), "-n", "shop", "-f", str(path), "--server-version", "1.37"]
    return CliRunner().invoke(cli, arguments, input=text).stdout


def without_autoscalers(path: Path) -> str:
    """Return a capture without the objects of autoscalers and their events."""
    documents = path.read_text(encoding="utf-8").split("---\n")
    kinds = ("NodePool", "EC2NodeClass", "ConfigMap", "Event")
    return "---\n".join(text for text in documents if not any(f"\nkind: {kind}\n" in text for kind in kinds))


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_the_answer_is_in_the_json_with_its_schema(path: Path) -> None:
    explanation = loaded(run("explain deploy/web -o json", path))
    validator("SpreadExplanation").validate(explanation)
    [answer] = explanation["newNodes"]
    assert answer["verdict"] == "possible"
    assert answer["pods"] == ["web-7d9f-p1", "web-7d9f-p2"]
    assert len(answer["messages"]) == 1


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_check_has_the_summary_once_for_all_pods(path: Path) -> None:
    [answer] = loaded(run("explain deploy/web -o json", path))["newNodes"]
    assert run("check", path).count(answer["summary"]) == 1


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_nothing_is_printed_without_autoscalers(path: Path) -> None:
    capture = without_autoscalers(path)
    text = run("explain deploy/web", "-", capture)
    assert "2 pending pods" in text
    assert "autoscaler" not in text
    assert "node may be made" not in text
    assert "newNodes" not in loaded(run("explain deploy/web -o json", "-", capture))


def test_a_refusal_by_all_is_said_as_none() -> None:
    capture = (DOCS / "cluster-autoscaler.yaml").read_text(encoding="utf-8").replace("maxSize: 3}", "maxSize: 0}", 1)
    text = run("explain deploy/web", "-", capture)
    assert "No node group can get a node for 2 pods (web-7d9f-p1, web-7d9f-p2)\n" in text
    assert "Not known: instance types" not in text
    assert (
        "No node group can get a node: node group eks-workers-a-1f2e has its maximum of 0 nodes, and 2 more refuse too."
        in (run("check", "-", capture))
    )


def test_nothing_is_said_where_nodes_were_not_read() -> None:
    documents = (DOCS / "karpenter.yaml").read_text(encoding="utf-8").split("---\n")
    capture = "---\n".join(text for text in documents if "\nkind: Node\n" not in text)
    pending = capture.replace("  nodeName: node-b\n", "").replace("  nodeName: node-c\n", "")
    assert "newNodes" not in loaded(run("explain deploy/web -o json", "-", pending))
    assert "NodePool" not in run("check", "-", pending)


def test_a_status_without_groups_says_nothing() -> None:
    capture = (DOCS / "cluster-autoscaler.yaml").read_text(encoding="utf-8")
    before, _, rest = capture.partition("    nodeGroups:\n")
    _, separator, event = rest.partition("---\n")
    assert "newNodes" not in loaded(run("explain deploy/web -o json", "-", f"{before}{separator}{event}"))


def test_all_refusals_of_both_autoscalers_are_counted() -> None:
    status = (DOCS / "cluster-autoscaler.yaml").read_text(encoding="utf-8").replace("maxSize: 3}", "maxSize: 0}", 1)
    pool = (
        "---\napiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: default, uid: default}\n"
        "status: {conditions: [{type: Ready, status: Unknown}]}\n"
    )
    assert (
        "No NodePool or node group can make a node: NodePool default refuses because it is not ready, and 3 more"
        in (run("check", "-", status + pool))
    )


def test_karpenters_event_is_not_taken_for_the_schedulers() -> None:
    text = run("explain deploy/web", DOCS / "karpenter.yaml")
    assert "  Event: Failed to schedule pod, " in text
    assert "The scheduler's message, from the status of web-7d9f-p1" in text


def test_a_constraint_that_blocks_has_the_sentence_too() -> None:
    """Free nodes in b and c are refused by the constraint, because the node of zone a is cordoned."""
    node = {'cpu: "2"': 'cpu: "8"'}
    capture = (DOCS / "karpenter.yaml").read_text(encoding="utf-8")
    for before, after in node.items():
        capture = capture.replace(before, after)
    cordoned = (
        "---\napiVersion: v1\nkind: Node\nmetadata:\n  name: node-a\n"
        "  labels: {kubernetes.io/hostname: node-a, topology.kubernetes.io/zone: eu-1a}\n"
        'spec: {unschedulable: true}\nstatus:\n  allocatable: {cpu: "8", memory: 8Gi, pods: "20"}\n'
    )
    text = run("check", "-", capture + cordoned)
    assert "SPR303" in text
    assert "NodePool default may make a node only in zone eu-1a" in text
