"""New nodes: for which pending pods can no node be made, by the autoscalers that were read?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.audit.snapshot.records import ENCODER
from kubectl_spread.report.explanation import NewNodes

if TYPE_CHECKING:
    # The engine is given.
    from kubectl_spread.engine.engine import Engine


def new_nodes(audit: Audit, engine: Engine) -> list[NewNodes]:
    """Return an answer for each set of requested pending pods that share it, in the order of their names."""
    if not audit.evaluator.lists_nodes:
        return []
    pods_by_answer: dict[bytes, tuple[NewNodes, list[str]]] = {}
    for pod in sorted(audit.pods, key=lambda pod: pod.name):
        answer = engine.new_nodes(pod)
        if answer is not None:
            # The events of one pod are quoted for all that share its answer.
            key = ENCODER.encode(replace(answer, messages=[]))
            pods_by_answer.setdefault(key, (answer, []))[1].append(pod.name)
    return [replace(answer, pods=names) for answer, names in pods_by_answer.values()]
