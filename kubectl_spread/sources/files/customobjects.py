"""Objects of kinds that Kubernetes does not define, from their JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kubectl_spread.kube.api.types import Object
from kubectl_spread.kube.api.unknownfields import UnknownField, unknown_in_pod_spec
from kubectl_spread.kube.custom.objects import CustomObject, HeldTemplate, group_of, is_custom
from kubectl_spread.sources.decode import json_objects
from kubectl_spread.sources.decode.json_objects import Json, MalformedFieldError
from kubectl_spread.sources.files.heldtemplates import held_templates
from kubectl_spread.sources.files.rawobjects import RawObject

_SIGNS: Final = (b'"containers"', b'"topologySpreadConstraints"', b"\\u")
"""Text of which an object with a template has some; a key may be written with escapes."""
_OLD_TEMPLATES: Final = frozenset({"ControllerRevision"})
"""The kind of Kubernetes that holds templates of which no pods are made any more."""


def may_be_read(member: RawObject) -> bool:
    """Tell whether an object of a kind that is not read may describe pods."""
    if member.type is not None or member.fault is not None or member.kind in _OLD_TEMPLATES:
        return False
    raw = bytes(member.record.content)
    return any(sign in raw for sign in _SIGNS)


def decode(content: Json, api_version: str, kind: str, namespace: str) -> CustomObject | None:
    """Return an object; None if it describes no pods.

    Args:
        content: Its content.
        api_version: Its apiVersion.
        kind: Its kind.
        namespace: The namespace of an object that names none.

    Raises:
        MalformedFieldError: It is nested too deeply, or has an invalid value in its metadata, or in a template where
            its kind is known; or it has a template, and its kind is an unknown one of Kubernetes' own groups.
        msgspec.DecodeError: It is not JSON.
        UnicodeDecodeError: A string is not UTF-8.
    """
    group = group_of(api_version)
    try:
        held = tuple(held_templates(json_objects.values(content), group, kind))
    except RecursionError as error:
        raise MalformedFieldError((), "nested too deeply") from error
    if not held:
        return None
    if not is_custom(api_version):
        problem = (
            f'"{kind}" is not a known kind of {api_version}, so its pod template ({held[0].path}) is not evaluated'
        )
        raise MalformedFieldError(("kind",), problem)
    metadata = json_objects.decode(content, Object).metadata
    return CustomObject(group, msgspec.structs.replace(metadata, namespace=metadata.namespace or namespace), held)


def digest(custom: CustomObject) -> int:
    """Return a hash that equal objects share; labels, status and versions of the object do not matter."""
    parts = [(str(held.path), msgspec.json.encode(held.template), held.replicas) for held in custom.templates]
    return hash((custom.group, custom.metadata.uid, tuple(parts)))


def unknown_fields(content: Json, custom: CustomObject) -> tuple[UnknownField, ...]:
    """Return the misspelt fields in the pod specs of an object.

    Only fields with a right name nearby are reported: a kind may have fields that pods do not have.
    """
    values = json_objects.values(content)
    return tuple(
        field
        for held in custom.templates
        if held.complete
        for field in unknown_in_pod_spec(_at(values, held), held.path)
    )


def _at(value: Any, held: HeldTemplate) -> Mapping[str, Any]:
    """Return the pod spec of a template."""
    for step in held.path:
        value = value[step]
    pod_spec: Mapping[str, Any] = value
    return pod_spec
