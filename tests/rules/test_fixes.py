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
    found = [json.loads(path.read_text())] if path.suffix == ".json" else YAML(typ="safe").load_all(path)
    documents = [one for one in found if isinstance(one, dict)]
    listed = [item for one in documents for item in one.get("items", [one])]
    plain: list[Json] = json.loads(json.dumps(listed, default=str))
    kept = [one for one in plain if one.get("kind") in KINDS and "metadata" in one]
    for one in kept:
        one["metadata"].setdefault("namespace", "default")
    return kept


def place_of(finding: Json) -> tuple[str, ...]:
    return finding["code"], finding["namespace"], finding["object"]["kind"], finding["object"]["name"], finding["path"]


def worst(findings: list[Json]) -> dict[tuple[str, ...], int]:
    return {place_of(finding): RANKS.index(finding["severity"]) for finding in findings}


def all_with(codes: tuple[str, ...]) -> Iterator[tuple[Path, list[Json], Audit, Any]]:
    """Yield every capture that has nodes, with its findings of some rules."""
    for path in FILES:
        found = objects(path)
        if not any(one["kind"] == "Node" for one in found) or not any(one["kind"] == "Pod" for one in found):
            continue
        try:
            judged = audit(*found)
        except Exception:  # noqa: BLE001 - objects that cannot be decoded are another test's
            continue
        for finding in as_json(judged)["findings"]:
            if finding["code"] in codes:
                yield path, found, judged, finding


def deleted(found: list[Json], namespace: str, names: list[str]) -> tuple[list[Json], list[Json]]:
    """Return what is left and what was deleted."""
    gone = [
        one
        for one in found
        if one["kind"] == "Pod" and one["metadata"]["name"] in names
        if one["metadata"]["namespace"] == namespace
    ]
    return [one for one in found if not any(one is other for other in gone)], gone


def replaced(left: list[Json], pod: Json) -> list[Json]:
    """Place a pod like one that was deleted where the model lets it go: where there are the most of its kind."""
    new = copy.deepcopy(pod)
    new["metadata"]["name"] += "-new"
    new["spec"].pop("nodeName", None)
    new["status"] = {"phase": "Pending"}
    judged = audit(*left, new)
    (record,) = [one for one in judged.pods if one.name == new["metadata"]["name"]]
    answer = place(record.shape, [record.name], judged)
    hard = [one for one in judged.views.of(record.shape).spreads if one is not None and one.constraint.hard]
    soft = [one for one in judged.views.of(record.shape).spreads if one is not None and not one.constraint.hard]

    def crowd(node: str) -> tuple[int, int]:
        held = [one.match_num.get(one.domains.value_of.get(node, ""), 0) for one in hard]
        preferred = [one.match_num.get(one.domains.value_of.get(node, ""), 0) for one in soft]
        return -sum(preferred), sum(held)

    assert answer.allowed, answer
    new["spec"]["nodeName"] = max(answer.allowed, key=crowd)
    new["status"] = {"phase": "Running"}
    return [*left, new]


def test_pods_of_skew_findings_are_in_the_fullest_domain() -> None:
    """Bound, not terminating, and of the finding's own workload; check and explain name the same pods."""
    seen = 0
    for path, found, judged, finding in all_with(SKEWS):
        pods = {(one["metadata"]["namespace"], one["metadata"]["name"]): one for one in found}
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
    for path, found, judged, finding in all_with(SKEWS):
        command = DELETE.search(finding["fix"])
        if command is None:
            continue
        left, gone = deleted(found, command[1], command[2].split())
        assert len(gone) == len(command[2].split()), (path, finding["fix"])
        for pod in gone:
            left = replaced(left, pod)
        before, after = worst(as_json(judged)["findings"]), worst(as_json(audit(*left))["findings"])
        assert place_of(finding) not in after, (path, finding["fix"])
        worse = {one: rank for one, rank in after.items() if rank > before.get(one, 0)}
        assert worse == {}, (path, finding["fix"])
        ended += 1
    assert ended >= 12


def test_deleting_one_pod_ends_what_its_label_did() -> None:
    ended = 0
    for path, found, judged, finding in all_with(CHANGED):
        command = DELETE.search(finding["fix"])
        if command is None:
            continue
        assert "restart all" in finding["fix"] or finding["object"]["kind"] not in ("Deployment", "StatefulSet"), path
        left, _ = deleted(found, command[1], command[2].split())
        before, after = worst(as_json(judged)["findings"]), worst(as_json(audit(*left))["findings"])
        assert place_of(finding) not in after, path
        assert [one for one, rank in after.items() if one[0] in CHANGED and rank > before.get(one, 0)] == [], path
        ended += 1
    assert ended >= 3


@pytest.mark.parametrize("name", ["SPR101/bad-bare-sibling", "SPR301/bad-bare-pods"])
def test_a_bare_pod_is_never_just_deleted(name: str) -> None:
    path = HERE / f"{name}.yaml"
    fixes = [one["fix"] for one in as_json(audit(*objects(path)))["findings"] if one["object"]["kind"] == "Pod"]
    assert fixes
    assert [fix for fix in fixes if "kubectl delete" in fix] == []
    assert all("unmerge" in fix for fix in fixes)
