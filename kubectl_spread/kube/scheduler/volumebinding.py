"""Claims that are not bound: on which nodes is there a volume for them, or would one be made?

Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/volumebinding/binder.go, GetPodVolumeClaims, FindPodVolumes,
findMatchingVolumes and checkVolumeProvisions, and staging/src/k8s.io/component-helpers/storage/volume/pv_helpers.go,
FindMatchingVolume.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import reduce
from itertools import combinations

import msgspec

from kubectl_spread.kube.api.labels import ascending, matches
from kubectl_spread.kube.api.quantity import thousandths
from kubectl_spread.kube.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kubectl_spread.kube.scheduler.podtopologyspread.domains import NodeLabels
from kubectl_spread.kube.scheduler.volumes import ClaimedVolumes, Unresolved, allowed_by_affinity, node_selector


class UnboundClaim(msgspec.Struct, frozen=True, eq=False):
    """A claim that is not bound.

    Attributes:
        name: Its namespace and name.
        claim: The claim, or the template that it is created from.
        created: Whether it does not exist yet.
    """

    name: tuple[str, str]
    claim: PersistentVolumeClaim
    created: bool


class _Choice(msgspec.Struct, frozen=True, eq=False):
    """The volumes that a claim can be bound to, the first of which the scheduler prefers, and where one is made."""

    name: tuple[str, str]
    storage_class: str
    candidates: Sequence[tuple[str, int]]
    made: int

    @property
    def existing(self) -> int:
        return reduce(int.__or__, (nodes for _, nodes in self.candidates), 0)


class Bindable(msgspec.Struct, frozen=True, eq=False):
    """What the claims of a pod that are not bound say about nodes.

    Attributes:
        nodes: The nodes on which all of them can be bound, as a bitmap.
        waiting: The name of one that has to be bound before the scheduler looks for a node; "" for none.
        unknown: Whether other nodes, or fewer, may be possible.
        choices: How each can be bound.
    """

    nodes: int
    waiting: str = ""
    unknown: bool = False
    choices: tuple[_Choice, ...] = ()

    @property
    def binds(self) -> bool:
        """Whether claims of the pod are bound when it is placed."""
        return bool(self.choices)


class VolumeBinder:
    """Answers for the claims of pods, by the volumes and classes that were read."""

    def __init__(self, volumes: ClaimedVolumes, nodes: NodeLabels) -> None:
        """Answer for some nodes."""
        self._volumes, self._nodes = volumes, nodes
        self._free_for: dict[tuple[str, bytes], Sequence[tuple[str, int]]] = {}

    def bindable(self, claims: Sequence[UnboundClaim], taken: Collection[str] = ()) -> Bindable:
        """Return on which nodes the claims of one pod can be bound.

        Args:
            claims: The claims of the pod that are not bound.
            taken: The names of volumes that other claims have by then.
        """
        choices = list[_Choice]()
        unknown = False
        for each in sorted(claims, key=lambda each: _size(each.claim.size) or 0):
            storage_class = self._volumes.class_of(each.claim, created=each.created)
            if isinstance(storage_class, Unresolved) or _size(each.claim.size) is None:
                unknown = True
            elif storage_class is not None and storage_class.waits_for_pod:
                choice = self._choice(each, storage_class, taken)
                unknown |= bool(choice.made) and not self._volumes.knows_room_for(storage_class)
                choices.append(choice)
            elif self._is_bound_first(each, storage_class, taken):
                unknown = True
            else:
                return Bindable(self._nodes.everything, waiting=each.name[1])
        return Bindable(_nodes(choices, self._nodes.everything), unknown=unknown, choices=tuple(choices))

    def bound(self, bindable: Bindable, number: int) -> dict[tuple[str, str], PersistentVolume | Unresolved]:
        """Map claims to the volumes that they are bound to on the node with a number."""
        chosen = _chosen(bindable.choices, number) or {}
        labels = self._nodes.labels(number)
        return {
            choice.name: self._volumes.named(chosen[choice.name])
            if choice.name in chosen
            else self._volumes.made(choice.storage_class, labels)
            for choice in bindable.choices
        }

    def _choice(self, each: UnboundClaim, storage_class: StorageClass, taken: Collection[str]) -> _Choice:
        made, name = self._made(storage_class), storage_class.metadata.name
        if node := each.claim.selected_node:
            return _Choice(each.name, name, (), made & self._nodes.named(node))
        return _Choice(each.name, name, tuple(self._candidates(each, name, taken)), made)

    def _is_bound_first(self, each: UnboundClaim, storage_class: StorageClass | None, taken: Collection[str]) -> bool:
        """Tell whether a claim that does not exist yet may be bound as soon as it does, to a volume in any place."""
        if not each.created:
            return False
        if storage_class is not None and storage_class.makes_volumes:
            return True
        return any(self._candidates(each, "" if storage_class is None else storage_class.metadata.name, taken))

    def _made(self, storage_class: StorageClass) -> int:
        """Return the nodes for which a class makes volumes.

        Source: kubernetes v1.37.1 staging/src/k8s.io/component-helpers/scheduling/corev1/helpers.go,
        MatchTopologySelectorTerms.
        """
        nodes = self._nodes
        if not storage_class.makes_volumes:
            return 0
        if not storage_class.allowed_topologies:
            return nodes.everything
        bits = 0
        for term in storage_class.allowed_topologies:
            of_term = nodes.everything if term.match_label_expressions else 0
            for expression in term.match_label_expressions:
                of_term &= nodes.with_value(expression.key, expression.values)
            bits |= of_term
        return bits

    def _candidates(self, each: UnboundClaim, storage_class: str, taken: Collection[str]) -> Iterator[tuple[str, int]]:
        """Yield the volumes that a claim can be bound to, and the nodes that reach each, the smallest first."""
        reserved = [volume for volume in self._volumes.reserved(each.name) if _fits(volume, each.claim)]
        candidates = self._reached(reserved) if reserved else self._free(each.claim, storage_class)
        return ((name, nodes) for name, nodes in candidates if name not in taken)

    def _free(self, claim: PersistentVolumeClaim, storage_class: str) -> Sequence[tuple[str, int]]:
        """Return the volumes for any claim that asks for the same."""
        key = (storage_class, msgspec.json.encode(claim.spec))
        if key not in self._free_for:
            free = self._volumes.free(storage_class)
            fitting = [volume for volume in free if _fits(volume, claim) and _is_for(volume, claim)]
            fitting.sort(key=lambda volume: (_capacity(volume), volume.metadata.name))
            self._free_for[key] = self._reached(fitting)
        return self._free_for[key]

    def _reached(self, volumes: Iterable[PersistentVolume]) -> Sequence[tuple[str, int]]:
        """Return the names of volumes, each with the nodes that reach it."""
        nodes = self._nodes
        return [(volume.metadata.name, allowed_by_affinity(node_selector(volume), nodes)) for volume in volumes]


def _fits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Tell whether a volume is large enough for a claim."""
    fits = volume.spec.volume_mode == claim.spec.volume_mode and volume.metadata.deletion_timestamp is None
    return fits and _capacity(volume) >= (_size(claim.size) or 0)


def _is_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Tell whether a claim selects a volume, which may be used in all ways that the claim asks for."""
    selector = claim.spec.selector
    selects = selector is None or matches(selector, volume.metadata.labels)
    return selects and set(claim.spec.access_modes) <= set(volume.spec.access_modes)


def _nodes(choices: Sequence[_Choice], everything: int) -> int:
    """Return the nodes on which all claims can be bound at once."""
    bits = reduce(int.__and__, (choice.existing | choice.made for choice in choices), everything)
    names = [{name for name, _ in choice.candidates} for choice in choices]
    if all(names_of.isdisjoint(others) for names_of, others in combinations(names, 2)):
        return bits
    for number in ascending(bits):
        if _chosen(choices, number) is None:
            bits ^= 1 << number
    return bits


def _chosen(choices: Sequence[_Choice], number: int) -> dict[tuple[str, str], str] | None:
    """Map the claims that are bound to existing volumes on a node to these; None where not all can be bound."""
    chosen: dict[tuple[str, str], str] = {}
    for choice in choices:
        free = (name for name, bits in choice.candidates if bits >> number & 1 and name not in chosen.values())
        volume = next(free, None)
        if volume is not None:
            chosen[choice.name] = volume
        elif not choice.made >> number & 1:
            return None
    return chosen


def _capacity(volume: PersistentVolume) -> int:
    return _size(volume.spec.capacity.get("storage", "0")) or 0


def _size(text: str) -> int | None:
    """Return a quantity in thousandths; None where it is not one."""
    try:
        return thousandths(text)
    except ValueError:
        return None
