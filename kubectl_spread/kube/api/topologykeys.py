"""Topology keys: the node labels that Kubernetes sets itself, and their short names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

HOSTNAME: Final = "kubernetes.io/hostname"
REGION: Final = "topology.kubernetes.io/region"
ZONE: Final = "topology.kubernetes.io/zone"
TOPOLOGY_KEYS: Final[Mapping[str, str]] = {"hostname": HOSTNAME, "node": HOSTNAME, "region": REGION, "zone": ZONE}
"""Maps the short name of a topology key to the key."""
DOMAIN_NOUNS: Final[Mapping[str, str]] = {key: name for name, key in TOPOLOGY_KEYS.items()}
"""Maps a topology key to what its domains are called."""
