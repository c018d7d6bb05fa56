"""A pod that the scheduler refused is in an error of ``check``, whatever refuses it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from click.testing import CliRunner

from kubectl_spread.cli import cli
from tests.audits import audit, explained
from tests.builders import ZONE, constraint, node_json, pod_json, requirement, selector
from tests.contract import loaded
from tests.fuzz import clusters

TESTS: Final = Path(__file__).parents[1]
CAPTURES: Final = sorted(
    [*TESTS.glob("rules/*/*.yaml"), *TESTS.glob("threads/*/input.yaml"), TESTS.parent / "examples" / "cluster.json"]
)
SEEDS: Final = 60
REFUSED: Final = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/1 nodes are available.",
}


def waiting(items: list[Any]) -> list[Any]:
    """Return the stored pods of kube-scheduler that have no node."""
    return [
        item
        for item in items
        if item["kind"] == "Pod"
        and item["metadata"].get("uid")
        and not item["metadata"].get("deletionTimestamp")
        and not item["spec"].get("nodeName")
        and not item["spec"].get("schedulingGates")
        and item["spec"].get("schedulerName", "default-scheduler") == "default-scheduler"
        and item.get("status", {}).get("phase", "Pending") == "Pending"
        and "kubernetes.io/config.mirror" not in item["metadata"].get("annotations", {})
    ]


def unreported(items: list[Any]) -> list[str]:
    """Return the waiting pods that are in no error, after the scheduler has refused all of them."""
    pods = waiting(items) if any(item["kind"] == "Node" for item in items) else []
    for pod in pods:
        pod["status"] = {"phase": "Pending", "conditions": [REFUSED]}
    if not pods:
        return []
    capture = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    outcome = CliRunner().invoke(cli, ["check", "-f", "-", "-o", "json", "--server-version", "1.37"], input=capture)
    errors = [finding for finding in loaded(outcome.stdout)["findings"] if finding["severity"] == "error"]
    reported = {(finding["namespace"], pod) for finding in errors for pod in finding["pods"]}
    refs = ((pod["metadata"].get("namespace", "default"), pod["metadata"]["name"]) for pod in pods)
    return sorted("/".join(ref) for ref in refs if ref not in reported)


def objects(path: Path) -> list[Any]:
    documents = [document for document in yaml.load_all(path.read_text(), yaml.CSafeLoader) if document]
    return [item for document in documents for item in document.get("items", [document])]


def read(path: Path) -> list[Any]:
    """Return the objects of a capture as JSON has them."""
    texts: list[Any] = json.loads(
        json.dumps(objects(path), default=lambda time: time.isoformat().replace("+00:00", "Z"))
    )
    return texts


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_each_refused_pod_of_a_capture_is_in_an_error(path: Path) -> None:
    if "---" in path.read_text() and "{{" in path.read_text():
        pytest.fail("a capture is rendered")
    assert unreported(read(path)) == []


def test_each_refused_pod_of_odd_clusters_is_in_an_error() -> None:
    missed = {}
    for seed in range(SEEDS):
        items = json.loads(clusters.capture(random.Random(seed)))["items"]
        if pods := unreported(items):
            missed[seed] = pods
    assert missed == {}


def test_a_pending_pod_is_placed_by_its_stored_selectors() -> None:
    """Its label was changed, so that its constraint selects no pod; a new pod like it would have it merged again."""
    merged = selector({"app": "web"}, requirement("rev", "In", "r1"))
    spread = constraint(selects=merged, match=["rev"], nodeAffinityPolicy="Ignore")
    there = [pod_json(f"there-{rev}", node="a1", labels={"app": "web", "rev": rev}) for rev in ("r1", "r2")]
    changed = pod_json(
        "changed", node="", labels={"app": "web", "rev": "r2"}, constraints=[spread], nodeSelector={ZONE: "a"}
    )
    explanation = explained(audit(*there, changed, node_json("a1"), node_json("b1")))
    (placing,) = (each for each in explanation["placing"] if each["pods"] == ["changed"])
    assert placing["allowed"] == ["a1"]
