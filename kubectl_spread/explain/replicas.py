"""Replicas: where may the next pods of a group go, one after another, by spread alone?"""

from __future__ import annotations

from collections.abc import Mapping

from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedGroup
from kubectl_spread.diagnosis.simulation import Cell, SimulatedCount, cell_name, cells, tallies
from kubectl_spread.kube.scheduler.podtopologyspread_scoring import NO_VALUE
from kubectl_spread.report import model

_BETWEEN_KEYS = " / "


class Step(model.Part, frozen=True, kw_only=True):
    """One more pod: the domains that would take it, the number of their nodes, and where it is assumed to go.

    A domain of several constraints is written as the values of their topology keys, in the constraints' order. The
    pod is assumed to go where there are the fewest of its kind; without a node ``assumed`` is "".
    """

    allowed: list[str]
    nodes: int
    assumed: str


class NextPods(model.Part, frozen=True, kw_only=True):
    """The next pods like those of one group."""

    pods: list[str]
    topology_keys: list[str]
    steps: list[Step]


def next_pods(group: EvaluatedGroup, audit: Audit, number: int) -> NextPods | None:
    """Place ``number`` more pods like those of a group, one after another; None where it has no counted constraint.

    Nodes are those that the pods could use by taints, cordon and node affinity; resources are not looked at.
    """
    counted = [spread for spread in group.view.spreads if spread is not None]
    if not counted or group.view.node_answer is None:
        return None
    deciding = [spread for spread in counted if spread.constraint.hard] or counted
    keys = [spread.constraint.topology_key for spread in deciding]
    usable = audit.nodes.usable(group.view.shape.placement)
    found = cells(audit, (name for name, one in usable.items() if one.schedulable), keys)
    running = tallies(deciding)
    steps = []
    for _ in range(number):
        steps.append(_step(running, found))
        if not steps[-1].allowed:
            break
    return NextPods(pods=[pod.name for pod in group.pods], topology_keys=keys, steps=steps)


def _step(running: list[SimulatedCount], nodes: Mapping[Cell, list[str]]) -> Step:
    allowed = [cell for cell in nodes if all(map(SimulatedCount.lets_in, running, cell))]
    if not allowed:
        return Step(allowed=[], nodes=0, assumed="")
    taken = min(allowed, key=lambda cell: (_crowd(running, cell), cell_name(cell)))
    for tally, domain in zip(running, taken, strict=True):
        tally.add(domain)
    return Step(
        allowed=sorted(cell_name(cell) for cell in allowed),
        nodes=sum(len(nodes[cell]) for cell in allowed),
        assumed=cell_name(taken),
    )


def _crowd(running: list[SimulatedCount], cell: Cell) -> int:
    """Return how many matching pods the domains of a cell have together."""
    return sum(_held(tally, domain) for tally, domain in zip(running, cell, strict=True))


def _held(tally: SimulatedCount, domain: str | None) -> int:
    """Return how many matching pods a domain has; one without a key is the last choice, but for a system default."""
    if domain is not None:
        return tally.counts.get(domain, 0)
    return tally.counts.get(NO_VALUE, 0) if tally.spread.constraint.lenient else sum(tally.counts.values()) + 1
