"""Siblings: workloads of which each runs in a zone of its own, and which stand in for each other together.

Vendors advise one StatefulSet a zone for Elasticsearch, Mimir or Loki, and node pools by zone need one Deployment each.
Nothing in the API joins them. Two workloads of one kind and with the same images are siblings if a disruption budget is
over both, or if their names and labels are equal but for the zone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import takewhile
from typing import Final, NamedTuple

from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.diagnosis.exposure import Exposures, replicas
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import ZONE, Labels
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.memoization import memoized

_NOT_AUTHORED: Final = frozenset(
    {
        "apps.kubernetes.io/pod-index",
        "controller-revision-hash",
        "pod-template-hash",
        "statefulset.kubernetes.io/pod-name",
        "topology.kubernetes.io/region",
        ZONE,
    }
)
"""Labels that controllers, and the binding of a pod, set."""
_ZONE: Final = re.compile(r"(^|[^a-z])(zone|az)($|[^a-z])", re.IGNORECASE)
_ENDS_WITH_ZONE: Final = re.compile(r"(^|[^a-z])(zone|az)[^a-z]?$", re.IGNORECASE)


class _Member(NamedTuple):
    """The running pods of one workload: their zones, and the labels and images that all of them have."""

    workload: ObjectRef
    zones: frozenset[str]
    labels: Labels
    images: frozenset[str]
    pod_classes: tuple[PodClass, ...]


class Sibling(NamedTuple):
    """A workload that runs in other zones than the one that was asked about."""

    workload: ObjectRef
    zones: tuple[str, ...]


class Siblings:
    """The siblings of the workloads of an audit."""

    def __init__(self, audit: Audit) -> None:
        """Look at the pods only when siblings are asked for."""
        self._audit = audit

    @memoized
    def of(self, workload: ObjectRef) -> tuple[Sibling, ...]:
        """Return the siblings of a workload with all of its running pods in one zone, by name; none of other ones."""
        members = self._members.get(workload.namespace, {})
        own = members.get(workload)
        if own is None or len(own.zones) != 1:
            return ()
        others = (other for other in members.values() if other.workload.kind == workload.kind and other is not own)
        return tuple(
            Sibling(other.workload, tuple(sorted(other.zones - own.zones)))
            for other in sorted(others)
            if other.zones - own.zones and other.images == own.images
            if self._share_a_budget(own, other) or _differ_by_zone(own, other)
        )

    def _share_a_budget(self, own: _Member, other: _Member) -> bool:
        """Tell whether a budget that does not select the whole namespace selects all pods of both."""
        pod_classes = (*own.pod_classes, *other.pod_classes)
        return any(
            not labelselectors.is_empty(budget.spec.selector)
            for budget in self._audit.snapshot.budgets.of(own.workload.namespace, own.labels)
            if budget.spec.selector is not None
            if all(labelselectors.matches(budget.spec.selector, pod_class.labels) for pod_class in pod_classes)
        )

    @cached_property
    def _members(self) -> Mapping[str, Mapping[ObjectRef, _Member]]:
        """Return the workloads with pods in zones, by namespace."""
        zone_of = self._audit.nodes.value_of(ZONE)
        zones: dict[PodClass, set[str]] = {}
        for pod in self._audit.everyone:
            if pod.node in zone_of and not pod.terminating and pod.pod_class.owner is not None:
                zones.setdefault(pod.pod_class, set()).add(zone_of[pod.node])
        pod_classes: dict[ObjectRef, list[PodClass]] = {}
        for pod_class in zones:
            chain = self._audit.snapshot.ownership.chain(pod_class.namespace, pod_class.owner)
            pod_classes.setdefault(chain[-1].ref, []).append(pod_class)
        members: dict[str, dict[ObjectRef, _Member]] = {}
        for workload, of_workload in pod_classes.items():
            members.setdefault(workload.namespace, {})[workload] = _Member(
                workload,
                frozenset().union(*(zones[pod_class] for pod_class in of_workload)),
                _common_labels(of_workload),
                frozenset(_images(of_workload)),
                tuple(of_workload),
            )
        return members


def depend_on_budgets(audit: Audit) -> bool:
    """Tell whether only a budget can tell that a workload, whose template allows one zone, has siblings in others."""
    exposures, siblings = Exposures(audit), Siblings(audit)
    return any(
        exposures.is_pinned(workload, ZONE) and not siblings.of(workload.workload) for workload in replicas(audit)
    )


def _common_labels(pod_classes: Iterable[PodClass]) -> Labels:
    first, *others = (pod_class.labels for pod_class in pod_classes)
    return {
        key: value
        for key, value in first.items()
        if key not in _NOT_AUTHORED and all(labels.get(key) == value for labels in others)
    }


def _images(pod_classes: Iterable[PodClass]) -> Iterator[str]:
    """Yield the images of containers without their tags and digests, which differ during an upgrade."""
    for pod_class in pod_classes:
        for container in pod_class.spec.containers:
            repository, _, name = container.image.partition("@")[0].rpartition("/")
            yield f"{repository}/{name.partition(':')[0]}"


def _differ_by_zone(own: _Member, other: _Member) -> bool:
    """Tell whether the names and labels of two workloads in different zones are equal but for a name of the zone."""
    if own.zones & other.zones or own.labels.keys() != other.labels.keys():
        return False
    names = own.workload.name, other.workload.name
    by_name = _difference(*names)
    zones = [(zone, other_zone) for zone in own.zones for other_zone in other.zones]
    by_zone = [_difference(*pair) for pair in zones]
    differing = [key for key, value in own.labels.items() if other.labels[key] != value]
    if len(differing) == len(own.labels):
        return False
    if not all(_difference(own.labels[key], other.labels[key]) in (by_name, *by_zone) for key in differing):
        return False
    return (
        by_name in by_zone
        or (all(by_name) and all(zone.endswith(by_name[0]) and other.endswith(by_name[1]) for zone, other in zones))
        or any(_ZONE.search(key.rpartition("/")[2]) for key in differing)
        or _ENDS_WITH_ZONE.search(names[0][: _common(*names)]) is not None
    )


def _difference(text: str, other: str) -> tuple[str, str]:
    """Return the parts of two texts between their common beginning and their common end."""
    start = _common(text, other)
    text, other = text[start:], other[start:]
    end = _common(text[::-1], other[::-1])
    return text[: len(text) - end], other[: len(other) - end]


def _common(text: str, other: str) -> int:
    """Return the number of characters with which both texts begin."""
    pairs = zip(text, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
