"""The source of a finding: the object that its path is about, if that object is a manifest."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kubectl_spread.cli import cli
from tests import contract
from tests.audits import deployment
from tests.builders import Json, constraint, node_json, pod_json, selector
from tests.cli.manifests import SHAPES, findings, place, sources

OTHER = selector({"app": "other"})


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(directory: Path, *objects: Json) -> None:
    """Write each object to a line of a file."""
    (directory / "f").write_text("\n".join(map(json.dumps, objects)), encoding="utf-8")


def manifest(name: str, **fields: Any) -> Json:
    """Return a pod of a manifest, which has no uid."""
    pod = pod_json(name, labels={"app": "web"}, constraints=[constraint(selects=OTHER)], **fields)
    return {**pod, "metadata": {key: value for key, value in pod["metadata"].items() if key != "uid"}}


def captured(name: str, **fields: Any) -> Json:
    return pod_json(name, labels={"app": "web"}, constraints=[constraint(selects=OTHER)], **fields)


def test_findings_on_captured_objects_have_no_source(directory: Path) -> None:
    write(directory, captured("p"), node_json("a1"))
    assert sources("-f", "f") == [None]


def test_a_finding_on_pods_is_located_in_the_first_manifest_with_the_field(directory: Path) -> None:
    """The path is in the pods, and ``web-1`` was captured."""
    owned = [captured("web-1", owner="Deployment/web"), *(manifest(f"web-{i}", owner="Deployment/web") for i in (3, 2))]
    write(directory, *owned)
    (finding,) = findings("-f", "f")
    assert (finding["object"], finding["pods"]) == ({"kind": "Deployment", "name": "web"}, ["web-1", "web-2", "web-3"])
    assert finding["source"]["line"] == 3


def test_a_finding_on_captured_pods_is_located_in_the_manifest_of_their_workload(directory: Path) -> None:
    """The user can correct the template."""
    template = deployment(constraints=[constraint(selects=OTHER)])
    write(directory, captured("web-1", owner="Deployment/web"), template)
    (finding,) = findings("-f", "f")
    assert finding["path"] == "spec.topologySpreadConstraints[0]"
    column = json.dumps(template).index('{"maxSkew"') + 1
    assert finding["source"] == {"file": "f", "line": 2, "column": column}


def test_a_finding_on_a_missing_field_is_located_in_the_pod_spec(directory: Path) -> None:
    """The field has to be written there."""
    template = deployment(nodeSelector={"a": "b"})
    write(directory, captured("web-1", owner="Deployment/web"), template)
    column = json.dumps(template).rindex('"spec"') + 1
    assert sources("-f", "f") == [{"file": "f", "line": 2, "column": column}]


def test_a_finding_on_a_default_constraint_is_located_at_the_start_of_the_pod(directory: Path) -> None:
    plain = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {"app": "web"}},
        "spec": {"nodeName": "a1"},
    }
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"selector": {"app": "web"}}}
    nodes = [node_json("a1"), node_json("b1", labels={"topology.kubernetes.io/zone": "b"})]
    write(
        directory,
        service,
        *nodes,
        {**plain},
        *({**plain, "metadata": {"name": f"q{i}", "labels": {"app": "web"}}} for i in range(5)),
    )
    outcome = CliRunner().invoke(cli, ["check", "-f", "f", "--defaults", "-o", "json"])
    findings = contract.loaded(outcome.stdout)["findings"]
    places = {
        (finding["object"]["name"], finding["source"]["line"], finding["source"]["column"])
        for finding in findings
        if finding["path"].startswith("default")
    }
    assert ("p", 4, 1) in places


def test_objects_without_a_name_have_different_sources(directory: Path) -> None:
    unnamed = {**manifest("x"), "metadata": {"generateName": "p-", "labels": {"app": "web"}}}
    write(directory, unnamed, unnamed)
    assert [source["line"] for source in sources("-f", "f")] == [1, 2]


def test_the_first_valid_object_of_the_kind_and_name_is_the_source(directory: Path) -> None:
    malformed = {**manifest("p"), "spec": {"nodeName": 7}}
    write(directory, malformed, {**manifest("p"), "kind": "Node"}, manifest("p"), manifest("p"))
    assert [source["line"] for source in sources("-f", "f")] == [3]


def test_explain_reports_sources_too(directory: Path) -> None:
    text, _ = place(SHAPES["brackets"])
    (directory / "f").write_text(text, encoding="utf-8")
    outcome = CliRunner().invoke(cli, ["explain", "p", "-f", "f", "-o", "json"])
    (finding,) = (finding for finding in contract.loaded(outcome.stdout)["findings"] if finding["code"] == "SPR206")
    assert finding["source"] == {"file": "f", "line": 5, "column": 31}


LOCATED = """\
apiVersion: v1
kind: Service
metadata: {name: front}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: front}
spec:
  replicas: 4
  selector: {matchLabels: {app: front}}
  template:
    metadata: {labels: {app: front}}
    spec:
      containers: [{name: c, image: i}]
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {}}
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: DoNotSchedule
        labelSelector: {matchLabels: {app: back}}
---
apiVersion: v1
kind: Pod
metadata: {name: solo, labels: {app: solo}}
spec:
  containers: [{name: c, image: i}]
  topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: example.com/rack
    whenUnsatisfiable: DoNotSchedule
    labelSelector: {matchLabels: {app: solo}}
"""
"""Findings on the constraints that begin in lines 16, 17 and 28; the last one is about placement."""
LINES = {"16", "17", "28"}
LINE_IN = {
    "table": r"\(%s:(\d+)\)",
    "wide": r"\(%s:(\d+)\)",
    "markdown": r"\(%s:(\d+)\)",
    "html": r"\(%s:(\d+)\)",
    "json": r'"file": "%s",\s+"line": (\d+),\s+"column"',
    "yaml": r"file: %s\n\s+line: (\d+)\n\s+column",
    "github": r"file=%s,line=(\d+),",
    "junit": r'file="%s" line="(\d+)"',
    "sarif": r'"uri": "%s"\s+},\s+"region": {\s+"startLine": (\d+)',
}


@pytest.mark.parametrize("source", ["front.yaml", "STDIN"])
@pytest.mark.parametrize("form", LINE_IN)
def test_every_format_has_the_line_of_the_field(directory: Path, form: str, source: str) -> None:
    """It is the same for one format and for several, for a file and for standard input."""
    (directory / "front.yaml").write_text(LOCATED, encoding="utf-8")
    (directory / "nodes.json").write_text(json.dumps(node_json("a1")), encoding="utf-8")
    file = "-" if source == "STDIN" else source
    command = ["check", "-f", file, "-f", "nodes.json", "--select", "SPR205,SPR206,SPR303"]
    stdin = LOCATED if source == "STDIN" else None
    alone = CliRunner().invoke(cli, [*command, "-o", form], input=stdin).stdout
    outputs = [f"--output={each}={each}.out" for each in LINE_IN if each != form]
    beside = CliRunner().invoke(cli, [*command, "-o", form, *outputs], input=stdin).stdout
    assert set(re.findall(LINE_IN[form] % re.escape(source), alone)) == LINES
    assert beside == alone
    for each, pattern in LINE_IN.items():
        if each != form:
            text = (directory / f"{each}.out").read_text(encoding="utf-8")
            assert set(re.findall(pattern % re.escape(source), text)) == LINES


def test_the_fix_of_a_manifest_is_the_lines_to_write(directory: Path) -> None:
    """The place is that of the line to change, or of the list or map to add to, in each format for people."""
    (directory / "front.yaml").write_text(LOCATED, encoding="utf-8")
    command = ("check", "-f", "front.yaml", "--select", "SPR206")
    place = "spec.template.spec.topologySpreadConstraints[1]"
    action = f"front.yaml:20: change labelSelector in {place} to"
    lines = ["labelSelector:", "  matchLabels:", "    app: front"]
    text = CliRunner().invoke(cli, command).stdout
    assert f"  {action}\n" + "".join(f"      {line}\n" for line in lines) in text
    marked = CliRunner().invoke(cli, [*command, "-o", "markdown"]).stdout
    assert "\n".join(["```", *lines, "```"]) in marked
    (finding,) = json.loads(CliRunner().invoke(cli, [*command, "-o", "json"]).stdout)["findings"]
    assert finding["lines"] == [
        {"file": "front.yaml", "line": 20, "action": action.partition(": ")[2], "yaml": "\n".join([*lines, ""])}
    ]
    stored = LOCATED.replace("metadata: {name: front", "metadata: {uid: u, name: front")
    (directory / "front.yaml").write_text(stored, encoding="utf-8")
    assert "front.yaml:" not in CliRunner().invoke(cli, command).stdout


@pytest.mark.parametrize("there", ["", "[]", "null"])
def test_a_field_that_is_there_without_a_value_is_changed_and_not_written_twice(there: str, directory: Path) -> None:
    """YAML with one key twice would be refused."""
    spec = f"    topologySpreadConstraints: {there}\n" if there else ""
    before = f"""\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: shop}}
spec:
  replicas: 3
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      containers: [{{name: c, image: i}}]
  {spec}"""
    (directory / "web.yaml").write_text(before, encoding="utf-8")
    outcome = CliRunner().invoke(cli, ["check", "-f", "web.yaml", "--select", "SPR504", "-o", "json"])
    (finding,) = json.loads(outcome.stdout)["findings"]
    (line,) = finding["lines"]
    verb = "change topologySpreadConstraints in spec.template.spec to" if there else "add in spec.template.spec"
    assert (line["line"], line["action"]) == (11 if there else 9, verb)
