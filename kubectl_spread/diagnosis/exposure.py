"""Exposure: which workloads does the loss of one domain stop, and could a node of another domain take one of the pods?

The running pods of each zone are counted too. Nothing is simulated: the question is whether one pod could move, by
everything that ``explain`` asks of a node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from itertools import tee
from typing import Final, NamedTuple

import msgspec

from kubectl_spread.audit.evaluation import obstacles
from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.audit.snapshot.records import PodClass, PodRecord
from kubectl_spread.audit.snapshot.templates import Template
from kubectl_spread.engine.node_answers import NodeAnswers, as_obstacle, departures
from kubectl_spread.kube.api.labels import HOSTNAME, ZONE
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import PodSpec
from kubectl_spread.kube.custom import base_kind
from kubectl_spread.memoization import memoized

_NO_REPLICAS: Final = frozenset({"CronJob", "DaemonSet", "Job", "JobSet", "Pod", "RayJob"})
"""Kinds whose pods do not stand in for each other."""
_SEVERAL: Final = 2
_QUORUM: Final = 3
"""The least number of replicas of which one may be lost without the majority."""
_HAS_MAJORITY: Final = "StatefulSet"


class Replicas(msgspec.Struct, frozen=True, eq=False):
    """A workload whose pods stand in for each other.

    Attributes:
        workload: The root owner.
        pods: The pods that are not terminating, by name; those of older revisions too.
        templates: The pod templates.
    """

    workload: ObjectRef
    pods: tuple[PodRecord, ...]
    templates: tuple[Template, ...]


def replicas(audit: Audit) -> Iterator[Replicas]:
    """Yield the workloads with replicas that are requested, by kind and name.

    DaemonSets, Jobs, bare pods and pods that run to completion are left out, under any root owner. So are workloads of
    which only some pods may have been read, because a selector may leave out others.
    """
    pods = _pods(audit)
    templates: dict[ObjectRef, list[Template]] = {}
    for template in audit.templates:
        owners = audit.snapshot.template_owners(template)
        refs = (template.holder, template.workload, *(owner.ref for owner in owners))
        kinds = {base_kind(ref.kind) for ref in refs}
        if _NO_REPLICAS.isdisjoint(kinds) and _keeps_running(template.spec) and not audit.snapshot.scope.fields:
            templates.setdefault(template.workload, []).append(template)
    for workload in sorted(pods.keys() | templates.keys()):
        of_workload = sorted(pods.get(workload, ()), key=lambda pod: pod.name)
        yield Replicas(workload, tuple(of_workload), tuple(templates.get(workload, ())))


def _pods(audit: Audit) -> dict[ObjectRef, list[PodRecord]]:
    """Return the pods of each requested workload that are not terminating."""
    snapshot, by_class = audit.snapshot, dict[PodClass, list[PodRecord]]()
    for pod in audit.everyone:
        if not pod.terminating and pod.pod_class.owner is not None:
            by_class.setdefault(pod.pod_class, []).append(pod)
    requested = {snapshot.workload(pod) for pod in audit.pods} if snapshot.scope.targets else None
    pods: dict[ObjectRef, list[PodRecord]] = {}
    for pod_class, of_class in by_class.items():
        chain = snapshot.ownership.chain(pod_class.namespace, pod_class.owner)
        workload = chain[-1].ref
        if requested is not None and workload not in requested:
            continue
        kinds = {base_kind(owner.ref.kind) for owner in chain}
        if (
            _NO_REPLICAS.isdisjoint(kinds)
            and _keeps_running(pod_class.spec)
            and not snapshot.may_lack_siblings(of_class[0])
        ):
            pods.setdefault(workload, []).extend(of_class)
    return pods


def _keeps_running(spec: PodSpec) -> bool:
    return spec.restart_policy in ("", "Always")


class Exposure(msgspec.Struct, frozen=True):
    """Running pods of one workload in one domain, all of them or more than half.

    Attributes:
        topology_key: The key of the domain.
        domain: Its value; for ``kubernetes.io/hostname`` the name of the node.
        pods: The running pods in the domain, by name.
        running: The number of running pods of the workload.
        node: A node of another domain that could take one of the pods; "" for none.
        kept_away: Why no node of another domain takes one, in words; "" where there is no other domain.
        pinned_by: The fields of the pod template that exclude all other domains, in words; "" for none.
    """

    topology_key: str
    domain: str
    pods: tuple[PodRecord, ...]
    running: int
    node: str
    kept_away: str
    pinned_by: str = ""


class _Place(NamedTuple):
    """A domain, and a node of it that would take a pod."""

    domain: str
    node: str


class _Obstructed:
    """The nodes with an obstacle for pods of a kind, and the others, which constraints and pod affinity may refuse.

    The nodes of a large cluster are asked one after the other, as far as questions need them.
    """

    def __init__(self, answers: NodeAnswers, value_of: Mapping[str, str]) -> None:
        self._answers = answers
        self._value_of = value_of
        self._others = tee((place for place in value_of.items() if answers.obstacle(place[0]) is None), 1)[0]

    def unobstructed(self) -> Iterator[tuple[str, str]]:
        """Yield each of the others and its domain."""
        return copy(self._others)

    @memoized
    def outside(self, domain: str) -> Counter[str]:
        """Return the number of nodes of other domains with each obstacle, in words."""
        numbers = self._numbers.copy()
        numbers.subtract(self._texts[node] for node in self._nodes_of[domain] if node in self._texts)
        return +numbers

    @cached_property
    def _texts(self) -> Mapping[str, str]:
        obstacles_of = ((node, self._answers.obstacle(node)) for node in self._value_of)
        return {node: obstacle.text for node, obstacle in obstacles_of if obstacle is not None}

    @cached_property
    def _numbers(self) -> Counter[str]:
        return Counter(self._texts.values())

    @cached_property
    def _nodes_of(self) -> Mapping[str, Sequence[str]]:
        nodes_of: dict[str, list[str]] = {}
        for node, value in self._value_of.items():
            nodes_of.setdefault(value, []).append(node)
        return nodes_of


class _Openings:
    """The nodes that would take a pod after one has left, found one after the other as far as questions need them."""

    def __init__(self, answers: NodeAnswers, obstructed: _Obstructed) -> None:
        self._answers = answers
        self._obstructed = obstructed
        self._places = tee(self._find(), 1)[0]

    def outside(self, domain: str) -> Iterator[_Place]:
        """Yield the first node of each other domain that would take the pod."""
        return (place for place in copy(self._places) if place.domain != domain)

    def _find(self) -> Iterator[_Place]:
        values: set[str] = set()
        for node, value in self._obstructed.unobstructed():
            if value not in values and not self._refusal(node):
                values.add(value)
                yield _Place(value, node)

    def kept_away(self, domain: str) -> str:
        """Return why no node of another domain takes the pod, in words; there must be no place outside ``domain``."""
        refusals = Counter(self._refusal(node) for node, value in self._obstructed.unobstructed() if value != domain)
        return obstacles.counted(self._obstructed.outside(domain) + refusals)

    @memoized
    def _refusal(self, node: str) -> str:
        """Return why a node does not take the pod, or what is not known of that, in words; "" if it would."""
        refusal = self._answers.first_refusal(node)
        return self._answers.unknown if refusal is None else as_obstacle(refusal).text


class Exposures:
    """The exposure of workloads to the loss of one domain. Equal questions about nodes are answered once.

    Attributes:
        keys: The topology keys that are checked, those with the most domains first.
    """

    def __init__(self, audit: Audit) -> None:
        """Check by the keys that the command line names."""
        self._audit = audit
        self._openings: dict[object, _Openings] = {}
        self._obstructed: dict[object, _Obstructed] = {}
        self._domains = {key: self._value_of(key) for key in audit.context.extra_checks.exposing_keys}
        self.keys = tuple(sorted(self._domains, key=lambda key: (key != HOSTNAME, -audit.nodes.number_of_values(key))))

    def _has_several(self, key: str) -> bool:
        nodes = self._audit.nodes
        return (len(nodes.nodes) if key == HOSTNAME else nodes.number_of_values(key)) > 1

    def _value_of(self, key: str) -> Mapping[str, str]:
        """Return the domain of each node that has one; each node is a domain of ``kubernetes.io/hostname``."""
        nodes = self._audit.nodes
        return nodes.own_names if key == HOSTNAME else nodes.value_of(key)

    def of(self, replicas: Replicas, key: str) -> Exposure | None:
        """Return the exposure of a workload with all of its running pods in one domain; None: they are in several.

        A cluster of one node has none, because nothing could be better there.
        """
        if len(self._audit.nodes.nodes) < _SEVERAL:
            return None
        running, domains = self._running(replicas), self._domains.get(key, {})
        values = {domains.get(pod.node) for pod in running}
        domain = next(iter(values), None)
        if len(running) < _SEVERAL or len(values) > 1 or domain is None:
            return None
        place, kept_away = None, ""
        if self._has_several(key):
            kept_away = self._unknown(replicas, running)
            for openings in () if kept_away else self._openings_of(running, key):
                place = next(openings.outside(domain), None)
                if place is not None:
                    break
                kept_away = kept_away or openings.kept_away(domain)
        return Exposure(
            topology_key=key,
            domain=domain,
            pods=running,
            running=len(running),
            node=place.node if place else "",
            kept_away="" if place else kept_away,
            pinned_by="" if place or not kept_away else self._pinned_by(replicas, running, key),
        )

    def is_pinned(self, replicas: Replicas, key: str) -> bool:
        """Tell whether the pod template keeps all running pods of a workload with several in one domain."""
        running = self._running(replicas) if key in self._domains and self._has_several(key) else ()
        domains = {self._domains[key].get(pod.node) for pod in running}
        if len(running) < _SEVERAL or len(domains) > 1 or None in domains:
            return False
        return bool(self._pinned_by(replicas, running, key))

    def _pinned_by(self, replicas: Replicas, running: Sequence[PodRecord], key: str) -> str:
        """Return the fields of the pod template that exclude each node of another domain, unless volumes do so too."""
        if any(template.spec.node_name for template in replicas.templates):
            return "nodeName"
        domains = self._domains[key]
        others = [node for node, domain in domains.items() if domain != domains[running[0].node]]
        placements = {pod.pod_class: self._audit.nodes.usable(pod.pod_class.placement) for pod in running}
        if any(usable[node].fits for usable in placements.values() for node in others):
            return ""
        volumes = dict.fromkeys(self._audit.volumes.of(pod) for pod in running)
        may_leave = any(of_pod.obstacle(node) is None for of_pod in volumes for node in others)
        return "nodeSelector or node affinity" if may_leave else ""

    def majority(self, replicas: Replicas) -> Exposure | None:
        """Return the exposure of a StatefulSet with more than half of its replicas in one zone; None: not needlessly.

        Otherwise pods could move so that no zone has more than half, one to each zone that would take one.
        """
        if replicas.workload.kind != _HAS_MAJORITY or ZONE not in self._domains:
            return None
        running, zones = self._running(replicas), self._domains[ZONE]
        counts = Counter(zones[pod.node] for pod in running if pod.node in zones)
        domain, most = max(counts.items(), key=lambda count: (count[1], count[0]), default=("", 0))
        half = len(running) // 2
        if len(running) < _QUORUM or not half < most < len(running) or self._unknown(replicas, running):
            return None
        pods = tuple(pod for pod in running if zones.get(pod.node) == domain)
        movable = [pod for pod in pods if self._audit.volumes.of(pod).allows_all]
        for openings in self._openings_of(movable, ZONE) if len(movable) >= most - half else ():
            places: list[_Place] = []
            for place in openings.outside(domain):
                if counts[place.domain] < half:
                    places.append(place)
                if len(places) >= most - half:
                    return Exposure(ZONE, domain, pods, len(running), places[0].node, "")
        return None

    def concentrated(self, replicas: Replicas) -> Sequence[PodRecord]:
        """Return the running pods of a workload if ``of`` or ``majority`` may ask where they could run; else none."""
        running = self._running(replicas)
        for key, value_of in self._domains.items() if len(running) >= _SEVERAL else ():
            counts = Counter(value_of.get(pod.node, "") for pod in running)
            most = max(counts.values())
            if most == len(running) or (key == ZONE and 2 * most > len(running)):
                return running
        return ()

    def _running(self, replicas: Replicas) -> tuple[PodRecord, ...]:
        """Return the bound pods whose nodes exist, as the scheduler counts them; none where nodes were not read."""
        if not self._audit.evaluator.lists_nodes:
            return ()
        return tuple(pod for pod in replicas.pods if pod.node in self._audit.nodes.numbers)

    def _unknown(self, replicas: Replicas, running: Iterable[PodRecord]) -> str:
        """Return why it cannot be known whether another node would take one of the pods; "" where it can."""
        if any(template.spec.node_name for template in replicas.templates):
            return "spec.nodeName in the pod template names the node"
        schedulers = {pod.pod_class.scheduler_name for pod in running if pod.pod_class.profile is None}
        return f"it is unknown how the scheduler {min(schedulers)} places pods" if schedulers else ""

    def _openings_of(self, pods: Iterable[PodRecord], key: str) -> Iterator[_Openings]:
        by_class: dict[PodClass, list[PodRecord]] = {}
        for pod in pods:
            by_class.setdefault(pod.pod_class, []).append(pod)
        for pod_class, of_class in by_class.items():
            for answers in departures([self._audit.evaluator.of(pod_class)], of_class, self._audit):
                question = (key, answers.question)
                if question not in self._openings:
                    self._openings[question] = _Openings(answers, self._obstructed_for(answers, key))
                yield self._openings[question]

    def _obstructed_for(self, answers: NodeAnswers, key: str) -> _Obstructed:
        kind = (key, self._audit.obstacles.representative(answers.pod_class), answers.volumes)
        if kind not in self._obstructed:
            self._obstructed[kind] = _Obstructed(answers, self._domains[key])
        return self._obstructed[kind]


class RunningPods(msgspec.Struct, frozen=True, gc=False):
    """The running pods of one workload whose pods stand in for each other.

    A pod runs if it is bound to a listed node, and neither finished nor terminating, as the scheduler counts it.

    Attributes:
        workload: The root owner.
        pods: The number of running pods.
        zones: The number of running pods in each zone that has any, by name; pods on nodes without a zone are left out.
        fullest_node: The number of running pods on the node with the most of them.
    """

    workload: ObjectRef
    pods: int
    zones: tuple[tuple[str, int], ...]
    fullest_node: int

    @property
    def fullest_zone(self) -> int:
        """The number of running pods in the zone with the most of them."""
        return max((pods for _, pods in self.zones), default=0)


def running_pods(audit: Audit) -> Iterator[RunningPods]:
    """Yield the running pods of each workload with replicas, by kind and name; nothing where nodes were not listed."""
    if not audit.evaluator.lists_nodes:
        return
    zone_of = audit.nodes.value_of(ZONE)
    for workload in replicas(audit):
        nodes = Counter(pod.node for pod in workload.pods if pod.node in audit.nodes.numbers)
        zones = _by_zone(((zone_of[node], pods) for node, pods in nodes.items() if node in zone_of))
        yield RunningPods(workload.workload, nodes.total(), zones, max(nodes.values(), default=0))


def _by_zone(numbers: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """Return the sum for each zone, by name."""
    zones: Counter[str] = Counter()
    for zone, pods in numbers:
        zones[zone] += pods
    return tuple(sorted(zones.items()))
