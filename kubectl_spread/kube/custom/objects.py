"""Objects of kinds that Kubernetes does not define, as far as they describe pods."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kubectl_spread.kube.api.fieldpath import FieldPath, MapKey
from kubectl_spread.kube.api.types import ObjectMeta
from kubectl_spread.kube.api.workloads import PodTemplateSpec
from kubectl_spread.kube.custom.controllers import ANY


class Unevaluated(msgspec.Struct, frozen=True):
    """The path of a part of a template that cannot be evaluated, and why."""

    path: FieldPath
    reason: str


class HeldTemplate(msgspec.Struct, frozen=True):
    """A pod template inside an object, or spread constraints that the object states without one.

    Parts that cannot be evaluated are left out of the template; in the place of a constraint, of an affinity term or
    of a list of them is one that nothing is wrong with, so that the others keep their paths.

    Attributes:
        group: The API group of the innermost object around it, which is the object itself or one inside it.
        kind: The kind of that object.
        path: The path of its pod spec, or of the field around the constraints.
        template: The template; for constraints without one, only those.
        replicas: The desired number of pods; None where it is not stated.
        more_labels: Labels that the object adds to some pods, besides those of the template and of the controller.
        complete: Whether it is a pod template, with containers.
        extended: The indices of spread constraints with fields that the API does not have, which a controller reads.
        unknown_labels: The labels of the template whose values are unknown.
        unevaluated: The parts that cannot be evaluated.
    """

    group: str
    kind: str
    path: FieldPath
    template: PodTemplateSpec
    replicas: int | None
    more_labels: tuple[str, ...] = ()
    complete: bool = True
    extended: tuple[int, ...] = ()
    unknown_labels: tuple[str, ...] = ()
    unevaluated: tuple[Unevaluated, ...] = ()

    def may_have(self, key: str) -> bool:
        """Tell whether it is unknown which value the template gives a label, if any."""
        return key in self.unknown_labels or (ANY[0] in self.more_labels and key not in self.template.metadata.labels)

    def without_labels(self, keys: Iterable[str]) -> HeldTemplate:
        """Return the template with labels, on which its evaluation depends, among the parts that are not evaluated."""
        labels = FieldPath((*self.path[:-1], "metadata", "labels"))
        parts = (Unevaluated(labels / MapKey(key), "its value is unknown, and -l names it") for key in keys)
        return msgspec.structs.replace(self, unevaluated=(*self.unevaluated, *parts))


class CustomObject(msgspec.Struct, frozen=True):
    """An object of a kind that Kubernetes does not define.

    Attributes:
        group: Its API group.
        metadata: Its metadata.
        templates: Its pod templates, and constraints without one, in the order in which they are written.
    """

    group: str
    metadata: ObjectMeta
    templates: tuple[HeldTemplate, ...]
