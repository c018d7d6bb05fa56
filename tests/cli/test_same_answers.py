"""``check`` and ``explain`` give the same commands, and the sections of ``explain`` do not repeat its conclusion."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Final

import pytest

from kubectl_spread.phrases import named
from tests.builders import Json
from tests.cli.test_check import run
from tests.threads import cases

ROOT: Final = Path(__file__).parents[2]
LONG: Final = 8
"""The number of words from which a repeated sentence is a repeated text, and not a name or a figure."""
CHECKS: Final = {
    **{
        f"{case.name}-{index}": (case.directory, command)
        for case in cases.load()
        for index, command in enumerate(case.commands)
        if re.fullmatch(r"check( --defaults)? -f \S+( --server-version \S+)?", command)
    },
    "sample": (ROOT, "check -f examples/cluster.json --server-version 1.37"),
    **{
        f"{path.parent.name}-{path.stem}": (ROOT, f"check -f {path.relative_to(ROOT)} --server-version 1.37")
        for path in sorted(ROOT.glob("tests/rules/SPR*/bad*.yaml"))
    },
}
"""The directory and the command of each check of an example."""


def findings(command: str) -> list[Json]:
    """Return the findings of a check."""
    content: Json = json.loads(run(*shlex.split(command), "-o", "json").stdout)
    return list(content["findings"])


def sentences(text: str) -> set[str]:
    """Return the long sentences of a text; lines with commands, or with the reasons of nodes, are not sentences."""
    lines = [line.strip() for line in text.splitlines()]
    prose = " ".join(line for line in lines if not line.startswith(("$", "Cannot go to")))
    return {sentence for sentence in re.split(r"(?<=[.:])\s+", prose) if len(sentence.split()) >= LONG}


def parts(text: str) -> tuple[str, str]:
    """Return the findings of an explanation, and the sections below them."""
    paragraphs = text.split("\n\n")
    number = sum(paragraph.startswith(("error ", "warning ", "info ")) for paragraph in paragraphs[1:]) + 1
    return "\n\n".join(paragraphs[:number]), "\n\n".join(paragraphs[number:])


@pytest.mark.parametrize("name", CHECKS)
def test_explain_gives_the_commands_of_check(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where pods of several workloads make one skew, check advises an eviction for the first of them alone."""
    directory, command = CHECKS[name]
    monkeypatch.chdir(directory)
    commands: dict[tuple[str, str], set[str]] = {}
    later: set[tuple[str, str]] = set()
    for finding in findings(command):
        workload = named(finding["object"]["kind"], finding["object"]["name"])
        commands_of = (*finding.get("closed", {}).get("commands", ()), *finding.get("commands", ()))
        given = [line for line in commands_of if not line.startswith("kubectl spread explain ")]
        commands.setdefault((finding["namespace"], workload), set()).update(given)
        if "after the evictions of the other findings" in finding["fix"]:
            later.add((finding["namespace"], workload))
    flags = command.removeprefix("check")
    for (namespace, workload), expected in commands.items():
        text = run(*shlex.split(f"explain {workload} -n {namespace} {flags}")).stdout
        printed = {line.strip().removeprefix("$ ") for line in text.splitlines() if line.lstrip().startswith("$ ")}
        evicted = {line for line in printed if line.startswith("kubectl delete pod ")}
        assert printed - (evicted if (namespace, workload) in later else set()) == expected, text
        conclusion, sections = parts(text)
        assert sentences(conclusion) & sentences(sections) == set(), text
