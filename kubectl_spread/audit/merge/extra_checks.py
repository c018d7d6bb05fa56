"""Checks in addition to verdicts and counts; by default none."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kubectl_spread.kube.api.labels import HOSTNAME, ZONE
from kubectl_spread.kube.features import Behaviour


class ExtraChecks(msgspec.Struct, frozen=True):
    """Checks that only some runs make.

    Attributes:
        recreate: Whether the API would accept the stored pods if they were created again.
        upgrade: The behaviours of the minors from this Kubernetes to the one to compare with, in their order; () for no
            comparison.
        expected_domains: Maps a topology key to the number of domains that there should be.
        exposing_keys: The topology keys by whose domains the exposure of workloads is checked.
    """

    recreate: bool = False
    upgrade: tuple[Behaviour, ...] = ()
    expected_domains: Mapping[str, int] = msgspec.field(default_factory=dict)
    exposing_keys: tuple[str, ...] = (HOSTNAME, ZONE)
