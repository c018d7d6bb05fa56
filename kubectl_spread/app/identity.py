"""Which cluster a report is about, and when it was read."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from kubectl_spread.report.projections import timestamp
from kubectl_spread.sources.addresses import without_secrets


class Identity(msgspec.Struct, frozen=True):
    """What is known of a cluster; "" and None: not known.

    Attributes:
        context: The kubeconfig context that leads to it.
        name: Its name.
        name_is_given: Whether the name is that of ``--cluster-name``, and not the kubeconfig's.
        uid: The UID of its namespace ``kube-system``.
        read_at: When its pods were read, by the API server's clock.
        server_version: The API server's version.
    """

    context: str = ""
    name: str = ""
    name_is_given: bool = False
    uid: str = ""
    read_at: datetime | None = None
    server_version: str = ""

    @property
    def name_source(self) -> Literal["kubeconfig", "flag"] | UnsetType:
        """Where the name comes from; UNSET without a name."""
        if not self.name:
            return UNSET
        return "flag" if self.name_is_given else "kubeconfig"

    @property
    def read_at_text(self) -> str:
        """When it was read, as the API writes times; "" where that is not known."""
        return "" if self.read_at is None else timestamp(self.read_at)


UNKNOWN: Final = Identity()


def identity(
    given_name: str,
    *,
    context: str = "",
    name: str = "",
    uid: str = "",
    read_at: datetime | None = None,
    server_version: str = "",
) -> Identity:
    """Return the identity of a cluster; a name of ``--cluster-name`` replaces the kubeconfig's.

    Names are shown to everybody who reads the report. Some are made of a server's address, whose user and password are
    left out.
    """
    return Identity(
        context=without_secrets(context),
        name=without_secrets(given_name or name),
        name_is_given=bool(given_name),
        uid=uid,
        read_at=read_at,
        server_version=server_version,
    )
