"""Files and folders are found as kubectl finds them."""

from __future__ import annotations

import gzip
from io import BytesIO
from pathlib import Path

import pytest

from kubectl_spread.errors import SourceError
from kubectl_spread.sources.manifests import read


def pod(name: str) -> str:
    return f'{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": "{name}"}}}}'


def names(paths: list[Path], *, recursive: bool) -> list[str]:
    reading = read([str(path) for path in paths], recursive=recursive, stdin=BytesIO())
    return [found.object.metadata.name for found in reading.objects]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.json", "a.yaml", "c.yml", "d.txt", "sub/e.json", "sub/deep/f.json"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(pod(path.stem))
    (tmp_path / "z.json.gz").write_bytes(gzip.compress(pod("z").encode()))
    (tmp_path / "sub" / "loop").symlink_to(tmp_path)
    (tmp_path / "sub" / "same.json").symlink_to(tmp_path / "b.json")
    return tmp_path


def test_read_folder(folder: Path) -> None:
    assert names([folder], recursive=False) == ["a", "b", "c", "z"]
    assert names([folder], recursive=True) == ["a", "b", "c", "f", "e", "z"]
    assert names([folder / "d.txt", folder, folder / "a.yaml"], recursive=False) == ["d", "a", "b", "c", "z"]


def test_read_refuses_a_path_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r'^the path "/no/where" does not exist$'):
        read(["/no/where"], recursive=False, stdin=BytesIO())
    (tmp_path / "a.txt").touch()
    with pytest.raises(SourceError) as refused:
        read([str(tmp_path)], recursive=False, stdin=BytesIO())
    assert str(refused.value) == f"error reading [{tmp_path}]: recognized file extensions are [.json .yaml .yml]"
