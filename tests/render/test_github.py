"""Workflow commands, parsed as the runner of GitHub Actions does."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from kubectl_spread.render import ci
from kubectl_spread.render.ci import github
from kubectl_spread.render.words import safe
from kubectl_spread.report.model import severest_first
from tests.audits import reported
from tests.conftest import Golden
from tests.render import locations
from tests.render.test_render import REPORTS

GOLDEN = Path(__file__).parent / "golden"
_COMMAND = re.compile(r"::([a-z]+)(?: ([^:]*))?::(.*)")


def unescaped(text: str, *also: tuple[str, str]) -> str:
    for code, char in (*also, ("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
        text = text.replace(code, char)
    return text


def commands(text: str) -> list[tuple[str, dict[str, str], str]]:
    """Return name, properties and message of each line."""
    commands = []
    for line in text.splitlines():
        command = _COMMAND.fullmatch(line)
        assert command, line
        pairs = (pair.partition("=") for pair in command[2].split(","))
        properties = {key: unescaped(value, ("%3A", ":"), ("%2C", ",")) for key, _, value in pairs}
        commands.append((command[1], properties, unescaped(command[3])))
    return commands


@pytest.mark.parametrize("cluster", REPORTS)
def test_reports_match_their_golden_files(cluster: str, golden: Golden) -> None:
    golden(GOLDEN / f"{cluster}.github.txt", github(reported(REPORTS[cluster]())))


def test_annotations_have_positions_in_files(golden: Golden) -> None:
    text = github(locations.several())
    golden(GOLDEN / "located.github.txt", text)
    places = [
        {key: properties[key] for key in ("file", "line", "col") if key in properties}
        for _, properties, _ in commands(text)
    ]
    assert {"file": "manifests/web.yaml", "line": "12", "col": "9"} in places
    assert {"file": "a b/100%,ö:#1?.yaml", "line": "3"} in places
    assert {"file": "STDIN", "line": "7"} in places
    assert places.count({}) == 1


@pytest.mark.parametrize("cluster", REPORTS)
def test_each_finding_is_a_command_and_errors_come_first(cluster: str) -> None:
    report = reported(REPORTS[cluster]())
    printed_commands = commands(github(report))
    names = [name for name, _, _ in printed_commands]
    assert names == sorted(names, key=["error", "warning", "notice"].index)
    assert len(printed_commands) == len(report.findings)
    for finding, (_, _, message) in zip(severest_first(report.findings), printed_commands, strict=True):
        assert message.endswith("\n".join(map(safe, ci.advice(finding))))


def test_no_text_begins_another_command() -> None:
    report = reported(REPORTS["several"]())
    evil = "a\r\n::error::b%0A::c, file=/etc/passwd::%25"
    finding = msgspec.structs.replace(report.findings[0], message=evil, namespace=evil, path=evil, fix=evil)
    ((name, properties, message),) = commands(github(locations.with_findings(report, [finding])))
    assert (name, list(properties)) == ("warning", ["title"])
    escaped = evil.replace("\r\n", "\\r\\n")
    assert message.split("\n") == [escaped, escaped, f"Fix: {escaped}", *ci.advice(finding)[1:]]
    assert f" {escaped}/" in properties["title"]


def test_unevaluated_objects_are_errors() -> None:
    printed_commands = commands(github(locations.unanswered(reported(REPORTS["nothing"]()))))
    assert [(name, message) for name, _, message in printed_commands] == [
        ("error", "could not be checked: 2 malformed"),
        ("error", "could not be checked: 1 unreadable"),
    ]
