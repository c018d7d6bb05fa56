"""kube-apiserver's errors on a Deployment, StatefulSet or DaemonSet that is applied, next to those on its pods' terms.

Fields that no simulation reads are not validated.

Source: kubernetes v1.37.1 pkg/apis/apps/validation/validation.go, ValidateDeployment, ValidateStatefulSet,
ValidateDaemonSet and those of their updates, and pkg/apis/core/validation/validation.go,
ValidateContainerResourceRequirements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from kubectl_spread.kube.api import content, field
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.field import FieldError, FieldPath, MapKey
from kubectl_spread.kube.api.quantity import PERCENT, thousandths
from kubectl_spread.kube.api.types import PodSpec, ResourceRequirements
from kubectl_spread.kube.api.workloads import RECREATE, DaemonSet, Deployment, StatefulSet, WorkloadObject
from kubectl_spread.kube.apiserver import selector_errors
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.scheduler.resources import NOT_NEGATIVE, quantity_error

_SPEC: Final = FieldPath(("spec",))
REPLICAS: Final = _SPEC / "replicas"
_NAME: Final = FieldPath(("metadata", "name"))
_IMMUTABLE: Final = "field is immutable"
_NOT_PERCENT: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)
_HUNDRED: Final = 100


def workload_errors(
    workload: WorkloadObject, behaviour: Behaviour, stored: WorkloadObject | None = None
) -> Iterator[FieldError]:
    """Yield the errors on a workload that is created, or that replaces the stored one."""
    name = workload.metadata.name
    if not name:
        yield field.required(_NAME, "name or generateName is required")
    elif not content.is_object_name(name):
        yield field.invalid(_NAME, name, content.DNS_SUBDOMAIN_HELP)
    yield from _not_negative(REPLICAS, workload.replicas)
    yield from _selector_errors(workload, stored)
    if isinstance(workload, Deployment):
        yield from _deployment_errors(workload)
    elif isinstance(workload, StatefulSet):
        yield from _stateful_set_errors(workload, behaviour, stored)
    yield from _container_errors(workload.template.spec, _SPEC / "template" / "spec")


def _selector_errors(workload: WorkloadObject, stored: WorkloadObject | None) -> Iterator[FieldError]:
    path, selector, labels = _SPEC / "selector", workload.selector, workload.template.metadata.labels
    if selector is None and not isinstance(workload, DaemonSet):
        yield field.required(path, "")
        return
    invalid = [*selector_errors(selector, path)]
    yield from invalid
    if selector is not None and labelselectors.is_empty(selector):
        yield field.invalid(path, selector, f"empty selector is invalid for {type(workload).__name__.lower()}")
    if not invalid and not labelselectors.matches(selector, labels):
        detail = "`selector` does not match template `labels`"
        yield field.invalid(_SPEC / "template" / "metadata" / "labels", labels, detail)
    if stored is not None and stored.selector not in (None, selector):
        yield field.invalid(path, selector, _IMMUTABLE)


def _deployment_errors(deployment: Deployment) -> Iterator[FieldError]:
    path, strategy = _SPEC / "strategy", deployment.spec.strategy
    limits = strategy.rolling_update
    unavailable = path / "rollingUpdate" / "maxUnavailable"
    match strategy.type:
        case "RollingUpdate":
            yield from _amount_errors(unavailable, limits.max_unavailable, most=_HUNDRED)
            yield from _amount_errors(path / "rollingUpdate" / "maxSurge", limits.max_surge)
            if _is_zero(limits.max_unavailable) and _is_zero(limits.max_surge):
                yield field.invalid(unavailable, limits.max_unavailable, "may not be 0 when `maxSurge` is 0")
        case "Recreate":
            if (limits.max_unavailable, limits.max_surge) != (None, None):
                detail = "may not be specified when strategy `type` is 'Recreate'"
                yield field.forbidden(path / "rollingUpdate", detail)
        case _:
            yield field.unsupported(path, strategy.type, ("Recreate", "RollingUpdate"))


def _stateful_set_errors(
    stateful_set: StatefulSet, behaviour: Behaviour, stored: WorkloadObject | None
) -> Iterator[FieldError]:
    spec = stateful_set.spec
    strategy, policy = spec.update_strategy, spec.pod_management_policy
    if policy not in ("OrderedReady", "Parallel"):
        yield field.invalid(_SPEC / "podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    recreates = behaviour.recreates_stateful_sets or (isinstance(stored, StatefulSet) and stored.recreates)
    if strategy.type not in ("RollingUpdate", "OnDelete", *((RECREATE,) if recreates else ())):
        values = f"'RollingUpdate', 'OnDelete', or '{RECREATE}'" if recreates else "'RollingUpdate' or 'OnDelete'"
        yield field.invalid(_SPEC / "updateStrategy", strategy.type, f"must be {values}")
    limits, path = strategy.rolling_update, _SPEC / "updateStrategy" / "rollingUpdate"
    if strategy.type in ("OnDelete", RECREATE) and (limits.partition, limits.max_unavailable) != (None, None):
        yield field.invalid(path, limits, "only allowed for updateStrategy 'RollingUpdate'")
    yield from _not_negative(path / "partition", limits.partition)
    yield from _amount_errors(path / "maxUnavailable", limits.max_unavailable, most=_HUNDRED)
    if _is_zero(limits.max_unavailable):
        yield field.invalid(path / "maxUnavailable", limits.max_unavailable, "cannot be 0")
    yield from _not_negative(_SPEC / "ordinals" / "start", spec.ordinals.start)
    if isinstance(stored, StatefulSet):
        if policy != stored.spec.pod_management_policy:
            yield field.invalid(_SPEC / "podManagementPolicy", policy, _IMMUTABLE)
        claims = [claim.metadata for claim in spec.volume_claim_templates]
        if claims != [claim.metadata for claim in stored.spec.volume_claim_templates]:
            yield field.invalid(_SPEC / "volumeClaimTemplates", claims, _IMMUTABLE)


def _container_errors(spec: PodSpec, path: FieldPath) -> Iterator[FieldError]:
    if not spec.containers:
        yield field.required(path / "containers", "")
    for name, containers in (("initContainers", spec.init_containers), ("containers", spec.containers)):
        for index, container in enumerate(containers):
            yield from _quantity_errors(container.resources, path / name / index / "resources")
    yield from _quantity_errors(spec.resources or ResourceRequirements(), path / "resources")


def _quantity_errors(resources: ResourceRequirements, path: FieldPath) -> Iterator[FieldError]:
    amounts: dict[tuple[str, str], int] = {}
    for kind, quantities in (("limits", resources.limits), ("requests", resources.requests)):
        for name, quantity in quantities.items():
            place = path / kind / MapKey(name)
            if error := quantity_error(quantity, place):
                yield error
                continue
            amounts[kind, name] = thousandths(quantity)
            if kind == "requests" and amounts[kind, name] > amounts.get(("limits", name), amounts[kind, name]):
                detail = f"must be less than or equal to {name} limit of {resources.limits[name]}"
                yield field.invalid(path / kind, quantity, detail)


def _amount_errors(path: FieldPath, amount: int | str | None, *, most: int | None = None) -> Iterable[FieldError]:
    """Yield the errors on a number of pods or a percentage, which may be limited."""
    if not isinstance(amount, str):
        yield from _not_negative(path, amount)
    elif not PERCENT.fullmatch(amount):
        yield field.invalid(path, amount, _NOT_PERCENT)
    elif most is not None and int(amount[:-1]) > most:
        yield field.invalid(path, amount, "must not be greater than 100%")


def _is_zero(amount: int | str | None) -> bool:
    return amount == 0 or (isinstance(amount, str) and not amount.removesuffix("%").strip("0"))


def _not_negative(path: FieldPath, number: int | None) -> Iterator[FieldError]:
    if number is not None and number < 0:
        yield field.invalid(path, number, NOT_NEGATIVE)
