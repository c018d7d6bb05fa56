"""A printed fix is carried out on the model: the finding is gone then, and none is worse."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.explain.placing import place
from tests.audits import as_json, audit
from tests.builders import Json
from tests.threads import cases

HERE = Path(__file__).parent
FILES = [
    *sorted(HERE.glob("SPR*/*.yaml")),
    *sorted(cases.HERE.glob("*/*.yaml")),
    HERE.parents[1] / "examples" / "cluster.json",
]
DELETE = re.compile(r"kubectl delete pod -n (\S+) ([a-z0-9 .-]+?)(?= \(|;|:|$)")
SKEWS = ("SPR301", "SPR302")
CHANGED = ("SPR101", "SPR102")
RANKS = ("info", "warning", "error")
KINDS = ("Pod", "Node", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob")


def objects(path: Path) -> list[Json]:
    actual = [json.loads(path.read_text())] if path.suffix == ".json" else YAML(typ="safe").load_all(path)
    documents = [item for item in actual if isinstance(item, dict)]
    listed = [item for document in documents for item in document.get("items", [document])]
    plain: list[Json] = json.loads(json.dumps(listed, default=str))
    remaining = [manifest for manifest in plain if manifest.get("kind") in KINDS and "metadata" in manifest]
    for manifest in remaining:
        manifest["metadata"].setdefault("namespace", "default")
    return remaining


def place_of(finding: Json) -> tuple[str, ...]:
    return finding["code"], finding["namespace"], finding["object"]["kind"], finding["object"]["name"], finding["path"]


def worst(findings: list[Json]) -> dict[tuple[str, ...], int]:
    return {place_of(finding): RANKS.index(finding["severity"]) for finding in findings}


def all_with(codes: tuple[str, ...]) -> Iterator[tuple[Path, list[Json], Audit, Any]]:
    """Yield every capture that has nodes, with its findings of some rules."""
    for path in FILES:
        manifests = objects(path)
        if not any(manifest["kind"] == "Node" for manifest in manifests) or not any(
            manifest["kind"] == "Pod" for manifest in manifests
        ):
            continue
        try:
            judged = audit(*manifests)
        except Exception:  # noqa: BLE001 - objects that cannot be decoded are another test's
            continue
        for finding in as_json(judged)["findings"]:
            if finding["code"] in codes:
                yield path, manifests, judged, finding


def deleted(items: list[Json], namespace: str, names: list[str]) -> tuple[list[Json], list[Json]]:
    """Return what is left and what was deleted."""
    gone = [
        item
        for item in items
        if item["kind"] == "Pod" and item["metadata"]["name"] in names
        if item["metadata"]["namespace"] == namespace
    ]
    return [item for item in items if not any(item is other for other in gone)], gone


def replaced(left: list[Json], pod: Json) -> list[Json]:
    """Place a pod like one that was deleted where the model lets it go: where there are the most of its kind."""
    new = copy.deepcopy(pod)
    new["metadata"]["name"] += "-new"
    new["spec"].pop("nodeName", None)
    new["status"] = {"phase": "Pending"}
    judged = audit(*left, new)
    (record,) = [pod for pod in judged.pods if pod.name == new["metadata"]["name"]]
    answer = place(record.pod_class, [record.name], judged)
    hard = [
        spread
        for spread in judged.evaluator.of(record.pod_class).spreads
        if spread is not None and spread.constraint.hard
    ]
    soft = [
        spread
        for spread in judged.evaluator.of(record.pod_class).spreads
        if spread is not None and not spread.constraint.hard
    ]

    def crowd(node: str) -> tuple[int, int]:
        held = [spread_count.match_num.get(spread_count.domains.value_of.get(node, ""), 0) for spread_count in hard]
        preferred = [
            spread_count.match_num.get(spread_count.domains.value_of.get(node, ""), 0) for spread_count in soft
        ]
        return -sum(preferred), sum(held)

    assert answer.allowed, answer
    new["spec"]["nodeName"] = max(answer.allowed, key=crowd)
    new["status"] = {"phase": "Running"}
    return [*left, new]


def test_pods_of_skew_findings_are_in_the_fullest_domain() -> None:
    """Bound, not terminating, and of the finding's own workload; check and explain name the same pods."""
    seen = 0
    for path, actual, judged, finding in all_with(SKEWS):
        pods = {(item["metadata"]["namespace"], item["metadata"]["name"]): item for item in actual}
        rows = as_json(judged)["constraints"]
        row = max((rows[index] for index in finding["rows"]), key=lambda row: row["skew"])
        most = max(domain["matchNum"] for domain in row["domains"])
        fullest = {domain["value"] for domain in row["domains"] if domain["matchNum"] == most}
        assert finding["pods"], path
        for name in finding["pods"]:
            pod = pods[finding["namespace"], name]
            labels = judged.nodes.labels_of(pod["spec"]["nodeName"])
            assert labels[row["topologyKey"]] in fullest, (path, name)
            assert "deletionTimestamp" not in pod["metadata"], (path, name)
        seen += 1
    assert seen >= 30


def test_deleting_the_pods_that_are_named_ends_a_skew() -> None:
    """Their replacements go where the model lets them, as badly as it does for a hard constraint."""
    ended = 0
    for path, actual, judged, finding in all_with(SKEWS):
        command = DELETE.search(finding["fix"])
        if command is None:
            continue
        left, gone = deleted(actual, command[1], command[2].split())
        assert len(gone) == len(command[2].split()), (path, finding["fix"])
        for pod in gone:
            left = replaced(left, pod)
        before, after = worst(as_json(judged)["findings"]), worst(as_json(audit(*left))["findings"])
        assert place_of(finding) not in after, (path, finding["fix"])
        worse = {item: rank for item, rank in after.items() if rank > before.get(item, 0)}
        assert worse == {}, (path, finding["fix"])
        ended += 1
    assert ended >= 12


def test_deleting_one_pod_ends_what_its_label_did() -> None:
    ended = 0
    for path, actual, judged, finding in all_with(CHANGED):
        command = DELETE.search(finding["fix"])
        if command is None:
            continue
        assert "restart all" in finding["fix"] or finding["object"]["kind"] not in ("Deployment", "StatefulSet"), path
        left, _ = deleted(actual, command[1], command[2].split())
        before, after = worst(as_json(judged)["findings"]), worst(as_json(audit(*left))["findings"])
        assert place_of(finding) not in after, path
        assert [item for item, rank in after.items() if item[0] in CHANGED and rank > before.get(item, 0)] == [], path
        ended += 1
    assert ended >= 3


@pytest.mark.parametrize("name", ["SPR101/bad-bare-sibling", "SPR301/bad-bare-pods"])
def test_a_bare_pod_is_never_just_deleted(name: str) -> None:
    path = HERE / f"{name}.yaml"
    fixes = [
        finding["fix"] for finding in as_json(audit(*objects(path)))["findings"] if finding["object"]["kind"] == "Pod"
    ]
    assert fixes
    assert [fix for fix in fixes if "kubectl delete" in fix] == []
    assert all("unmerge" in fix for fix in fixes)
