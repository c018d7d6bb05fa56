"""The tool answers questions that people asked in public."""

from __future__ import annotations

import pytest

from kubectl_spread.rules import RULES
from tests.conftest import Golden
from tests.threads import cases
from tests.threads.cases import Case

CASES = cases.load()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_tool_gives_the_recorded_answer(case: Case, golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(case.directory)
    outcomes = [cases.run(command) for command in case.commands]
    answer = "\n".join(
        cases.transcript(command, *outcome).rstrip("\n") + "\n"
        for command, outcome in zip(case.commands, outcomes, strict=True)
    )
    assert tuple(status for _, status in outcomes) == case.exits, answer
    output = " ".join(answer.split())
    assert [phrase for phrase in (*case.answers, *case.codes) if phrase not in output] == [], answer
    assert [phrase for phrase in case.nevers if phrase in output] == [], answer
    golden(case.directory / cases.ANSWER, answer)


def test_every_directory_is_a_case() -> None:
    directories = {path.name for path in cases.HERE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert directories == {case.name for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_headers_name_public_threads_and_known_rules(case: Case) -> None:
    assert all(cases.link(thread) for thread in case.threads)
    assert set(case.codes) <= {rule.code for rule in RULES}
    assert "|" not in case.asks


def test_no_case_names_a_thread_twice() -> None:
    assert all(len(set(case.threads)) == len(case.threads) for case in CASES)
