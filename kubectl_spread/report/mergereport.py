"""The report of `merge` and `unmerge`; its JSON form is a contract (docs/json.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from kubectl_spread.audit.merge.merging import Outcome, PodsOutcome, applied
from kubectl_spread.kube.api.field import FieldError
from kubectl_spread.report.model import API_VERSION, Part

_DEEPER: Final = 0
"""Mappings are compared entry by entry, even if they have little in common."""


class ApiError(Part, frozen=True, kw_only=True):
    """One error of the API: the field's path, and the whole text."""

    path: str
    message: str


class Pods(Part, frozen=True, kw_only=True):
    """The answer of the API to the pods of a workload, and the labels that its controller adds to them."""

    admitted: bool
    errors: tuple[ApiError, ...]
    presumed_labels: tuple[str, ...]


class Item(Part, frozen=True, kw_only=True):
    """A pod or workload: the answer of the API to its creation, and the object with changed selectors.

    ``delta`` is the difference between the manifest and ``object``, as a DeepDiff Delta in JSON.
    """

    kind: str
    namespace: str
    name: str
    admitted: bool
    errors: tuple[ApiError, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    object: Mapping[str, Any]
    delta: Mapping[str, Any]
    pods: Pods | UnsetType = UNSET


class MergeReport(Part, frozen=True, kw_only=True):
    """The objects of ``merge`` and ``unmerge``, in the order of the input."""

    api_version: str = API_VERSION
    kind: str = "MergeReport"
    items: tuple[Item, ...]


def item(kind: str, namespace: str, name: str, before: Mapping[str, Any], outcome: Outcome) -> Item:
    """Return the report on one object.

    Args:
        kind: Its kind.
        namespace: Its namespace, which the manifest may leave out.
        name: Its name.
        before: The object as it was read.
        outcome: The answer of the API, and the changes.
    """
    after = applied(before, outcome.changes)
    return Item(
        kind=kind,
        namespace=namespace,
        name=name,
        admitted=not outcome.errors,
        errors=_refusals(outcome.errors),
        warnings=outcome.warnings,
        notes=outcome.notes,
        object=after,
        delta=_delta(before, after) if outcome.changes else {},
        pods=UNSET if outcome.pods is None else _pods(outcome.pods),
    )


def _pods(pods: PodsOutcome) -> Pods:
    return Pods(admitted=not pods.errors, errors=_refusals(pods.errors), presumed_labels=pods.presumed_labels)


def _refusals(errors: Iterable[FieldError]) -> tuple[ApiError, ...]:
    return tuple(ApiError(path=str(error.path), message=error.message) for error in errors)


def _delta(before: Mapping[str, Any], after: Mapping[str, Any]) -> Mapping[str, Any]:
    from deepdiff import DeepDiff, Delta  # noqa: PLC0415 - 0.2 s that only this format needs
    from deepdiff.serialization import json_dumps  # noqa: PLC0415 - likewise

    difference = DeepDiff(before, after, threshold_to_diff_deeper=_DEEPER, zip_ordered_iterables=True)
    dumped: str = Delta(difference, serializer=json_dumps).dumps()  # type: ignore[no-untyped-call]
    delta: dict[str, Any] = msgspec.json.decode(dumped)
    return delta
