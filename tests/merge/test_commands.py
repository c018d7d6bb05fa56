"""``merge`` and ``unmerge`` on files with many documents: exit status, stdout and stderr."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kubectl_spread.cli import cli
from kubectl_spread.report import mergereport
from kubectl_spread.sources import edit
from tests import contract
from tests.builders import Json, constraint, pod_json, requirement, selector
from tests.merge.running import constrained, out, run

R1 = {"app": "web", "rev": "r1"}
REV_R1 = requirement("rev", "In", "r1")
GOOD = constrained("labelSelector: {}\nmatchLabelKeys: [rev]\n")
ADDED = "\n      matchExpressions:\n      - key: rev\n        operator: In\n        values:\n        - r1"
MERGED = GOOD.replace(" {}", ADDED)
REFUSED = constrained("labelSelector: {matchLabels: {rev: r1}}\nmatchLabelKeys: [rev]\n").replace("web\n", "bad\n", 1)
WHY = (
    'Pod default/bad: spec.topologySpreadConstraints[0][0]: Invalid value: "rev": '
    "exists in both matchLabelKeys and labelSelector\n"
)
MALFORMED = constrained("labelSelector: []\n").replace("web\n", "odd\n", 1)
OTHER = "# ours\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}   # untouched\ndata: {n: 'no'}\n"
DEPLOYMENT: Json = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "template": {
            "metadata": {"labels": R1},
            "spec": {"topologySpreadConstraints": [constraint(match=["rev"], selects=selector({"rev": "r1"}))]},
        }
    },
}


def spread_pod(name: str = "web", *expressions: Json, **fields: Any) -> Json:
    constraints = [constraint(match=["rev"], selects=selector(None, *expressions))]
    return pod_json(name, labels=R1, constraints=constraints, stored=False, **fields)


def report(command: str, text: str, *options: str) -> tuple[Result, Any]:
    result = run(command, text, "-o", "json", *options)
    return result, contract.loaded(result.stdout)


def files(directory: Path, *options: str, command: str = "merge", **texts: str) -> Result:
    for name, text in texts.items():
        (directory / f"{name}.yaml").write_text(text)
    named = [option for name in texts for option in ("-f", str(directory / f"{name}.yaml"))]
    return CliRunner().invoke(cli, [command, *named, "--server-version=1.37", *options])


def test_documents_of_a_file_stay_where_they_are() -> None:
    text = f"# head\n---\n{GOOD}---\n\n---  # other\n{OTHER}...\n%YAML 1.1\n---\n{GOOD}...\n# tail\n"
    assert out("merge", text) == text.replace(GOOD, MERGED)
    assert out("unmerge", text.replace(GOOD, MERGED)) == text


@pytest.mark.parametrize(
    "text",
    [
        OTHER.replace("\n", "\r\n"),
        OTHER.rstrip("\n"),
        "---\n---\n# nothing\n...\n\n---\t\n" + OTHER.replace("  #", "\t#"),
        "x: &a  {b: 010, <<: {c: 1e3}}\ny: [ *a,\n  ~ ]\n? z\n: >\n\n  2024-02-30\n" + OTHER,
        '{"kind":"ConfigMap" , "apiVersion":"v1", "metadata": {"name":"c"}, "data": {"a": 1.50e+1}}\n\n',
    ],
)
def test_documents_without_changes_are_written_byte_for_byte(text: str) -> None:
    """The byte order mark alone is not part of a document."""
    for encoded in (text.encode(), b"\xef\xbb\xbf" + text.encode()):
        for command in ("merge", "unmerge"):
            assert out(command, encoded) == text


def test_refused_documents_are_left_out_and_the_others_are_written() -> None:
    result = run("merge", f"# head\n---\n{REFUSED}---\n{GOOD}---\n{REFUSED}---\n{OTHER}")
    assert result.exit_code == 1
    assert result.stdout == f"# head\n---\n{MERGED}---\n{OTHER}"
    assert result.stderr == f"STDIN:3: {WHY}STDIN:{len(REFUSED.splitlines()) * 2 + 5}: {WHY}"


def test_the_document_behind_a_refused_first_document_gets_a_marker() -> None:
    assert run("merge", f"{REFUSED}---\n{GOOD}").stdout == f"---\n{MERGED}"


def test_directives_stay_with_their_document() -> None:
    result = run("merge", f"{GOOD}---\n{REFUSED}...\n%YAML 1.1\n---\n{GOOD}")
    assert result.stdout == f"{MERGED}...\n%YAML 1.1\n---\n{MERGED}"


def test_refused_items_of_a_list_are_left_out() -> None:
    items = "".join("- " + text.replace("\n", "\n  ").rstrip(" ") for text in (REFUSED, GOOD, REFUSED))
    text = f"# all\napiVersion: v1\nkind: List\nitems:\n{items}"
    result = run("merge", text)
    assert result.exit_code == 1
    remaining = "- " + MERGED.replace("\n", "\n  ").rstrip(" ")
    assert result.stdout == f"# all\napiVersion: v1\nkind: List\nitems:\n{remaining}"
    alone = run("merge", "apiVersion: v1\nkind: List\nitems:\n- " + REFUSED.replace("\n", "\n  ").rstrip(" "))
    assert (alone.exit_code, alone.stdout) == (1, "")


def test_warnings_go_to_stderr() -> None:
    result = run("merge", constrained("minDomains: 1\n"))
    where = "STDIN:1: Pod default/web: Warning: spec.topologySpreadConstraints[0].labelSelector"
    assert result.stderr == f"{where}: a null labelSelector results in matching no pod\n"
    assert result.exit_code == 0


def test_malformed_documents_decide_the_exit_status_before_refused_documents() -> None:
    broken = "apiVersion: v1\nkind: Pod\nmetadata: {name: [}\n"
    twice = "apiVersion: v1\nkind: Pod\nkind: Pod\n"
    result = run("merge", f"{GOOD}---\n{MALFORMED}---\n{broken}---\n{twice}---\n{REFUSED}---\n{OTHER}")
    assert result.exit_code == 2
    assert result.stdout == f"{MERGED}---\n{OTHER}"
    lines = result.stderr.splitlines()
    size = len(GOOD.splitlines())  # the malformed one is one line shorter
    selectors = "spec.topologySpreadConstraints[0].labelSelector: expected object, got array"
    assert lines[0] == f"error: STDIN:{2 * size}: Pod default/odd: {selectors}"
    assert lines[1].startswith(f"error: STDIN:{2 * size + 4}: ")
    assert lines[2] == f"error: STDIN:{2 * size + 8}: key 'kind' is duplicated"
    assert lines[3] == f"STDIN:{2 * size + 10}: {WHY}".rstrip("\n")
    assert len(lines) == 4


def test_a_text_that_is_not_a_manifest_is_an_error_with_its_line() -> None:
    for text, stderr in (
        ("a: 1\n", "error: STDIN:1: not a Kubernetes object, which has apiVersion and kind\n"),
        ('{"kind": "Pod"', "error: STDIN:1: invalid JSON: input data was truncated\n"),
        (b"a: \xff\n", "error: STDIN:1: byte 0xff is not UTF-8 text\n"),
        ("a: \x00\n", "error: STDIN:1: character U+0000 is not allowed\n"),
    ):
        result = run("merge", text)
        assert (result.exit_code, result.stdout, result.stderr) == (2, "", stderr)


def test_documents_behind_a_faulty_document_are_written() -> None:
    for fault in (b"a: \xff\n", b"a: \x00\n", b"a: 'open\n", b"a: [\n", b"\ta: 1\n"):
        result = run("merge", GOOD.encode() + b"---\n" + fault + b"---\n" + OTHER.encode())
        assert (result.exit_code, result.stdout) == (2, f"{MERGED}---\n{OTHER}")
        assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("indented", ["  ", "\t"])
def test_fields_behind_the_end_of_a_document_are_a_fault(indented: str) -> None:
    """The first key is indented, so the mapping ends below it; the other fields were ignored."""
    result = run("merge", f"--- {{apiVersion: v1}}\n{indented}kind: Pod\n---\n{OTHER}")
    assert (result.exit_code, result.stdout) == (2, f"---\n{OTHER}")
    assert result.stderr.startswith("error: STDIN:2: ")
    assert result.stderr.count("\n") == 1
    assert run("merge", f"  {GOOD}").stdout == ""


def test_faulty_documents_take_no_longer_than_others() -> None:
    """The rest of the file was parsed again after each fault."""

    def seconds(text: str) -> float:
        start = time.process_time()
        assert sum(1 for _ in edit.read(text.encode(), "f")) == 600
        return time.process_time() - start

    assert seconds(f"---\n{GOOD}---\na: [\n" * 300) < 10 * seconds(f"---\n{GOOD}" * 600)


def test_files_without_objects_are_an_error() -> None:
    for command in ("merge", "unmerge"):
        for text in ("", "\n"):
            result = run(command, text)
            assert (result.exit_code, result.stdout) == (2, "")
            assert result.stderr.startswith("error: STDIN: empty, ")
        for text in ("# only words\n", "---\n---\n"):
            result = run(command, text)
            assert (result.exit_code, result.stdout) == (2, text)
            assert result.stderr == "error: error reading [-]: there are no Kubernetes objects in any file\n"


def test_several_files_become_several_documents(tmp_path: Path) -> None:
    result = files(tmp_path, a=OTHER.rstrip("\n"), b=GOOD, c=f"# c\n---\n{OTHER}", d="# nothing\n")
    assert result.exit_code == 0
    assert result.stdout == f"{OTHER}---\n{MERGED}# c\n---\n{OTHER}# nothing\n"


def test_directories_are_read_and_a_missing_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.yaml").write_text(GOOD)
    (tmp_path / "b.json").write_text(json.dumps(spread_pod("one")))
    (tmp_path / "c.txt").write_text("no manifest")
    result = files(tmp_path, "-f", str(tmp_path), "-R")
    assert result.exit_code == 0
    assert result.stdout.count("matchExpressions") == 2
    assert files(tmp_path, "-f", str(tmp_path / "none")).exit_code == 2
    (tmp_path / "d.yaml").mkdir()
    (tmp_path / "e.yaml").symlink_to(tmp_path / "d.yaml" / "gone")
    result = files(tmp_path, "-f", str(tmp_path))
    assert result.exit_code == 2
    assert result.stdout.count("matchExpressions") == 1


@pytest.mark.parametrize("indent", [None, 2, 4, "\t"])
def test_json_stays_json(indent: str | int | None) -> None:
    """Several documents, a list among them, with the key order and the indentation of each."""
    before = [
        spread_pod("one"),
        {"kind": "List", "apiVersion": "v1", "items": [spread_pod("two"), spread_pod("three")]},
    ]
    after = [
        spread_pod("one", REV_R1),
        {"kind": "List", "apiVersion": "v1", "items": [spread_pod("two", REV_R1), spread_pod("three", REV_R1)]},
    ]
    value, expected = (
        "\n".join(json.dumps(manifest, indent=indent) for manifest in side) + "\n" for side in (before, after)
    )
    assert out("merge", value) == expected
    assert out("unmerge", expected) == value


def test_the_values_of_json_stay_as_they_are() -> None:
    text = json.dumps(spread_pod(), ensure_ascii=True).replace(
        '"name": "web"', '"name" : "web", "x":\t1.50e+1, "y": "\\u00e4\\/\\u0000", "z": 18446744073709551615, "w": 1.0'
    )
    written = out("merge", text)
    requirement = '{"matchExpressions": [{"key": "rev", "operator": "In", "values": ["r1"]}]}'
    assert json.loads(written) == json.loads(text.replace("{}", requirement))
    assert '"x": 15.0, "y": "\\u00e4/\\u0000", "z": 18446744073709551615, "w": 1.0' in written


def test_refused_items_of_a_json_list_are_left_out() -> None:
    bad = spread_pod("bad", requirement("rev", "Exists"))
    before = {
        "kind": "List",
        "apiVersion": "v1",
        "items": [bad, spread_pod("one"), bad, spread_pod("two", metadata={"x": "]"}), bad],
    }
    after = {**before, "items": [spread_pod("one", REV_R1), spread_pod("two", REV_R1, metadata={"x": "]"})]}
    for indent in (None, 4):
        result = run("merge", json.dumps(before, indent=indent))
        assert (result.exit_code, result.stdout) == (1, json.dumps(after, indent=indent))


def test_json_and_yaml_documents_may_follow_each_other(tmp_path: Path) -> None:
    item, merged = json.dumps(spread_pod()), json.dumps(spread_pod("web", REV_R1))
    assert out("merge", f"{item}\n---\n{GOOD}") == f"{merged}\n---\n{MERGED}"
    result = files(tmp_path, a=GOOD, b=f"{item}\n{item}", c=item)
    assert result.stdout == f"{MERGED}---\n{merged}\n---\n{merged}\n---\n{merged}"
    assert len(list(json.loads(report("merge", result.stdout, "--server-version=1.33")[0].stdout)["items"])) == 4


def test_items_of_a_typed_list_need_no_kind() -> None:
    items = [
        {key: value for key, value in spread_pod(name).items() if key not in ("kind", "apiVersion")} for name in "ab"
    ]
    result, merge_report = report("merge", json.dumps({"kind": "PodList", "apiVersion": "v1", "items": items}))
    assert [(item["kind"], item["name"], "kind" in item["object"]) for item in merge_report["items"]] == [
        ("Pod", "a", False),
        ("Pod", "b", False),
    ]
    assert result.exit_code == 0


def test_workloads_are_never_changed() -> None:
    text = json.dumps(DEPLOYMENT)
    result = run("merge", text)
    assert (result.exit_code, result.stdout) == (1, text)
    assert result.stderr == f"STDIN:1: Deployment default/web: every pod would be refused: {WHY.partition(': ')[2]}"
    result = run("merge", text, "--server-version=1.33")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "STDIN:1: Deployment default/web: spec.template.spec.topologySpreadConstraints[0].matchLabelKeys[0]: "
        'Invalid value: "rev": exists in both matchLabelKeys and labelSelector\n'
    )
    assert run("unmerge", text).exit_code == 0


def test_the_report_of_merge_has_objects_errors_and_deltas() -> None:
    bad = spread_pod("bad", requirement("rev", "Exists"))
    objects = [
        DEPLOYMENT,
        spread_pod("one", metadata={"namespace": "shop"}),
        bad,
        {"apiVersion": "v1", "kind": "Secret"},
    ]
    result, merge_report = report("merge", "\n".join(json.dumps(manifest) for manifest in objects))
    assert result.exit_code == 1
    assert (merge_report["apiVersion"], merge_report["kind"]) == ("kubectl-spread/v1", "MergeReport")
    workload, item, refused = merge_report["items"]
    error = {
        "path": "spec.topologySpreadConstraints[0][0]",
        "message": WHY.partition(": ")[2].rstrip("\n"),
    }
    assert workload == {
        "kind": "Deployment",
        "namespace": "default",
        "name": "web",
        "admitted": True,
        "errors": [],
        "warnings": [],
        "notes": [],
        "object": DEPLOYMENT,
        "delta": {},
        "pods": {"admitted": False, "errors": [error], "presumedLabels": ["pod-template-hash"]},
    }
    assert (item["namespace"], item["admitted"], item["object"]) == ("shop", True, {**objects[1], **_spec(REV_R1)})
    added = {"root['spec']['topologySpreadConstraints'][0]['labelSelector']['matchExpressions']": [REV_R1]}
    assert item["delta"] == {"dictionary_item_added": added}
    assert "pods" not in item
    assert (refused["admitted"], refused["errors"], refused["object"]) == (False, [error], bad)


def _spec(*expressions: Json) -> Json:
    return {"spec": spread_pod("web", *expressions)["spec"]}


def test_the_report_of_unmerge_has_notes() -> None:
    stale = {**spread_pod("web", requirement("rev", "In", "r0")), "metadata": {"name": "web", "uid": "u", "labels": R1}}
    result, merge_report = report("unmerge", json.dumps(stale))
    (only,) = merge_report["items"]
    note = "spec.topologySpreadConstraints[0]: a re-creation would store rev In [r1] instead of rev In [r0]"
    assert result.exit_code == 0
    assert only["notes"] == [note]
    assert only["object"] == {**stale, **_spec()}
    assert result.stderr == f"STDIN:1: Pod default/web: {note}\n"


def test_unmerge_says_what_would_be_refused_and_exits_0() -> None:
    result = run("unmerge", REFUSED)
    assert (result.exit_code, result.stdout) == (0, REFUSED)
    again = WHY.replace("bad: ", "bad: a re-creation would be refused: ")
    assert result.stderr == f"STDIN:1: {again}"
    assert run("unmerge", f"{MALFORMED}---\n{MERGED}").stdout == f"---\n{GOOD}"
    assert run("unmerge", f"{MALFORMED}---\n{MERGED}").exit_code == 2


def test_yaml_and_json_reports_are_equal() -> None:
    from ruamel.yaml import YAML  # noqa: PLC0415 - one test needs it

    result = run("merge", GOOD, "-o", "yaml")
    assert YAML(typ="safe").load(result.stdout) == report("merge", GOOD)[1]


def test_the_version_is_printed_unless_an_option_names_it() -> None:
    result = CliRunner().invoke(cli, ["merge", "-f", "-"], input=GOOD)
    assert result.stderr == "evaluated as Kubernetes 1.37, the newest known (--server-version changes it)\n"
    assert out("merge", GOOD, "--server-version=1.33") == GOOD


@pytest.mark.parametrize(
    "options",
    [[], ["-f", "-", "--server-version=2.0"], ["-f", "-", "--feature-gates=Nope=true"], ["-f", "-", "-o", "table"]],
)
def test_misuse_is_one_error_and_exit_status_2(options: list[str]) -> None:
    result = CliRunner().invoke(cli, ["merge", *options], input=GOOD)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1


def test_the_kubernetes_package_is_not_imported() -> None:
    script = (
        "import sys; from kubectl_spread.cli import cli; sys.argv[1:] = ['merge', '-f', '-', '--server-version=1.37'];"
        "cli(standalone_mode=False); imported = {'kubernetes', 'deepdiff'} & set(sys.modules);"
        "sys.exit(str(imported) if imported else 0)"
    )
    process = subprocess.run([sys.executable, "-c", script], input=GOOD, text=True, capture_output=True, check=False)
    assert (process.returncode, process.stdout, process.stderr) == (0, MERGED, "")


def test_documents_around_one_that_cannot_be_edited_are_written() -> None:
    alias = constrained("labelSelector: &s {}\nmatchLabelKeys: [rev]\n") + "x: *s\n"
    result = run("merge", f"{GOOD}---\n{alias}---\n{OTHER}")
    assert (result.exit_code, result.stdout) == (2, f"{MERGED}---\n{OTHER}")
    line = len(GOOD.splitlines()) + len(alias.splitlines()) + 1
    assert result.stderr.startswith(f"error: STDIN:{line}: x: cannot be edited: it would get another value")
    assert report("merge", alias)[0].exit_code == 0


def test_json_with_a_byte_that_is_not_utf8_is_an_error() -> None:
    result = run("merge", json.dumps(spread_pod()).encode().replace(b'"status"', b'"\xff": 1, "status"'))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: STDIN:1: invalid JSON: ")


def test_every_field_of_the_report_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "json.md").read_text(encoding="utf-8")
    parts = (mergereport.MergeReport, mergereport.Item, mergereport.Pods, mergereport.ApiError)
    assert [field for part in parts for field in part.__struct_encode_fields__ if f"`{field}`" not in page] == []
