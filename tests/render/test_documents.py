"""The documents of all commands, on the screen, in Markdown and in HTML; the files in ``documents/`` are reviewed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

import pytest

from kubectl_spread.render import html, markdown, screen
from kubectl_spread.render.document import (
    AnswerSection,
    Card,
    Document,
    Instruction,
    Table,
)
from kubectl_spread.render.terminal import Cell, Column, Terminal
from kubectl_spread.report.model import Severity
from tests import trial
from tests.cli.test_check import run
from tests.conftest import Golden
from tests.generated import DOMAINS, FRONT, PLAN, ROOT, SAMPLE
from tests.render.test_html import Elements
from tests.simulate.clusters import command, deployment, nodes
from tests.terminals import printed

GOLDEN: Final = Path(__file__).parent / "documents"
COMMANDS: Final = {
    "simulate": ("simulate", "--lose", "zone=a", "--runs", "5", "-A", "-f", SAMPLE),
    "drain": ("simulate", "--drain", "zone=a", "--runs", "5", "-n", "shop", "-f", DOMAINS),
    "plan": ("plan", "-n", "shop", "-f", PLAN),
    "recommend": ("recommend", "-f", FRONT, "-f", SAMPLE, "--runs", "2"),
    "domains": ("domains", "-A", "-f", DOMAINS),
    "domain": ("domains", "zone", "a", "-A", "-f", DOMAINS),
    "explain": ("explain", "deploy/api", "-n", "shop", "-f", SAMPLE),
    "rule": ("explain", "SPR303"),
}
MARKUP: Final = "<script>alert(1)</script> @root #1 `x` | \x1b[2J"


@pytest.mark.parametrize("name", COMMANDS)
def test_screens_match_their_golden_files(name: str, golden: Golden) -> None:
    text = printed(80, *COMMANDS[name], "--color", "never")
    golden(GOLDEN / f"{name}.80.txt", text)
    # Commands and rules are not wrapped.
    assert name == "rule" or max(len(line) for line in text.splitlines() if "$ " not in line) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_markdown_matches_its_golden_files(name: str, golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    golden(GOLDEN / f"{name}.md", run(*COMMANDS[name], "-o", "markdown").stdout)


@pytest.mark.parametrize("name", COMMANDS)
def test_pages_match_their_golden_files(name: str, golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = run(*COMMANDS[name], "-o", "html").stdout
    body = page[page.index("<body>") : page.index("</body>")]
    golden(GOLDEN / f"{name}.html", re.sub("<script>.*</script>\n", "", body, flags=re.DOTALL))


def test_several_formats_of_an_explanation_go_to_their_files(tmp_path: Path) -> None:
    files = {form: tmp_path / form for form in ("html", "json", "markdown", "text", "yaml")}
    outputs = [word for form, file in files.items() for word in ("-o", f"{form}={file}")]
    command = ("explain", "deploy/api", "-n", "shop", "-f", str(ROOT / SAMPLE))
    answer = run(*command, *outputs)
    assert (answer.exit_code, answer.stdout) == (0, "")
    assert files["text"].read_text(encoding="utf-8") == run(*command).stdout
    assert json.loads(files["json"].read_text(encoding="utf-8"))["object"]["name"] == "api"


def test_a_lost_zone_of_many_namespaces_fits_two_screens(tmp_path: Path) -> None:
    """The first screen has the conclusion, the worst cause and a command; no sentence is repeated."""
    file = tmp_path / "c.json"
    file.write_text(json.dumps(trial.capture()), encoding="utf-8")
    command = ("simulate", "--lose", "zone=c", "-A", "--runs", "1", "-f", str(file), "--color", "never")
    lines = printed(80, *command, lines=24).splitlines()
    assert len(lines) <= 2 * 23
    first = "\n".join(lines[:23])
    assert "AFTER    300 pods of 152 workloads would wait" in first
    assert re.search(r"^error \d+ pods of \d+ workloads would stay pending", first, re.MULTILINE)
    assert "  $ kubectl spread recommend deploy/next-waits-147 -n team-23 -f" in first
    sentences = [line for line in lines if line.startswith(("error", "warning", "info"))]
    assert sentences == list(dict.fromkeys(sentences))
    assert all(re.match(r"team-\d+/", line.split()[0]) for line in lines if line.startswith("    team"))


def _everything(text: str) -> Document:
    """Return a document that has a text in each of its places."""
    instruction = Instruction(text, [text], [text])
    return Document(
        command="plan",
        title=text,
        cluster=text,
        header=[text],
        headline=text,
        facts=[("", text)],
        instructions=[instruction],
        cards=[Card(text, Severity.ERROR, [text], [instruction])],
        picture=Table(text, [Column(text), Column(text)], [[Cell(text), Cell(text, share=50)]], note=text),
        tables=[Table(text, [Column(text)], [[Cell(text, "red")]]), Table(text, [], [], empty=text)],
        sections=[AnswerSection(text, [text, instruction, Table(text, [Column(text)], [[Cell(text)]])])],
        notes=[text],
        next_steps=[instruction],
    )


def test_texts_of_documents_are_data() -> None:
    answer = _everything(MARKUP)
    page, text, marked = html.document(answer), screen.text(answer, Terminal()), markdown.document(answer)
    assert "\x1b" not in page + text + marked
    tags = [tag for tag, _ in Elements(page).elements]
    assert tags.count("script") == 1
    outside = re.sub(r"^```.*?^```$", "", marked, flags=re.MULTILINE | re.DOTALL)
    assert "<script" not in outside
    assert "@root" not in outside
    assert "`x`" not in re.sub(r"\\`", "", outside)


def test_a_fence_is_longer_than_those_in_its_lines() -> None:
    answer = Document(command="plan", title="", cluster="", header=[], instructions=[Instruction(lines=["````", "x"])])
    assert "`````\n````\nx\n`````\n" in markdown.document(answer)


def test_objects_and_rows_that_are_left_out_are_counted() -> None:
    names = [f"deploy/{name}" for name in "abcdef"]
    answer = Document(
        command="plan",
        title="",
        cluster="",
        header=["x"],
        cards=[Card("Many.", objects=names)],
        tables=[Table("", [Column("A")], [[Cell("1")], [Cell("2")]], first=1)],
    )
    text = screen.text(answer, Terminal())
    assert "    deploy/a, deploy/b, deploy/c and 3 more\n" in text
    assert "and 1 more row\n" in text
    assert text.endswith("-o wide lists all.\n")
    everything = screen.text(answer, Terminal(), everything=True).splitlines()
    assert [line.strip() for line in everything if "deploy/" in line] == names


def test_a_workload_that_an_event_names_has_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    text = run("simulate", "--restart", "deploy/web", "-n", "shop", "-f", SAMPLE, "--runs", "1").stdout
    assert re.search(r"^deploy/web +6 +5 ", text, re.MULTILINE)
    assert "other workload" not in text


def test_workloads_are_other_ones_only_next_to_rows() -> None:
    """A pod of the Deployment moves, and no workload has a row."""
    objects = [*nodes("a1", "b1", "c1"), *deployment("web", ["a1", "b1", "c1"])]
    text = command(objects, "--drain", "a1", "--runs", "1").stdout
    assert "Pods of 1 workload move, and it has all of them again." in text
