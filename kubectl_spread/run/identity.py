"""The identity of a cluster, as reports have it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET

from kubectl_spread.report import projections
from kubectl_spread.report.model import unset_none
from kubectl_spread.sources.addresses import without_secrets


class ClusterIdentity(msgspec.Struct, frozen=True):
    """The identity of a cluster; "" and None mean unknown.

    Attributes:
        context: The kubeconfig context that leads to it.
        name: Its name in the kubeconfig.
        uid: The UID of its namespace ``kube-system``.
        read_at: When its pods were read, by the API server's clock.
        server_version: The API server's version.
    """

    context: str = ""
    name: str = ""
    uid: str = ""
    read_at: datetime | None = None
    server_version: str = ""

    def fields(self, flag_name: str, namespace: str | None) -> dict[str, Any]:
        """Return the fields of a report's cluster, which ``--cluster-name`` names, or else the kubeconfig.

        Some tools make these names from a server's address. Its user and password are left out, because everybody who
        reads the report sees the names.
        """
        name = without_secrets(flag_name or self.name)
        return {
            "context": without_secrets(self.context) or UNSET,
            "name": name or UNSET,
            "name_source": ("flag" if flag_name else "kubeconfig") if name else UNSET,
            "uid": self.uid or UNSET,
            "read_at": UNSET if self.read_at is None else projections.timestamp(self.read_at),
            "server_version": self.server_version or UNSET,
            "namespace": unset_none(namespace),
        }
