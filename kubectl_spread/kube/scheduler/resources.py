"""Resources: what does a pod request, and does a node still have it?

Amounts are whole numbers, rounded up, as the scheduler has them.

Source: kubernetes v1.37.1 staging/src/k8s.io/component-helpers/resource/helpers.go, PodRequests,
pkg/scheduler/framework/types.go, Resource, and pkg/scheduler/framework/plugins/noderesources/fit.go, fitsRequest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, TypeAlias

from kubectl_spread.kube.api import content, field
from kubectl_spread.kube.api.field import POD_SPEC, FieldError, FieldPath, MapKey
from kubectl_spread.kube.api.quantity import Quantity, divide_up, thousandths
from kubectl_spread.kube.api.types import Node, PodSpec, ResourceRequirements

ResourceList: TypeAlias = Mapping[str, Quantity]
"""Maps the name of a resource to a quantity of it, as written in the API."""

Amounts: TypeAlias = Mapping[str, int]
"""Maps the name of a resource to an amount: cpu in thousandths, everything else in units (bytes, pods, devices)."""


NOT_NEGATIVE: Final = "must be greater than or equal to 0"
"""The API server's error on a negative number."""

POD: Final = "pods"
"""The resource of which every pod takes one."""

_CPU: Final = "cpu"
_MEMORY: Final = "memory"
_ORDER: Final = {POD: 0, _CPU: 1, _MEMORY: 2, "ephemeral-storage": 3}
"""The resources that every node has, in the order in which the scheduler names them."""

_HUGE_PAGES: Final = "hugepages-"
_NATIVE: Final = "kubernetes.io/"
_QUOTA: Final = "requests."
_ALWAYS: Final = "Always"
_THOUSAND: Final = 1000
_ALLOCATABLE: Final = FieldPath(("status", "allocatable"))


_NOTHING: Final[Amounts] = {}


def pod_requests(spec: PodSpec, missing: Amounts = _NOTHING) -> dict[str, int]:
    """Return the requests of a pod, with one of ``pods``.

    A limit stands for a missing request, as in the API server's defaults, so that a manifest requests as much as its
    pods. A resize in progress, for which the scheduler takes the larger of two amounts, is ignored.

    Args:
        spec: The spec of the pod.
        missing: What a container is assumed to request of a resource that it does not name, in thousandths.

    Raises:
        ValueError: A quantity is not valid.

    Source: kubernetes v1.37.1 staging/src/k8s.io/component-helpers/resource/helpers.go, PodRequests, and
    pkg/apis/core/v1/defaults.go, SetDefaults_Pod.
    """
    amounts = _of_containers(spec, missing)
    if spec.resources is not None:
        amounts |= _of_pod(spec.resources, amounts)
    if spec.overhead:
        add(amounts, _numbers(spec.overhead))
    return {**_amounts(amounts), POD: 1}


def _of_containers(spec: PodSpec, missing: Amounts) -> dict[str, int]:
    """Return the requests of the containers in thousandths, when they are largest: at the start or later.

    Source: kubernetes v1.37.1 staging/src/k8s.io/component-helpers/resource/helpers.go, AggregateContainerRequests.
    """
    amounts: dict[str, int] = {}
    for container in spec.containers:
        add(amounts, {**missing, **_requests(container.resources)})
    sidecars: dict[str, int] = {}
    at_start: dict[str, int] = {}
    for container in spec.init_containers:
        requests = {**missing, **_requests(container.resources)}
        if container.restart_policy == _ALWAYS:
            add(amounts, requests)
            add(sidecars, requests)
            _raise(at_start, sidecars)
        else:
            add(requests, sidecars)
            _raise(at_start, requests)
    _raise(amounts, at_start)
    return amounts


def _of_pod(resources: ResourceRequirements, of_containers: Amounts) -> dict[str, int]:
    """Return the requests of the pod itself in thousandths, which replace those of its containers.

    Source: kubernetes v1.37.1 pkg/api/pod/util.go, defaultPodLevelRequests.
    """
    requests, limits = _numbers(resources.requests), _numbers(resources.limits)
    defaults = {name: limit for name, limit in limits.items() if _is_huge(name) or name not in of_containers}
    return {name: amount for name, amount in (defaults | requests).items() if name in {_CPU, _MEMORY} or _is_huge(name)}


def has_own_requests(spec: PodSpec) -> bool:
    """Tell whether a pod has requests of its own, next to those of its containers.

    Source: kubernetes v1.37.1 staging/src/k8s.io/component-helpers/resource/helpers.go, IsPodLevelRequestsSet.
    """
    return spec.resources is not None and bool(_of_pod(spec.resources, {}))


def _requests(resources: ResourceRequirements) -> dict[str, int]:
    if not resources.limits:
        return _numbers(resources.requests)
    return _numbers({**resources.limits, **resources.requests})


def _numbers(listed: ResourceList) -> dict[str, int]:
    """Return every quantity in thousandths.

    Raises:
        ValueError: A quantity is not valid, or negative; the message names its resource.
    """
    for name, text in listed.items():
        if error := quantity_error(text, FieldPath((name,))):
            raise ValueError(error.message)
    return {name: thousandths(text) for name, text in listed.items()}


def unreadable_requests(spec: PodSpec, path: FieldPath = POD_SPEC) -> Iterator[FieldError]:
    """Yield the errors on the quantities of a pod spec that the API server would refuse: its requests are unknown."""
    for name, containers in (("initContainers", spec.init_containers), ("containers", spec.containers)):
        for index, container in enumerate(containers):
            yield from _unreadable(container.resources, path / name / index / "resources")
    yield from _unreadable(spec.resources or ResourceRequirements(), path / "resources")
    yield from _errors(spec.overhead, path / "overhead")


def _unreadable(resources: ResourceRequirements, path: FieldPath) -> Iterator[FieldError]:
    yield from _errors(resources.limits, path / "limits")
    yield from _errors(resources.requests, path / "requests")


def unreadable_amounts(node: Node) -> Iterator[FieldError]:
    """Yield the reasons why it is unknown how much the pods of a node may request together."""
    name, listed = (
        ("allocatable", node.status.allocatable) if node.status.allocatable else ("capacity", node.status.capacity)
    )
    if not listed:
        yield FieldError(_ALLOCATABLE, f"{_ALLOCATABLE} is missing")
    yield from _errors(listed, FieldPath(("status", name)))


def _errors(listed: ResourceList, path: FieldPath) -> Iterator[FieldError]:
    return filter(None, (quantity_error(text, path / MapKey(name)) for name, text in listed.items()))


def add(amounts: dict[str, int], requests: Amounts) -> None:
    """Add ``requests`` to ``amounts``."""
    for name, amount in requests.items():
        amounts[name] = amounts.get(name, 0) + amount


def _raise(amounts: dict[str, int], least: Amounts) -> None:
    for name, amount in least.items():
        amounts[name] = max(amounts.get(name, amount), amount)


def allocatable(listed: ResourceList) -> dict[str, int]:
    """Return the amounts of a node that its pods may request together.

    Args:
        listed: The node's ``status.allocatable``, or its ``status.capacity`` where that is missing.

    Raises:
        ValueError: A quantity is not valid.

    Source: kubernetes v1.37.1 pkg/scheduler/framework/types.go, Resource.Add.
    """
    return _amounts(_numbers(listed))


def allocatable_of(node: Node) -> Amounts | None:
    """Return the amounts that the pods of a node may request together; None where they are unknown."""
    listed = node.status.allocatable or node.status.capacity
    try:
        return allocatable(listed) if listed else None
    except ValueError:
        return None


def _amounts(numbers: Mapping[str, int]) -> dict[str, int]:
    """Return the amounts of the resources that the scheduler counts, from thousandths."""
    return {
        name: number if name == _CPU else divide_up(number, _THOUSAND)
        for name, number in numbers.items()
        if name in _ORDER or _is_scalar(name)
    }


@lru_cache(maxsize=4096)
def _is_scalar(name: str) -> bool:
    """Tell whether the scheduler counts a resource that not every node has.

    Source: kubernetes v1.37.1 pkg/scheduler/util/utils.go, IsScalarResourceName.
    """
    if _is_huge(name) or _NATIVE in name or name.startswith("attachable-volumes-"):
        return True
    extended = "/" in name and not name.startswith(_QUOTA)
    return extended and not any(content.label_key_problems(_QUOTA + name))


def _is_huge(name: str) -> bool:
    return name.startswith(_HUGE_PAGES)


def fits(requests: Amounts, allocatable: Amounts, requested: Amounts) -> tuple[str, ...]:
    """Return the scheduler's reasons why a node has no room for a pod; none if the pod fits.

    Args:
        requests: The requests of the pod.
        allocatable: The allocatable amounts of the node; a missing resource is 0.
        requested: The sum of the requests of its pods.

    Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/noderesources/fit.go, fitsRequest.
    """
    missing = [
        name
        for name, amount in requests.items()
        if amount > 0 and amount > allocatable.get(name, 0) - requested.get(name, 0)
    ]
    missing.sort(key=lambda name: (_ORDER.get(name, len(_ORDER)), name))
    return tuple("Too many pods" if name == POD else f"Insufficient {name}" for name in missing)


def quantity_error(text: str, path: FieldPath) -> FieldError | None:
    """Return the error of the API server on an amount of a resource; None if it accepts the amount.

    Source: kubernetes v1.37.1 pkg/apis/core/validation/validation.go, ValidateResourceQuantityValue.
    """
    try:
        negative = thousandths(text) < 0
    except ValueError as error:
        return FieldError(path, f"{path}: {error}")
    return field.invalid(path, text, NOT_NEGATIVE) if negative else None
