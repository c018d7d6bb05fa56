"""Compare random cases: ``python -m tests.conformance.newnodes NUMBER [SEED]``.

The oracle is a Go program with Karpenter's own scheduling package, which is built if it is missing.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import Final

import msgspec

from kubectl_spread.report.explanation import NewNodes
from tests.audits import audit, engine_of
from tests.builders import Json
from tests.conformance.newnodes import cases, oracles

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
    kinds, made = Counter[str](), 0
    with oracles.oracle() as process:
        for start in range(0, number, _CHUNK):
            questions = [cases.case(seed, index) for index in range(start, min(start + _CHUNK, number))]
            for question, line in zip(
                questions, process.ask([msgspec.json.encode(each) for each in questions]), strict=True
            ):
                answer = json.loads(line)
                made += bool(answer["claims"])
                if kind := difference(question, answer):
                    kinds[kind] += 1
                    if kinds[kind] <= _SHOWN:
                        print(f"{kind}: {json.dumps({'question': question, 'answer': answer})}")
    print(f"{number} cases, a node in {made}, {kinds.total()} disagreements {dict(kinds) or ''}")
    sys.exit(bool(kinds))


if __name__ == "__main__":
    main(sys.argv[1:])
