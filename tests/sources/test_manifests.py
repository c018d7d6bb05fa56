"""Manifests of every form are read alike, and errors name the file, line and field."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import pytest

from kubectl_spread.errors import DecodeError, SourceError
from kubectl_spread.kube.api.types import LabelSelector, Pod
from kubectl_spread.sources.files.chosen import ChosenFiles
from kubectl_spread.sources.files.manifests import Loaded, ManifestReading

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {"app": "web", "empty": None}, "creationTimestamp": None},
    "spec": {
        "tolerations": None,
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
        ],
    },
}
NO_OBJECT = "not a Kubernetes object, which has apiVersion and kind"
YAML_POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: p
  labels: {app: web, empty: }
  creationTimestamp: null
spec:
  tolerations: ~
  topologySpreadConstraints:
  - &constraint
    maxSkew: 0x1
    topologyKey: "zone"
    labelSelector: {matchLabels: {app: web}}
"""


def read_text(text: str | bytes, namespace: str = "default") -> tuple[list[Loaded], ManifestReading]:
    body = text if isinstance(text, bytes) else text.encode()
    reading = ManifestReading(ChosenFiles(["-"], recursive=False, stdin=BytesIO(body)), namespace=namespace)
    return list(reading.objects), reading


def pod(name: str) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {}})


def places(objects: list[Loaded]) -> list[str]:
    return [f"{manifest.kind} {manifest.object.metadata.name} {manifest.position}" for manifest in objects]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(YAML_POD, id="YAML"),
        pytest.param("\ufeff" + YAML_POD, id="YAML with a byte order mark"),
        pytest.param(json.dumps(POD), id="JSON"),
        pytest.param(gzip.compress(json.dumps(POD).encode()), id="gzipped JSON"),
        pytest.param(json.dumps(POD).encode("utf-16"), id="UTF-16, as PowerShell redirects it"),
        pytest.param(json.dumps({"kind": "List", "apiVersion": "v1", "items": [POD]}), id="List"),
        pytest.param(
            json.dumps(
                {
                    "kind": "PodList",
                    "apiVersion": "v1",
                    "items": [{key: POD[key] for key in ("metadata", "spec")}],
                }
            ),
            id="typed list",
        ),
    ],
)
def test_every_form_gives_the_same_object(text: str | bytes) -> None:
    (loaded,), reading = read_text(text)
    assert isinstance(loaded.object, Pod)
    (constraint,) = loaded.object.spec.topology_spread_constraints
    assert loaded.object.metadata.labels == {"app": "web", "empty": ""}
    assert loaded.object.metadata.namespace == "default"
    assert loaded.object.metadata.creation_timestamp is None
    assert loaded.object.spec.tolerations == ()
    assert constraint.max_skew == 1
    assert constraint.node_affinity_policy == "Honor"
    assert constraint.label_selector == LabelSelector(match_labels={"app": "web"})
    assert not reading.errors
    assert not reading.skipped


@pytest.mark.parametrize(
    ("text", "pods"),
    [
        pytest.param(
            f"{pod('a')}\n{pod('b')} {pod('c')}", ["a STDIN:1", "b STDIN:2", "c STDIN:2"], id="concatenated JSON"
        ),
        pytest.param(
            '{"metadata": {"items": [{}]},\n"items": [\n'
            + pod("a")
            + ",\n\n"
            + pod("a")
            + '\n],\n"kind": "List", "apiVersion": "v1"}',
            ["a STDIN:3", "a STDIN:5"],
            id="JSON List",
        ),
        pytest.param(
            '{"kind": "List", "apiVersion": "v1", "items": [\n{"kind": "List", "apiVersion": "v1", "items": [\n'
            + pod("a")
            + "]},\n"
            + pod("b")
            + "]}",
            ["a STDIN:3", "b STDIN:4"],
            id="nested List",
        ),
        pytest.param(
            "# one\napiVersion: v1\nkind: List\nitems:\n"
            "- kind: Pod\n  apiVersion: v1\n  metadata: {name: a}\n  spec: {}\n"
            "- kind: Pod\n  apiVersion: v1\n  metadata: {name: b}\n  spec: {}\n---\n" + pod("c"),
            ["a STDIN:5", "b STDIN:9", "c STDIN:14"],
            id="YAML List and a second document",
        ),
        pytest.param('{"kind": "List", "apiVersion": "v1", "items": null}', [], id="a List whose items are null"),
    ],
)
def test_each_object_has_its_file_and_line(text: str, pods: list[str]) -> None:
    objects, reading = read_text(text)
    assert places(objects) == [f"Pod {pod_place}" for pod_place in pods]
    assert not reading.errors


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"kind": "List", "apiVersion": "v1"}', "List: items: is missing"),
        ('{"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}}', "PodList: items: is missing"),
        ('{"kind": "PodList", "apiVersion": "v1", "items": {"spec": {}}}', "PodList: items: expected array"),
        ('{"kind": "List", "apiVersion": "v1", "items": 1}', "List: items: expected array"),
        (
            '{"kind": "DeploymentList", "apiVersion": "apps/v1", "metadata": {"name": "web"}, "spec": {}}',
            "DeploymentList default/web: items: is missing",
        ),
        (
            '{"kind": "PodList", "apiVersion": "v1", "items": [{"metadata": {"name": "web"}}]}',
            "items[0].spec: is missing",
        ),
        (
            '{"kind": "List", "apiVersion": "v1", "items": [{"kind": "Job", "apiVersion": "batch/v1", "spec": null}]}',
            "Job: items[0].spec: is missing",
        ),
        (
            '{"kind": "List", "apiVersion": "v1", "items": [{"kind": "PodTemplate", "apiVersion": "v1"}]}',
            "PodTemplate: items[0].template: is missing",
        ),
    ],
)
@pytest.mark.parametrize("head", ["", "# YAML\n"])
def test_a_list_without_its_items_or_their_specs_is_malformed(text: str, message: str, head: str) -> None:
    objects, reading = read_text(head + text)
    assert (objects, reading.skipped) == ([], {"malformed": 1})
    assert str(reading.errors[0]) == f"STDIN:{2 if head else 1}: {message}"


@pytest.mark.parametrize("text", ['{"kind": "APIResourceList", "apiVersion": "v1", "resources": []}'])
def test_a_list_of_resources_has_no_items(text: str) -> None:
    assert read_text(text)[1].skipped == {"unknownKind": 1}


@pytest.mark.parametrize("head", ["", "# YAML\n"])
@pytest.mark.parametrize(("number", "problem"), [(7, "it lacks 7 items"), (1, "it lacks 1 item"), (0, ""), (-1, "")])
def test_a_list_that_counts_more_items_is_not_complete(head: str, number: int, problem: str) -> None:
    metadata = f'"metadata": {{"remainingItemCount": {number}}}'
    text = f'{head}{{"kind": "PodList", "apiVersion": "v1", "items": [{pod("a")}], {metadata}}}'
    objects, reading = read_text(text)
    assert len(objects) == 1
    assert [problem in str(error) and "remainingItemCount" in str(error) for error in reading.errors] == (
        [True] if problem else []
    )


@pytest.mark.parametrize("items", ["[]", "null"])
@pytest.mark.parametrize("kind", ["List", "PodList", "NodeList"])
@pytest.mark.parametrize(
    "text", ['{{"kind": "{}", "apiVersion": "v1", "items": {}}}', "kind: {}\napiVersion: v1\nitems: {}\n"]
)
def test_an_empty_list_is_no_object(text: str, kind: str, items: str) -> None:
    """Go writes an empty list as null."""
    objects, reading = read_text(text.format(kind, items))
    assert (objects, reading.errors, reading.skipped) == ([], [], {})


@pytest.mark.parametrize(
    ("api_version", "kind", "is_read"),
    [
        ("v1", "Pod", True),
        ("v1", "Node", True),
        ("v1", "ReplicationController", True),
        ("v1", "PodTemplate", True),
        ("apps/v1", "Deployment", True),
        ("apps/v1", "ReplicaSet", True),
        ("apps/v1", "StatefulSet", True),
        ("apps/v1", "DaemonSet", True),
        ("batch/v1", "Job", True),
        ("batch/v1", "CronJob", True),
        ("v1", "Service", False),
        ("example.com/v1", "Deployment", False),
        ("example.com/v1", "AllowList", False),
    ],
)
def test_objects_of_other_kinds_are_counted(api_version: str, kind: str, is_read: bool) -> None:
    text = json.dumps({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}})
    objects, reading = read_text(text)
    assert [manifest.kind for manifest in objects] == ([kind] if is_read else [])
    assert reading.skipped == ({} if is_read else {"unknownKind": 1})


def test_objects_without_a_namespace_get_the_default() -> None:
    node = '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}'
    own = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "q", "namespace": "own"}}'
    objects, _ = read_text(pod("p") + node + own, namespace="team")
    assert [manifest.object.metadata.namespace for manifest in objects] == ["team", "", "own"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec":'
            '\n{"topologySpreadConstraints": [\n{}, {"topologyKey": "{[\\"]",\n"maxSkew": "1"}]}}',
            "STDIN:4: Pod default/p: spec.topologySpreadConstraints[1].maxSkew: expected integer, got string",
            id="JSON",
        ),
        pytest.param(
            YAML_POD.replace("0x1", "one"),
            "STDIN:11: Pod default/p: spec.topologySpreadConstraints[0].maxSkew: expected integer, got string",
            id="YAML",
        ),
        pytest.param(
            YAML_POD.replace("app: web, empty", "on: 1, empty"),
            "STDIN:5: Pod default/p: metadata.labels.true: expected string, got integer",
            id="label",
        ),
        pytest.param(
            '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"a.b/c":[]}}}',
            "STDIN:1: Pod default/p: metadata.labels[a.b/c]: expected string, got array",
            id="label with a domain",
        ),
        pytest.param(
            '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","creationTimestamp":"2025-01-01T00:00:00"}}',
            "STDIN:1: Pod default/p: metadata.creationTimestamp: expected a time as in RFC 3339",
            id="time without a zone",
        ),
        pytest.param(
            '{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"template":[]}}',
            "STDIN:1: Deployment default/d: spec.template: expected object, got array",
            id="workload",
        ),
        pytest.param(
            '{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"},"spec":{"unschedulable":1}}',
            "STDIN:1: Node n: spec.unschedulable: expected boolean, got integer",
            id="node",
        ),
        pytest.param(
            b'{"apiVersion":"v1","kind":"Pod","x\xff":1,"metadata":{"labels":1}}',
            "STDIN:1: ",
            id="a key that is not UTF-8",
        ),
        pytest.param('{"apiVersion": "v1", "metadata": {}}', "STDIN:1: kind: is missing", id="no kind"),
        pytest.param("apiVersion: v1\nmetadata: {}", "STDIN:1: kind: is missing", id="no kind in YAML"),
        pytest.param('{"apiVersion": "v1"}', f"STDIN:1: {NO_OBJECT}", id="apiVersion alone"),
        pytest.param("a: 1", f"STDIN:1: {NO_OBJECT}", id="neither kind nor apiVersion"),
        pytest.param('{"kind": "Pod"}', "STDIN:1: Pod: apiVersion: is missing", id="no apiVersion"),
        pytest.param(
            '{"kind": 1, "metadata": {}}', "STDIN:1: kind: expected string, got integer", id="a kind that is a number"
        ),
        pytest.param("text", f"STDIN:1: {NO_OBJECT}", id="text"),
        pytest.param("\n\n- 1", f"STDIN:3: {NO_OBJECT}", id="array"),
        pytest.param(
            '{"kind":"List","apiVersion":"v1","items":{}}',
            "STDIN:1: List: items: expected array",
            id="List of an object",
        ),
        pytest.param(
            '{"kind":"List","apiVersion":"v1","items":[\nnull]}',
            "STDIN:2: items[0]: expected object, got null",
            id="null in a List",
        ),
        pytest.param(
            '{"kind":"List","apiVersion":"v1","items":[{"apiVersion":"v1","kind":"Pod","spec":1}]}',
            "STDIN:1: Pod: items[0].spec: expected object, got integer",
            id="nameless in a List of one line",
        ),
    ],
)
def test_a_malformed_object_is_an_error_with_its_line_and_field(text: str | bytes, message: str) -> None:
    objects, reading = read_text(text)
    assert objects == []
    (error,) = map(str, reading.errors)
    assert error.startswith(message) if message.endswith(": ") else error == message
    assert isinstance(reading.errors[0], DecodeError)
    assert reading.skipped == {"malformed": 1}


INT32, INT64 = 2**31, 2**63
REPLICATED = '{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"d"}},"spec":{{\n"replicas":{}}}}}'
NUMBERED_POD = (
    '{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p","generation":{generation}}},"spec":{{'
    '"topologySpreadConstraints":[{{\n"maxSkew":{skew},\n"minDomains":{domains}}}],"unknown":{huge},'
    '"affinity":{{"podAffinity":{{"preferredDuringSchedulingIgnoredDuringExecution":[{{\n"weight":{weight}}}]}}}}}}}}'
)
USUAL: Mapping[str, object] = {"generation": 1, "skew": 1, "domains": 1, "weight": 1, "huge": 10**30}


PAGE = '{"apiVersion": "v1", "kind": "PodList",\n%s"items": [{"metadata": {"name": "p"}, "spec": {}}]%s}'
TOKEN = '"metadata": {"resourceVersion": "7", "continue": "abc", "remainingItemCount": 2}'


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param(PAGE % (f"{TOKEN}, ", ""), 2, id="JSON"),
        pytest.param(PAGE % ("", f", {TOKEN}"), 2, id="JSON, metadata behind the items"),
        pytest.param("kind: PodList\napiVersion: v1\nmetadata: {continue: abc}\nitems:\n- spec: {}\n", 3, id="YAML"),
        pytest.param(
            "kind: PodList\napiVersion: v1\nitems: [{spec: {}}]\nmetadata: {continue: &a abc}\n", 4, id="flow"
        ),
    ],
)
def test_a_saved_page_of_a_list_is_an_error(text: str, line: int) -> None:
    objects, reading = read_text(text)
    assert len(objects) == 1
    problem = "a continue token says that pages follow; save all of it, as kubectl get -o json does"
    expected = f"STDIN:{line}: PodList: metadata.continue: the list is not complete: {problem}"
    assert [str(error) for error in reading.errors] == [expected]


NESTED_PAGE = (
    '{"apiVersion": "v1", "kind": "List", "items": [\n' + PAGE % (f"{TOKEN}, ", "") + ", " + PAGE % ("", "") + "]}"
)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        pytest.param(NESTED_PAGE, "STDIN:3: PodList: items[0]", id="JSON"),
        pytest.param(
            "kind: List\napiVersion: v1\nitems:\n- kind: PodList\n  apiVersion: v1\n"
            "  metadata:\n    continue: abc\n  items:\n  - spec: {}\n  - spec: {}\n",
            "STDIN:7: PodList: items[0]",
            id="YAML",
        ),
        pytest.param(
            '{"apiVersion": "v1", "kind": "List", "items": [' + NESTED_PAGE + "]}",
            "STDIN:3: PodList: items[0].items[0]",
            id="a list in a list in a list",
        ),
    ],
)
def test_a_saved_page_in_another_list_is_an_error(text: str, place: str) -> None:
    objects, reading = read_text(text)
    assert len(objects) == 2
    problem = "a continue token says that pages follow; save all of it, as kubectl get -o json does"
    expected = f"{place}.metadata.continue: the list is not complete: {problem}"
    assert [str(error) for error in reading.errors] == [expected]
    assert reading.skipped == {"malformed": 1}


@pytest.mark.parametrize("metadata", ['{"continue": ""}', '{"continue": 1}', "null", '"a"', "[]"])
def test_a_list_without_a_continue_token_is_complete(metadata: str) -> None:
    objects, reading = read_text(PAGE % (f'"metadata": {metadata}, ', ""))
    assert (len(objects), reading.errors) == (1, [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            NUMBERED_POD.format_map({**USUAL, "generation": INT64}),
            "STDIN:1: Pod default/p: metadata.generation: integer is out of the range of int64",
            id="generation",
        ),
        pytest.param(
            NUMBERED_POD.format_map({**USUAL, "skew": INT32}),
            "STDIN:2: Pod default/p: spec.topologySpreadConstraints[0].maxSkew: integer is out of the range of int32",
            id="maxSkew",
        ),
        pytest.param(
            NUMBERED_POD.format_map({**USUAL, "skew": "1e10"}),
            "STDIN:2: Pod default/p: spec.topologySpreadConstraints[0].maxSkew: integer is out of the range of int32",
            id="maxSkew as a float",
        ),
        pytest.param(
            NUMBERED_POD.format_map({**USUAL, "domains": -INT32 - 1}),
            "STDIN:3: Pod default/p: spec.topologySpreadConstraints[0].minDomains: "
            "integer is out of the range of int32",
            id="minDomains",
        ),
        pytest.param(
            NUMBERED_POD.format_map({**USUAL, "weight": 10**30}),
            "STDIN:4: Pod default/p: spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]"
            ".weight: integer is out of the range of int32",
            id="weight",
        ),
        pytest.param(
            REPLICATED.format(3_000_000_000),
            "STDIN:2: Deployment default/d: spec.replicas: integer is out of the range of int32",
            id="replicas",
        ),
        pytest.param(
            f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: d}}\nspec:\n  replicas: {INT32}\n",
            "STDIN:5: Deployment default/d: spec.replicas: integer is out of the range of int32",
            id="YAML",
        ),
    ],
)
def test_an_integer_that_the_api_cannot_hold_is_an_error(text: str, message: str) -> None:
    objects, reading = read_text(text)
    assert objects == []
    assert [str(error) for error in reading.errors] == [message]


@pytest.mark.parametrize(
    "text",
    [
        NUMBERED_POD.format_map(USUAL),
        NUMBERED_POD.format_map(
            {**USUAL, "generation": INT64 - 1, "skew": INT32 - 1, "domains": -INT32, "weight": INT32 - 1}
        ),
        REPLICATED.format(INT32 - 1),
    ],
)
def test_the_greatest_integers_and_any_numbers_in_unknown_fields_are_read(text: str) -> None:
    objects, reading = read_text(text)
    assert (len(objects), reading.errors) == (1, [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param('{"kind": "Pod",\n"a', "STDIN:2: invalid JSON: input data was truncated", id="truncated"),
        pytest.param('{"kind": "Pod"\n]', "STDIN:2: invalid JSON: expected ',' or '}'", id="malformed"),
        pytest.param('\n{"a":\n' * 100_000, "STDIN:2: nested too deeply", id="deep"),
        pytest.param("\x89PNG\r\n", "STDIN:1: ", id="binary"),
        pytest.param("kind: Pod\nmetadata: {", "STDIN:2: ", id="YAML"),
        pytest.param(gzip.compress(b"{}" * 100)[:20], "error reading -: ", id="truncated gzip"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_error_with_its_line(text: str | bytes, message: str) -> None:
    objects, reading = read_text(text)
    assert objects == []
    assert str(reading.errors[0]).startswith(message)
    assert "\n" not in str(reading.errors[0])
    assert isinstance(reading.errors[0], SourceError)
    assert reading.skipped == {"unreadable": 1}


def test_documents_and_files_behind_an_error_are_read(tmp_path: Path) -> None:
    bad = pod("bad").replace('"bad"', "1")
    (tmp_path / "a.yaml").write_text(f"{pod('a')}\n---\nx: 1\nx: 2\n---\n{bad}\n---\n{pod('b')}\n---\na: [")
    (tmp_path / "b.json").write_text(pod("c"))
    reading = ManifestReading(ChosenFiles([str(tmp_path)], recursive=False, stdin=None))
    assert [manifest.object.metadata.name for manifest in reading.objects] == ["a", "b", "c"]
    assert reading.skipped == {"malformed": 1, "unreadable": 2}
    assert len(reading.errors) == 3


def test_nulls_in_lists_are_zero_values_as_in_go() -> None:
    text = (
        '{"apiVersion":"v1","kind":"Pod","spec":{"tolerations":[null],'
        '"topologySpreadConstraints":[{"matchLabelKeys":[null],"maxSkew":1.0}]}}'
    )
    (loaded,), _ = read_text(text)
    assert isinstance(loaded.object, Pod)
    assert loaded.object.spec.tolerations[0].key == ""
    assert loaded.object.spec.topology_spread_constraints[0].match_label_keys == ("",)
    assert loaded.object.spec.topology_spread_constraints[0].max_skew == 1


def test_standard_input_is_read_once() -> None:
    reading = ManifestReading(ChosenFiles(["-", "-"], recursive=False, stdin=BytesIO(pod("p").encode())))
    assert len(list(reading.objects)) == 1


def test_reading_files_imports_no_client_of_the_api_server() -> None:
    code = (
        "import io, sys; from kubectl_spread.sources.files import chosen, manifests;"
        "files = chosen.ChosenFiles(['-'], False, io.BytesIO(b'kind: Pod'));"
        "list(manifests.ManifestReading(files).objects);"
        "sys.exit(any(name.split('.')[0] in ('kubernetes', 'urllib3') or name.startswith('google.protobuf')"
        " for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
