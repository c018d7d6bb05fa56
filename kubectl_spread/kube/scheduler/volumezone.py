"""Volume zones: which nodes do the zone and region labels of a PersistentVolume allow?

Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/volumezone/volume_zone.go, getPVTopologies and Filter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.scheduler.nodeindex import NodeLabels

_BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
_BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"
_ZONE: Final = "topology.kubernetes.io/zone"
_REGION: Final = "topology.kubernetes.io/region"
_STABLE: Final = {_BETA_ZONE: _ZONE, _BETA_REGION: _REGION}
_KEYS: Final = (_BETA_ZONE, _BETA_REGION, _ZONE, _REGION)
_BETWEEN: Final = "__"
"""What separates the zones of a volume that is in several.

Source: kubernetes v1.37.1 staging/src/k8s.io/cloud-provider/volume/constants.go, LabelMultiZoneDelimiter.
"""


def topology(labels: Labels) -> Mapping[str, frozenset[str]]:
    """Return the values of the zone and region labels of a volume; a label with an empty value among them is ignored.

    Source: kubernetes v1.37.1 staging/src/k8s.io/cloud-provider/volume/helpers/zones.go, LabelZonesToSet.
    """
    values = {key: frozenset(value.strip() for value in labels[key].split(_BETWEEN)) for key in _KEYS if key in labels}
    return {key: named for key, named in values.items() if "" not in named}


def allowed(topology: Mapping[str, frozenset[str]], nodes: NodeLabels) -> int:
    """Return the nodes that have one of the values of each label; nodes without any such label are allowed too."""
    bits = nodes.everything
    for key, values in topology.items():
        matching = nodes.with_value(key, values)
        if key in _STABLE:
            matching |= nodes.with_value(_STABLE[key], values) & ~nodes.carrying([key])
        bits &= matching
    labelled = 0
    for key in _KEYS:
        labelled |= nodes.carrying([key])
    return bits | (nodes.everything & ~labelled)
