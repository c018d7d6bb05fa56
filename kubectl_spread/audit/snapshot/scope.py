"""Scope: the pods that are evaluated. It never decides which pods are counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.objects import ALL_NAMESPACES, ObjectRef
from kubectl_spread.kube.api.types import LabelSelectorRequirement, Pod

FIELDS: Final[Mapping[str, Callable[[Pod], str]]] = {
    "metadata.name": lambda pod: pod.metadata.name,
    "metadata.namespace": lambda pod: pod.metadata.namespace,
    "spec.nodeName": lambda pod: pod.spec.node_name,
    "spec.restartPolicy": lambda pod: pod.spec.restart_policy,
    "spec.schedulerName": lambda pod: pod.spec.scheduler_name,
    "spec.serviceAccountName": lambda pod: pod.spec.service_account_name,
    "spec.hostNetwork": lambda pod: str(pod.spec.host_network).lower(),
    "status.phase": lambda pod: pod.status.phase,
    "status.podIP": lambda pod: pod.status.pod_ip,
    "status.nominatedNodeName": lambda pod: pod.status.nominated_node_name,
}
"""The fields of a pod that the API server supports in field selectors.

Source: kubernetes v1.37.1 pkg/registry/core/pod/strategy.go, ToSelectableFields.
"""


class FieldRequirement(msgspec.Struct, frozen=True):
    """One term of a field selector: ``field=value`` or ``field!=value``."""

    field: str
    value: str
    equal: bool


class Target(msgspec.Struct, frozen=True):
    """The objects that an argument of the command line names.

    An empty name means every object of the kind, and an empty kind means every object of the name.
    """

    kind: str
    name: str

    def includes(self, ref: ObjectRef) -> bool:
        """Tell whether the argument names an object."""
        return self.kind in ("", ref.kind) and self.name in ("", ref.name)


class Scope(msgspec.Struct, frozen=True):
    """The pods that are evaluated.

    Attributes:
        namespace: The only namespace, or ``ALL_NAMESPACES``.
        exclude_namespaces: The namespaces of all that are left out.
        labels: The requirements that the labels of pods meet.
        fields: The requirements that the fields of pods meet.
        targets: The objects that the command line names; without any, every pod is evaluated.
    """

    namespace: str = ALL_NAMESPACES
    exclude_namespaces: frozenset[str] = frozenset()
    labels: tuple[LabelSelectorRequirement, ...] = ()
    fields: tuple[FieldRequirement, ...] = ()
    targets: tuple[Target, ...] = ()

    @property
    def all_namespaces(self) -> bool:
        """Whether the pods of all namespaces are in scope, except for those of excluded ones."""
        return self.namespace == ALL_NAMESPACES

    def covers(self, namespace: str) -> bool:
        """Tell whether pods of a namespace are in scope."""
        return self.namespace in (ALL_NAMESPACES, namespace) and namespace not in self.exclude_namespaces

    def selects(self, pod: Pod) -> bool:
        """Tell whether namespace, labels and fields of a pod are in scope; targets need its owners."""
        return (
            self.covers(pod.metadata.namespace)
            and all(labelselectors.satisfies(requirement, pod.metadata.labels) for requirement in self.labels)
            and all((FIELDS[each.field](pod) == each.value) == each.equal for each in self.fields)
        )

    def selects_template(self, namespace: str, labels: Mapping[str, str] | None) -> bool:
        """Tell whether pods of a template would be in scope; with a field selector they are not.

        Args:
            namespace: Their namespace.
            labels: Their labels; None where they are unknown, so that they may be any.
        """
        selected = labels is None or all(labelselectors.satisfies(requirement, labels) for requirement in self.labels)
        return self.covers(namespace) and not self.fields and selected
