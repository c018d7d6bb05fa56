"""Compare random cases: ``python -m tests.conformance.newnodes NUMBER [SEED]``.

The oracle is a Go program with Karpenter's own scheduling package, which is built if it is missing.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from typing import Final

import msgspec

from kubectl_spread.report.explanation import NewNodes
from tests.audits import audit, engine_of
from tests.builders import Json
from tests.conformance.newnodes import batches, cases, oracles
from tests.conformance.oracles import Process

_SHOWN: Final = 3
_CHUNK: Final = 100


def difference(question: Json, answer: Json) -> str:
    """Return how the answer about the pod that waits differs from what Karpenter does; "" where it does not."""
    evaluation = audit(*cases.objects(question))
    (pod,) = [pod for pod in evaluation.pods if pod.name == cases.PENDING]
    ours = engine_of(evaluation).new_nodes(pod)
    if ours is None:
        return "no answer"
    claims = answer["claims"]
    if not claims:
        possible = ours.verdict != "none" and not _tries_a_zone_without_subnet(ours, question)
        return "a node may be made, and none is" if possible else ""
    (claim,) = claims
    (pool,) = [each for each in ours.node_pools if each.name == claim["nodePool"]]
    if isinstance(pool.filter, str):
        return f"{pool.filter} refuses, and a node is made"
    if isinstance(pool.domains, list) and not {*claim["zones"]} <= {*pool.domains}:
        return "the node is in another domain"
    return ""


def _tries_a_zone_without_subnet(ours: NewNodes, question: Json) -> bool:
    """Tell whether Karpenter may have tried a zone that has no instance type, so that nothing is determined.

    It chooses one of the emptiest domains that a constraint allows before it looks at instance types.
    """
    zones = {zone for zones in question["zones"].values() for zone in zones}
    return any(domain.value not in zones for domain in ours.domains)


def main(arguments: list[str]) -> None:
    """Compare, and print what differs."""
    number, seed = int(arguments[0]), int(arguments[1]) if len(arguments) > 1 else 0
    with oracles.oracle() as process:
        differ = _compare(process, "one pod that waits", number, lambda index: cases.case(seed, index), difference)
        differ += _compare(process, "several", number, lambda index: batches.case(seed, index), batches.difference)
    sys.exit(bool(differ))


def _compare(
    process: Process, what: str, number: int, case: Callable[[int], Json], differs: Callable[[Json, Json], str]
) -> int:
    """Compare cases, print what differs, and return the number of those."""
    kinds, made = Counter[str](), 0
    for start in range(0, number, _CHUNK):
        questions = [case(index) for index in range(start, min(start + _CHUNK, number))]
        lines = process.ask([msgspec.json.encode(each) for each in questions])
        for question, line in zip(questions, lines, strict=True):
            answer = json.loads(line)
            made += bool(answer["claims"])
            if kind := differs(question, answer):
                kinds[kind] += 1
                if kinds[kind] <= _SHOWN:
                    print(f"{kind}: {json.dumps({'question': question, 'answer': answer})}")
    print(f"{what}: {number} cases, a node in {made}, {kinds.total()} disagreements {dict(kinds) or ''}")
    return kinds.total()


if __name__ == "__main__":
    main(sys.argv[1:])
