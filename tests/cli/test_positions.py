"""The position of a field in manifests of every shape: file, line and column."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from kubectl_spread.errors import Position
from kubectl_spread.kube.api.field import FieldPath
from kubectl_spread.sources.decode import yaml_values
from kubectl_spread.sources.decode.json_documents import Record
from kubectl_spread.sources.files import inputs, rawobjects
from tests.cli.manifests import BLOCK, CLAUSE, CONFIG, SHAPES, WEB, place, sources


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("shape", SHAPES)
def test_findings_are_located_at_the_mark(shape: str, directory: Path) -> None:
    text, (line, column) = place(SHAPES[shape])
    (directory / "web.yaml").write_bytes(text.encode())
    assert sources("-f", "web.yaml") == [{"file": "web.yaml", "line": line, "column": column}]


def test_findings_have_these_lines_and_columns(directory: Path) -> None:
    """The expected numbers are literals, unlike those of the marks."""
    (directory / "web.yaml").write_text(f"{CONFIG}---\n{WEB}        - {BLOCK}\n", encoding="utf-8")
    assert sources("-f", "web.yaml") == [{"file": "web.yaml", "line": 14, "column": 11}]


@pytest.mark.parametrize(
    "encoded",
    [
        pytest.param(gzip.compress, id="gzip"),
        pytest.param(lambda body: body.decode().encode("utf-16"), id="UTF-16"),
        pytest.param(lambda body: b"\xef\xbb\xbf" + body, id="a byte order mark"),
    ],
)
@pytest.mark.parametrize("shape", ["brackets behind what is not ASCII", "JSON in one line"])
def test_encoded_files_have_positions(shape: str, encoded: Callable[[bytes], bytes], directory: Path) -> None:
    text, (line, column) = place(SHAPES[shape])
    (directory / "web").write_bytes(encoded(text.encode()))
    assert sources("-f", "web") == [{"file": "web", "line": line, "column": column}]


def test_files_in_directories_have_positions(directory: Path) -> None:
    for name in ("a", "b/c"):
        (directory / name).mkdir(parents=True)
        text, _ = place(SHAPES["one document"].replace("name: web", f"name: web-{name[0]}"))
        (directory / name / "web.yaml").write_text(text, encoding="utf-8")
    expected = [{"file": f"{name}/web.yaml", "line": 9, "column": 9} for name in ("a", "b/c")]
    assert sources("-f", ".", "-R") == expected
    assert sources("-f", "./a", "-f", "b//c") == expected
    absolute = f"{directory}/a/web.yaml"
    assert sources("-f", absolute) == [{"file": absolute, "line": 9, "column": 9}]


def test_standard_input_has_positions() -> None:
    text, (line, column) = place(SHAPES["the second document"])
    assert sources("-f", "-", stdin=text) == [{"file": "STDIN", "line": line, "column": column}]


def test_a_pipe_has_positions() -> None:
    text, (line, column) = place(SHAPES["the second document"])
    reader, writer = os.pipe()
    os.write(writer, text.encode())
    os.close(writer)
    try:
        source = {"file": f"/dev/fd/{reader}", "line": line, "column": column}
        assert sources("-f", f"/dev/fd/{reader}") == [source]
    finally:
        os.close(reader)


def test_large_documents_have_lines_without_columns(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, _ = place(SHAPES["the second document"])
    (directory / "f").write_text(text, encoding="utf-8")
    monkeypatch.setattr(yaml_values, "MOST_BYTES", 100)
    assert sources("-f", "f") == [{"file": "f", "line": 8}]


PATH = FieldPath.parse("spec.template.spec.topologySpreadConstraints[0]")


def position(text: str) -> Position:
    """Return the position of the first constraint of the only object in a text."""
    name = "f"
    Path(name).write_text(text, encoding="utf-8")
    (member,) = (
        member
        for document in inputs.documents(inputs.content(name, None), name)
        if isinstance(document, Record)
        for member in rawobjects.members(document)
    )
    return member.record.position_of(name, PATH)


@pytest.mark.parametrize(
    ("field_text", "place", "begins"),
    [
        (f"{WEB}      - {{{CLAUSE}}}\n", (9, 9), "{"),
        (f"{WEB.rstrip()} []\n", (8, 7), '"topologySpreadConstraints"'),
        (f"{WEB.rstrip()} {{maxSkew: 1}}\n", (8, 7), '"topologySpreadConstraints"'),
        (f"{WEB.rstrip()} none\n", (8, 7), '"topologySpreadConstraints"'),
        (WEB.removesuffix("      topologySpreadConstraints:\n") + "      nodeName: a\n", (7, 5), '"spec"'),
        (WEB.partition("  template:")[0] + "  replicas: 1\n", (4, 1), '"spec"'),
        (WEB.partition("spec:")[0], (1, 1), "{"),
    ],
)
def test_a_field_or_the_innermost_field_around_it_has_a_position(
    field_text: str, place: tuple[int, int], begins: str
) -> None:
    """The position of a surrounding field is that of its key, in JSON and YAML."""
    assert position(field_text) == Position("f", *place)
    text = json.dumps(YAML(typ="safe").load(field_text), indent=2)
    in_json = position(text)
    assert in_json.line
    assert in_json.column
    assert text.splitlines()[in_json.line - 1][in_json.column - 1 :].startswith(begins)


def test_a_file_name_that_is_not_text_has_a_position(directory: Path) -> None:
    text, _ = place(SHAPES["one document"])
    Path(os.fsdecode(os.fsencode(directory) + b"/\xff.yaml")).write_text(text, encoding="utf-8")
    assert sources("-f", ".") == [{"file": "\\xff.yaml", "line": 9, "column": 9}]
