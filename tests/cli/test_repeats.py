"""Several objects of one kind, namespace and name: manifests are all evaluated, captures contradict each other."""

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
    result = CliRunner().invoke(cli, arguments, input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


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
def test_overlays_with_a_fault_in_either(reverse: bool) -> None:
    """The second one was dropped: its fault did not show."""
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
        web, other = (deployment(item, constraints=[constraint()]) for item in ("web", "other"))
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
def test_two_documents_of_one_file(objects: list[Json]) -> None:
    write("web.json", *objects)
    assert findings("-f", "web.json") == [("SPR201", "web.json", 1), ("SPR201", "web.json", 2)]
    report = json.loads(run("check", "-f", "web.json", "-o", "json").stdout)
    assert (report["summary"]["pods"], report["summary"]["skipped"]) == (2, {})


@pytest.mark.usefixtures("directory")
def test_two_templates_with_the_same_fault_are_both_named() -> None:
    write("a.json", deployment("web", constraints=[WRONG], replicas=1))
    write("b.json", deployment("web", constraints=[WRONG], replicas=2))
    table = run("check", "-f", "a.json", "-f", "b.json").stdout
    assert "pod template  a.json:1\n" in table
    assert "pod template  b.json:1\n" in table
    assert findings("-f", ".") == [("SPR201", "a.json", 1), ("SPR201", "b.json", 1)]


@pytest.mark.usefixtures("directory")
def test_equal_manifests_count_once() -> None:
    write("a.json", deployment("web", constraints=[WRONG]))
    write("b.json", deployment("web", constraints=[WRONG]))
    report = json.loads(run("check", "-f", ".", "-o", "json").stdout)
    assert report["summary"]["skipped"] == {"repeated": 1}
    assert [finding["source"]["file"] for finding in report["findings"]] == ["a.json"]


@pytest.mark.usefixtures("directory")
def test_manifests_that_differ_only_in_a_field_that_is_not_known() -> None:
    misspelt = deployment("web", constraints=[GOOD])
    misspelt["spec"]["template"]["spec"]["topologySpreadConstraint"] = []
    write("web.json", deployment("web", constraints=[GOOD]), misspelt)
    assert findings("-f", "web.json") == [("SPR215", "web.json", 2)]


@pytest.mark.usefixtures("directory")
def test_captures_that_contradict_each_other() -> None:
    before, after = (pod_json("web", labels={"rev": rev}, constraints=[GOOD]) for rev in ("r1", "r2"))
    write("before.json", before)
    write("after.json", node_json("a1"), after)
    output = (
        "error: after.json:2: Pod default/web: another object of this name is in before.json:1, and a cluster has only "
        "one: check captures of one moment and of one cluster"
    )
    for command in ("check", "merge", "unmerge"):
        result = run(command, "-f", "before.json", "-f", "after.json")
        assert result.exit_code == 2
        assert output in result.stderr.splitlines()
    report = json.loads(run("check", "-f", "before.json", "-f", "after.json", "-o", "json").stdout)
    assert report["summary"]["skipped"] == {"conflicting": 1}


@pytest.mark.usefixtures("directory")
def test_nodes_that_contradict_each_other() -> None:
    """A node that somebody wrote by hand stands for one of a cluster as well."""
    write("nodes.json", node_json("a1"), node_json("a1", zone="b"))
    result = run("check", "-f", "nodes.json")
    assert result.exit_code == 2
    assert "error: nodes.json:2: a1: another object of this name is in nodes.json:1" in result.stderr


@pytest.mark.usefixtures("directory")
def test_captures_of_the_same_object_are_one() -> None:
    """Whether they have managedFields, and whatever is not read of them."""
    pod = pod_json("web", constraints=[GOOD])
    fields = [{"manager": "kubectl", "operation": "Update", "fieldsV1": {}}]
    again = {**pod, "metadata": {**pod["metadata"], "resourceVersion": "7", "managedFields": fields}}
    write("a.json", pod)
    write("b.json", again)
    result = run("check", "-f", ".", "-o", "json")
    assert json.loads(result.stdout)["summary"]["skipped"] == {"repeated": 1}
    assert result.exit_code == 0


@pytest.mark.usefixtures("directory")
def test_a_manifest_of_an_object_that_was_captured() -> None:
    """Both are evaluated: what is, and what is meant to be."""
    stored = deployment("web", constraints=[GOOD])
    stored["metadata"]["uid"] = "1"
    for order in (("stored.json", "meant.json"), ("meant.json", "stored.json")):
        write("stored.json", stored)
        write("meant.json", deployment("web", constraints=[WRONG]))
        assert findings(*(word for name in order for word in ("-f", name))) == [("SPR201", "meant.json", 1)]


@pytest.mark.usefixtures("directory")
def test_explain_asks_which() -> None:
    write("a.json", deployment("web", constraints=[GOOD]))
    write("b.json", deployment("web", constraints=[WRONG]))
    result = run("explain", "deploy/web", "-f", "a.json", "-f", "b.json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "error: web is written in a.json:1 and in b.json:1: give one of them" in result.stderr
