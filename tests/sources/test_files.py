"""Files and directories are found as kubectl finds them."""

from __future__ import annotations

import gzip
import tracemalloc
from io import BytesIO
from pathlib import Path

import pytest

from kubectl_spread.errors import SourceError
from kubectl_spread.sources.files.chosen import ChosenFiles
from kubectl_spread.sources.files.manifests import ManifestReading


def pod(name: str) -> str:
    return f'{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": "{name}"}}, "spec": {{}}}}'


def read_paths(*paths: Path, recursive: bool = False) -> ManifestReading:
    return ManifestReading(ChosenFiles([str(path) for path in paths], recursive, None))


def read_stdin(body: bytes) -> ManifestReading:
    return ManifestReading(ChosenFiles(["-"], recursive=False, stdin=BytesIO(body)))


def names(paths: list[Path], *, recursive: bool) -> list[str]:
    reading = read_paths(*paths, recursive=recursive)
    return [manifest.object.metadata.name for manifest in reading.objects]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for name in ("b.json", "a.yaml", "c.yml", "d.txt", "sub/e.json", "sub/deep/f.json"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(pod(path.stem))
    (tmp_path / "z.json.gz").write_bytes(gzip.compress(pod("z").encode()))
    (tmp_path / "sub" / "loop").symlink_to(tmp_path)
    return tmp_path


def test_directories_are_read_in_the_order_of_names_and_each_file_once(directory: Path) -> None:
    assert names([directory], recursive=False) == ["a", "b", "c", "z"]
    assert names([directory], recursive=True) == ["a", "b", "c", "f", "e", "z"]
    assert names([directory / "d.txt", directory, directory / "a.yaml"], recursive=False) == ["d", "a", "b", "c", "z"]


def test_read_refuses_a_path_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r'^the path "/no/where" does not exist$'):
        read_paths(Path("/no/where"))
    (tmp_path / "a.txt").touch()
    with pytest.raises(SourceError) as refused:
        read_paths(tmp_path)
    assert str(refused.value) == f"error reading [{tmp_path}]: recognized file extensions are [.json .yaml .yml]"


PACKED = gzip.compress(pod("a").encode())


@pytest.mark.parametrize(
    ("body", "pod_names"),
    [
        pytest.param(PACKED, ["a"], id="one member"),
        pytest.param(PACKED + gzip.compress(pod("b").encode()), ["a", "b"], id="two members"),
        pytest.param(gzip.compress(b"apiVersion: v1\nkind: Pod\nmetadata: {name: c}\n"), ["c"], id="YAML"),
    ],
)
def test_gzip_is_recognised_by_its_first_bytes(tmp_path: Path, body: bytes, pod_names: list[str]) -> None:
    (tmp_path / "pods.txt").write_bytes(body)
    assert names([tmp_path / "pods.txt"], recursive=False) == pod_names
    reading = read_stdin(body)
    assert [loaded.object.metadata.name for loaded in reading.objects] == pod_names


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        pytest.param(PACKED[:-9], "compressed file ended before the end-of-stream marker was reached", id="truncated"),
        pytest.param(PACKED[:-8] + b"12345678", "cRC check failed", id="wrong checksum"),
        pytest.param(PACKED[:10] + b"\xff" * 9, "error -3 while decompressing data", id="corrupt"),
        pytest.param(PACKED + b"text", "not a gzipped file", id="text behind it"),
    ],
)
def test_a_broken_gzipped_file_is_an_error(tmp_path: Path, body: bytes, problem: str) -> None:
    path = tmp_path / "pods.json.gz"
    path.write_bytes(body)
    reading = read_paths(path)
    list(reading.objects)
    (error,) = map(str, reading.errors)
    assert error.startswith(f"error reading {path}: {problem}")
    assert reading.skipped == {"unreadable": 1}


@pytest.mark.parametrize(
    "start", ['{"kind": "List", "apiVersion": "v1", "items": [', "kind: List\napiVersion: v1\nitems:\n"]
)
def test_a_gzipped_list_is_unpacked_block_by_block(start: str) -> None:
    text, comma = (pod("a"), ",") if start.startswith("{") else ("- " + pod("a"), "\n")
    end = "]}" if start.startswith("{") else "\n"
    blank = " " * 1000 + "\n"
    body = gzip.compress(f"{start}{comma.join([text + blank] * 10_000)}{end}".encode())
    reading = read_stdin(body)
    tracemalloc.start()
    assert sum(1 for _ in reading.objects) == 10_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8_000_000
    assert not reading.errors
