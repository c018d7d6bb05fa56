"""Reasons: why does a pod find no node, in the words of the other commands?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from kubectl_spread.audit.evaluation import obstacles
from kubectl_spread.diagnosis.node_answers import AFFINITY_WORDS
from kubectl_spread.kube.api.labels import ascending
from kubectl_spread.kube.api.topologykeys import ZONE
from kubectl_spread.kube.scheduler import resources, taints
from kubectl_spread.kube.scheduler.interpodaffinity import AffinityAnswer
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import Constraint
from kubectl_spread.phrases import domains, in_domain, listed, plural
from kubectl_spread.simulate.cluster import SimulatedCluster, SimulatedPod
from kubectl_spread.simulate.nodes import CountedNodes
from kubectl_spread.simulate.placing import Tally, minimum

_LISTED: Final = 3


class RefusalCause(msgspec.Struct, frozen=True):
    """One cause for which nodes refuse a pod.

    Attributes:
        kind: Its kind: cordon, taint, excluded, resource, volume, spread or affinity.
        detail: What distinguishes it from others of its kind, such as a topology key.
        text: The cause in words.
        nodes: The number of nodes.
    """

    kind: str
    detail: str
    text: str
    nodes: int


class Reason(msgspec.Struct, frozen=True):
    """Why pods find no node.

    Attributes:
        refusals: The causes, in the order of the scheduler's filters.
        text: All of them in words.
        lowest: The domains that hold the minimum of the spread constraint that refuses, and their topology key.
    """

    refusals: tuple[RefusalCause, ...]
    text: str
    lowest: tuple[str, tuple[str, ...]] = ("", ())

    @property
    def key(self) -> tuple[tuple[str, str], ...]:
        """A value that is equal for pods that wait for the same."""
        return tuple((refusal.kind, refusal.detail) for refusal in self.refusals)


def reason(cluster: SimulatedCluster, pod: SimulatedPod) -> Reason:
    """Return why a pending pod finds no node now."""
    if pod.record.gates:
        text = f"it has scheduling gates: {listed(list(pod.record.gates), _LISTED)}"
        return Reason((RefusalCause("gate", "", text, 0),), text)
    if not pod.kind.parses:
        text = "a selector of its constraints or pod affinity cannot be parsed"
        return Reason((RefusalCause("selector", "", text, 0),), text)
    if not cluster.nodes:
        return Reason((RefusalCause("nodes", "", "there are no nodes", 0),), "there are no nodes")
    refusals: list[RefusalCause] = []
    # A pod of a DaemonSet belongs to its node.
    left = 1 << cluster.table.numbers[pod.pin] if pod.pin in cluster.table.numbers else cluster.table.everything
    lowest: tuple[str, tuple[str, ...]] = ("", ())
    for refusal, bits in _all(cluster, pod):
        number = (left & bits).bit_count()
        if number:
            refusals.append(msgspec.structs.replace(refusal, nodes=number))
            if refusal.kind == "spread" and not lowest[0]:
                lowest = _lowest(cluster, pod, refusal.detail)
        left &= ~bits
    return Reason(tuple(refusals), _text(cluster, pod, refusals), lowest)


def _text(cluster: SimulatedCluster, pod: SimulatedPod, refusals: list[RefusalCause]) -> str:
    first = [refusal.text for refusal in refusals if refusal.kind == "spread"]
    kinds, last = {"spread"}, ""
    if place := _place_of_volume(cluster, pod):
        # The scheduler names it only where no filter before it refuses the other nodes.
        if any(refusal.kind == "volume" for refusal in refusals):
            first.insert(0, place)
        else:
            last = place
        kinds.add("volume")
    others: Counter[str] = Counter()
    for refusal in refusals:
        if refusal.kind not in kinds:
            others[refusal.text] += refusal.nodes
    return "; ".join(filter(None, (*first, obstacles.counted(others), last)))


def _place_of_volume(cluster: SimulatedCluster, pod: SimulatedPod) -> str:
    """Return where the volumes of a pod are, if that is in zones; "" where they decide nothing."""
    nodes = cluster.volumes.of(pod.record).refusals
    if not nodes:
        return ""
    table, volumes = cluster.world.table(cluster.world.nodes)
    refused = 0
    for bits, _ in volumes.of(pod.record).refusals:
        refused |= bits
    reaching = [table.sets.nodes[number].metadata for number in ascending(table.everything & ~refused)]
    zones = sorted({metadata.labels[ZONE] for metadata in reaching if ZONE in metadata.labels})
    if zones:
        return f"its volume is in {domains(ZONE, zones)}"
    names = [metadata.name for metadata in reaching]
    return f"its volume is on {'node' if len(names) == 1 else 'nodes'} {listed(names, _LISTED)}" if names else ""


def _all(cluster: SimulatedCluster, pod: SimulatedPod) -> Iterator[tuple[RefusalCause, int]]:
    """Yield what each filter refuses, in the scheduler's order."""
    table, state, kind = cluster.table, cluster.state, pod.kind
    everything, answers = table.everything, table.answers(kind)
    yield RefusalCause("cordon", "", obstacles.CORDONED.text, 0), everything & ~answers.usable.uncordoned
    for text, bits in _tainted(cluster, pod, everything & ~answers.usable.tolerated).items():
        yield RefusalCause("taint", text, text, 0), bits
    yield RefusalCause("excluded", "", obstacles.EXCLUDED.text, 0), everything & ~answers.usable.fits
    for text, bits in _full(cluster, pod, everything & ~state.room(kind).fits).items():
        yield RefusalCause("resource", text, text, 0), bits
    for bits, obstacle in cluster.volumes.of(pod.record).refusals:
        yield RefusalCause("volume", obstacle.text, obstacle.text, 0), bits
    for constraint, counted, bits in zip(kind.hard, answers.hard, state.constrained(kind, answers), strict=True):
        text = _constraint_text(cluster, pod, constraint, counted)
        yield RefusalCause("spread", constraint.topology_key, text, 0), bits
    unattracted = state.unattracted(kind)
    yield RefusalCause("affinity", "own", AFFINITY_WORDS[AffinityAnswer.NO_AFFINITY], 0), unattracted
    text = AFFINITY_WORDS[AffinityAnswer.ANTI_AFFINITY if kind.anti_affinity else AffinityAnswer.EXISTING_ANTI_AFFINITY]
    yield RefusalCause("affinity", "anti", text, 0), state.repelled(kind) & ~unattracted


def _tainted(cluster: SimulatedCluster, pod: SimulatedPod, refused: int) -> Mapping[str, int]:
    """Map each taint that is not tolerated, in words, to the nodes that have it first."""
    by_taint: dict[str, int] = {}
    comparison = cluster.world.behaviour.toleration_comparison
    tolerations = pod.kind.pod_class.placement.tolerations
    for number in ascending(refused):
        node = cluster.table.sets.nodes[number]
        taint = taints.find_untolerated(node.spec.taints, tolerations, comparison_operators=comparison)
        if taint is not None:
            text = obstacles.tainted(taint).text
            by_taint[text] = by_taint.get(text, 0) | 1 << number
    return by_taint


def _full(cluster: SimulatedCluster, pod: SimulatedPod, refused: int) -> Mapping[str, int]:
    """Map the resources that nodes lack, in the scheduler's words, to these nodes."""
    by_text: dict[str, int] = {}
    requests = dict(pod.kind.requests)
    for number in ascending(refused):
        lacking = resources.fits(requests, cluster.table.allocatable[number] or {}, cluster.state.used[number])
        text = ", ".join(lacking)
        by_text[text] = by_text.get(text, 0) | 1 << number
    return by_text


def _constraint_text(
    cluster: SimulatedCluster, pod: SimulatedPod, constraint: Constraint, counted: CountedNodes
) -> str:
    """Return why a constraint allows no more pods in a domain."""
    key = constraint.topology_key
    tally = cluster.state.spread(pod.kind, constraint, counted)

    name = f"their constraint on {in_domain(key, '').split()[-1]} (maxSkew {constraint.max_skew})"
    if counted.domains < constraint.min_domains:
        return f"{name} has fewer domains than minDomains ({counted.domains} of {constraint.min_domains})"
    least = minimum(constraint, counted.domains, tally)
    low = _lowest_values(counted, tally, least)
    if not low:
        return f"{name} allows no more"
    has = "has" if len(low) == 1 else "have"
    number = plural(least, "pod") if least else "none"
    return f"{name} allows no more, because {domains(key, low)} {has} {number} and no node there takes one"


def _lowest(cluster: SimulatedCluster, pod: SimulatedPod, key: str) -> tuple[str, tuple[str, ...]]:
    answers = cluster.table.answers(pod.kind)
    for constraint, counted in zip(pod.kind.hard, answers.hard, strict=True):
        if constraint.topology_key == key:
            tally = cluster.state.spread(pod.kind, constraint, counted)
            return key, tuple(_lowest_values(counted, tally, minimum(constraint, counted.domains, tally)))
    return "", ()


def _lowest_values(counted: CountedNodes, tally: Tally, least: int) -> list[str]:
    """Return the eligible domains with the fewest pods."""
    values = {value for value in counted.values if value is not None}
    return sorted(value for value in values if tally.counts.get(value, 0) == least)
