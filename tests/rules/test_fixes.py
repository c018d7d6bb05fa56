"""Carrying out a printed fix ends the finding, and makes no other finding worse."""

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
RELABELLED = ("SPR101", "SPR102")
RANKS = ("info", "warning", "error")
KINDS = ("Pod", "Node", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob")


def objects(path: Path) -> list[Json]:
    """Return the objects of a file that decide where pods are placed."""
    loaded = [json.loads(path.read_text())] if path.suffix == ".json" else YAML(typ="safe").load_all(path)
    documents = [document for document in loaded if isinstance(document, dict)]
    listed = [item for document in documents for item in document.get("items", [document])]
    plain: list[Json] = json.loads(json.dumps(listed, default=str))
    manifests = [manifest for manifest in plain if manifest.get("kind") in KINDS and "metadata" in manifest]
    for manifest in manifests:
        manifest["metadata"].setdefault("namespace", "default")
    return manifests


def key_of(finding: Json) -> tuple[str, ...]:
    return finding["code"], finding["namespace"], finding["object"]["kind"], finding["object"]["name"], finding["path"]


def ranks(findings: list[Json]) -> dict[tuple[str, ...], int]:
    return {key_of(finding): RANKS.index(finding["severity"]) for finding in findings}


def findings_with(codes: tuple[str, ...]) -> Iterator[tuple[Path, list[Json], Audit, Any]]:
    """Yield every capture with nodes and pods, with each of its findings of some rules."""
    for path in FILES:
        manifests = objects(path)
        if not {"Node", "Pod"} <= {manifest["kind"] for manifest in manifests}:
            continue
        try:
            evaluated = audit(*manifests)
        except Exception:  # noqa: BLE001 - other tests are about objects that cannot be decoded
            continue
        for finding in as_json(evaluated)["findings"]:
            if finding["code"] in codes:
                yield path, manifests, evaluated, finding


def delete(manifests: list[Json], command: re.Match[str]) -> tuple[list[Json], list[Json]]:
    """Return the manifests that a command leaves, and those that it deletes."""
    namespace, names = command[1], command[2].split()
    deleted = [
        manifest
        for manifest in manifests
        if manifest["kind"] == "Pod" and manifest["metadata"]["name"] in names
        if manifest["metadata"]["namespace"] == namespace
    ]
    return [manifest for manifest in manifests if not any(manifest is pod for pod in deleted)], deleted


def replace(manifests: list[Json], deleted: Json) -> list[Json]:
    """Add a pod like the deleted pod, in the fullest domain that hard constraints allow and soft constraints prefer."""
    pod = copy.deepcopy(deleted)
    pod["metadata"]["name"] += "-new"
    pod["spec"].pop("nodeName", None)
    pod["status"] = {"phase": "Pending"}
    evaluated = audit(*manifests, pod)
    (record,) = [pending for pending in evaluated.pods if pending.name == pod["metadata"]["name"]]
    placing = place(record.pod_class, [record.name], evaluated)
    spreads = [spread for spread in evaluated.evaluator.of(record.pod_class).spreads if spread is not None]

    def pods_in_domains_of(node: str, *, hard: bool) -> int:
        return sum(
            spread.match_num.get(spread.domains.value_of.get(node, ""), 0)
            for spread in spreads
            if spread.constraint.hard is hard
        )

    assert placing.allowed, placing
    pod["spec"]["nodeName"] = max(
        placing.allowed,
        key=lambda node: (-pods_in_domains_of(node, hard=False), pods_in_domains_of(node, hard=True)),
    )
    pod["status"] = {"phase": "Running"}
    return [*manifests, pod]


def test_skew_findings_name_running_pods_in_the_fullest_domain() -> None:
    checked = 0
    for path, manifests, evaluated, finding in findings_with(SKEWS):
        pods = {(pod["metadata"]["namespace"], pod["metadata"]["name"]): pod for pod in manifests}
        rows = as_json(evaluated)["constraints"]
        row = max((rows[index] for index in finding["rows"]), key=lambda row: row["skew"])
        most = max(domain["matchNum"] for domain in row["domains"])
        fullest = {domain["value"] for domain in row["domains"] if domain["matchNum"] == most}
        assert finding["pods"], path
        for name in finding["pods"]:
            pod = pods[finding["namespace"], name]
            labels = evaluated.nodes.labels_of(pod["spec"]["nodeName"])
            assert labels[row["topologyKey"]] in fullest, (path, name)
            assert "deletionTimestamp" not in pod["metadata"], (path, name)
        checked += 1
    assert checked >= 30


def test_deleting_the_pods_of_a_command_ends_the_skew() -> None:
    """It ends even if the replacements go to the fullest domains that a hard constraint allows."""
    ended = 0
    for path, manifests, evaluated, finding in findings_with(SKEWS):
        command = DELETE.search(finding["fix"])
        if command is None:
            continue
        left, deleted = delete(manifests, command)
        assert len(deleted) == len(command[2].split()), (path, finding["fix"])
        for pod in deleted:
            left = replace(left, pod)
        before, after = ranks(as_json(evaluated)["findings"]), ranks(as_json(audit(*left))["findings"])
        assert key_of(finding) not in after, (path, finding["fix"])
        worse = {key: rank for key, rank in after.items() if rank > before.get(key, 0)}
        assert worse == {}, (path, finding["fix"])
        ended += 1
    assert ended >= 12


def test_deleting_relabelled_pods_ends_the_finding() -> None:
    ended = 0
    for path, manifests, evaluated, finding in findings_with(RELABELLED):
        command = DELETE.search(finding["fix"])
        if command is None:
            continue
        assert "restart all" in finding["fix"] or finding["object"]["kind"] not in ("Deployment", "StatefulSet"), path
        left, _ = delete(manifests, command)
        before, after = ranks(as_json(evaluated)["findings"]), ranks(as_json(audit(*left))["findings"])
        assert key_of(finding) not in after, path
        worse = {key for key, rank in after.items() if key[0] in RELABELLED and rank > before.get(key, 0)}
        assert worse == set(), path
        ended += 1
    assert ended >= 3


@pytest.mark.parametrize("name", ["SPR101/bad-bare-sibling", "SPR301/bad-bare-pods"])
def test_no_fix_deletes_a_bare_pod_without_saving_its_manifest(name: str) -> None:
    path = HERE / f"{name}.yaml"
    fixes = [
        finding["fix"] for finding in as_json(audit(*objects(path)))["findings"] if finding["object"]["kind"] == "Pod"
    ]
    assert fixes
    assert [fix for fix in fixes if "kubectl delete" in fix] == []
    assert all("unmerge" in fix for fix in fixes)
