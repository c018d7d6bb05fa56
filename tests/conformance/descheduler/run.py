"""Comparison: do the descheduler and kubectl_spread give the same answers?"""

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


def size(cases_of_kind: int) -> int:
    """Return the number of cases for the descheduler, which has neither minors nor gates."""
    return min(max(cases_of_kind, LEAST), MOST)


def run(seed: int, number: int) -> Tally:
    """Ask ``number`` cases."""
    total = Tally()
    with oracle() as process:
        for start in range(0, number, _CHUNK):
            questions = [cases.case(seed, index) for index in range(start, min(start + _CHUNK, number))]
            lines = [msgspec.json.encode(question) for question in questions]
            real = process.ask(lines)
            total.add(_tally(questions, real, [ours.answer(line) for line in lines]))
    return total


def smallest(first: Disagreement) -> Disagreement:
    """Return the smallest case that shows a disagreement."""
    with oracle() as process:

        def differing(question: Json) -> list[Disagreement]:
            disagreements = _disagreements(process, question)
            return [disagreement for disagreement in disagreements if disagreement.part == first.part]

        (disagreement,) = differing(shrink(first.question, lambda question: bool(differing(question))))
    return disagreement


def _disagreements(process: Process, question: Json) -> list[Disagreement]:
    line = msgspec.json.encode(question)
    (real,) = process.ask([line])
    return list(differences(question, msgspec.json.decode(real), ours.answer(line)))
