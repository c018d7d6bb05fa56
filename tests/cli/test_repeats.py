"""Several objects of one kind, namespace and name: all manifests are evaluated, and captures contradict each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kubectl_spread.cli import cli
from tests.audits import deployment
from tests.builders import Json, constraint, node_json, pod_json

GOOD = constraint()
WRONG = {**constraint(), "whenUnsatisfiable": "Sometimes"}
TWICE = constraint(match=["rev", "rev"])


def manifest(spread: Json, **fields: Any) -> Json:
    pod = pod_json("web", labels={"app": "web", "rev": "r1"}, constraints=[spread])
    metadata = {key: value for key, value in pod["metadata"].items() if key in ("name", "namespace", "labels")}
    return {**pod, "metadata": {**metadata, **fields}}


def run(*arguments: str, stdin: str = "") -> Result:
    outcome = CliRunner().invoke(cli, arguments, input=stdin)
    assert outcome.exception is None or isinstance(outcome.exception, SystemExit), outcome.exception
    return outcome


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, *objects: Json) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(json.dumps(manifest) for manifest in objects) + "\n")


def findings(*arguments: str) -> list[tuple[str, str, int]]:
    report = json.loads(run("check", *arguments, "-o", "json", "--select", "SPR2").stdout)
    return [(finding["code"], finding["source"]["file"], finding["source"]["line"]) for finding in report["findings"]]


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize("reverse", [False, True])
def test_a_fault_in_either_overlay_is_found(reverse: bool) -> None:
    """The second object must not be dropped as a duplicate."""
    dev, prod = (WRONG, GOOD) if reverse else (GOOD, WRONG)
    write("overlays/dev/web.json", deployment("web", constraints=[dev]))
    write("overlays/prod/web.json", deployment("web", constraints=[prod]))
    wrong = "overlays/dev/web.json" if reverse else "overlays/prod/web.json"
    assert findings("-f", "overlays", "-R") == [("SPR201", wrong, 1)]
    assert run("check", "-f", "overlays", "-R").exit_code == 1
    merged = run("merge", "-f", "overlays", "-R")
    assert (merged.exit_code, f"{wrong}:1" in merged.stderr) == (1, True)


@pytest.mark.usefixtures("directory")
def test_overlays_do_not_share_a_selector_with_themselves() -> None:
    for name, replicas in (("base", 1), ("dev", 2), ("prod", 3)):
        web, other = (deployment(workload_name, constraints=[constraint()]) for workload_name in ("web", "other"))
        web["spec"]["replicas"] = replicas
        write(f"{name}/web.json", web, *([other] if name == "base" else []))
    report = json.loads(
        run("check", "-f", "base", "-f", "dev", "-f", "prod", "-o", "json", "--select", "SPR314").stdout
    )
    shared = {(finding["object"]["name"], finding["values"]["workloads"]) for finding in report["findings"]}
    assert shared == {("web", "deploy/other"), ("other", "deploy/web")}


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([manifest(WRONG), manifest(TWICE)], id="pods"),
        pytest.param([manifest(WRONG, namespace="shop"), manifest(TWICE, namespace="shop")], id="pods of a namespace"),
    ],
)
def test_two_documents_of_one_file_are_both_checked(objects: list[Json]) -> None:
    write("web.json", *objects)
    assert findings("-f", "web.json") == [("SPR201", "web.json", 1), ("SPR201", "web.json", 2)]
    report = json.loads(run("check", "-f", "web.json", "-o", "json").stdout)
    assert (report["summary"]["pods"], report["summary"]["skipped"]) == (2, {})


@pytest.mark.usefixtures("directory")
def test_two_templates_with_the_same_fault_are_both_named() -> None:
    write("a.json", deployment("web", constraints=[WRONG], replicas=1))
    write("b.json", deployment("web", constraints=[WRONG], replicas=2))
    table = run("check", "-f", "a.json", "-f", "b.json").stdout
    assert "deploy/web (a.json:1), deploy/web (b.json:1)\n" in table
    assert findings("-f", ".") == [("SPR201", "a.json", 1), ("SPR201", "b.json", 1)]


@pytest.mark.usefixtures("directory")
def test_equal_manifests_count_once() -> None:
    write("a.json", deployment("web", constraints=[WRONG]))
    write("b.json", deployment("web", constraints=[WRONG]))
    report = json.loads(run("check", "-f", ".", "-o", "json").stdout)
    assert report["summary"]["skipped"] == {"repeated": 1}
    assert [finding["source"]["file"] for finding in report["findings"]] == ["a.json"]


@pytest.mark.usefixtures("directory")
def test_manifests_that_differ_only_in_an_unknown_field_are_both_checked() -> None:
    misspelt = deployment("web", constraints=[GOOD])
    misspelt["spec"]["template"]["spec"]["topologySpreadConstraint"] = []
    write("web.json", deployment("web", constraints=[GOOD]), misspelt)
    assert findings("-f", "web.json") == [("SPR215", "web.json", 2)]


@pytest.mark.usefixtures("directory")
def test_captures_that_contradict_each_other_are_an_error() -> None:
    before, after = (pod_json("web", labels={"rev": rev}, constraints=[GOOD]) for rev in ("r1", "r2"))
    write("before.json", before)
    write("after.json", node_json("a1"), after)
    output = (
        "error: after.json:2: Pod default/web: another object of this name is in before.json:1, and a cluster has only "
        "one: check captures of one moment and of one cluster"
    )
    for command in ("check", "merge", "unmerge"):
        outcome = run(command, "-f", "before.json", "-f", "after.json")
        assert outcome.exit_code == 2
        assert output in outcome.stderr.splitlines()
    report = json.loads(run("check", "-f", "before.json", "-f", "after.json", "-o", "json").stdout)
    assert report["summary"]["skipped"] == {"conflicting": 1}


@pytest.mark.usefixtures("directory")
def test_nodes_that_contradict_each_other_are_an_error() -> None:
    """Nodes without a uid are captures too."""
    write("nodes.json", node_json("a1"), node_json("a1", zone="b"))
    outcome = run("check", "-f", "nodes.json")
    assert outcome.exit_code == 2
    assert "error: nodes.json:2: a1: another object of this name is in nodes.json:1" in outcome.stderr


@pytest.mark.usefixtures("directory")
def test_captures_of_the_same_object_count_once() -> None:
    """They may differ in managedFields and in fields that are not read."""
    pod = pod_json("web", constraints=[GOOD])
    fields = [{"manager": "kubectl", "operation": "Update", "fieldsV1": {}}]
    again = {**pod, "metadata": {**pod["metadata"], "resourceVersion": "7", "managedFields": fields}}
    write("a.json", pod)
    write("b.json", again)
    outcome = run("check", "-f", ".", "-o", "json")
    assert json.loads(outcome.stdout)["summary"]["skipped"] == {"repeated": 1}
    assert outcome.exit_code == 0


@pytest.mark.usefixtures("directory")
def test_a_manifest_and_a_capture_of_one_object_are_both_checked() -> None:
    """One is the state of the cluster, the other the intended state."""
    stored = deployment("web", constraints=[GOOD])
    stored["metadata"]["uid"] = "1"
    for order in (("stored.json", "meant.json"), ("meant.json", "stored.json")):
        write("stored.json", stored)
        write("meant.json", deployment("web", constraints=[WRONG]))
        assert findings(*(word for name in order for word in ("-f", name))) == [("SPR201", "meant.json", 1)]


@pytest.mark.usefixtures("directory")
def test_explain_refuses_a_name_that_several_manifests_have() -> None:
    write("a.json", deployment("web", constraints=[GOOD]))
    write("b.json", deployment("web", constraints=[WRONG]))
    outcome = run("explain", "deploy/web", "-f", "a.json", "-f", "b.json")
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert "error: web is written in a.json:1 and in b.json:1: give one of them" in outcome.stderr
