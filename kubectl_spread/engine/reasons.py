"""Reasons: why does a pod find no node, in the words of the other commands?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Final

import msgspec
from msgspec.structs import replace

from kubectl_spread.audit.evaluation import obstacles, topologykeys
from kubectl_spread.audit.evaluation.obstacles import ObstacleKind
from kubectl_spread.audit.evaluation.volumes import NONE_AVAILABLE
from kubectl_spread.audit.snapshot.capacity import lacking
from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.engine.answers import NO_NODES, Reason, RefusalCause
from kubectl_spread.engine.cluster import SimulatedCluster
from kubectl_spread.engine.kinds import unparsed
from kubectl_spread.engine.nodes import CountedNodes
from kubectl_spread.engine.placing import minimum
from kubectl_spread.engine.pods import SimulatedPod
from kubectl_spread.kube.api.field import POD_SPEC, FieldPath
from kubectl_spread.kube.api.labels import ZONE, ascending
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import Constraint
from kubectl_spread.phrases import domains, in_domain, listed, named, plural, some, topology_name

_LISTED: Final = 3


def reason(cluster: SimulatedCluster, pod: SimulatedPod) -> Reason:
    """Return why a pending pod finds no node now."""
    if pod.held:
        return Reason((), pod.held)
    if not cluster.nodes:
        return NO_NODES
    if cause := everywhere(cluster, pod):
        return Reason((), cause.text, everywhere=cause)
    refusals: list[RefusalCause] = []
    # A pod of a DaemonSet belongs to its node.
    left = 1 << cluster.table.numbers[pod.pin] if pod.pin in cluster.table.numbers else cluster.table.everything
    for refusal, bits in refusals_by_filter(cluster, pod):
        number = (left & bits).bit_count()
        if number:
            refusals.append(msgspec.structs.replace(refusal, nodes=number))
        left &= ~bits
    free = tuple(cluster.table.names[number] for number in ascending(left))
    return Reason(tuple(refusals), _text(cluster, pod, refusals), free, cluster.table.is_too_large(pod.kind))


def _text(cluster: SimulatedCluster, pod: SimulatedPod, refusals: list[RefusalCause]) -> str:
    first = [refusal.text for refusal in refusals if refusal.kind is ObstacleKind.CONSTRAINED]
    kinds, last = {ObstacleKind.CONSTRAINED}, ""
    if place := _place_of_volume(cluster, pod):
        # The scheduler names it only where no filter before it refuses the other nodes.
        if any(refusal.kind is ObstacleKind.VOLUME for refusal in refusals):
            first.insert(0, place)
        else:
            last = place
        kinds.add(ObstacleKind.VOLUME)
    others: Counter[str] = Counter()
    for refusal in refusals:
        if refusal.kind not in kinds:
            others[refusal.text] += refusal.nodes
    return "; ".join(filter(None, (*first, obstacles.counted(others), last)))


def _place_of_volume(cluster: SimulatedCluster, pod: SimulatedPod) -> str:
    """Return where the volumes of a pod are, if that is in zones; "" where they decide nothing."""
    refusals = cluster.volumes_of(pod).refusals
    if not refusals or any(obstacle == NONE_AVAILABLE for _, obstacle in refusals):
        return ""
    table, volumes = cluster.world.table(cluster.world.nodes)
    refused = cluster.volumes_of(pod, volumes).refused
    reaching = [table.sets.nodes[number].metadata for number in ascending(table.everything & ~refused)]
    zones = sorted({metadata.labels[ZONE] for metadata in reaching if ZONE in metadata.labels})
    if zones:
        return f"its volume is in {domains(ZONE, zones)}"
    names = [metadata.name for metadata in reaching]
    return f"its volume is on {'node' if len(names) == 1 else 'nodes'} {listed(names, _LISTED)}" if names else ""


def everywhere(cluster: SimulatedCluster, pod: SimulatedPod) -> RefusalCause | None:
    """Return why the scheduler puts a pod on no node, whatever the nodes are; None where they decide."""
    if term := unparsed(pod.kind.pod_class, hard=True):
        return unparsed_cause(term)
    if pod.pin and pod.pin not in cluster.table.numbers:
        by_name = pod.pin == pod.kind.pod_class.spec.node_name
        names = f"its nodeName is {pod.pin}" if by_name else f"its node affinity names node {pod.pin}"
        remedy = "correct the name of the node, or add a node that has it"
        return RefusalCause(ObstacleKind.EXCLUDED, f"{names}, and no node has this name", remedy=remedy)
    if use := cluster.user_of_claim(pod):
        claim, other = use
        text = f"its claim {claim} is ReadWriteOncePod, and pod {other} uses it"
        remedy = f"let pod {other} go first (in a Deployment: strategy Recreate), or use a claim of another access mode"
        return RefusalCause(ObstacleKind.VOLUME, text, remedy=remedy)
    return None


def unparsed_cause(term: TopologyTerm) -> RefusalCause:
    """Return the cause that the scheduler cannot parse a selector of a term."""
    field = "selector" if term.parse_error is None else term.parse_error[0]
    fails = "fails to choose a node" if term.spread and not term.required else "fails before it looks at a node"
    text = f"{field} of {term.path.moved(POD_SPEC, FieldPath())} cannot be parsed, so the scheduler {fails}"
    kind = ObstacleKind.CONSTRAINED if term.spread else ObstacleKind.REPELLED
    return RefusalCause(kind, text, remedy="correct the selector")


def refusals_by_filter(cluster: SimulatedCluster, pod: SimulatedPod) -> Iterator[tuple[RefusalCause, int]]:
    """Yield what each filter refuses, in the scheduler's order."""
    table, state, kind = cluster.table, cluster.state, pod.kind
    everything, answers = table.everything, table.answers(kind)
    yield RefusalCause(ObstacleKind.CORDONED, obstacles.CORDONED.text), everything & ~answers.usable.uncordoned
    for taint, bits in table.untolerated(kind).items():
        obstacle = obstacles.tainted(taint)
        yield RefusalCause(obstacle.cause, obstacle.text), bits
    yield RefusalCause(ObstacleKind.EXCLUDED, obstacles.EXCLUDED.text), everything & ~answers.usable.fits
    for text, bits in _full(cluster, pod, everything & ~state.room(kind).fits).items():
        yield RefusalCause(ObstacleKind.FULL, text), bits
    for bits, obstacle in cluster.volumes_of(pod).refusals:
        yield RefusalCause(ObstacleKind.VOLUME, obstacle.text, remedy=obstacle.remedy), bits
    for constraint, counted, bits in zip(kind.hard, answers.hard, state.constrained(kind, answers), strict=True):
        yield _constraint_cause(cluster, pod, constraint, counted), bits
    if kind.affinity:
        keys = listed(list(dict.fromkeys(topology_name(term.topology_key) for term in kind.affinity)))
        text = f"its required affinity on {keys} finds no pod that it selects there"
        remedy = "start pods that the affinity term selects, correct its selector, or make it preferred"
        yield RefusalCause(ObstacleKind.REPELLED, text, remedy=remedy), state.unattracted(kind)
    for repelling in state.repelling(kind):
        if repelling.nodes:
            refs = sorted({ref for each in state.kinds_with(repelling) for ref in cluster.workloads_of.get(each, ())})
            names = some([named(ref.kind, ref.name) for ref in refs])
            key = topology_name(repelling.term.topology_key)
            text = f"required anti-affinity of {names} on {key} keeps it away"
            if repelling.held is None:
                text = f"its required anti-affinity on {key} excludes a pod of {names} that is there"
            yield RefusalCause(ObstacleKind.REPELLED, text, workloads=tuple(refs)), repelling.nodes


def _full(cluster: SimulatedCluster, pod: SimulatedPod, refused: int) -> Mapping[str, int]:
    """Map the host ports and resources that nodes lack to these nodes."""
    by_text: dict[str, int] = {}
    requests = dict(pod.kind.requests)
    for number in ascending(refused):
        allocatable, used = cluster.table.allocatable[number], cluster.state.used[number]
        text = ", ".join(lacking(requests, pod.kind.excluding, allocatable, used))
        by_text[text] = by_text.get(text, 0) | 1 << number
    return by_text


def _constraint_cause(
    cluster: SimulatedCluster, pod: SimulatedPod, constraint: Constraint, counted: CountedNodes
) -> RefusalCause:
    """Return why a constraint allows no more pods in a domain."""
    key, kind, sets = constraint.topology_key, ObstacleKind.CONSTRAINED, cluster.table.sets
    if not sets.carrying([key]):
        right = topologykeys.nearest_key(key, sets)
        text = f"no node has the label {key} of their constraint" + (f"; did you mean {right}?" if right else "")
        return RefusalCause(kind, text, key, right_key=right)
    name = f"their constraint on {in_domain(key, '').split()[-1]} (maxSkew {constraint.max_skew})"
    if not counted.domains:
        return RefusalCause(kind, f"{name} has no domain that they may use", key)
    tally, any_number = cluster.state.spread(pod.kind, constraint, counted), replace(constraint, min_domains=1)
    least = minimum(constraint, counted.domains, tally)
    # These are the eligible domains with the fewest pods.
    values = {value for value in counted.values if value is not None}
    lowest = tuple(sorted(value for value in values if tally.counts.get(value, 0) == least))
    if counted.domains < constraint.min_domains and minimum(any_number, counted.domains, tally):
        text = f"{name} has fewer domains than minDomains ({counted.domains} of {constraint.min_domains})"
        return RefusalCause(kind, text, key, lacks_domains=True, lowest=lowest, minimum=least)
    text = f"{name} allows no more"
    if lowest:
        number = f"{plural(least, 'pod')}{' each' if len(lowest) > 1 else ''}" if least else "none"
        text += f", because {domains(key, lowest)} {'has' if len(lowest) == 1 else 'have'} {number}"
        there = counted.bits & reduce(int.__or__, (cluster.table.mask(key, value) for value in lowest))
        text += "" if there & cluster.state.feasible(pod.kind, pod.refused) else " and no node there takes one"
    return RefusalCause(kind, text, key, lowest=lowest, minimum=least)
