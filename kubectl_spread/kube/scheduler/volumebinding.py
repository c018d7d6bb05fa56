"""Claims that are not bound: on which nodes is there a volume for them, or would one be made?

Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/volumebinding/binder.go, GetPodVolumeClaims, FindPodVolumes,
findMatchingVolumes and checkVolumeProvisions, and staging/src/k8s.io/component-helpers/storage/volume/pv_helpers.go,
FindMatchingVolume.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import reduce
from itertools import combinations
from typing import Final

import msgspec

from kubectl_spread.kube.api.labels import ascending, matches
from kubectl_spread.kube.api.quantity import thousandths
from kubectl_spread.kube.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kubectl_spread.kube.scheduler.podtopologyspread.domains import NodeLabels
from kubectl_spread.kube.scheduler.volumes import ClaimedVolumes, Unresolved, allowed_by_affinity, node_selector

_AVAILABLE: Final = "Available"


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
    def takes_volumes(self) -> bool:
        """Whether a pod may take one of the volumes that exist from others."""
        return any(choice.candidates for choice in self.choices)

    def chosen(self, number: int) -> dict[tuple[str, str], str]:
        """Map claims to the volumes that they are bound to on the node with a number."""
        return _chosen(self.choices, number) or {}


def bindable(
    claims: Sequence[UnboundClaim], volumes: ClaimedVolumes, nodes: NodeLabels, taken: Collection[str] = ()
) -> Bindable:
    """Return on which nodes the claims of one pod can be bound.

    Args:
        claims: The claims of the pod that are not bound.
        volumes: What was read.
        nodes: The nodes.
        taken: The names of volumes that other claims have by then.
    """
    choices = list[_Choice]()
    unknown = False
    for each in sorted(claims, key=lambda each: _size(each.claim.size) or 0):
        storage_class = volumes.class_of(each.claim, created=each.created)
        if isinstance(storage_class, Unresolved) or _size(each.claim.size) is None:
            unknown = True
            continue
        if storage_class is None or not storage_class.waits_for_pod:
            if _is_bound_first(each, storage_class, volumes, nodes, taken):
                unknown = True
                continue
            return Bindable(nodes.everything, waiting=each.name[1])
        made = _made(storage_class, nodes)
        existing = tuple(_candidates(each, storage_class, volumes, nodes, taken))
        if node := each.claim.selected_node:
            made, existing = made & nodes.named(node), ()
        unknown |= bool(made) and not volumes.knows_room_for(storage_class)
        choices.append(_Choice(each.name, existing, made))
    return Bindable(_nodes(choices, nodes), unknown=unknown, choices=tuple(choices))


def _is_bound_first(
    each: UnboundClaim,
    storage_class: StorageClass | None,
    volumes: ClaimedVolumes,
    nodes: NodeLabels,
    taken: Collection[str],
) -> bool:
    """Tell whether a claim that does not exist yet may be bound as soon as it does, to a volume in any place."""
    if not each.created:
        return False
    makes = storage_class is not None and storage_class.makes_volumes
    return makes or any(_candidates(each, storage_class, volumes, nodes, taken))


def _made(storage_class: StorageClass, nodes: NodeLabels) -> int:
    """Return the nodes for which a class makes volumes.

    Source: kubernetes v1.37.1 staging/src/k8s.io/component-helpers/scheduling/corev1/helpers.go,
    MatchTopologySelectorTerms.
    """
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


def _candidates(
    each: UnboundClaim,
    storage_class: StorageClass | None,
    volumes: ClaimedVolumes,
    nodes: NodeLabels,
    taken: Collection[str],
) -> Iterator[tuple[str, int]]:
    """Yield the volumes that a claim can be bound to, and the nodes that reach each, the smallest first."""
    fitting = [volume for volume in volumes.volumes if volume.metadata.name not in taken and _fits(volume, each)]
    reserved = [volume for volume in fitting if volume.spec.claim_ref is not None]
    name = "" if storage_class is None else storage_class.metadata.name
    free = (volume for volume in fitting if _is_free(volume, each.claim, name))
    for volume in reserved or sorted(free, key=lambda each: (_capacity(each), each.metadata.name)):
        yield volume.metadata.name, allowed_by_affinity(node_selector(volume), nodes)


def _fits(volume: PersistentVolume, each: UnboundClaim) -> bool:
    """Tell whether a volume is large enough for a claim, and reserved for no other."""
    spec, reference = volume.spec, volume.spec.claim_ref
    if reference is not None and (reference.namespace, reference.name) != each.name:
        return False
    fits = spec.volume_mode == each.claim.spec.volume_mode and volume.metadata.deletion_timestamp is None
    return fits and _capacity(volume) >= (_size(each.claim.size) or 0)


def _is_free(volume: PersistentVolume, claim: PersistentVolumeClaim, storage_class: str) -> bool:
    """Tell whether a volume that is reserved for no claim can be bound to one."""
    selector = claim.spec.selector
    return (
        volume.status.phase == _AVAILABLE
        and volume.storage_class == storage_class
        and (selector is None or matches(selector, volume.metadata.labels))
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
    )


def _nodes(choices: Sequence[_Choice], nodes: NodeLabels) -> int:
    """Return the nodes on which all claims can be bound at once."""
    bits = reduce(int.__and__, (choice.existing | choice.made for choice in choices), nodes.everything)
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
