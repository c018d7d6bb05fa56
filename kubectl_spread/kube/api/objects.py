"""Object references: which object is it?"""

from __future__ import annotations

from typing import Final

import msgspec

ALL_NAMESPACES: Final = ""
"""Stands for every namespace where one can be chosen.

Source: kubernetes v1.37.1 staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/types.go, NamespaceAll.
"""


class ObjectRef(msgspec.Struct, frozen=True, order=True):
    """An object by namespace, kind and name; the namespace is "" for an object of the cluster.

    ``copy`` is the number of manifests with the same namespace, kind and name that were read before this one.
    """

    namespace: str
    kind: str
    name: str
    copy: int = 0

    @property
    def first_copy(self) -> ObjectRef:
        """The reference that all manifests of this namespace, kind and name share."""
        return ObjectRef(self.namespace, self.kind, self.name) if self.copy else self
