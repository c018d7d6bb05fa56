"""Topology keys: which label of nodes was meant by a key that nodes do not have?"""

from __future__ import annotations

from typing import Final

from kubectl_spread.kube.api.labels import HOSTNAME, REGION, ZONE
from kubectl_spread.kube.apiserver import CURRENT_KEYS
from kubectl_spread.kube.scheduler.podtopologyspread.domains import NodeSets
from kubectl_spread.phrases import nearest

_STANDARD: Final = (HOSTNAME, ZONE, REGION)
_SYNONYMS: Final = {
    **dict.fromkeys(("host", "hosts", "hostnames", "node", "nodename", "nodenames", "nodes"), "hostname"),
    **dict.fromkeys(("availabilityzone", "availabilityzones", "az", "azs", "zones"), "zone"),
    "regions": "region",
}
"""Maps other words for the name of a standard label, the part after the slash, to that name."""
_MISSPELT: Final = 0.8
"""The similarity, by difflib, from which the name of a label counts as another one, misspelt."""
_SAME_PREFIX: Final = 0.9
"""The same for prefixes: ``topology.kubevirt.io`` is not a misspelt ``topology.kubernetes.io``."""


def is_separating(key: str, nodes: NodeSets) -> bool:
    """Tell whether the nodes with a label have several values of it, so that pods can be kept apart by it."""
    values = nodes.number_of_values(key)
    return values > 1 or values == len(nodes.nodes)


def nearest_key(key: str, nodes: NodeSets) -> str:
    """Return the label of nodes that is probably meant by a topology key; "" if none is similar.

    Labels with one value on all nodes are left out, unless they are standard topology keys.
    """
    labels = dict.fromkeys(label for node in nodes.nodes for label in node.metadata.labels)
    usable = [
        label
        for label in labels
        if label != key and label not in CURRENT_KEYS and (label in _STANDARD or nodes.number_of_values(label) > 1)
    ]
    name = _name(key)
    return nearest(key, (label for label in usable if _name(label) == name), close=0) or nearest(
        key, (label for label in usable if nearest(name, [_name(label)], close=_MISSPELT))
    )


def standard_key(key: str) -> str:
    """Return the standard label of nodes that is meant by a well-known mistake; "" for any other key."""
    if key in _STANDARD or key in CURRENT_KEYS:
        return ""
    return next((label for label in _STANDARD if _is_mistake(key, label)), "")


def _is_mistake(key: str, label: str) -> bool:
    """Tell whether a key has the name of a standard label, or one like it, under a prefix of Kubernetes or like it."""
    (prefix, _, _), (right, _, _) = key.lower().rpartition("/"), label.rpartition("/")
    of_kubernetes = prefix in ("kubernetes.io", "k8s.io", "topology.k8s.io") or prefix.endswith(".kubernetes.io")
    named = nearest(_name(key), [_name(label)], close=_MISSPELT)
    return bool(named and (of_kubernetes or nearest(prefix, [right], close=_SAME_PREFIX)))


def _name(key: str) -> str:
    """Return the part of a label after the slash, as the standard labels call it."""
    name = key.rpartition("/")[2].lower().replace("-", "").replace("_", "")
    return _SYNONYMS.get(name, name)
