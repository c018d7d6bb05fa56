"""The identity of a cluster, and when it was read."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from kubectl_spread.report.projections import timestamp
from kubectl_spread.sources.addresses import without_secrets


class ClusterIdentity(msgspec.Struct, frozen=True):
    """The identity of a cluster; "" and None mean unknown.

    Attributes:
        context: The kubeconfig context that leads to it.
        name: Its name.
        name_from_flag: Whether the name is from ``--cluster-name``, and not from the kubeconfig.
        uid: The UID of its namespace ``kube-system``.
        read_at: When its pods were read, by the API server's clock.
        server_version: The API server's version.
    """

    context: str = ""
    name: str = ""
    name_from_flag: bool = False
    uid: str = ""
    read_at: datetime | None = None
    server_version: str = ""

    @property
    def name_source(self) -> Literal["kubeconfig", "flag"] | UnsetType:
        """Where the name comes from; UNSET without a name."""
        if not self.name:
            return UNSET
        return "flag" if self.name_from_flag else "kubeconfig"

    @property
    def read_at_text(self) -> str:
        """When the pods were read, as the API writes times; "" where that is unknown."""
        return "" if self.read_at is None else timestamp(self.read_at)


UNKNOWN: Final = ClusterIdentity()


def identity(
    flag_name: str,
    *,
    context: str = "",
    name: str = "",
    uid: str = "",
    read_at: datetime | None = None,
    server_version: str = "",
) -> ClusterIdentity:
    """Return the identity of a cluster; the name of ``--cluster-name`` replaces the kubeconfig's.

    Everybody who reads the report sees the names. Some are made from a server's address, whose user and password are
    left out.
    """
    return ClusterIdentity(
        context=without_secrets(context),
        name=without_secrets(flag_name or name),
        name_from_flag=bool(flag_name),
        uid=uid,
        read_at=read_at,
        server_version=server_version,
    )
