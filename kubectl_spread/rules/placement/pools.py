"""SPR316 and SPR317: domains without nodes that count for Karpenter, now or after an outage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from kubectl_spread.audit.evaluation.evaluate import EvaluatedConstraint
from kubectl_spread.engine.newnodes import forgetting, without_empty
from kubectl_spread.engine.nodepools import accepting
from kubectl_spread.engine.pooldomains import PoolDomains, pool_domains
from kubectl_spread.kube.api.types import NodeInclusionPolicy
from kubectl_spread.kube.nodeautoscaling import NodePool
from kubectl_spread.phrases import domains, sentence
from kubectl_spread.report.model import Severity
from kubectl_spread.rules.inputs import PodsInput
from kubectl_spread.rules.model import Evidence, Rule, Values, names

_HONOR: Final = (
    "set nodeTaintsPolicy: Honor, with which a NodePool whose taints these pods do not tolerate adds no domain"
)


def _counted(rule_input: PodsInput) -> Iterator[tuple[EvaluatedConstraint, PoolDomains]]:
    """Yield the rows of hard constraints whose pods all have a node, with the domains for Karpenter.

    Findings about pods that wait say where nodes can be made for them.
    """
    autoscalers = rule_input.audit.snapshot.node_autoscalers
    if not autoscalers.pools:
        return
    for row, spread in rule_input.awaiting:
        if not spread.constraint.hard or row.term.default or rule_input.pending:
            continue
        counted = pool_domains(
            spread.constraint,
            row.evaluations[0][0].pod_class.placement,
            counts=spread.match_num,
            nodes=spread.domains.nodes,
            own=spread.self_match_num,
            autoscalers=autoscalers,
        )
        if counted is not None:
            yield row, counted


def _honor_helps(row: EvaluatedConstraint, counted: PoolDomains) -> bool:
    """Tell whether no domain without nodes counts with nodeTaintsPolicy Honor."""
    honoring = pool_domains(
        replace(counted.constraint, node_taints_policy=NodeInclusionPolicy.HONOR),
        row.evaluations[0][0].pod_class.placement,
        counts=counted.counts,
        nodes=counted.nodes,
        own=counted.own,
        autoscalers=counted.autoscalers,
    )
    return honoring is not None and not honoring.unseen


def _unseen(rule_input: PodsInput) -> Iterator[Evidence]:
    for row, counted in _counted(rule_input):
        key, empty, allowed = counted.constraint.topology_key, counted.unseen, counted.allowed
        refused = [value for value in counted.seen.allowed if value not in allowed]
        if not empty or not refused:
            continue
        pools = _accepting(row, counted)
        refused = _reached(counted, pools, refused)
        if not refused:
            # Whatever it counts, Karpenter makes no node for these pods in the domains that the constraint refuses.
            continue
        reached = _reached(counted, pools, allowed)
        if reached:
            effect = (
                f"Karpenter may make the next node for these pods only in {domains(key, reached)}, "
                f"not in {domains(key, refused)}"
            )
        else:
            makes = "makes" if counted.is_certain else "probably makes"
            effect = (
                f"No NodePool that takes these pods can make a node in {domains(key, allowed)}, "
                f"so Karpenter {makes} none for them"
            )
        values: Values = {
            "counts": "counts" if counted.is_certain else "probably counts",
            "empty": domains(key, empty),
            "sources": counted.reasons(empty),
            "effect": effect,
        }
        yield Evidence(names(row.pods), values, fix=_fix(row, counted, [each for each in empty if each in reached]))
        return


def _fix(row: EvaluatedConstraint, counted: PoolDomains, reached: Sequence[str]) -> str:
    """Return the fix, for domains without nodes of which NodePools that take the pods reach some, or none."""
    if _honor_helps(row, counted):
        return _HONOR
    if not reached:
        return forgetting(counted)
    where = domains(counted.constraint.topology_key, reached)
    return f"nothing to do while there is capacity in {where}. {sentence(without_empty(counted))}"


def _accepting(row: EvaluatedConstraint, counted: PoolDomains) -> list[NodePool]:
    return accepting(counted.autoscalers, row.evaluations[0][0].pod_class)


def _reached(counted: PoolDomains, pools: Sequence[NodePool], values: Sequence[str]) -> list[str]:
    """Return the given domains in which one of the NodePools may make a node."""
    places = [counted.places(pool) for pool in pools]
    return [value for value in values if any(each is None or value in each for each in places)]


def _after_outage(rule_input: PodsInput) -> Iterator[Evidence]:
    for row, counted in _counted(rule_input):
        key = counted.constraint.topology_key
        after = {value: counted.after_loss(value) for value in sorted(counted.nodes) if counted.pods(value)}
        strands = {value: each for value, each in after.items() if each.allowed == [value] and each.seen.allowed}
        # Without a NodePool that takes the pods, Karpenter makes no node for them in any case.
        if strands and _accepting(row, counted):
            lost = domains(key, list(strands))
            certain = all(each.is_certain for each in strands.values())
            values: Values = {
                "lost": lost if len(strands) == 1 else f"one of {lost}",
                "counts": "still counts" if certain else "probably still counts",
                "sources": counted.reasons(strands),
                "max_skew": counted.constraint.max_skew,
                "topology_key": key,
            }
            yield Evidence(names(row.pods), values)
            return


UNSEEN_DOMAIN: Final = Rule(
    code="SPR316",
    name="unseen-domain",
    severity=Severity.INFO,
    summary="A domain without nodes counts for Karpenter, and keeps new nodes from the others",
    message=(
        "Karpenter {counts} {empty} with 0 pods ({sources}), but no node that counts is there, so "
        "kube-scheduler does not. {effect}."
    ),
    fix="nothing to do if the domain has capacity; else take it out of the requirements of the NodePools",
    reads_node_pools=True,
    of_counts=_unseen,
)

STRANDED_BY_OUTAGE: Final = Rule(
    code="SPR317",
    name="stranded-by-outage",
    severity=Severity.INFO,
    summary="After the loss of a domain, Karpenter would make no node for its pods in the others",
    message=(
        "After the loss of {lost}, Karpenter {counts} it with 0 pods ({sources}). With maxSkew {max_skew} it then "
        "makes no node elsewhere for the pods that were there. kube-scheduler no longer counts the lost domain."
    ),
    fix=(
        "nothing to do now. After an outage, take the domain out of the requirements of the NodePools for "
        "{topology_key} and out of the subnets of their class, or make the constraint ScheduleAnyway"
    ),
    reads_node_pools=True,
    of_counts=_after_outage,
)
