"""The checks that are requested in addition to verdicts and counts; by default none."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kubectl_spread.kube.features import Behaviour


class ExtraChecks(msgspec.Struct, frozen=True):
    """Questions that only some runs ask.

    Attributes:
        recreate: Whether the API would take the stored pods once more.
        upgrade: The behaviour to compare with; None: nothing.
        expected_domains: Maps a topology key to the number of domains that there should be.
    """

    recreate: bool = False
    upgrade: Behaviour | None = None
    expected_domains: Mapping[str, int] = msgspec.field(default_factory=dict)
