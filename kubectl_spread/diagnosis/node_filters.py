"""Which filter of the scheduler refuses a node first?

The filters are cordon, taints, node affinity, resources, volumes, spread and pod affinity, in this order.
Source: kubernetes v1.37.1 pkg/scheduler/apis/config/v1/default_plugins.go, getDefaultPlugins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.audit.evaluation.obstacles import Obstacle
from kubectl_spread.audit.evaluation.volumes import VolumeNodes
from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.kube.scheduler.interpodaffinity import AffinityAnswer
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread

FirstRefusal: TypeAlias = Obstacle | Spread | AffinityAnswer
"""An obstacle, the first hard constraint that does not allow the node, or the answer of the filter of pod affinity."""
AFFINITY_WORDS: Final = {
    AffinityAnswer.NO_AFFINITY: "required pod affinity: no such pod in the domain",
    AffinityAnswer.ANTI_AFFINITY: "required pod anti-affinity: such a pod is in the domain",
    AffinityAnswer.EXISTING_ANTI_AFFINITY: "required anti-affinity of a pod in the domain",
    AffinityAnswer.UNPARSEABLE: "a selector of its pod affinity cannot be parsed",
}


class NodeFilters(msgspec.Struct, frozen=True):
    """The filters that a pod of one class has to pass.

    Attributes:
        pod_class: The class of the pod.
        hard: The counts of its hard constraints.
        repelled: Maps the name of each node that pod affinity refuses to the answer.
        audit: The cluster.
        volumes: The nodes that its volumes refuse; None for a pod without volumes.
    """

    pod_class: PodClass
    hard: Sequence[Spread]
    repelled: Mapping[str, AffinityAnswer]
    audit: Audit
    volumes: VolumeNodes | None = None

    def first_refusal(self, node: str) -> FirstRefusal | None:
        """Return the refusal of the first filter that refuses a node; None: the node would take the pod."""
        if obstacle := self.audit.obstacles.of(self.pod_class, node):
            return obstacle
        if self.volumes is not None and (obstacle := self.volumes.obstacle(node)):
            return obstacle
        labels = self.audit.nodes.labels_of(node)
        for spread in self.hard:
            if not spread.allows(labels.get(spread.constraint.topology_key)):
                return spread
        return self.repelled.get(node)
