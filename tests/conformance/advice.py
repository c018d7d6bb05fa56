"""Advice: claims of ``explain``, and the questions to the real plugins that check them.

The claims are read from the JSON of an explanation, as users get it, and the questions depend on the claims.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubectl_spread.audit.evaluation.evaluate import Audit, evaluate
from kubectl_spread.audit.merge.verdicts import ServerFacts
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.kube.features import Behaviour
from tests.audits import explained, snapshot
from tests.builders import Json

_PLUGINS: Final = {
    "cordon": "NodeUnschedulable",
    "taints": "TaintToleration",
    "nodeAffinity": "NodeAffinity",
    "resources": "NodeResourcesFit",
    "spread": "PodTopologySpread",
    "podAffinity": "InterPodAffinity",
}
_STEPS: Final = 3
_DOMAIN: Final = r"(?:Zone |Region |Node |Domain [^ =]+=)(\S+)"
_CLOSED: Final = re.compile(rf"{_DOMAIN} has .* and cannot take one \(")
_OPEN: Final = re.compile(rf"{_DOMAIN} could take a pod now\.")


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of ``explain`` about a case.

    Attributes:
        asks: The fields that the question for the oracle has in addition.
        ours: The claims.
        read: Returns the same facts from the oracle's answer.
    """

    asks: Json
    ours: Json
    read: Callable[[Json], Json]


def claims(question: Json, behaviour: Behaviour) -> Claims:
    """Return the claims about a case of one of these kinds."""
    kinds = {"namespaces": "Namespace", "nodes": "Node", "pods": "Pod"}
    objects = [{**manifest, "kind": kind} for name, kind in kinds.items() for manifest in question[name]]
    audit = evaluate(snapshot(*objects), ServerFacts(behaviour, gates_known=True), nodes="listed")
    return CLAIMS[question["kind"]](question, audit, explained(audit, replicas=_STEPS))


def _placing(_: Json, __: Audit, explanation: Json) -> Claims:
    """Claim the nodes that take the next pod or a pending pod, their scores, and the first refusal of other nodes."""
    entries = [*explanation["placing"], *explanation["waiting"]]
    nodes = [
        {
            **dict.fromkeys(entry["allowed"], ""),
            **{node: _PLUGINS[refusal["filter"]] for refusal in entry["refused"] for node in refusal["nodes"]},
        }
        for entry in entries
    ]
    placements = [{"pod": entry["pods"][0], "scored": True} for entry in entries]
    ranked = len(explanation["placing"])

    def read(real: Json) -> Json:
        scores = [placed["scores"].get("scores", {}) for placed in real["placed"][:ranked]]
        return {
            "nodes": [placed["nodes"] for placed in real["placed"]],
            "scores": [score if len(score) > 1 else {} for score in scores],
        }

    return Claims(
        asks={"kind": "placing", "placements": placements},
        ours={"nodes": nodes, "scores": [entry.get("scores", {}) for entry in entries[:ranked]]},
        read=read,
    )


def _next_pods(question: Json, audit: Audit, explanation: Json) -> Claims:
    """Claim the domains that take one pod after another, if each goes to the assumed domain."""
    placements: list[Json] = []
    ours: list[list[str]] = []
    cells: list[Mapping[str, str]] = []
    for group in explanation["nextPods"]:
        names = {node["metadata"]["name"]: _cell(node, group["topologyKeys"]) for node in question["nodes"]}
        (pod_class,) = {id(pod.pod_class): pod.pod_class for pod in audit.pods if pod.name == group["pods"][0]}.values()
        usable = audit.nodes.usable(pod_class.placement)
        taken: list[str] = []
        for step in group["steps"]:
            placements.append({"pod": group["pods"][0], "with": list(taken)})
            ours.append(step["allowed"])
            cells.append(names)
            taken += [node for node, cell in names.items() if cell == step["assumed"] and usable[node].schedulable][:1]

    def read(real: Json) -> Json:
        allowed = (
            sorted({names[node] for node, plugin in placed["nodes"].items() if not plugin})
            for placed, names in zip(real["placed"], cells, strict=True)
        )
        return {"steps": list(allowed)}

    return Claims(asks={"kind": "placing", "placements": placements}, ours={"steps": ours}, read=read)


def _cell(node: Json, keys: Sequence[str]) -> str:
    values = [node["metadata"]["labels"].get(key) for key in keys]
    return " / ".join("<none>" if value is None else value or '""' for value in values)


def _causes(question: Json, audit: Audit, explanation: Json) -> Claims:
    """Claim which domains could take a pod of the row after a pod has left the fullest domain."""
    placements: list[Json] = []
    ours: list[Json] = []
    placement_ranges: list[range] = []
    for cause in explanation["causes"]:
        for text in cause["evidence"]:
            closed, opened = _CLOSED.match(text), _OPEN.search(text)
            match = closed or opened
            if match is None:
                continue
            key = audit.rows[cause["row"]].term.topology_key
            nodes = _nodes(question, key, "" if match[1] == '""' else match[1])
            start = len(placements)
            placements += _moves(audit, cause["row"])
            placement_ranges.append(range(start, len(placements)))
            ours.append({"row": cause["row"], "domain": f"{key} {match[1]}", "nodes": nodes, "takes": bool(opened)})

    def read(real: Json) -> Json:
        return {
            "domains": [
                {
                    **claim,
                    "takes": any(
                        not real["placed"][index]["nodes"][node] for index in indices for node in claim["nodes"]
                    ),
                }
                for claim, indices in zip(ours, placement_ranges, strict=True)
            ]
        }

    return Claims(asks={"kind": "placing", "placements": placements}, ours={"domains": ours}, read=read)


def _nodes(question: Json, key: str, value: str) -> list[str]:
    return [node["metadata"]["name"] for node in question["nodes"] if node["metadata"]["labels"].get(key) == value]


def _moves(audit: Audit, index: int) -> list[Json]:
    """Return every way to remove a pod of a row from the fullest domain and to place one like a pod of the row."""
    row = audit.rows[index]
    spread = row.spread
    assert spread is not None
    kinds = list({id(pod.pod_class): pod for pod in row.pods}.values())
    leaving: list[PodRecord] = []
    if spread.exceeds_max_skew:
        value_of = spread.domains.value_of
        bound = (pod for pod in row.pods if pod.node in value_of and not pod.terminating)
        leaving = [pod for pod in bound if spread.match_num[value_of[pod.node]] == spread.match_num.most]
    ways: list[list[str]] = [[pod.name] for pod in leaving] or [[]]
    return [{"pod": kind.name, "without": way} for kind in kinds for way in ways]


CLAIMS: Final[Mapping[str, Callable[[Json, Audit, Any], Claims]]] = {
    "next pod": _placing,
    "next pods": _next_pods,
    "causes": _causes,
}
"""Maps a kind of case to the function that makes its claims."""
