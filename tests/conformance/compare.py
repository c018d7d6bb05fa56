"""Comparison: do the oracles and kubectl_spread give the same answers to the same cases?"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, Self

import msgspec

from tests.builders import Json
from tests.conformance import advice, cases, ours
from tests.conformance.oracles import Oracle
from tests.conformance.settings import Setting

SCORES: Final = ("resources", "taints", "node affinity", "spread", "pod affinity", "others")
"""The scores of a placement."""

PARTS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "create": {"merge": ("stored",), "create errors": ("errors",), "create warnings": ("warnings",)},
    "update": {"update errors": ("errors",)},
    "template": {"template errors": ("errors",), "template warnings": ("warnings",)},
    "filter": {"counts": ("skipped", "status", "constraints"), "filter": ("nodes",)},
    "scores": {"scores": ("skipped", "status", "scores")},
    "affinity": {"affinity filter": ("skipped", "status", "nodes")},
    "resources": {"quantities": ("quantities",), "requests": ("requests",), "fit": ("nodes",)},
    "next pod": {"next pod": ("nodes",), "next pod scores": ("scores",)},
    "next pods": {"next pods": ("steps",)},
    "causes": {"causes": ("domains",)},
    "placements": {
        "queue": ("priorities",),
        "feasible nodes": ("feasible",),
        "sampled nodes": ("candidates",),
        "chosen nodes": ("node",),
        **{f"scores of {name}": (name,) for name in SCORES},
    },
    "plans": {"waves as printed": ("domains",), "not correctable": ("steps",)},
}
"""Maps a kind of question to the compared parts of its answer, and each part to its fields."""

_MATCH_LABELS: Final = ".matchLabels:"


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A case on which the two answers differ in one part."""

    part: str
    question: Json
    real: Json
    ours: Json


@dataclass(slots=True)
class Tally:
    """The numbers of one setting; ``first`` has the first disagreement of each part."""

    cases: int = 0
    disagreements: Counter[str] = field(default_factory=Counter)
    first: dict[str, Disagreement] = field(default_factory=dict)

    def count(self, disagreements: Iterable[Disagreement]) -> None:
        """Add the disagreements on one case."""
        for disagreement in disagreements:
            self.disagreements[disagreement.part] += 1
            self.first.setdefault(disagreement.part, disagreement)

    def add(self, later: Tally) -> None:
        """Add the numbers of a later run."""
        self.cases += later.cases
        self.disagreements.update(later.disagreements)
        self.first = {**later.first, **self.first}


class Bench:
    """Running oracles, each with the behaviour of its setting; a context manager."""

    def __init__(self, settings: Sequence[Setting]) -> None:
        """Start an oracle for each setting."""
        self._oracles = {setting: Oracle(setting.minor, dict(setting.gates)) for setting in settings}
        self._behaviours = {setting: setting.behaviour for setting in settings}
        self._pool = ThreadPoolExecutor(max_workers=max(len(settings), 1))

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the oracles."""
        for oracle in self._oracles.values():
            oracle.close()
        self._pool.shutdown()

    def run(self, kind: str, seed: int, indices: range, settings: Sequence[Setting]) -> dict[Setting, Tally]:
        """Ask the cases of ``indices`` in every setting."""
        questions = [cases.case(kind, seed, index) for index in indices]
        if kind in cases.ADVICE_KINDS:
            return {setting: self._run_advice(questions, setting) for setting in settings}
        lines = [msgspec.json.encode(question) for question in questions]
        pending: dict[Setting, Future[list[bytes]]] = {
            setting: self._pool.submit(self._oracles[setting].ask, lines) for setting in settings
        }
        tallies = {}
        for setting in settings:
            behaviour = self._behaviours[setting]
            answers = [ours.answer(line, behaviour) for line in lines]
            tallies[setting] = _tally(questions, pending[setting].result(), answers)
        return tallies

    def disagreements(self, setting: Setting, question: Json) -> list[Disagreement]:
        """Return where the answers to one case differ."""
        if question["kind"] in cases.ADVICE_KINDS:
            return list(self._run_advice([question], setting).first.values())
        line = msgspec.json.encode(question)
        (real,) = self._oracles[setting].ask([line])
        answer = ours.answer(line, self._behaviours[setting])
        return list(differences(question, msgspec.json.decode(real), answer))

    def _run_advice(self, questions: Sequence[Json], setting: Setting) -> Tally:
        """Compare our advice with the oracle; a question without advice is not counted as a case."""
        all_claims = ((question, advice.claims(question, self._behaviours[setting])) for question in questions)
        claimed = [(question, claims) for question, claims in all_claims if any(claims.ours.values())]
        lines = [msgspec.json.encode({**question, **claims.asks}) for question, claims in claimed]
        answers = self._oracles[setting].ask(lines)
        tally = Tally(cases=len(claimed))
        for (question, claims), line in zip(claimed, answers, strict=True):
            tally.count(
                differences(
                    {**question, **claims.asks, "kind": question["kind"]},
                    claims.read(msgspec.json.decode(line)),
                    claims.ours,
                )
            )
        return tally


def _tally(questions: Sequence[Json], real: Sequence[bytes], answers: Sequence[Json]) -> Tally:
    tally = Tally(cases=len(questions))
    for question, line, answer in zip(questions, real, answers, strict=True):
        tally.count(differences(question, msgspec.json.decode(line), answer))
    return tally


def differences(question: Json, real: Json, answer: Json) -> Iterator[Disagreement]:
    """Yield the parts in which two answers to a case differ."""
    if answer in (real, ours.UNJUDGED):
        return
    for part, names in PARTS[question["kind"]].items():
        real_part, our_part = _part(real, names), _part(answer, names)
        if real_part != our_part:
            yield Disagreement(part, question, real_part, our_part)


def _part(answer: Json, names: Sequence[str]) -> Json:
    return {name: comparable(answer[name]) for name in names if name in answer}


def comparable(value: Any) -> Any:
    """Return a comparable answer: errors on one selector's matchLabels, whose order is random, are sorted."""
    if not isinstance(value, list) or not all(isinstance(element, str) for element in value):
        return value
    groups = itertools.groupby(value, key=_unordered)
    return [text for unordered, texts in groups for text in (sorted(texts) if unordered else texts)]


def _unordered(text: str) -> str:
    path, separator, _ = text.partition(_MATCH_LABELS)
    return path if separator else ""
