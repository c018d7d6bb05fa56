"""The text of the HTML page: its contents, and that no name becomes markup. ``tests/browser`` opens the page."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from kubectl_spread.render import html, table
from kubectl_spread.render.document import Document, Instruction
from kubectl_spread.render.html import records
from kubectl_spread.render.html.records import Value, by_columns
from kubectl_spread.report.model import Cluster, Report
from tests.audits import audit, reported
from tests.builders import constraint, node_json, pod_json
from tests.conftest import Golden
from tests.render.test_render import GOLDEN, hostile, nothing, several, without_nodes

_DATA = re.compile(r'(<script type="application/json" id="data">)(.*?)(</script>)', re.DOTALL)
_MARKUP = "</script><!--<img src=x onerror=alert(1)>'\"&{{ 7 * 7 }}"


class Elements(HTMLParser):
    """The elements of a page: tag and attributes of each, and all text that is not within script or style."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._raw = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._raw = tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002 - the parser names its arguments
        self._raw = False

    def handle_data(self, data: str) -> None:
        if not self._raw:
            self.texts.append(data)


def data_of(page: str) -> Any:
    """Return the data of a page."""
    match = _DATA.search(page)
    assert match
    return json.loads(match[2])


def reviewed(page: str) -> str:
    """Return a page as its golden file has it: without style and script, with each column of the data in a line."""
    data = data_of(page)
    lines = [f"{index}: {text}" for index, text in enumerate(data.pop("texts"))]
    lines += [
        f"{table}.{name}: {json.dumps(column)}" for table, columns in data.items() for name, column in columns.items()
    ]
    page = _DATA.sub(lambda match: "\n".join((match[1], *lines, match[3])), page)
    page = re.sub(r"(<style>|<script>)(.*?)(</style>|</script>)", r"\1\3", page, flags=re.DOTALL)
    return re.sub(r"sha256-[\w+/]{43}=", "sha256-HASH", page)


@pytest.mark.parametrize("make", [several, hostile], ids=lambda make: make.__name__)
def test_pages_match_their_golden_files(make: Any, golden: Golden) -> None:
    golden(GOLDEN / f"{make.__name__}.html", reviewed(html.page(reported(make()))))


@pytest.mark.parametrize("make", [several, nothing, without_nodes, hostile])
def test_the_same_report_is_the_same_page_without_hidden_characters(make: Any) -> None:
    page = html.page(reported(make()))
    assert page == html.page(reported(make()))
    assert all(char.isprintable() or char == "\n" for char in page)


def test_the_policy_has_the_hashes_of_the_style_and_the_script() -> None:
    page = html.page(reported(several()))
    (policy,) = [
        str(attributes["content"])
        for tag, attributes in Elements(page).elements
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[f"{tag}-src"] == f"'sha256-{digest}'"


def test_the_page_loads_nothing() -> None:
    """The addresses of sources are links."""
    for tag, attributes in Elements(html.page(reported(several()))).elements:
        assert "src" not in attributes
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        if tag != "a":
            assert str(attributes.get("href", "#")).startswith(("#", "data:"))


def marked() -> Report:
    """Return a report with markup in every name of an object."""
    pod = pod_json(
        _MARKUP,
        namespace=_MARKUP,
        node="a1",
        labels={"app": _MARKUP},
        owner=f"Deployment/{_MARKUP}",
        constraints=[constraint(key=_MARKUP, match=[_MARKUP])],
    )
    return reported(audit(pod, node_json("a1", labels={_MARKUP: _MARKUP})))


def test_markup_in_names_is_text() -> None:
    page = html.page(marked())
    assert page.count("</script>") == 2
    assert "<img" not in page
    assert any(f"deploy/{_MARKUP}" in text for text in Elements(page).texts)
    data = data_of(page)
    assert f"deploy/{_MARKUP}" in data["texts"]
    assert not set("<>&'") & set(json.dumps(_DATA.search(page)[2])[1:-1])  # type: ignore[index]


def test_unknown_facts_about_the_cluster_are_left_out() -> None:
    report = reported(several())
    assert not {"Cluster", "Context", "Kubernetes", "Read at"} & set(Elements(html.page(report)).texts)
    cluster = Cluster(
        context="prod",
        name="eu-1",
        uid="1b4e28ba",
        read_at="2026-11-22T05:24:07Z",
        server_version="1.36.2",
        evaluated_as="1.36",
        compared_with="1.37",
        version_source="live",
        gates={},
        gates_source="metrics",
        nodes="none",
        resource_versions={"pods": "42"},
    )
    sparse_report = Report(
        cluster=cluster,
        constraints=report.constraints,
        groups=report.groups,
        pods=report.pods,
        findings=report.findings,
        summary=report.summary,
    )
    texts = Elements(html.page(sparse_report)).texts
    assert {"prod: Topology spread report", "prod", "Kubernetes 1.36.2, compared with 1.37"} <= set(texts)
    assert "Context" not in texts
    names = ("Name", "UID", "Read at", "Kubernetes", "Evaluated as")
    assert [texts[texts.index(name) + 1] for name in names] == [
        "eu-1",
        "1b4e28ba",
        "2026-11-22T05:24:07Z",
        "1.36.2",
        "1.36",
    ]


def test_texts_are_written_once() -> None:
    texts: dict[str, int] = {}
    records: list[dict[str, Value]] = [
        {"a": "x", "b": ["y", "x"], "c": 1, "d": None},
        {"a": None, "b": [], "c": 2, "d": None},
    ]
    assert by_columns(records, texts) == {"a$": [0, None], "b$": [[1, 0], []], "c": [1, 2], "d": [None, None]}
    assert by_columns([{"a": "y"}], texts) == {"a$": [1]}
    assert by_columns([], texts) == {}
    assert [*texts] == ["x", "y"]


def test_scripts_and_templates_are_part_of_the_package() -> None:
    directory = Path(html.__file__).parent
    step = Instruction("Restart it:", ["kubectl rollout restart deploy/web"])
    answer = Document(command="plan", title="Plan", cluster="", header=[], next_steps=[step])
    page = html.page(reported(nothing())) + html.document(answer)
    scripts = list(directory.glob("*.js"))
    assert scripts
    for file in scripts:
        assert file.read_text(encoding="utf-8") in page, f"{file.name} is not in the page"


@pytest.mark.parametrize("make", [several, hostile])
def test_the_numbers_of_the_page_agree(make: Any) -> None:
    """Totals, cards, the filter and the screen count causes."""
    report = reported(make())
    page, answer = html.page(report), table.page(report)
    chips = [text for _, text in records.severities(report.findings) if not text.startswith("0 ")]
    assert answer.facts[-1][1].startswith(", ".join(chips))
    severities = [card.severity.value for card in answer.cards if card.severity]
    assert [severities.count(each) for each in dict.fromkeys(severities)] == [int(text.split()[0]) for text in chips]
    assert all(f"> {text}</label>" in page for text in chips)
    assert re.findall(r'<div class="block (\w+)">', page) == severities
