"""Objects of the autoscalers that make nodes: Karpenter's pools, and the status that cluster-autoscaler writes.

Only fields that decide whether a node can be made for a pod are declared. Those of custom resources have no protobuf
numbers, because the API server sends these as JSON only.

Sources: kubernetes-sigs/karpenter v1.15.0 pkg/apis/v1/nodepool.go and nodeclaim.go; aws/karpenter-provider-aws
pkg/apis/v1/ec2nodeclass_status.go; kubernetes-sigs/cluster-autoscaler of August 2026
cluster-autoscaler/clusterstate/api/types.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, TypeAlias

import msgspec

from kubectl_spread.kube import noderequirements
from kubectl_spread.kube.api.labels import ZONE
from kubectl_spread.kube.api.quantity import Quantity
from kubectl_spread.kube.api.types import READY, Int32, Message, NodeCondition, NodeSelectorRequirement, Object, Taint
from kubectl_spread.kube.noderequirements import AllowedValues, Requirements
from kubectl_spread.memoization import memoized

NODE_POOL_LABEL: Final = "karpenter.sh/nodepool"
"""The label of nodes and NodeClaims that names their NodePool."""
ZONE_ID: Final = "topology.k8s.aws/zone-id"
"""The label of nodes in AWS with the ID of their zone, which has the same meaning in every account."""
GROUP_LABELS: Final = (
    "eks.amazonaws.com/nodegroup",
    "alpha.eksctl.io/nodegroup-name",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "agentpool",
)
"""The labels with which providers say of which node group a node is."""
STATUS_NAME: Final = "cluster-autoscaler-status"
"""The name of the ConfigMap in which cluster-autoscaler writes its status."""
STATUS_NAMESPACE: Final = "kube-system"


class NodeClassReference(Message, frozen=True):
    """The provider's class of the nodes of a pool."""

    group: str = ""
    kind: str = ""
    name: str = ""


class _TemplateMeta(Message, frozen=True):
    labels: dict[str, str] = msgspec.field(default_factory=dict)


class _TemplateSpec(Message, frozen=True):
    requirements: tuple[NodeSelectorRequirement, ...] = ()
    taints: tuple[Taint, ...] = ()
    node_class_ref: NodeClassReference = NodeClassReference()


class _NodeClaimTemplate(Message, frozen=True):
    metadata: _TemplateMeta = _TemplateMeta()
    spec: _TemplateSpec = _TemplateSpec()


class _NodePoolSpec(Message, frozen=True):
    template: _NodeClaimTemplate = _NodeClaimTemplate()
    limits: dict[str, Quantity] = msgspec.field(default_factory=dict)
    replicas: Int32 | None = None
    weight: Int32 | None = None


class _NodePoolStatus(Message, frozen=True):
    resources: dict[str, Quantity] = msgspec.field(default_factory=dict)
    conditions: tuple[NodeCondition, ...] = ()


class NodePool(Object, frozen=True):
    """A NodePool of Karpenter; one with ``spec.replicas`` is static, and makes no nodes for waiting pods.

    Its startup taints are not read: Karpenter expects them to go, so they refuse no pod.
    """

    spec: _NodePoolSpec = _NodePoolSpec()
    status: _NodePoolStatus = _NodePoolStatus()

    @property
    def deleted(self) -> bool:
        """Whether it is being deleted.

        Source: kubernetes-sigs/karpenter v1.15.0 pkg/controllers/provisioning/provisioner.go, NewScheduler.
        """
        return self.metadata.deletion_timestamp is not None

    @property
    def ready(self) -> bool:
        """Whether Karpenter uses it: its condition Ready is True, and it is not being deleted."""
        return not self.deleted and any(each.type == READY and each.status == "True" for each in self.status.conditions)

    @property
    def labels(self) -> dict[str, str]:
        """The labels of its nodes that it sets itself: those of its template, its name, and that of its class.

        Source: kubernetes-sigs/karpenter v1.15.0 pkg/controllers/provisioning/scheduling/nodeclaimtemplate.go,
        NewNodeClaimTemplate.
        """
        reference = self.spec.template.spec.node_class_ref
        own = {NODE_POOL_LABEL: self.metadata.name}
        if reference.group and reference.kind:
            own[f"{reference.group}/{reference.kind.lower()}"] = reference.name
        return {**self.spec.template.metadata.labels, **own}


class NodeClaim(Object, frozen=True):
    """A machine that Karpenter has ordered, which is read for its labels."""


class _Subnet(Message, frozen=True):
    zone: str = ""
    zone_id: str = msgspec.field(default="", name="zoneID")


class _NodeClassStatus(Message, frozen=True):
    subnets: tuple[_Subnet, ...] = ()


class EC2NodeClass(Object, frozen=True):
    """The class of nodes in AWS, which is read for the zones of its subnets."""

    status: _NodeClassStatus = _NodeClassStatus()

    def values(self, topology_key: str) -> frozenset[str] | None:
        """Return the values of a topology key that its nodes can have by their subnets; None where these say nothing.

        A class without subnets in its status was not resolved yet, and older versions do not write the IDs of zones.
        """
        if topology_key not in (ZONE, ZONE_ID):
            return None
        values = {subnet.zone if topology_key == ZONE else subnet.zone_id for subnet in self.status.subnets}
        return frozenset(values) if values and "" not in values else None


class _BackoffInfo(Message, frozen=True):
    error_code: str = ""


class _ScaleUp(Message, frozen=True):
    status: str = ""
    backoff_info: _BackoffInfo = _BackoffInfo()


class _GroupHealth(Message, frozen=True):
    cloud_provider_target: Int32 = 0
    min_size: Int32 = 0
    max_size: Int32 = 0


class NodeGroup(Message, frozen=True):
    """A node group of cluster-autoscaler, as its status names it; the status has neither its zones nor its labels."""

    name: str = ""
    health: _GroupHealth = _GroupHealth()
    scale_up: _ScaleUp = _ScaleUp()

    @property
    def is_full(self) -> bool:
        """Whether it has as many nodes as it may have."""
        return self.health.cloud_provider_target >= self.health.max_size

    @property
    def backs_off(self) -> bool:
        """Whether cluster-autoscaler adds no node to it for some time, because that failed."""
        return self.scale_up.status == "Backoff"


class AutoscalerStatus(Message, frozen=True):
    """The status of cluster-autoscaler, which is YAML in a ConfigMap."""

    node_groups: tuple[NodeGroup, ...] = ()


class ConfigMap(Object, frozen=True):
    """A ConfigMap; only that with the status of cluster-autoscaler is read, and ``status`` is its content."""

    data: Annotated[dict[str, str], 2] = msgspec.field(default_factory=dict)
    status: AutoscalerStatus = AutoscalerStatus()

    @property
    def is_status(self) -> bool:
        """Whether it has a status of cluster-autoscaler in YAML; before version 1.30 that was a text for people."""
        name = (self.metadata.namespace, self.metadata.name)
        return name == (STATUS_NAMESPACE, STATUS_NAME) and not self.data.get("status", "").startswith(
            "Cluster-autoscaler status at "
        )


AutoscalerObject: TypeAlias = NodePool | NodeClaim | EC2NodeClass | ConfigMap


class NodeAutoscalers:
    """The objects of node autoscalers in a cluster, as far as they were read; all are added before it answers.

    Attributes:
        status: The status of cluster-autoscaler; None where it was not read.
    """

    def __init__(self) -> None:
        self.status: AutoscalerStatus | None = None
        self._claims: dict[str, list[NodeClaim]] = {}
        self._pools: dict[str, NodePool] = {}
        self._classes: dict[str, EC2NodeClass] = {}

    def add(self, read: AutoscalerObject) -> None:
        """Store an object."""
        match read:
            case NodePool():
                self._pools[read.metadata.name] = read
            case NodeClaim():
                self._claims.setdefault(read.metadata.labels.get(NODE_POOL_LABEL, ""), []).append(read)
            case EC2NodeClass():
                self._classes[read.metadata.name] = read
            case ConfigMap():
                self.status = read.status

    @property
    def known(self) -> bool:
        """Whether anything was read that says why no node is made; a new cluster-autoscaler knows no group yet."""
        return bool(self._pools) or (self.status is not None and bool(self.status.node_groups))

    @property
    def pools(self) -> Sequence[NodePool]:
        """The NodePools, by name."""
        return [self._pools[name] for name in sorted(self._pools)]

    def class_of(self, pool: NodePool) -> EC2NodeClass | None:
        """Return the class of the nodes of a pool; None where it was not read, or is of another provider."""
        reference = pool.spec.template.spec.node_class_ref
        return self._classes.get(reference.name) if reference.kind == "EC2NodeClass" else None

    @memoized
    def requirements(self, pool: str) -> Requirements:
        """Return the values of labels that the nodes of the pool with a name may have."""
        named = self._pools[pool]
        return noderequirements.combined(named.spec.template.spec.requirements, named.labels)

    def values(self, pool: str, key: str) -> AllowedValues:
        """Return the values of one label that they may have."""
        return self.requirements(pool).get(key, AllowedValues())

    @memoized
    def claims_in(self, pool: str, key: str) -> Mapping[str, NodeClaim]:
        """Return a NodeClaim of the pool with a name for each domain of a topology key that has one."""
        claims: dict[str, NodeClaim] = {}
        for claim in self._claims.get(pool, ()):
            if value := claim.metadata.labels.get(key, ""):
                claims.setdefault(value, claim)
        return claims
