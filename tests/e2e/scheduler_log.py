"""The log of the real scheduler: the nodes that it refused for a pod, with the numbers, and the node of the pod."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tests.controlplane.cluster import ControlPlane

_FAILED = "Node failed spreadConstraint: matchNum + selfMatchNum - minMatchNum > maxSkew"
_NO_LABEL = "Node doesn't have required topology label for spread constraint"
_BOUND = "Successfully bound pod to node"
_NO_FIT = "Unable to schedule pod; no fit; waiting"
_DELETED = re.compile(r"^Delete event for (un)?scheduled pod$")
_LINE = re.compile(r'^\S+ \S+ +\d+ \S+\] "((?:[^"\\]|\\.)*)" ?(.*)$')
_VALUE = re.compile(r'(\w+)=(?:"((?:[^"\\]|\\.)*)"|(\S+))')


class Refusal(NamedTuple):
    """The reason of the spread plugin to refuse a node; there are no numbers if the node lacks the label."""

    node: str
    topology_key: str
    match_num: int | None = None
    self_match_num: int | None = None
    min_match_num: int | None = None
    max_skew: int | None = None


@dataclass(frozen=True)
class Decision:
    """The decision on a pod: refusals of nodes, the number of feasible nodes, and the chosen node."""

    refusals: frozenset[Refusal]
    feasible: int
    node: str
    message: str = ""


class SchedulerLog:
    """The log of a running scheduler, read as it grows."""

    def __init__(self, cluster: ControlPlane) -> None:
        """Begin at the present end of the log."""
        self._cluster = cluster
        self._offset = cluster.scheduler_log.stat().st_size

    def decision(self, pod: str) -> Decision:
        """Wait until the scheduler has decided on a pod, written ``namespace/name``, and return the decision."""
        return self.decisions([pod])[pod]

    def decisions(self, pods: Collection[str]) -> dict[str, Decision]:
        """Wait until the scheduler has decided on every one of ``pods``, and return the decisions."""
        refusals: dict[str, list[Refusal]] = {pod: [] for pod in pods}
        decisions: dict[str, Decision] = {}

        def decided() -> bool:
            for message, values in self._read(pods):
                pod = values["pod"]
                match message:
                    case s if s == _FAILED:
                        refusals[pod].append(_refusal(values))
                    case s if s == _NO_LABEL:
                        refusals[pod].append(Refusal(values["node"], values["topologyKey"]))
                    case s if s == _BOUND:
                        feasible = int(values["feasibleNodes"])
                        decisions[pod] = Decision(frozenset(refusals[pod]), feasible, values["node"])
                    case s if s == _NO_FIT:
                        decisions[pod] = Decision(frozenset(refusals[pod]), 0, "", values["err"])
            return len(decisions) == len(pods)

        self._cluster.wait_for(decided, what=f"the scheduler decides on {', '.join(pods)}")
        return decisions

    def wait_until_forgotten(self, pod: str) -> None:
        """Wait until the scheduler knows that a pod is deleted."""
        self._cluster.wait_for(
            lambda: any(_DELETED.match(message) for message, _ in self._read([pod])),
            what=f"the scheduler forgets {pod}",
        )

    def _read(self, pods: Collection[str]) -> list[tuple[str, dict[str, str]]]:
        """Return the complete lines about ``pods`` that came since the last call; the others are passed over."""
        with self._cluster.scheduler_log.open("rb") as log:
            log.seek(self._offset)
            whole, _, _ = log.read().rpartition(b"\n")
        self._offset += len(whole) + 1 if whole else 0
        lines = (_LINE.match(line) for line in whole.decode().splitlines())
        parsed = [(line[1], _values(line[2])) for line in lines if line]
        return [(message, values) for message, values in parsed if values.get("pod") in pods]


def _values(text: str) -> dict[str, str]:
    return {name: quoted or bare for name, quoted, bare in _VALUE.findall(text)}


def _refusal(values: Mapping[str, str]) -> Refusal:
    numbers = (int(values[name]) for name in ("matchNum", "selfMatchNum", "minMatchNum", "maxSkew"))
    return Refusal(values["node"], values["topologyKey"], *numbers)
