"""Markdown tables have the cells that they should have, whatever the texts in them are."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from kubectl_spread.render import words
from kubectl_spread.render.markdown import MOST_BYTES, markdown
from kubectl_spread.report.severity import Severity
from tests.audits import audit, reported
from tests.builders import ZONE, constraint, node_json, pod_json
from tests.conftest import Golden
from tests.render.test_openmetrics import found
from tests.render.test_openreports import changed
from tests.render.test_render import EVIL, GOLDEN, REPORTS, hostile, nothing

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
APART = "\u200b"
NASTY = (
    "a | b || c",
    "`code` ``more``",
    "<img src=x onerror=alert(1)> <!-- -->",
    "[text](https://evil.example) ![image](x)",
    "**bold** _thin_ ~~gone~~ $x^2$",
    "\\| \\ \\\\| \\`",
    "&lt;b&gt; &amp; &#64;x",
    "| --- | --- |",
    "<!-- # -->",
)


def tables(text: str) -> list[list[list[str]]]:
    """Return the texts of the cells of all tables: nothing in them is anything but text or bold."""
    actual: list[list[list[str]]] = []
    for token, content in _paired(PARSER.parse(text)):
        match token.type:
            case "table_open":
                actual.append([])
            case "tr_open":
                actual[-1].append([])
            case "th_open" | "td_open":
                actual[-1][-1].append(_text(content))
    return actual


def _paired(tokens: list[Token]) -> Iterator[tuple[Token, Token]]:
    return zip(tokens, [*tokens[1:], tokens[-1]], strict=True)


def _text(inline: Token) -> str:
    children = inline.children or []
    assert {child.type for child in children} <= {"text", "text_special", "strong_open", "strong_close"}, inline.content
    return "".join(child.content for child in children)


@pytest.mark.parametrize("cluster", REPORTS)
def test_golden(cluster: str, golden: Golden) -> None:
    text = markdown(reported(REPORTS[cluster]()))
    golden(GOLDEN / f"{cluster}.md", text)
    for table in tables(text):
        assert {len(row) for row in table} == {7}


def test_findings_stand_by_severity_and_rows_with_them_below() -> None:
    findings, rows = tables(markdown(found()))
    assert [row[0] for row in findings] == ["Severity", "error", *["warning"] * 4, *["info"] * 2]
    assert findings[1][1:5] == ["SPR303 blocked", "deploy/web", "topologySpreadConstraints[0]", "1"]
    assert [row[0] for row in rows] == ["Workload", *["deploy/web"] * 3, "sts/api"]
    assert rows[2][1:] == ["topology.kubernetes.io/zone DoNotSchedule", "5", "merged 5", "a=3 b=1", "2, above", "1"]


def test_nothing_found_is_a_line_of_totals() -> None:
    text = markdown(reported(nothing()))
    assert "**1 pod, 0 constraints; no findings**" in text
    assert tables(text) == []


def test_domains_of_many_hosts_are_a_range() -> None:
    stacked = [constraint(key="host")]
    pods = [pod_json(f"p{index}", node="n0", constraints=stacked, owner="Deployment/web") for index in range(3)]
    nodes = [node_json(f"n{index}", labels={"host": f"n{index}"}) for index in range(7)]
    _, (_, row) = tables(markdown(reported(audit(*pods, *nodes))))
    assert row[4:] == ["7 (0 to 3)", "3, above", "1"]


def test_inferred_skew_is_at_least_that() -> None:
    labels = {"app": "web", ZONE: "a"}
    pod = pod_json("p", node="n", labels=labels, constraints=[constraint(match=["nope"])])
    _, (_, row) = tables(markdown(reported(audit(pod, nodes="inferred"))))
    assert row[5] == "at least 0"


@pytest.mark.parametrize("message", NASTY)
def test_markup_is_shown_as_it_is_written(message: str) -> None:
    findings, _ = tables(markdown(changed(found(), message=message, severity=Severity.ERROR)))
    displayed = [row[5].replace(APART, "") for row in findings]
    assert words.safe(message) in displayed


@given(st.text())
def test_any_text_stays_in_its_cell(message: str) -> None:
    findings, _ = tables(markdown(changed(found(), message=message)))
    assert words.safe(message).strip() in [row[5].replace(APART, "").strip() for row in findings]


@pytest.mark.parametrize(
    "message", ["@admin", "owner/repo#12", "#12", "!34", "https://evil.example", "WWW.evil.example", "a@b.example"]
)
def test_nobody_is_mentioned_and_nothing_is_linked(message: str) -> None:
    """GitHub and GitLab look for these in the text that Markdown has become."""
    text = PARSER.render(markdown(changed(found(), message=message)))
    assert message not in text
    assert message in text.replace(APART, "")


def test_times_stay_whole() -> None:
    assert "2026-09-01T10:31:00Z" in markdown(found())


def test_nothing_of_a_hostile_cluster_is_printed_raw() -> None:
    text = markdown(reported(hostile()))
    assert all(char.isprintable() or char == "\n" for char in text)
    findings, rows = tables(text)
    assert words.safe(f"ns{EVIL}/kind{EVIL}/name{EVIL}") in [row[2] for row in findings]
    assert words.safe(f"ns{EVIL}/kind{EVIL}/name{EVIL}") in [row[0] for row in rows]


@pytest.mark.parametrize("kind", ["findings", "constraints"])
def test_what_github_would_not_show_is_counted(kind: str) -> None:
    report = found()
    number = 12000
    text = markdown(msgspec.structs.replace(report, **{kind: getattr(report, kind)[:2] * (number // 2)}))
    assert len(text.encode()) <= MOST_BYTES
    (left,) = re.findall(r"^(\d+) more \w+(?: row)?s left out; `-o json` has all\.$", text, re.MULTILINE)
    long = max(tables(text), key=len)
    assert len(long) - 1 + int(left) == number
