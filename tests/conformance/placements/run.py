"""Comparison: does the simulation place pods as kube-scheduler does?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from tests.builders import Json
from tests.conformance.compare import SCORES, Disagreement, Tally, differences
from tests.conformance.oracles import Process
from tests.conformance.placements import cases, ours
from tests.conformance.placements.oracles import oracle
from tests.conformance.shrink import shrink

CHUNK: Final = 100

_NAMES: Final = {
    "NodeResourcesFit": "resources",
    "NodeResourcesBalancedAllocation": "resources",
    "TaintToleration": "taints",
    "NodeAffinity": "node affinity",
    "PodTopologySpread": "spread",
    "InterPodAffinity": "pod affinity",
}
"""Maps plugins to their scores. Two are compared as one, because the simulation remembers their sum."""


def run(seed: int, indices: range) -> Tally:
    """Ask the cases with these numbers."""
    total = Tally()
    with oracle() as process:
        for start in range(indices.start, indices.stop, CHUNK):
            questions = [cases.case(seed, index) for index in range(start, min(start + CHUNK, indices.stop))]
            answers = process.ask([msgspec.json.encode(question) for question in questions])
            tally = Tally(cases=len(questions))
            for question, line in zip(questions, answers, strict=True):
                tally.count(_disagreements(question, line))
            total.add(tally)
    return total


def smallest(first: Disagreement) -> Disagreement:
    """Return the smallest case that shows a disagreement."""
    with oracle() as process:

        def differing(question: Json) -> list[Disagreement]:
            disagreements = _ask(process, question)
            return [disagreement for disagreement in disagreements if disagreement.part == first.part]

        (disagreement,) = differing(shrink(first.question, lambda question: bool(differing(question))))
    return disagreement


def _ask(process: Process, question: Json) -> Iterator[Disagreement]:
    (line,) = process.ask([msgspec.json.encode(question)])
    return _disagreements(question, line)


def _disagreements(question: Json, line: bytes) -> Iterator[Disagreement]:
    steps: list[Json] = msgspec.json.decode(line)["steps"]
    priorities = {pod["metadata"]["name"]: pod["spec"].get("priority", 0) for pod in question["queue"]}
    tried = dict.fromkeys(step["pod"] for step in steps)
    real = {"priorities": [priorities[pod] for pod in tried], "steps": [*map(_real_step, steps)]}
    return differences(question, _by_part(real), _by_part(ours.answer(question, steps)))


def _real_step(step: Json) -> Json:
    scores: dict[str, Counter[str]] = {}
    for plugin, by_node in step["scores"].items():
        scores.setdefault(_NAMES.get(plugin, "others"), Counter()).update(by_node)
    found = {node for by_node in scores.values() for node in by_node} or {step["node"]} - {""}
    return {**step, "feasible": sorted(step["feasible"]), "candidates": sorted(found), "scores": scores}


def _by_part(answer: Json) -> Json:
    """Return an answer with the steps of each part in a field of its own."""
    steps: Sequence[Json] = answer["steps"]
    parts: Json = {name: [{step["pod"]: step[name]} for step in steps] for name in ("feasible", "candidates", "node")}
    scores = {name: [{step["pod"]: _above_least(step["scores"].get(name, {}))} for step in steps] for name in SCORES}
    return {"priorities": answer["priorities"], **parts, **scores}


def _above_least(scores: Mapping[str, int]) -> dict[str, int]:
    """Return how much the scores of nodes exceed the smallest one; only this decides."""
    least = min(scores.values(), default=0)
    return {node: score - least for node, score in sorted(scores.items()) if score > least}
