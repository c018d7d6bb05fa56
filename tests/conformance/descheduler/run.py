"""Runs: cases asked of the descheduler and of kubectl_spread."""

from __future__ import annotations

from typing import Final

import msgspec

from tests.builders import Json
from tests.conformance.compare import Disagreement, Tally, _tally, differences
from tests.conformance.descheduler import cases, ours
from tests.conformance.descheduler.oracles import oracle
from tests.conformance.oracles import Process
from tests.conformance.shrink import shrink

MOST: Final = 10_000
LEAST: Final = 300

_CHUNK: Final = 250


def size(cases_wanted: int) -> int:
    """Return how many cases a run of ``cases_wanted`` a kind asks the descheduler: it knows no minors or gates."""
    return min(max(cases_wanted, LEAST), MOST)


def run(seed: int, number: int) -> Tally:
    """Ask ``number`` cases."""
    total = Tally()
    with oracle() as process:
        for start in range(0, number, _CHUNK):
            requested = [cases.case(seed, index) for index in range(start, min(start + _CHUNK, number))]
            lines = [msgspec.json.encode(question) for question in requested]
            real = process.ask(lines)
            total.add(_tally(requested, real, [ours.answer(line) for line in lines]))
    return total


def smallest(first: Disagreement) -> Disagreement:
    """Return the smallest case that shows a disagreement."""
    with oracle() as process:

        def differing(question: Json) -> list[Disagreement]:
            return [item for item in _disagreements(process, question) if item.part == first.part]

        (actual,) = differing(shrink(first.question, lambda question: bool(differing(question))))
    return actual


def _disagreements(process: Process, question: Json) -> list[Disagreement]:
    line = msgspec.json.encode(question)
    (real,) = process.ask([line])
    return list(differences(question, msgspec.json.decode(real), ours.answer(line)))
