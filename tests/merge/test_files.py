"""Every manifest of the repository keeps its value when it is edited, and gets it back."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from kubectl_spread.sources import edit

ROOT = Path(__file__).parents[2]
ADDED = {"x-added": {"matchExpressions": [{"key": "rev", "operator": "In", "values": ["1e3"]}]}}


_COMMENT = re.compile(r"(?<!\S)#.*")
_IN_CI = 12
"""One of so many files is edited in CI; a nightly run edits all."""


def _files() -> list[str]:
    patterns = ("*.yaml", "*.yml", "*.json")
    listed = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return listed.stdout.splitlines()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.nightly] if number % _IN_CI else [])
        for number, name in enumerate(_files())
    ],
)
def test_edited_files_keep_their_values(name: str) -> None:
    body = (ROOT / name).read_bytes()
    for chunk in edit.read(body, name):
        if chunk.empty or chunk.fault or not isinstance(chunk.value, dict):
            continue
        edited = chunk.edited({(): {**chunk.value, **ADDED}})
        (again,) = (part for part in edit.read(edit.encoded(edited), name) if not part.empty)
        assert again.value == {**chunk.value, **ADDED}
        assert _COMMENT.findall(edited) == _COMMENT.findall(chunk.text)
        (back,) = edit.read(edit.encoded(again.edited({(): chunk.value})), name)
        assert back.value == chunk.value
