"""The page about kubeconfigs names each test of its modules, and no other."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MODULES = ("kubeconfig", "identities", "exec_plugins", "proxies", "tls", "in_cluster")
ROWS = [
    line.strip("| ").split(" | ")
    for line in (ROOT / "docs" / "kubeconfig.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| feature |")
]
"""Each: the feature, kubectl, the plugin, the test."""


def defined(path: Path) -> set[str]:
    """Return the tests of a module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_row_names_a_test(row: list[str]) -> None:
    assert len(row) == 4
    reference = re.fullmatch(r"`([\w/.]+)::(test_\w+)`", row[3])
    assert reference, row[3]
    path = reference[1] if "/" in reference[1] else f"tests/e2e/{reference[1]}"
    assert reference[2] in defined(ROOT / path)


@pytest.mark.parametrize("module", MODULES)
def test_every_test_is_named(module: str) -> None:
    path = ROOT / "tests" / "e2e" / f"test_{module}.py"
    named = {row[3].strip("`").partition("::")[2] for row in ROWS if f"{path.name}::" in row[3]}
    assert named == defined(path)
