"""Replicas: where may the next pods of a group go, one after another, by spread alone?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedGroup
from kubectl_spread.kube.scheduler.podtopologyspread.domains import NO_VALUE, Cell
from kubectl_spread.kube.scheduler.podtopologyspread.filtering import allow, place
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread
from kubectl_spread.phrases import value
from kubectl_spread.report import model

_BETWEEN_KEYS: Final = " / "


class Step(model.Part, frozen=True, kw_only=True):
    """One more pod: the domains that would take it, the number of their nodes, and the domain that is assumed.

    A domain of several constraints is written as the values of their topology keys, in the constraints' order. The
    pod is assumed to use the domain with the fewest matching pods; if no node takes it, ``assumed`` is "".
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
    """Place ``number`` more pods like those of a group, one after another; None if it has no counted constraint.

    Cordons, taints and node affinity leave nodes out; resources do not.
    """
    counted = [spread for spread in group.evaluation.spreads if spread is not None]
    if not counted or group.evaluation.node_answer is None:
        return None
    spreads = [spread for spread in counted if spread.constraint.hard] or counted
    keys = [spread.constraint.topology_key for spread in spreads]
    usable = audit.nodes.usable(group.evaluation.pod_class.placement)
    nodes = {
        cell: schedulable
        for cell, alike in audit.nodes.cells(keys).items()
        if (schedulable := sum(usable[node.metadata.name].schedulable for node in alike))
    }
    steps = []
    for _ in range(number):
        allowed = {cell: nodes[cell] for cell in nodes if allow(spreads, cell)}
        if not allowed:
            steps.append(Step(allowed=[], nodes=0, assumed=""))
            break
        chosen = min(allowed, key=lambda cell: (_crowd(spreads, cell), _cell_name(cell)))
        steps.append(_step(allowed, chosen))
        spreads = place(spreads, chosen)
    return NextPods(pods=[pod.name for pod in group.pods], topology_keys=keys, steps=steps)


def _step(allowed: Mapping[Cell, int], chosen: Cell) -> Step:
    names = sorted(_cell_name(cell) for cell in allowed)
    return Step(allowed=names, nodes=sum(allowed.values()), assumed=_cell_name(chosen))


def _cell_name(cell: Cell) -> str:
    """Return a cell as its values, in the order of the keys."""
    return _BETWEEN_KEYS.join("<none>" if domain is None else value(domain) for domain in cell)


def _crowd(spreads: Sequence[Spread], cell: Cell) -> int:
    """Return the number of matching pods in the domains of a cell."""
    return sum(_pods_in(spread, domain) for spread, domain in zip(spreads, cell, strict=True))


def _pods_in(spread: Spread, domain: str | None) -> int:
    """Return a domain's matching pods; nodes without the key are the last choice, except for a system default."""
    if domain is not None:
        return spread.match_num.get(domain, 0)
    return spread.match_num.get(NO_VALUE, 0) if spread.constraint.lenient else spread.match_num.total + 1
