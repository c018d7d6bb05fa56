"""Compare random cases: ``python -m tests.conformance.newnodes NUMBER [SEED]``.

The oracle is a Go program with Karpenter's own scheduling package, which is built if it is missing.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import partial
from typing import Final

import msgspec

from kubectl_spread.report.explanation import NewNodes
from tests.audits import audit, engine_of
from tests.builders import ZONE, Json, requirement
from tests.conformance.newnodes import batches, cases, oracles
from tests.conformance.oracles import Process

_Difference = Callable[[Json, Json, Callable[[], Json]], str]
_SHOWN: Final = 3
_CHUNK: Final = 100
_AGAIN: Final = 50


def difference(question: Json, answer: Json, again: Callable[[], Json]) -> str:
    """Return how the answer about the pod that waits differs from what Karpenter does; "" where it does not.

    Args:
        question: The question.
        answer: What Karpenter does.
        again: Asks Karpenter once more, which takes any of several equal domains.
    """
    ours = _new_nodes(question)
    claims = answer["claims"]
    if not claims:
        unsure = _tries_a_zone_without_subnet(ours, question) or _drops_an_alternative(question)
        possible = ours.verdict != "none" and not unsure
        never = possible and not any(again()["claims"] for _ in range(_AGAIN))
        # A zone with a subnet counts probably, so that it refuses no other surely.
        return "a node may be made, and none is" if never and _new_nodes(_named(question)).verdict != "none" else ""
    (claim,) = claims
    (pool,) = [each for each in ours.node_pools if each.name == claim["nodePool"]]
    if isinstance(pool.filter, str):
        return f"{pool.filter} refuses, and a node is made"
    if isinstance(pool.domains, list) and not _with_subnet(question) & {*claim["zones"]} <= {*pool.domains}:
        return "the node is in another domain"
    return ""


def _new_nodes(question: Json) -> NewNodes:
    evaluation = audit(*cases.objects(question))
    (pod,) = [pod for pod in evaluation.pods if pod.name == cases.PENDING]
    answer = engine_of(evaluation).new_nodes(pod)
    assert answer is not None
    return answer


def _named(question: Json) -> Json:
    """Return the question with NodePools that name the zones of their subnets, so that these surely count."""
    named = deepcopy(question)
    for pool in named["nodePools"]:
        zones = requirement(ZONE, "In", *question["zones"][pool["metadata"]["name"]])
        pool["spec"]["template"]["spec"]["requirements"].append(zones)
    return named


def _tries_a_zone_without_subnet(ours: NewNodes, question: Json) -> bool:
    """Tell whether Karpenter may have tried a zone that has no instance type, so that nothing is determined.

    It chooses one of the emptiest domains that a constraint allows before it looks at instance types.
    """
    zones = _with_subnet(question)
    return any(domain.value not in zones for domain in ours.domains)


def _drops_an_alternative(question: Json) -> bool:
    """Tell whether Karpenter may have dropped a term of node affinity that it needed, because it tried a preference."""
    (pod,) = question["pending"]
    affinity, soft = pod["spec"].get("affinity", {}), pod["spec"].get("topologySpreadConstraints", [])
    required = affinity.get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", {})
    prefers = any("preferredDuringSchedulingIgnoredDuringExecution" in terms for terms in affinity.values())
    prefers = prefers or any(each["whenUnsatisfiable"] == "ScheduleAnyway" for each in soft)
    return prefers and len(required.get("nodeSelectorTerms", ())) > 1


def _with_subnet(question: Json) -> set[str]:
    return {zone for zones in question["zones"].values() for zone in zones}


def main(arguments: list[str]) -> None:
    """Compare, and print what differs."""
    number, seed = int(arguments[0]), int(arguments[1]) if len(arguments) > 1 else 0
    with oracles.oracle() as process:
        differ = _compare(process, "one pod that waits", number, lambda index: cases.case(seed, index), difference)
        differ += _compare(process, "several", number, lambda index: batches.case(seed, index), batches.difference)
    sys.exit(bool(differ))


def _compare(process: Process, what: str, number: int, case: Callable[[int], Json], differs: _Difference) -> int:
    """Compare cases, print what differs, and return the number of those."""
    kinds, made = Counter[str](), 0
    for start in range(0, number, _CHUNK):
        questions = [case(index) for index in range(start, min(start + _CHUNK, number))]
        for question, answer in zip(questions, _answers(process, questions), strict=True):
            made += bool(answer["claims"])
            if kind := differs(question, answer, partial(_answer, process, question)):
                kinds[kind] += 1
                if kinds[kind] <= _SHOWN:
                    print(f"{kind}: {json.dumps({'question': question, 'answer': answer})}")
    print(f"{what}: {number} cases, a node in {made}, {kinds.total()} disagreements {dict(kinds) or ''}")
    return kinds.total()


def _answer(process: Process, question: Json) -> Json:
    (answer,) = _answers(process, [question])
    return answer


def _answers(process: Process, questions: Sequence[Json]) -> Iterator[Json]:
    return map(json.loads, process.ask([msgspec.json.encode(each) for each in questions]))


if __name__ == "__main__":
    main(sys.argv[1:])
