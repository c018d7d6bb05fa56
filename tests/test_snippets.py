"""The snippets of docs/snippets.md are YAML, and run commands and name metrics that exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from ruamel.yaml import YAML

from kubectl_spread import __version__
from kubectl_spread.render.openmetrics import FAMILIES
from tests.generated import ROOT
from tests.test_pages import BLOCK, parse

PAGE = (ROOT / "docs" / "snippets.md").read_text(encoding="utf-8")
SNIPPETS = [YAML(typ="safe").load(body) for kind, body in BLOCK.findall(PAGE) if kind == "yaml"]


def nodes(value: Any) -> Iterator[Any]:
    """Yield a value and everything in it."""
    yield value
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for member in members:
        yield from nodes(member)


def commands(snippet: Any) -> Iterator[list[str]]:
    """Yield the arguments of each ``kubectl spread`` in a snippet, with a word for each variable."""
    for node in nodes(snippet):
        if isinstance(node, str):
            plain = re.sub(r"\$\w+|\{\{ \w+ \}\}", "word", node)
            yield from (shlex.split(each) for each in re.findall(r"kubectl spread ([^|]+)", plain))
        elif isinstance(node, dict) and "kubectl-spread-monitor" in str(node.get("image")):
            assert node["image"].endswith(f":{__version__}")
            yield node["args"]


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: str(next(iter(snippet))))
def test_each_snippet_runs_commands_or_asks_for_metrics_that_exist(snippet: Any) -> None:
    metrics = {family.name for family in FAMILIES}
    named = {name for node in nodes(snippet) if isinstance(node, str) for name in re.findall(r"kube_spread_\w+", node)}
    called = list(commands(snippet))
    assert called or named
    assert named <= metrics
    for words in called:
        parse(words)


def test_the_variables_of_k9s_are_those_that_it_has() -> None:
    """Source: k9s internal/view/helpers.go, defaultEnv."""
    used = {name for node in nodes(SNIPPETS[0]) if isinstance(node, str) for name in re.findall(r"\$(\w+)", node)}
    assert used == {"NAME", "NAMESPACE", "CONTEXT"}
