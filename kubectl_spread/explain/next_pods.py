"""Next pods: which present pods will they be like, and which nodes or domains may take them?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedGroup
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.audit.snapshot.revisions import revision_of
from kubectl_spread.explain.placing import Placing, parses, place
from kubectl_spread.explain.uneven_rows import RELABELLED
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.scheduler.podtopologyspread import filtering
from kubectl_spread.kube.scheduler.podtopologyspread.domains import NO_VALUE, Cell
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
    """The next pods of one group."""

    pods: list[str]
    topology_keys: list[str]
    steps: list[Step]


def succeeded(audit: Audit) -> list[tuple[EvaluatedGroup, list[PodRecord]]]:
    """Return the groups that the next pods may be like, each with its fresh pods.

    A controller creates pods of its newest revision, with the labels of its template. Without such fresh pods, the next
    pod may be like any other pod.
    """
    relabelled = {
        (row.namespace, member.pod.name) for row in audit.rows for member in row.members if member.verdict in RELABELLED
    }
    groups_by_workload: dict[ObjectRef, list[tuple[EvaluatedGroup, list[PodRecord]]]] = {}
    for group in audit.groups:
        unchanged = (pod for pod in group.pods if (pod.namespace, pod.name) not in relabelled)
        fresh = [pod for pod in unchanged if _is_fresh(pod, group, audit)]
        groups_by_workload.setdefault(group.workload, []).append((group, fresh))
    return [successor for groups in groups_by_workload.values() for successor in _freshest(groups)]


def placing(audit: Audit) -> list[Placing]:
    """Return the nodes where the next pods may go, without pods that the API would refuse because of a selector."""
    return [
        place(pods[0].pod_class, [pod.name for pod in pods], audit.volumes.of_next(pods[0]), audit)
        for group, pods in succeeded(audit)
        if group.evaluation.node_answers is not None and parses(pods[0].pod_class)
    ]


def _is_fresh(pod: PodRecord, group: EvaluatedGroup, audit: Audit) -> bool:
    """Tell whether the controller of a pod would give it the same labels now, as far as the template was read."""
    if pod.terminating:
        return False
    revisions, labels = audit.revisions.of(group.workload), pod.pod_class.labels
    if revisions and revision_of(labels) != revisions[-1]:
        return False
    chain = audit.snapshot.owner_chain(pod)
    return not chain or all(labels.get(key) == text for key, text in chain[0].template_labels.items())


def _freshest(groups: list[tuple[EvaluatedGroup, list[PodRecord]]]) -> Iterator[tuple[EvaluatedGroup, list[PodRecord]]]:
    """Yield the groups that have fresh pods; if there are none, yield all groups with all of their pods."""
    any_fresh = any(fresh for _, fresh in groups)
    for group, fresh in groups:
        if fresh or not any_fresh:
            yield group, fresh or group.pods


def next_pods(group: EvaluatedGroup, audit: Audit, number: int) -> NextPods | None:
    """Place ``number`` more pods of a group, one after another; None if the group has no counted constraint.

    Nodes are left out because of cordons, taints and node affinity, but not because of resources.
    """
    counted = [spread for spread in group.evaluation.spreads if spread is not None]
    if not counted or group.evaluation.node_answers is None:
        return None
    spreads = [spread for spread in counted if spread.constraint.hard] or counted
    keys = [spread.constraint.topology_key for spread in spreads]
    usable = audit.nodes.usable(group.evaluation.pod_class.placement)
    nodes = {
        cell: schedulable
        for cell, nodes_of_cell in audit.nodes.cells(keys).items()
        if (schedulable := sum(usable[node.metadata.name].schedulable for node in nodes_of_cell))
    }
    steps = []
    for _ in range(number):
        allowed = {cell: nodes[cell] for cell in nodes if filtering.allow(spreads, cell)}
        if not allowed:
            steps.append(Step(allowed=[], nodes=0, assumed=""))
            break
        chosen = min(allowed, key=lambda cell: (sum(map(_pods_in, spreads, cell)), _cell_name(cell)))
        steps.append(_step(allowed, chosen))
        spreads = filtering.place(spreads, chosen)
    return NextPods(pods=[pod.name for pod in group.pods], topology_keys=keys, steps=steps)


def _step(allowed: Mapping[Cell, int], chosen: Cell) -> Step:
    names = sorted(_cell_name(cell) for cell in allowed)
    return Step(allowed=names, nodes=sum(allowed.values()), assumed=_cell_name(chosen))


def _cell_name(cell: Cell) -> str:
    """Return a cell as its values, in the order of the keys."""
    return _BETWEEN_KEYS.join("<none>" if domain is None else value(domain) for domain in cell)


def _pods_in(spread: Spread, domain: str | None) -> int:
    """Return a domain's matching pods; nodes without the key are the last choice, except for a system default."""
    if domain is not None:
        return spread.match_num.get(domain, 0)
    return spread.match_num.get(NO_VALUE, 0) if spread.constraint.lenient else spread.match_num.total + 1
