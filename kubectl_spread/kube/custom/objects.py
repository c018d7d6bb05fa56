"""Objects of kinds that Kubernetes does not define, as far as they describe pods."""

from __future__ import annotations

import msgspec

from kubectl_spread.kube.api.fieldpath import FieldPath
from kubectl_spread.kube.api.types import ObjectMeta
from kubectl_spread.kube.api.workloads import PodTemplateSpec


class HeldTemplate(msgspec.Struct, frozen=True):
    """A pod template inside an object, or spread constraints that the object states without one.

    Attributes:
        group: The API group of the innermost object around it, which is the object itself or one inside it.
        kind: The kind of that object.
        path: The path of its pod spec, or of the field around the constraints.
        template: The template; for constraints without one, only those.
        replicas: The desired number of pods; None where it is not stated.
        more_labels: Labels that the object adds to some pods, besides those of the template and of the controller.
        complete: Whether it is a pod template, with containers.
        extended: The indices of spread constraints with fields that the API does not have, which a controller reads.
    """

    group: str
    kind: str
    path: FieldPath
    template: PodTemplateSpec
    replicas: int | None
    more_labels: tuple[str, ...] = ()
    complete: bool = True
    extended: tuple[int, ...] = ()


class Unevaluated(msgspec.Struct, frozen=True):
    """The path of a template, or of spread constraints without one, that cannot be evaluated, and why."""

    path: FieldPath
    reason: str


class CustomObject(msgspec.Struct, frozen=True):
    """An object of a kind that Kubernetes does not define.

    Attributes:
        group: Its API group.
        metadata: Its metadata.
        templates: Its pod templates, and constraints without one, in the order in which they are written.
        unevaluated: Such parts that cannot be evaluated.
    """

    group: str
    metadata: ObjectMeta
    templates: tuple[HeldTemplate, ...]
    unevaluated: tuple[Unevaluated, ...] = ()
