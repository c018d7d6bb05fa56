"""The snapshot: pods, nodes and owners, folded object by object into the facts that an audit needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from kubectl_spread.audit.snapshot.antiaffinity import AntiAffinity
from kubectl_spread.audit.snapshot.capacity import NodeCapacity, Requests, usage_of
from kubectl_spread.audit.snapshot.default_constraints import DefaultSelectors
from kubectl_spread.audit.snapshot.podclasses import (
    FINISHED,
    IGNORE_ANNOTATION,
    Ownership,
    PodKind,
    PodReader,
    StoredPod,
    controller,
)
from kubectl_spread.audit.snapshot.records import Manifest, OwnerRecord, PodRecord, Population
from kubectl_spread.audit.snapshot.scope import Scope, Target
from kubectl_spread.audit.snapshot.templates import Template, held_template, template_of
from kubectl_spread.audit.snapshot.terms import authored_keys
from kubectl_spread.kube.api import managedfields
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.quantity import whole_number
from kubectl_spread.kube.api.sparse import SparsePod
from kubectl_spread.kube.api.storage import CSIDriver, PersistentVolume, PersistentVolumeClaim, StorageClass
from kubectl_spread.kube.api.types import (
    IDENTIFYING_NAMESPACE,
    READY,
    Event,
    Namespace,
    Node,
    Object,
    ObjectMeta,
    OwnerReference,
    Pod,
)
from kubectl_spread.kube.api.workloads import KINDS, WorkloadObject
from kubectl_spread.kube.autoscaling import HorizontalPodAutoscaler, PriorityClass, PriorityClasses
from kubectl_spread.kube.custom import CustomObject
from kubectl_spread.kube.disruption import Budgets, PodDisruptionBudget
from kubectl_spread.kube.nodeautoscaling import ConfigMap, EC2NodeClass, NodeAutoscalers, NodeClaim, NodePool
from kubectl_spread.kube.scheduler import configuration
from kubectl_spread.kube.scheduler.configuration import Profile
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import Service
from kubectl_spread.kube.scheduler.volumes import ClaimedVolumes

_REVISION_ANNOTATION: Final = "deployment.kubernetes.io/revision"
_REVISION_LABEL: Final = "pod-template-hash"
_TEMPLATE_KINDS: Final = frozenset(kind for _, kind in KINDS)
OVERDUE: Final = timedelta(minutes=5)
"""The time after which a scheduler should have placed or refused a pod."""


class Snapshot:
    """Pods, nodes and owners read at one moment."""

    def __init__(
        self,
        scope: Scope,
        *,
        detailed: bool = False,
        schedulers: Mapping[str, Profile] = configuration.WITHOUT_DEFAULTS,
    ) -> None:
        """Store the pods that ``scope`` selects, and count all pods.

        ``schedulers`` has the known spread configurations of schedulers, by name; if any has default constraints,
        ``default_selectors`` stores their input. ``detailed`` also stores what only explanations and simulations need:
        the state and priority of bound pods, the manager of ``spec.replicas``, and ReplicaSets that ask for no pods.
        ``mirror_pods`` and ``other_pods``, which are out of scope, are not evaluated and take room on nodes.
        ``autoscalers`` has the HorizontalPodAutoscalers by the workloads that they scale, and ``node_autoscalers``
        what says which nodes can be made; ``with_managed_fields`` counts the evaluated pods that have managedFields.
        ``cluster_uid`` is the UID of the namespace ``kube-system``, where its object was read from a file, or "".
        ``read_at`` is when the pods were read, by the API server's clock; of those of files, the latest time in them.
        """
        self.scope = scope
        self.read_at: datetime | None = None
        self.cluster_uid = ""
        self.with_managed_fields = 0
        self.anti_affinity = AntiAffinity()
        self._detailed = detailed
        self.mirror_pods: list[PodRecord] = []
        self.other_pods: list[PodRecord] = []
        self.workload_objects: dict[ObjectRef, WorkloadObject] = {}
        self.pods: list[PodRecord] = []
        self.nodes: list[Node] = []
        self.templates: list[Template] = []
        self.manifests: dict[ObjectRef, Manifest] = {}
        self._unevaluated: list[tuple[str, ObjectRef, OwnerReference | None]] = []
        self._populations: dict[str, Population] = {}
        self._terminating: dict[str, Population] = {}
        self._counters: dict[tuple[PodKind, bool], tuple[Counter[str], ...]] = {}
        self._requests: dict[Requests | None, Counter[str]] = {}
        self.ownership = Ownership()
        self.volumes = ClaimedVolumes()
        self.budgets = Budgets()
        self.priorities = PriorityClasses()
        self.autoscalers: dict[ObjectRef, HorizontalPodAutoscaler] = {}
        self.node_autoscalers = NodeAutoscalers()
        self.schedulers = schedulers
        self.default_selectors = DefaultSelectors(schedulers)
        self._reader = PodReader(scope, schedulers, detailed=detailed)
        self._covered: set[Target] = set()

    def is_overdue(self, pod: PodRecord) -> bool:
        """Tell whether a pending pod is so old that its scheduler should have placed or refused it.

        The scheduler tries again after this time even if nothing has changed.

        Source: kubernetes v1.37.1 pkg/scheduler/backend/queue/scheduling_queue.go,
        DefaultPodMaxInUnschedulablePodsDuration.
        """
        if self.read_at is None or pod.created is None:
            return False
        return self.read_at - pod.created > OVERDUE

    def date(self) -> None:
        """Let the latest time of the pods be when they were read, which was later."""
        times = (
            moment
            for pod in (*self.pods, *self.other_pods)
            for moment in (pod.created, pod.state.ready_since if pod.state else None)
            if moment is not None
        )
        self.read_at = max(times, default=None)

    def add(self, read: Object) -> None:
        """Store an object that only decides about pods."""
        match read:
            case Node():
                self.add_node(read)
            case Namespace():
                self._add_namespace(read)
            case Event():
                self.ownership.add_event(read)
            case Service():
                self.default_selectors.add_service(read)
            case PersistentVolumeClaim() | PersistentVolume() | StorageClass() | CSIDriver():
                self.volumes.add(read)
            case PodDisruptionBudget():
                self.budgets.read = True
                self.budgets.put(read)
            case PriorityClass():
                self.priorities.put(read)
            case HorizontalPodAutoscaler():
                self.add_autoscaler(read)
            case NodePool() | NodeClaim() | EC2NodeClass() | ConfigMap():
                self.node_autoscalers.add(read)

    def _add_namespace(self, namespace: Namespace) -> None:
        """Store the labels of a namespace, and the UID of the one that tells clusters apart."""
        self.anti_affinity.add_namespace(namespace)
        if namespace.metadata.name == IDENTIFYING_NAMESPACE:
            self.cluster_uid = namespace.metadata.uid

    def add_node(self, node: Node) -> None:
        """Store a node, with only name, labels and age of its metadata, and whether it is ready of its conditions."""
        metadata = ObjectMeta(
            name=node.metadata.name,
            labels=node.metadata.labels,
            creation_timestamp=node.metadata.creation_timestamp,
        )
        ready = tuple(condition for condition in node.status.conditions if condition.type == READY)
        status = msgspec.structs.replace(node.status, conditions=ready)
        self.nodes.append(msgspec.structs.replace(node, metadata=metadata, status=status))

    def add_autoscaler(self, autoscaler: HorizontalPodAutoscaler) -> None:
        """Store an autoscaler by the workload that it scales."""
        target = autoscaler.spec.scale_target_ref
        self.autoscalers[ObjectRef(autoscaler.metadata.namespace, target.kind, target.name)] = autoscaler

    def add_workload(self, kind: str, workload: WorkloadObject, manifest: Manifest | None = None) -> None:
        """Store the record of a workload, and its template if that is in scope."""
        metadata = workload.metadata
        owner, ignored = controller(metadata), metadata.annotations.get(IGNORE_ANNOTATION, "")
        if self.scope.covers(metadata.namespace):
            self._covered.add(Target(kind, metadata.name))
            if owner is not None and owner.kind not in _TEMPLATE_KINDS:
                # Objects of such a kind are not read.
                self._covered.add(Target(owner.kind, owner.name))
        ref = self._add_manifest(kind, metadata, manifest)
        record = OwnerRecord(
            ref=ref,
            owner=owner,
            template_labels=workload.template.metadata.labels,
            ignored=ignored,
            created=metadata.creation_timestamp,
            revision=whole_number(metadata.annotations.get(_REVISION_ANNOTATION, "")) or 0,
            replicas=workload.replicas,
            scaled=managedfields.field_owner(metadata, "f:spec", "f:replicas") if self._detailed else None,
            claims=workload.claims if kind in _TEMPLATE_KINDS else None,
            authored_keys=authored_keys(workload.template.spec),
        )
        self.ownership.add(record)
        if workload.replicas or kind != "ReplicaSet" or self._detailed:
            self.workload_objects[ref.first_copy] = workload
        self.default_selectors.add_owner(kind, workload)
        if self._evaluates_template(record, workload) and self.scope.selects_template(
            metadata.namespace, workload.template.metadata.labels
        ):
            self.templates.append(template_of(ref, workload, owner, ignored))

    def infer_deployments(self) -> None:
        """Take the Deployments of ReplicaSets that were not read from their names, which end with the hash of the pods.

        Source: kubernetes v1.37.1 pkg/controller/deployment/sync.go, getNewReplicaSet.
        """
        for pod_class in {pod.pod_class for pod in self.pods}:
            owner, revision = pod_class.owner, pod_class.labels.get(_REVISION_LABEL)
            if owner is None or owner.kind != "ReplicaSet" or not revision:
                continue
            ref, name = ObjectRef(pod_class.namespace, owner.kind, owner.name), owner.name.removesuffix(f"-{revision}")
            if name != owner.name and self.ownership.record(ref) is None:
                above = OwnerReference(api_version="apps/v1", kind="Deployment", name=name, controller=True)
                self.ownership.add(OwnerRecord(ref, above, {}, ""))

    def add_custom(self, kind: str, custom: CustomObject, manifest: Manifest | None = None) -> None:
        """Store the record of an object of a kind that Kubernetes does not define, and its templates in scope."""
        metadata, templates = custom.metadata, custom.templates
        owner, ignored = controller(metadata), metadata.annotations.get(IGNORE_ANNOTATION, "")
        if self.scope.covers(metadata.namespace):
            self._covered.add(Target(kind, metadata.name))
        ref = self._add_manifest(kind, metadata, manifest)
        labels = templates[0].template.metadata.labels if len(templates) == 1 else {}
        self.ownership.add(OwnerRecord(ref, owner, labels, ignored, metadata.creation_timestamp))
        for held in templates:
            of_pods = held.template.metadata.labels
            if self.scope.selects_template(metadata.namespace, None if held.unevaluated and not of_pods else of_pods):
                self.templates.append(held_template(ref, held, owner, ignored))

    def add_pod(self, pod: Pod, manifest: Manifest | None = None) -> None:
        """Count a pod as the scheduler does, and store it if it is evaluated."""
        ref = self._add_manifest("Pod", pod.metadata, manifest)
        self.add_stored(self._reader.read_alone(pod, ref.copy))

    def add_sparse(self, pod: SparsePod) -> None:
        """Count and store a pod as ``add_pod`` does; its common fields with similar pods are read once."""
        self.add_stored(self._reader.read(pod))

    def add_stored(self, pod: StoredPod) -> None:
        """Count and store a pod as ``add_pod`` does; it was read before."""
        record, kind = pod.record, pod.kind
        if record.node and kind.reason != FINISHED:
            for counter in self._counters_of(kind, terminating=record.terminating):
                counter[record.node] += 1
        if kind.in_scope:
            if not kind.reason:
                self.with_managed_fields += pod.has_managed_fields
                self.pods.append(record)
                return
            self._unevaluated.append((kind.reason, record.ref.first_copy, kind.pod_class.owner))
        if kind.reason != FINISHED:
            (self.mirror_pods if kind.reason else self.other_pods).append(record)

    def _counters_of(self, kind: PodKind, *, terminating: bool) -> tuple[Counter[str], ...]:
        """Return the counters by node of similar pods: for their requests, their labels, and any anti-affinity."""
        key = (kind, terminating)
        if key not in self._counters:
            pod_class = kind.pod_class
            requests = usage_of(pod_class.spec, pod_class.requests)
            populations = self._terminating if terminating else self._populations
            population = populations.setdefault(pod_class.namespace, Population())
            repelling = self.anti_affinity.nodes(pod_class)
            self._counters[key] = (
                self._requests.setdefault(requests, Counter()),
                population.counter(pod_class.labels),
                *(() if repelling is None else (repelling,)),
            )
        return self._counters[key]

    def _add_manifest(self, kind: str, metadata: ObjectMeta, manifest: Manifest | None) -> ObjectRef:
        """Store the position of a manifest, and return the object's reference."""
        ref = ObjectRef(metadata.namespace, kind, metadata.name, manifest.copy if manifest else 0)
        if manifest:
            self.manifests[ref] = manifest
        return ref

    def join(self, others: Snapshot) -> None:
        """Add the pods of other namespaces: their counts, their requests, and their anti-affinity."""
        self._populations.update(others._populations)
        self._terminating.update(others._terminating)
        for requests, per_node in others._requests.items():
            self._requests.setdefault(requests, Counter()).update(per_node)
        self.anti_affinity.join(others.anti_affinity)
        self.mirror_pods += others.mirror_pods
        self.other_pods += others.other_pods

    def unmet(self) -> list[Target]:
        """Return the targets that were not read and that own no object that was read."""
        if not self.scope.targets:
            return []
        read = self._covered | {Target(ref.kind, ref.name) for ref in self._pods_and_owners()}
        return [target for target in self.scope.targets if target.name and target not in read]

    def objects(self) -> set[ObjectRef]:
        """Return the pods and workloads in scope, and all known owners of theirs."""
        workloads = (ref for ref in self.ownership.objects if self.scope.covers(ref.namespace))
        return {*self._pods_and_owners(), *workloads}

    def _pods_and_owners(self) -> set[ObjectRef]:
        """Return the pods in scope, even those that are not evaluated, and all known owners of theirs."""
        refs = {
            ref for pod in self.pods for ref in (pod.ref.first_copy, *(owner.ref for owner in self.owner_chain(pod)))
        }
        refs.update(ref for _, passed_over in self._unevaluated_refs() for ref in passed_over)
        return refs

    def population(self, namespace: str, *, terminating: bool = False) -> Population:
        """Return the counted pods of a namespace, or the terminating ones, which do not count."""
        return self.populations(terminating=terminating).get(namespace, Population())

    def capacity(self) -> NodeCapacity:
        """Return the capacity that the nodes have left."""
        return NodeCapacity(self.nodes, self._requests)

    def populations(self, *, terminating: bool = False) -> Mapping[str, Population]:
        """Return the counted pods of every namespace, or the terminating ones."""
        return self._terminating if terminating else self._populations

    def pods_on_nodes(self) -> Counter[str]:
        """Count the bound pods of each node, in the order of the nodes' names."""
        numbers: Counter[str] = Counter()
        for populations in (self._populations, self._terminating):
            for population in populations.values():
                for _, per_node in population:
                    numbers.update(per_node)
        return Counter({node: numbers[node] for node in sorted(numbers)})

    def owner_chain(self, pod: PodRecord) -> tuple[OwnerRecord, ...]:
        """Return the known owners of a pod, the direct one first, up to the root."""
        return self.ownership.chain(pod.pod_class.namespace, pod.pod_class.owner)

    def may_lack_siblings(self, pod: PodRecord) -> bool:
        """Tell whether the scope may leave out other pods of a pod's workload.

        It leaves out none where it selects no fields, and only labels that the templates of the known owners have.
        """
        if self.scope.fields or not self.scope.labels:
            return bool(self.scope.fields)
        owners = [owner for owner in self.owner_chain(pod) if self.ownership.record(owner.ref) is not None]
        return not owners or not all(
            self.scope.selects_template(owner.ref.namespace, owner.template_labels) for owner in owners
        )

    @property
    def skipped(self) -> Counter[str]:
        """Count the pods in scope that are not evaluated, by reason."""
        targets = self.scope.targets
        return Counter(
            reason
            for reason, refs in self._unevaluated_refs()
            if not targets or any(target.includes(ref) for target in targets for ref in refs)
        )

    def _unevaluated_refs(self) -> Iterator[tuple[str, list[ObjectRef]]]:
        """Yield the reason for each pod that is not evaluated, with the pod and its owners."""
        for reason, ref, owner in self._unevaluated:
            yield reason, [ref, *(record.ref for record in self.ownership.chain(ref.namespace, owner))]

    def workload(self, pod: PodRecord) -> ObjectRef:
        """Return the root owner of a pod; a pod without one is its own workload."""
        chain = self.owner_chain(pod)
        return chain[-1].ref if chain else pod.ref

    def root(self, template: Template) -> ObjectRef:
        """Return the root owner of a template's pods: its workload, or the owner of that."""
        chain = self.template_owners(template)
        return chain[-1].ref if chain else template.workload

    def template_owners(self, template: Template) -> tuple[OwnerRecord, ...]:
        """Return the known owners of a template's workload, the direct one first, up to the root."""
        return self.ownership.chain(template.namespace, template.owner)

    def _evaluates_template(self, record: OwnerRecord, workload: WorkloadObject) -> bool:
        """Tell whether a workload's own template is evaluated: no owner of it is read, or it is a target.

        Of workloads with an owner (such as a Rollout's ReplicaSet, or a target) only those with replicas are evaluated.
        """
        if record.owner is None:
            return True
        named = any(target.includes(record.ref) for target in self.scope.targets)
        return workload.replicas != 0 and (named or record.owner.kind not in _TEMPLATE_KINDS)
