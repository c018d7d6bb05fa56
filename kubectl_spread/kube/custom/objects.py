"""Objects of kinds that Kubernetes does not define, as far as they describe pods, and the API groups of kinds."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import msgspec

from kubectl_spread.kube.api.field import FieldPath, MapKey
from kubectl_spread.kube.api.types import ObjectMeta
from kubectl_spread.kube.api.workloads import KINDS, PodTemplateSpec
from kubectl_spread.kube.custom.controllers import ANY

KUBERNETES_GROUPS: Final = frozenset(
    f"{name}.k8s.io"
    for name in (
        "admissionregistration",
        "apiextensions",
        "apiregistration",
        "authentication",
        "authorization",
        "certificates",
        "coordination",
        "discovery",
        "events",
        "flowcontrol.apiserver",
        "internal.apiserver",
        "networking",
        "node",
        "rbac.authorization",
        "resource",
        "scheduling",
        "storage",
        "storagemigration",
    )
)
"""The groups of Kubernetes itself that have a dot.

The group of a CustomResourceDefinition always has a dot, so a group without a dot is Kubernetes' own.
Source: kubernetes v1.37.1 staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go.
"""
_KINDS: Final = frozenset({"Pod", "Node", "Namespace", "Event", "Service", *(kind for _, kind in KINDS)})
"""The kinds of Kubernetes that are read."""


def group_of(api_version: str) -> str:
    """Return the API group in an apiVersion; "" for the core group."""
    return api_version.rpartition("/")[0]


@lru_cache(maxsize=1024)
def is_custom(api_version: str) -> bool:
    """Tell whether an apiVersion has a group that is not one of Kubernetes itself."""
    group = group_of(api_version)
    return "." in group and group not in KUBERNETES_GROUPS


def kind_name(api_version: str, kind: str) -> str:
    """Return the name of a kind: with its group, as kubectl takes it, if Kubernetes has a kind of the same name.

    A ``StatefulSet.apps.kruise.io`` is not a StatefulSet.
    """
    return f"{kind}.{group_of(api_version)}" if kind in _KINDS and is_custom(api_version) else kind


def base_kind(kind: str) -> str:
    """Return the kind without the group in the name of a kind; pods of any Job end, and any DaemonSet pins its pods."""
    return kind.partition(".")[0]


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
