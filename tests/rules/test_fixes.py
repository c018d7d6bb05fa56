"""Carrying out a printed command or patch ends the finding, and makes no other finding worse."""

from __future__ import annotations

import copy
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.rules import RULES
from kubectl_spread.rules.model import Rule
from tests.audits import as_json, audit, engine_of
from tests.builders import Json
from tests.jsonpatch import FailedTestError, applied
from tests.rules.test_rules import OPTIONS, remedies_of
from tests.rules.test_rules import findings as rule_findings
from tests.rules.test_rules import name as rule_name
from tests.threads import cases

HERE = Path(__file__).parent
FILES = [
    *sorted(HERE.glob("SPR*/*.yaml")),
    *sorted(cases.HERE.glob("*/*.yaml")),
    HERE.parents[1] / "examples" / "cluster.json",
]
SKEWS = ("SPR301", "SPR302")
RELABELLED = ("SPR101", "SPR102")
RANKS = ("info", "warning", "error")
KINDS = ("Pod", "Node", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob")


def objects(path: Path) -> list[Json]:
    """Return the objects of a file that decide where pods are placed."""
    loaded = [json.loads(path.read_text())] if path.suffix == ".json" else YAML(typ="safe", pure=True).load_all(path)
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


def deletion(finding: Json) -> list[str]:
    """Return the names of the pods that the only command of a finding deletes; none where other commands precede it."""
    commands = [shlex.split(command) for command in finding.get("commands", [])]
    return commands[0][5:] if commands and commands[0][:4] == ["kubectl", "delete", "pod", "-n"] else []


def delete(manifests: list[Json], namespace: str, names: list[str]) -> tuple[list[Json], list[Json]]:
    """Return the manifests that are left after some pods are deleted, and those of these pods."""
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
    destinations = engine_of(evaluated).destinations(record)
    spreads = [spread for spread in evaluated.evaluator.of(record.pod_class).spreads if spread is not None]

    def pods_in_domains_of(node: str, *, hard: bool) -> int:
        return sum(
            spread.match_num.get(spread.domains.value_of.get(node, ""), 0)
            for spread in spreads
            if spread.constraint.hard is hard
        )

    assert destinations.allowed, destinations
    pod["spec"]["nodeName"] = max(
        destinations.allowed,
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


def test_deleting_the_pods_of_a_command_lowers_the_skew() -> None:
    """It ends where only one pod has to move, even if its replacement goes to the fullest domain that it may use."""
    ended = 0
    for path, manifests, evaluated, finding in findings_with(SKEWS):
        if not (names := deletion(finding)):
            continue
        left, deleted = delete(manifests, finding["namespace"], names)
        assert len(deleted) == len(names), (path, finding["commands"])
        for pod in deleted:
            left = replace(left, pod)
        before, after = ranks(as_json(evaluated)["findings"]), ranks(as_json(audit(*left))["findings"])
        assert key_of(finding) not in after or finding["values"]["must_go"] > 1, (path, finding["commands"])
        worse = {key: rank for key, rank in after.items() if rank > before.get(key, 0)}
        assert worse == {}, (path, finding["commands"])
        ended += 1
    assert ended >= 12


def test_deleting_relabelled_pods_ends_the_finding() -> None:
    ended = 0
    for path, manifests, evaluated, finding in findings_with(RELABELLED):
        if not (names := deletion(finding)):
            continue
        if "look again" in finding["fix"]:
            continue
        assert "restart all" in finding["fix"] or finding["object"]["kind"] not in ("Deployment", "StatefulSet"), path
        left, _ = delete(manifests, finding["namespace"], names)
        before, after = ranks(as_json(evaluated)["findings"]), ranks(as_json(audit(*left))["findings"])
        assert key_of(finding) not in after, path
        worse = {key for key, rank in after.items() if key[0] in RELABELLED and rank > before.get(key, 0)}
        assert worse == set(), path
        ended += 1
    assert ended >= 3


@pytest.mark.parametrize("name", ["SPR101/bad-bare-sibling", "SPR301/bad-bare-pods"])
def test_a_bare_pod_is_deleted_only_after_its_manifest_is_saved(name: str) -> None:
    findings = [
        finding
        for finding in as_json(audit(*objects(HERE / f"{name}.yaml")))["findings"]
        if finding["object"]["kind"] == "Pod" and "commands" in finding
    ]
    assert findings
    for finding in findings:
        assert "unmerge" in finding["fix"]
        save, unmerge, replace_pod = finding["commands"]
        assert re.match(r"kubectl get pod \S+ -n \S+ -o yaml > \S+\.yaml$", save)
        assert unmerge.startswith("kubectl spread unmerge -f ")
        assert re.match(r"kubectl spread merge -f (\S+) > /dev/null && kubectl replace --force -f \1$", replace_pod)


BAD = [path for path in FILES if path.stem.startswith("bad-")]


@pytest.mark.parametrize("path", BAD, ids=rule_name)
def test_a_patch_ends_its_finding_and_causes_no_other_one(path: Path, tmp_path: Path) -> None:
    before = rule_findings(path)
    for finding in before:
        if "patch" not in finding:
            continue
        patched = list(after_patch(path, finding))
        if not patched:
            continue
        file = tmp_path / "patched.yaml"
        options = OPTIONS.match(path.read_text())
        with file.open("w") as stream:
            stream.write(options[0] if options else "")
            YAML().dump_all(patched, stream)
        left = rule_findings(file)
        assert key_of(finding) not in ranks(left), finding["patch"]
        earlier = {(known["code"], known["object"]["name"]): RANKS.index(known["severity"]) for known in before}
        worse = {
            key_of(new): new["message"]
            for new in left
            if RANKS.index(new["severity"]) > max(earlier.get((new["code"], new["object"]["name"]), 0), 0)
        }
        assert worse == {}, finding["patch"]


def after_patch(path: Path, finding: Json) -> Iterator[Json]:
    """Yield the objects of a file after a finding's patch, without the pods that it restarts; none without its object.

    The pods of a stored workload are created again, so that only the template is left to evaluate.
    """
    documents = [document for document in YAML(typ="safe", pure=True).load_all(path) if document]
    listed: list[Json] = [item for document in documents for item in document.get("items", [document])]
    kind, name = finding["object"]["kind"], finding["object"]["name"]
    workload = [item for item in listed if (item["kind"], item["metadata"]["name"]) == (kind, name)]
    for item in listed if workload else ():
        if item is workload[0]:
            yield applied(item, finding["patch"]["operations"])
        elif not (finding["pods"] and item["kind"] in ("Pod", "ReplicaSet") and "ownerReferences" in item["metadata"]):
            yield item


@pytest.mark.parametrize(
    "rule", [rule for rule in RULES if "patch" in remedies_of(rule.code)], ids=lambda rule: rule.code
)
def test_every_rule_with_patches_has_an_example_whose_object_is_patched(rule: Rule) -> None:
    assert any(
        list(after_patch(path, finding))
        for path in BAD
        if path.parent.name == rule.code
        for finding in rule_findings(path)
        if finding["code"] == rule.code and "patch" in finding
    )


@pytest.mark.parametrize("path", BAD, ids=rule_name)
def test_the_command_of_a_patch_has_its_operations_and_a_manifest_gets_no_such_command(path: Path) -> None:
    for finding in rule_findings(path):
        commands = [shlex.split(command) for command in finding.get("commands", [])]
        patching = [command for command in commands if "--type=json" in command]
        if "patch" not in finding or "source" in finding:
            assert patching == []
            continue
        (command,) = patching
        assert command[3:-1] == ["-n", finding["namespace"], "--type=json", "-p"]
        assert json.loads(command[-1]) == finding["patch"]["operations"]


@pytest.mark.parametrize("path", BAD, ids=rule_name)
def test_the_patch_of_a_stored_object_fails_a_second_time_or_changes_nothing(path: Path) -> None:
    for finding in rule_findings(path):
        if "patch" not in finding or "source" in finding:
            continue
        for item in after_patch(path, finding):
            if (item["kind"], item["metadata"]["name"]) == (finding["object"]["kind"], finding["object"]["name"]):
                try:
                    assert applied(item, finding["patch"]["operations"]) == item
                except (FailedTestError, LookupError):
                    continue


def with_patched_pods(manifests: list[Json], evaluated: Audit, finding: Json) -> Iterator[Json]:
    """Yield the manifests with a patched workload, and with its pods as the patched template would create them."""
    kind, name = finding["object"]["kind"], finding["object"]["name"]
    workloads = {pod.name: evaluated.snapshot.workload(pod) for pod in evaluated.pods}
    pods = {pod for pod, workload in workloads.items() if (workload.kind, workload.name) == (kind, name)}
    operations, template = finding["patch"]["operations"], "/spec/template"
    for_pods = [{**operation, "path": operation["path"].removeprefix(template)} for operation in operations]
    for manifest in manifests:
        if (manifest["kind"], manifest["metadata"]["name"]) == (kind, name):
            yield applied(manifest, operations)
        elif manifest["kind"] == "Pod" and manifest["metadata"]["name"] in pods:
            patched = applied(manifest, for_pods)
            # The scheduler has not refused new pods yet.
            yield patched if manifest["spec"].get("nodeName") else {**patched, "status": {}}
        else:
            yield manifest


def test_pods_created_by_a_patched_template_are_placed_and_end_the_finding() -> None:
    """Every pod with the patched constraint gets a node, although pods that run stay on theirs."""
    ended = 0
    for path, manifests, evaluated, finding in findings_with(("SPR303", "SPR307")):
        if "patch" not in finding:
            continue
        patched = list(with_patched_pods(manifests, evaluated, finding))
        before, after = ranks(as_json(evaluated)["findings"]), ranks(as_json(audit(*patched))["findings"])
        assert key_of(finding) not in after, path
        worse = {key: rank for key, rank in after.items() if rank > before.get(key, 0)}
        assert worse == {}, path
        ended += 1
    assert ended >= 5
