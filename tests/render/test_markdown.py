"""Markdown tables keep their cells with every text in them."""

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
from kubectl_spread.report.model import Report, Severity
from tests.audits import audit, reported
from tests.builders import ZONE, constraint, node_json, pod_json
from tests.conftest import Golden
from tests.render.test_openmetrics import with_findings
from tests.render.test_render import EVIL, GOLDEN, REPORTS, hostile, nothing

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
APART = "\u200b"
_INLINE = {"text", "text_special", "strong_open", "strong_close", "code_inline", "html_inline"}
NASTY = (
    "# no heading",
    "- no list",
    "1. no list",
    "+",
    "    no code",
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


def changed(report: Report, **fields: object) -> Report:
    """Return a report whose first finding has other fields."""
    first, *rest = report.findings
    return msgspec.structs.replace(report, findings=[msgspec.structs.replace(first, **fields), *rest])


def tables(text: str) -> list[list[list[str]]]:
    """Return the texts of the cells of all tables, which have only plain and bold text, code and line breaks."""
    tables: list[list[list[str]]] = []
    for token, content in _paired(PARSER.parse(text)):
        match token.type:
            case "table_open":
                tables.append([])
            case "tr_open":
                tables[-1].append([])
            case "th_open" | "td_open":
                tables[-1][-1].append(_text(content))
    return tables


def _paired(tokens: list[Token]) -> Iterator[tuple[Token, Token]]:
    return zip(tokens, [*tokens[1:], tokens[-1]], strict=True)


def _text(inline: Token) -> str:
    children = inline.children or []
    assert {child.type for child in children} <= _INLINE, inline.content
    assert {child.content for child in children if child.type == "html_inline"} <= {"<br>"}, inline.content
    return "".join(child.content for child in children)


@pytest.mark.parametrize("cluster", REPORTS)
def test_reports_match_their_golden_files(cluster: str, golden: Golden) -> None:
    text = markdown(reported(REPORTS[cluster]()))
    golden(GOLDEN / f"{cluster}.md", text)
    for table in tables(text):
        assert {len(row) for row in table} in ({8}, {9})


def paragraphs(text: str) -> list[str]:
    """Return the texts of all paragraphs."""
    return [_text(content) for token, content in _paired(PARSER.parse(text)) if token.type == "paragraph_open"]


def test_findings_stand_by_severity_and_rows_with_them_below() -> None:
    text = markdown(with_findings())
    assert re.findall(r"^\*\*(error|warning|info)\*\*", text, re.MULTILINE) == [
        "error",
        *["warning"] * 3,
        *["info"] * 2,
    ]
    assert "error SPR303 blocked: deploy/web, pod web-9" in paragraphs(text)
    (rows,) = tables(text)
    assert [row[0] for row in rows] == ["Workload", "deploy/web", "deploy/web", "sts/api", "deploy/web"]
    assert rows[1][1:] == ["zone", "DoNotSchedule", "5", "a=3 b=1", "2", "1", "blocked"]
    assert text.index("SPR301 hard-skew") < text.index("| Workload")


def test_findings_with_one_cause_are_one_cause_here() -> None:
    """Commands are printed for the first workload where there are many."""
    stacked = [constraint()]
    names = [f"web{index}" for index in range(6)]
    pods = [
        pod_json(f"{name}-{index}", node="a1", constraints=stacked, owner=f"Deployment/{name}")
        for name in names
        for index in range(2)
    ]
    texts = paragraphs(markdown(reported(audit(*pods, node_json("a1"), node_json("b1")))))
    cause = texts.index("warning SPR301 hard-skew: 6 workloads")
    assert texts[cause + 2] == ", ".join(
        f"{each} topologySpreadConstraints[0]" for each in map("deploy/{}".format, names)
    )
    assert texts[cause + 4] == "and for 5 more (-o json lists all)"


@pytest.mark.parametrize("command", ["a | b", "`code`", "a `` b", "<br>", "a\\|b", "@admin #12", "'$(x)'"])
def test_a_command_is_code_as_it_is(command: str) -> None:
    report = with_findings()
    findings = [msgspec.structs.replace(report.findings[0], commands=[command], closed=msgspec.UNSET)]
    text = markdown(msgspec.structs.replace(report, findings=findings))
    (fence,) = (token for token in PARSER.parse(text) if token.type == "fence")
    assert (fence.info, fence.content) == ("console", f"$ {command}\n")


def test_a_report_without_findings_is_a_line_of_totals() -> None:
    text = markdown(reported(nothing()))
    assert "**Nothing to check: 1 workload (1 pod) without spread constraints" in text
    assert tables(text) == []


def test_a_report_without_objects_says_that_nothing_was_checked() -> None:
    assert "\n**Nothing was checked: no pods and no pod templates.**\n" in markdown(reported(audit()))


def test_domains_of_many_hosts_are_a_range() -> None:
    stacked = [constraint(key="host")]
    pods = [pod_json(f"p{index}", node="n0", constraints=stacked, owner="Deployment/web") for index in range(3)]
    nodes = [node_json(f"n{index}", labels={"host": f"n{index}"}) for index in range(7)]
    ((_, row),) = tables(markdown(reported(audit(*pods, *nodes))))
    assert row[4:7] == ["7 (0..3)", "3", "1"]


def test_inferred_skew_is_at_least_that() -> None:
    labels = {"app": "web", ZONE: "a"}
    pod = pod_json("p", node="n", labels=labels, constraints=[constraint(match=["nope"])])
    ((_, row),) = tables(markdown(reported(audit(pod, nodes="inferred"))))
    assert row[5] == ">=0"


@pytest.mark.parametrize("message", NASTY)
def test_markup_is_escaped(message: str) -> None:
    texts = paragraphs(markdown(changed(with_findings(), message=message, severity=Severity.ERROR)))
    assert words.safe(message).strip() in [text.replace(APART, "") for text in texts]


@given(st.text())
def test_any_text_stays_in_its_paragraph(message: str) -> None:
    texts = paragraphs(markdown(changed(with_findings(), message=message)))
    wanted = words.safe(message).strip()
    assert not wanted or wanted in [text.replace(APART, "").strip() for text in texts]


@pytest.mark.parametrize(
    "message", ["@admin", "owner/repo#12", "#12", "!34", "https://evil.example", "WWW.evil.example", "a@b.example"]
)
def test_nobody_is_mentioned_and_nothing_is_linked(message: str) -> None:
    """GitHub and GitLab search for mentions and links after they have rendered the Markdown."""
    text = PARSER.render(markdown(changed(with_findings(), message=message)))
    assert message not in text
    assert message in text.replace(APART, "")


def test_times_are_not_broken_as_emoji() -> None:
    assert "2026-09-01T10:31:00Z" in markdown(changed(with_findings(), message="since 2026-09-01T10:31:00Z"))


def test_names_of_a_hostile_cluster_are_escaped() -> None:
    text = markdown(reported(hostile()))
    assert all(char.isprintable() or char == "\n" for char in text)
    (rows,) = tables(text)
    name = words.safe(f"kind{EVIL}/name{EVIL}")
    assert any(f"{words.safe(f'ns{EVIL}')}/{name}" in each for each in paragraphs(text))
    assert [words.safe(f"ns{EVIL}"), name] in [row[:2] for row in rows]


@pytest.mark.parametrize("kind", ["findings", "constraints"])
def test_causes_and_rows_beyond_the_limit_of_github_are_counted(kind: str) -> None:
    report, number = with_findings(), 20000
    first = getattr(report, kind)[0]
    if kind == "findings":
        number = 4000
        many = [msgspec.structs.replace(first, group=str(index), closed=msgspec.UNSET) for index in range(number)]
    else:
        many = [msgspec.structs.replace(first, pod_count=index) for index in range(number)]
        report = msgspec.structs.replace(
            report, findings=[msgspec.structs.replace(report.findings[0], rows=[*range(number)])]
        )
    text = markdown(msgspec.structs.replace(report, **{kind: many}))
    assert len(text.encode()) <= MOST_BYTES
    (missing,) = re.findall(r"^(\d+) more (?:cause|row)s left out; `-o json` has all\.$", text, re.MULTILINE)
    printed = text.count("\n\nFix: ") if kind == "findings" else len(tables(text)[0]) - 1
    assert printed + int(missing) == number
