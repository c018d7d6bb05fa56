"""A file that cannot be read or is not text is one line with its name, and exit status 2."""

from __future__ import annotations

import json
import os
from pathlib import Path
from threading import Thread

import pytest

from tests.builders import pod_json
from tests.hostile.commands import as_nobody, check, clean, open_to_all, refusal, run, text_of

POD = text_of(pod_json())
TEXT = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  labels: {a: BAD}\n"


def test_links_to_a_parent_directory_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "pod.json").write_text(POD)
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "again.yaml").symlink_to(tmp_path)
    assert check("-R", "-f", str(tmp_path))[0] == 0


@pytest.mark.parametrize("target", ["self.yaml", "nowhere.yaml"])
def test_a_broken_link_is_named(tmp_path: Path, target: str) -> None:
    (tmp_path / "self.yaml").symlink_to(tmp_path / target)
    (tmp_path / "pod.json").write_text(POD)
    status, stderr = check("-R", "-f", str(tmp_path))
    assert status == 2
    assert f"error: error reading {tmp_path}/self.yaml: " in stderr


@pytest.mark.parametrize("name", ["secret.yaml", "secret"])
def test_a_file_that_may_not_be_read_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "pod.json").write_text(POD)
    secret = tmp_path / name
    if secret.suffix:
        secret.write_text(POD)
    else:
        secret.mkdir()
    open_to_all(tmp_path)
    secret.chmod(0)
    status, stderr = as_nobody("-R", "-f", str(tmp_path))
    secret.chmod(0o700)
    assert status == 2
    assert f"error: error reading {secret}: permission denied" in stderr.lower()


def test_a_device_and_a_pipe_that_are_named_are_read_to_their_end(tmp_path: Path) -> None:
    assert check("-f", "/dev/null")[0] == 2
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = Thread(target=pipe.write_text, args=(POD,))
    writer.start()
    assert check("-f", str(pipe))[0] == 0
    writer.join()


def test_a_directory_without_manifests_is_refused(tmp_path: Path) -> None:
    assert check("-f", str(tmp_path)) == (
        2,
        f"error: error reading [{tmp_path}]: recognized file extensions are [.json .yaml .yml]\n",
    )


@pytest.mark.parametrize("levels", [0, 1, 2])
def test_a_saved_page_of_a_list_is_refused_at_any_level(levels: int) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "PodList", "metadata": {"continue": "abc"}, "items": []})
    for _ in range(levels):
        text = f'{{"apiVersion": "v1", "kind": "List", "items": [\n{text}]}}'
    field = "items[0]." * levels + "metadata.continue"
    assert refusal(text).startswith(f"error: STDIN:{levels + 1}: PodList: {field}: the list is not complete: ")


@pytest.mark.parametrize("command", ["check", "merge"])
@pytest.mark.parametrize("levels", [0, 1, 2])
@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(f'"items": [{POD}],\n"items": []', id="before none"),
        pytest.param(f'"items": [{POD}],\n"items": null', id="before null"),
        pytest.param(f'"items": [],\n"it\\u0065ms": [{POD}]', id="behind none"),
        pytest.param(f'"items": [{POD}], "metadata": {{}},\n"items": [{POD}]', id="of the same length"),
    ],
)
def test_items_that_a_second_key_hides_are_refused_in_json(fields: str, levels: int, command: str) -> None:
    text = f'{{"apiVersion": "v1", "kind": "List",\n{fields}}}'
    for _ in range(levels):
        text = f'{{"apiVersion": "v1", "kind": "List", "items": [\n{text}]}}'
    path = "items[0]." * levels
    assert refusal(text, command) == f"error: STDIN:{levels + 2}: List: {path}items: is duplicated"


@pytest.mark.parametrize("kind", ["ConfigMap", "Status"])
def test_a_list_that_a_second_kind_hides_is_refused_in_json(kind: str) -> None:
    text = f'{{"apiVersion": "v1",\n"kind": "List", "items": [{POD}], "kind": "{kind}"}}'
    assert refusal(text) == f"error: STDIN:2: {kind}: kind: is duplicated"


@pytest.mark.parametrize("command", ["check", "merge"])
@pytest.mark.parametrize(
    ("bad", "line"),
    [
        pytest.param(b"\xff", "STDIN:5: byte 0xff is not UTF-8 text", id="invalid UTF-8"),
        pytest.param(b"\xed\xa0\x80", "STDIN:5: byte 0xed is not UTF-8 text", id="surrogate in UTF-8"),
        pytest.param(b"\xc0\x80", "STDIN:5: byte 0xc0 is not UTF-8 text", id="overlong NUL"),
        pytest.param(b"\x00", "STDIN:5: character U+0000 is not allowed", id="NUL"),
        pytest.param(b"\x1b[2J", "STDIN:5: character U+001B is not allowed", id="escape"),
        pytest.param(b'"\\ud800"', "STDIN:5: found invalid Unicode character escape code", id="lone surrogate"),
    ],
)
def test_bytes_that_are_not_text_are_refused_in_yaml(bad: bytes, line: str, command: str) -> None:
    assert refusal(TEXT.encode().replace(b"BAD", bad), command) == f"error: {line}"


@pytest.mark.parametrize("bad", [b"\xff", b"\xed\xa0\x80", b"\x00", b"\x1b", b"\\ud800", b"\\udc00\\ud800"])
@pytest.mark.parametrize("command", ["check", "merge"])
def test_bytes_that_are_not_text_are_refused_in_json(bad: bytes, command: str) -> None:
    body = b'{"apiVersion": "v1",\n"kind": "Pod",\n"metadata": {"name": "p", "labels": {"a": "%s"}}}' % bad
    assert refusal(body, command).startswith("error: STDIN:")


def test_a_nul_in_json_is_printed_as_an_escape() -> None:
    outcome = clean(run(text_of(pod_json("p\0", constraints=[{"maxSkew": 0}])), "check"))
    assert "p\\x00" in outcome.stdout


def test_utf_16_is_read_unless_it_is_broken() -> None:
    assert run(POD.encode("utf-16")).exit_code == 0
    assert refusal(POD.encode("utf-16")[:-1]).startswith("error: error reading -: ")


def test_labels_in_any_script_are_printed() -> None:
    labels = {"app": "веб", "é": "日本", "emoji": "\U0001f600"}
    outcome = clean(run(text_of(pod_json("größe", labels=labels)), "merge", "-o", "json"))
    assert '"日本"' in outcome.stdout
    assert '"größe"' in outcome.stdout


def test_a_directory_whose_files_may_only_be_listed_is_an_error(tmp_path: Path) -> None:
    listed = tmp_path / "listed"
    listed.mkdir()
    (listed / "pod.json").write_text(POD)
    open_to_all(tmp_path)
    listed.chmod(0o744)
    status, stderr = as_nobody("-R", "-f", str(tmp_path))
    listed.chmod(0o755)
    assert status == 2
    assert f"error reading {listed}/pod.json: permission denied" in stderr.lower()


@pytest.mark.parametrize("metadata", ["{}", '{"name": ""}', '{"labels": {}}'])
def test_a_node_without_a_name_is_refused(metadata: str) -> None:
    """A pod that is placed on it would wait without an end."""
    text = f'{POD}\n{{"apiVersion": "v1", "kind": "Node", "metadata": {metadata}}}'
    assert refusal(text) == "error: STDIN:2: Node: metadata.name: a Node needs a name"
