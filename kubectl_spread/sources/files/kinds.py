"""Kinds: whether a document is an object that is read, an object of another kind, or not an object."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any, Final, TypeAlias

import msgspec

from kubectl_spread.kube.api.types import Event, Namespace, Node, Pod
from kubectl_spread.kube.api.workloads import KINDS, WorkloadObject
from kubectl_spread.kube.custom.objects import group_of, is_custom
from kubectl_spread.kube.disruption import PodDisruptionBudget
from kubectl_spread.kube.scheduler.defaultconstraints import Service
from kubectl_spread.kube.scheduler.volumes import PersistentVolume, PersistentVolumeClaim
from kubectl_spread.sources.decode import json_objects
from kubectl_spread.sources.decode.json_objects import Json, MalformedFieldError
from kubectl_spread.sources.decode.listing import HEADER, LIST, METADATA

Object: TypeAlias = (
    Pod
    | Node
    | Namespace
    | Event
    | Service
    | PodDisruptionBudget
    | PersistentVolumeClaim
    | PersistentVolume
    | WorkloadObject
)

NOT_KUBERNETES: Final = "not a Kubernetes object, which has apiVersion and kind"
_TYPES: Final[dict[tuple[str, str], type[Object]]] = {
    ("", "Pod"): Pod,
    ("", "Node"): Node,
    ("", "Namespace"): Namespace,
    ("", "Event"): Event,
    ("", "Service"): Service,
    ("policy", "PodDisruptionBudget"): PodDisruptionBudget,
    ("", "PersistentVolumeClaim"): PersistentVolumeClaim,
    ("", "PersistentVolume"): PersistentVolume,
    **KINDS,
}
_GROUP_OF: Final[Mapping[str, str]] = {**{kind: group for group, kind in _TYPES}, LIST: ""}
_KIND_OF: Final[Mapping[str, str]] = {kind.lower(): kind for kind in _GROUP_OF}
_STATUS: Final = "Status"
_META_GROUP: Final = "meta.k8s.io"
_STATUS_GROUPS: Final = ("", _META_GROUP)
_WITHOUT_SPECS: Final = frozenset({"Table", "PartialObjectMetadata"})
"""Kinds that the API server sends to clients that request only metadata or columns."""
_NAMESAKES: Final = frozenset({("events.k8s.io", "Event")})
"""Kinds of Kubernetes that have the name of a kind of another group that is read."""
_OTHER_KINDS: Final[Mapping[str, frozenset[str]]] = {
    "apps": frozenset({"ControllerRevision", "Scale", "DeploymentRollback"}),
    "batch": frozenset({"JobTemplate"}),
}
"""Maps the groups that have only kinds with pod templates to their few other kinds.

Source: kubernetes v1.37.1 staging/src/k8s.io/api/{apps,batch}/*/register.go; no other kind was added since 1.27.
"""
_ALIKE: Final = 0.85
"""The similarity, by difflib, from which a word counts as a misspelt kind."""


def type_of(api_version: str, kind: str) -> type[Object] | None:
    """Return the type of an object; None for a kind that is not read.

    Raises:
        MalformedFieldError: The group has no such kind, and the name is like that of a kind that is read.
    """
    type_ = _TYPES.get((group_of(api_version), kind))
    if type_ is None and (fault := _misnamed(api_version, kind)):
        raise fault
    return type_


def confirm_object(api_version: str, kind: str, content: Json) -> None:
    """Raise for an answer of the API server that is not an object that it stores.

    Raises:
        MalformedFieldError: It is a Status, mostly an error, or has objects without their specs.
    """
    if kind == _STATUS and group_of(api_version) in _STATUS_GROUPS:
        raise MalformedFieldError((), _status_text(json_objects.values(content)))
    if kind.removesuffix(LIST) in _WITHOUT_SPECS and group_of(api_version) == _META_GROUP:
        raise MalformedFieldError(
            (), "this holds no specs, so there is nothing to check; save the objects with -o json"
        )


def is_meant_as_object(content: Json) -> bool:
    """Tell whether a document is meant as a Kubernetes object, unlike a workflow of a CI or the values of a chart.

    Such a document has apiVersion and kind, or one of them and metadata, or a kind that is read.
    """
    try:
        fields = json_objects.fields_of(content)
        header = [name for name in HEADER if json_objects.values(fields.get(name)) not in (None, "")]
    except MalformedFieldError:
        return False
    except (msgspec.DecodeError, UnicodeDecodeError):
        return True
    if not header:
        return False
    if len(header) == len(HEADER) or METADATA in fields:
        return True
    kind = json_objects.values(fields.get("kind"))
    return isinstance(kind, str) and kind.removesuffix(LIST) in ("", *_GROUP_OF)


@cache
def _misnamed(api_version: str, kind: str) -> MalformedFieldError | None:
    """Return the fault of a kind that Kubernetes does not have; None where it may exist."""
    group = group_of(api_version)
    if is_custom(api_version) or (group, kind) in _NAMESAKES:
        return None
    if (group, kind.removesuffix(LIST)) in _TYPES:
        return None
    problem = f'"{kind}" is not a kind of {api_version}'
    near = get_close_matches(kind.lower(), _KIND_OF, 1, _ALIKE)
    if not near:
        kinds = _OTHER_KINDS.get(group)
        exists = kinds is None or kind.removesuffix(LIST) in kinds
        return None if exists else MalformedFieldError(("kind",), problem)
    nearest = _KIND_OF[near[0]]
    nearest_version = f"{_GROUP_OF[nearest]}/v1".removeprefix("/")
    if nearest == kind:
        return MalformedFieldError(("apiVersion",), f'{problem}; did you mean "apiVersion: {nearest_version}"?')
    of_version = "" if _GROUP_OF[nearest] == group else f" of {nearest_version}"
    return MalformedFieldError(("kind",), f'{problem}; did you mean "kind: {nearest}"{of_version}?')


def _status_text(status: Any) -> str:
    code, reason, message = (status.get(name) for name in ("code", "reason", "message"))
    if status.get("status") == "Success":
        return "this is an answer of the API server, not an object"
    error = " ".join(str(part) for part in (code, reason) if part)
    return f"this is an API error, not an object: {error or 'no code'}: {message or 'no message'}"
