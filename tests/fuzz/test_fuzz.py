"""The fuzzer finds nothing in a few cases, and finds planted faults."""

from __future__ import annotations

import io
import random
import time
from pathlib import Path

import pytest

from kubectl_spread.cli.ending import text
from tests.fuzz import clusters
from tests.fuzz.campaign import Campaign
from tests.fuzz.outcome import Outcome
from tests.fuzz.targets import TARGETS, Run, Target
from tests.fuzz.watch import problem, watched


def test_a_few_cases_find_nothing() -> None:
    out = io.StringIO()
    campaign = Campaign(TARGETS, 1, out)
    campaign.run(minutes=0.15, cases=40)
    assert not out.getvalue()
    assert campaign.tallies.keys() == {target.name for target in TARGETS}


@pytest.mark.parametrize("number", range(4))
def test_every_command_on_an_odd_cluster(number: int) -> None:
    body = clusters.capture(random.Random(number))
    findings = [problem(clusters.outcome_of(line, body)) for line in clusters.commands(body)]
    assert [finding for finding in findings if finding] == []


def crash(body: bytes, _chance: random.Random) -> Outcome:
    return Outcome(1, error=KeyError(body))


def hang(_body: bytes, _chance: random.Random) -> Outcome:
    time.sleep(5)
    return Outcome(0)


@pytest.mark.parametrize(
    ("run", "kind"),
    [
        pytest.param(crash, "traceback", id="crash"),
        pytest.param(hang, "hang", id="hang"),
        pytest.param(lambda *_: Outcome(2, stderr=text(KeyError()).encode()), "traceback", id="the last handler"),
        pytest.param(lambda *_: Outcome(3), "status", id="exit status"),
        pytest.param(lambda *_: Outcome(0, b"\x1b[2J"), "control character", id="escape"),
        pytest.param(lambda *_: Outcome(0, stderr=b"\xe2\x80\xae"), "control character", id="bidi override"),
        pytest.param(lambda *_: Outcome(0, b"\xff"), "not UTF-8", id="bytes"),
    ],
)
def test_a_planted_fault_is_found(run: Run, kind: str) -> None:
    target = Target("planted", lambda _: b"x", run)
    outcome = watched(target, b"x", random.Random(1), longest=0.2)
    assert outcome
    assert outcome.kind == kind


def test_the_input_of_a_finding_is_kept(tmp_path: Path) -> None:
    out = io.StringIO()
    campaign = Campaign([Target("planted", lambda _: b"x", crash)], 7, out, tmp_path)
    campaign.run(minutes=1, cases=2)
    assert (tmp_path / "planted-7-0").read_bytes() == b"x"
    assert not (tmp_path / "planted-7-1").exists()
    assert out.getvalue().count("planted") == 1
    assert campaign.tallies["planted"].cases == 2
