"""Input without anything to check is not reported as healthy: the exit status is 2, or a line counts the objects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kubectl_spread.cli import cli
from tests.audits import deployment
from tests.builders import constraint, node_json, pod_json, requirement, selector

STATUS = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Failure",
    "message": "pods is forbidden",
    "reason": "Forbidden",
    "code": 403,
}
API_ERROR = "Status: this is an API error, not an object: 403 Forbidden: pods is forbidden"
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
POD = json.dumps(pod_json("web", constraints=[constraint()]))
VALUES = "replicas: 2\n"
WORKFLOW = "on: push\njobs: {}\n"
TEMPLATE = "kind: Deployment\nspec:\n  replicas: {{ .Values.replicas }}\n"
CONDITIONAL = "{{- if .Values.enabled }}\nkind: Deployment\n{{- end }}\n"
HINT = "(if this is a Helm template, render it with helm template first)"
COMMANDS = ("check", "explain", "merge", "unmerge")


def run(command: str, *arguments: str, stdin: str = "") -> tuple[int, str, list[str]]:
    named = ["web"] if command == "explain" else []
    outcome = CliRunner().invoke(cli, [command, *named, *arguments], input=stdin)
    assert outcome.exception is None or isinstance(outcome.exception, SystemExit), outcome.exception
    output = [line for line in outcome.stderr.splitlines() if not line.startswith("evaluated as")]
    return outcome.exit_code, outcome.stdout, output


def json_report(*arguments: str, stdin: str = "") -> Any:
    return json.loads(run("check", *arguments, "-o", "json", stdin=stdin)[1])


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for name, text in (
        ("values.yaml", VALUES),
        ("Chart.yaml", "apiVersion: v2\nname: chart\nversion: 1.0.0\n"),
        (".github/workflows/ci.yml", WORKFLOW),
        ("package.json", '{"name": "web", "items": [1, {"a": 2}]}'),
        ("patch.yaml", "- op: remove\n  path: /spec\n"),
        ("deploy/settings.yaml", CONFIG_MAP),
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("text", "place"),
    [
        pytest.param(json.dumps(STATUS), "STDIN:1: Status: ", id="alone"),
        pytest.param(
            json.dumps({"apiVersion": "v1", "kind": "List", "items": [STATUS]}),
            "STDIN:1: Status: items[0]: ",
            id="in a List",
        ),
        pytest.param("".join(f"{key}: {value}\n" for key, value in STATUS.items()), "STDIN:1: Status: ", id="as YAML"),
    ],
)
def test_a_saved_api_error_is_reported(command: str, text: str, place: str) -> None:
    status, stdout, output = run(command, "-f", "-", stdin=text)
    assert (status, stdout) == (2, "")
    assert output[0] == f"error: {place}{API_ERROR.removeprefix('Status: ')}"


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", ["Table", "PartialObjectMetadata", "PartialObjectMetadataList"])
def test_tables_and_metadata_cannot_be_checked(command: str, kind: str) -> None:
    """Both kinds of documents list pods without their specs."""
    rows = [{"object": {"kind": "PartialObjectMetadata"}}]
    text = json.dumps({"apiVersion": "meta.k8s.io/v1", "kind": kind, "rows": rows, "items": [{"metadata": {}}]})
    status, stdout, output = run(command, "-f", "-", stdin=text)
    assert (status, stdout) == (2, "")
    assert "this holds no specs, so there is nothing to check; save the objects with -o json" in output[0]


@pytest.mark.parametrize("form", ["table", "json", "sarif", "github"])
def test_an_api_error_ends_with_exit_status_2_in_every_format(form: str) -> None:
    assert run("check", "-f", "-", "-o", form, stdin=json.dumps(STATUS))[0] == 2


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("text", ["", "\n \n", "# nothing but words\n"])
def test_standard_input_without_objects_is_an_error(command: str, text: str) -> None:
    status, _, output = run(command, "-f", "-", stdin=text)
    assert status == 2
    assert output[0].startswith(("error: STDIN: empty", "error: error reading [-]: there are no Kubernetes objects"))


@pytest.mark.parametrize("command", COMMANDS)
def test_empty_standard_input_next_to_a_capture_is_an_error(command: str, tmp_path: Path) -> None:
    """The program that wrote to the pipe may have failed, so that manifests are missing."""
    capture = tmp_path / "capture.json"
    capture.write_text(POD)
    status, _, output = run(command, "-f", "-", "-f", str(capture))
    assert status == 2
    assert "error: STDIN: empty, so there is nothing to check (did the command that wrote it fail?)" in output


def test_an_empty_file_on_the_command_line_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "rendered.yaml"
    path.touch()
    for arguments in (("-f", str(path)), ("--manifests", str(path))):
        status, stdout, output = run("check", *arguments)
        assert (status, stdout, len(output)) == (2, "", 1)
        assert output[0].startswith(f"error: {path}: empty")


def test_a_file_of_comments_next_to_others_is_no_error(tmp_path: Path) -> None:
    comments, pod = tmp_path / "comments.yaml", tmp_path / "pod.json"
    comments.write_text("# apiVersion: v1\n")
    pod.write_text(POD)
    for command in ("check", "merge"):
        assert run(command, "-f", str(comments), "-f", str(pod))[0] == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_a_directory_without_manifests_is_an_error(command: str, tmp_path: Path) -> None:
    (tmp_path / "readme.txt").write_text("words")
    status, stdout, output = run(command, "-f", str(tmp_path))
    assert (status, stdout) == (2, "")
    assert output == [f"error: error reading [{tmp_path}]: recognized file extensions are [.json .yaml .yml]"]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_directory_without_kubernetes_objects_is_an_error(command: str, tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text(VALUES)
    (tmp_path / "blank.yaml").touch()
    status, _, output = run(command, "-f", str(tmp_path))
    assert status == 2
    assert f"error: error reading [{tmp_path}]: there are no Kubernetes objects in any file" in output


def test_other_kinds_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(CONFIG_MAP)
    for arguments in (("-f", str(path)), ("--manifests", str(path))):
        output = "no pods or pod templates in 1 file (1 object of another kind)"
        assert run("check", *arguments) == (0, "", [output])
    path.write_text(f"{CONFIG_MAP}---\n{CONFIG_MAP}---\napiVersion: v1\nkind: Node\nmetadata: {{name: a}}\n")
    assert run("check", "-f", str(path)) == (0, "", ["no pods or pod templates in 1 file (3 objects of other kinds)"])


def test_other_files_of_a_repository_are_counted(repository: Path) -> None:
    counted = "no pods or pod templates in 6 files (1 object of another kind; not Kubernetes objects: 5 documents)"
    assert run("check", "-R", "-f", str(repository)) == (0, "", [counted])
    (repository / "pod.json").write_text(POD)
    status, stdout, output = run("check", "-R", "-f", str(repository))
    assert (status, output) == (0, [])
    assert stdout.splitlines()[-1].endswith("Skipped: 5 not Kubernetes objects, 1 of other kinds.")
    report = json_report("-R", "-f", str(repository))
    assert report["summary"]["skipped"] == {"notKubernetes": 5, "unknownKind": 1}


def test_merge_leaves_out_documents_that_are_not_objects(repository: Path) -> None:
    status, stdout, output = run("merge", "-R", "-f", str(repository))
    assert (status, stdout) == (0, CONFIG_MAP)
    assert output == ["left out, as not Kubernetes objects: 5 documents"]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", ["values.yaml", ".github/workflows/ci.yml", "package.json", "patch.yaml"])
def test_a_named_file_that_is_not_an_object_is_an_error(command: str, name: str, repository: Path) -> None:
    """The error does not depend on whether its directory is named too."""
    path = repository / name
    for arguments in (("-f", str(path)), ("-R", "-f", str(repository), "-f", str(path))):
        status, _, output = run(command, *arguments)
        assert status == 2
        assert f"error: {path}:1: not a Kubernetes object, which has apiVersion and kind" in output


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("template", [TEMPLATE, CONDITIONAL])
def test_a_helm_template_is_an_error(command: str, template: str, tmp_path: Path) -> None:
    """The template is broken YAML, which is an error in a directory too."""
    path = tmp_path / "deployment.yaml"
    path.write_text(template)
    for named in (path, tmp_path):
        status, stdout, output = run(command, "-f", str(named))
        assert (status, stdout) == (2, "")
        assert output[0].startswith(f"error: {path}:")
        assert output[0].endswith(HINT)


def test_broken_yaml_is_not_called_a_helm_template(tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text("a: [\n")
    status, _, output = run("check", "-f", str(tmp_path))
    assert status == 2
    assert output[0].startswith(f"error: {tmp_path / 'broken.yaml'}:")
    assert HINT not in output[0]


@pytest.mark.parametrize("command", COMMANDS)
def test_kinds_that_do_not_exist_are_errors(command: str) -> None:
    text = "apiVersion: v1\nkind: Deployment\nmetadata: {name: web}\n---\napiVersion: apps/v1\nkind: Deploymnet\n"
    status, stdout, output = run(command, "-f", "-", stdin=text)
    totals = "Not read: 2 malformed objects. Nothing was checked: no pods and no pod templates."
    assert (status, stdout.splitlines()[-1:]) == (2, [totals] if command == "check" else [])
    group = '"Deployment" is not a kind of v1; did you mean "apiVersion: apps/v1"?'
    kind = '"Deploymnet" is not a kind of apps/v1; did you mean "kind: Deployment"?'
    assert output[:2] == [
        f"error: STDIN:1: Deployment default/web: apiVersion: {group}",
        f"error: STDIN:6: Deploymnet: kind: {kind}",
    ]


def test_a_kind_that_does_not_exist_is_an_error_in_a_list_too() -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "DeploymentList", "items": [{"metadata": {"name": "web"}}]})
    status, _, output = run("check", "-f", "-", stdin=text)
    assert status == 2
    assert 'items[0].apiVersion: "Deployment" is not a kind of v1; did you mean "apiVersion: apps/v1"?' in output[0]


MERGED_POD = pod_json(
    "web-1",
    node="a1",
    owner="ReplicaSet/web",
    labels={"app": "web", "rev": "1"},
    constraints=[constraint(match=["rev"], selects=selector({"app": "web"}, requirement("rev", "In", "1")))],
)


def test_the_status_of_a_constraint_that_was_not_counted_is_unknown(tmp_path: Path) -> None:
    """A selector that is right says nothing about where the pods are."""
    path = tmp_path / "pods.json"
    path.write_text(json.dumps(MERGED_POD))
    (row,) = [line for line in run("check", "-f", str(path))[1].splitlines() if line.startswith("rs/web")]
    assert row.split()[-1] == "unknown"
    junit = run("check", "-f", str(path), "-o", "junit")[1]
    assert 'skipped="1"' in junit
    assert '<skipped message="placement was not evaluated, or only in part"/>' in junit
    for form in ("table", "markdown", "html"):
        assert "no nodes" in run("check", "-f", str(path), "-o", form)[1]
    path.write_text(f"{json.dumps(MERGED_POD)}\n{json.dumps(node_json('a1'))}")
    (row,) = [line for line in run("check", "-f", str(path))[1].splitlines() if line.startswith("rs/web")]
    assert row.split()[-1] == "ok"
    assert "skipped message" not in run("check", "-f", str(path), "-o", "junit")[1]


@pytest.mark.parametrize(
    ("manifest", "where"),
    [
        pytest.param(
            deployment(constraints=[constraint(key="${KEY}")]),
            "Deployment default/web: spec.template.spec.topologySpreadConstraints[0].topologyKey",
            id="topologyKey",
        ),
        pytest.param(
            pod_json(labels={"app": "$(APP)"}, stored=False), "Pod default/web-1: metadata.labels.app", id="label"
        ),
        pytest.param(
            pod_json(nodeSelector={"pool": "{{ pool }}"}, stored=False),
            "Pod default/web-1: spec.nodeSelector.pool",
            id="nodeSelector",
        ),
        pytest.param(deployment(containers=[{"name": "app", "args": ["$(NAME)"]}]), "", id="argument of a container"),
    ],
)
def test_a_manifest_with_a_placeholder_in_what_is_evaluated_is_not_evaluated(manifest: Any, where: str) -> None:
    manifest["metadata"].pop("uid", None)
    status, stdout, stderr = run("check", "-f", "-", stdin=json.dumps(manifest))
    assert stderr == ([f"error: STDIN:1: {where}: it has placeholders"] if where else [])
    assert status == (2 if where else 0)
    assert ("Nothing was checked" in stdout) is bool(where)
