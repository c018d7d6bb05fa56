"""World: the facts that all runs of a simulation share, and the classes of pods that controllers would create."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from kubectl_spread.audit.evaluation.volumes import Volumes
from kubectl_spread.audit.merge import admission
from kubectl_spread.audit.snapshot import default_constraints
from kubectl_spread.audit.snapshot.capacity import requests_of
from kubectl_spread.audit.snapshot.podclasses import PodClasses
from kubectl_spread.audit.snapshot.records import DEFAULT_SCHEDULER, OwnerRecord, PodClass, PodRecord
from kubectl_spread.audit.snapshot.revisions import LABELS, revision_of
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.audit.snapshot.templates import labels_of_controller, pod_refusals
from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.engine.kinds import Kinds, SchedulingKind
from kubectl_spread.engine.nodes import NodeTable
from kubectl_spread.engine.pods import SimulatedPod
from kubectl_spread.kube import apiserver, nodelifecycle
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api import quantity
from kubectl_spread.kube.api.labels import HOSTNAME, Labels
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.sparse import DetailedPodSpec
from kubectl_spread.kube.api.types import (
    Affinity,
    Container,
    LabelSelector,
    Node,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodSpec,
    ResourceRequirements,
    Taint,
    Toleration,
)
from kubectl_spread.kube.api.workloads import (
    DaemonSet,
    Job,
    PodTemplateSpec,
    StatefulSet,
    WorkloadObject,
    ordinal_of,
)
from kubectl_spread.kube.disruption import PodDisruptionBudget
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.scheduler import nodeports
from kubectl_spread.kube.scheduler.scores import Weights
from kubectl_spread.memoization import memoized, memoized_by_identity
from kubectl_spread.phrases import named

if TYPE_CHECKING:
    from kubectl_spread.engine.background import Background
    from kubectl_spread.engine.placing import Placements

_POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
_POD_INDEX: Final = "apps.kubernetes.io/pod-index"
_CORDON: Final = "node.kubernetes.io/unschedulable"
_OF_CONDITIONS: Final = (
    "node.kubernetes.io/",
    "karpenter.sh/",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
)
"""The beginnings of the taints that Kubernetes and autoscalers set by the state of a node."""
SIMULATED: Final = "simulated"
"""The revision of pods that a simulated rollout creates."""


class ConstraintChange(msgspec.Struct, frozen=True):
    """A change of the constraints of a workload's pods, which a fix makes.

    Attributes:
        workloads: The workloads.
        topology_key: The topology key of the constraint.
        fields: The new values of its fields, by their names in Python.
    """

    workloads: frozenset[ObjectRef]
    topology_key: str
    fields: Mapping[str, object]


class World:
    """The cluster as it was read.

    Attributes:
        placements: The pods on their nodes, as they were read; None before the first run.
        background: The pods that only take room in its runs; None where all pods take part.
        unknown: What was not read, or cannot be simulated, and decides about pods that are placed.
    """

    def __init__(self, snapshot: Snapshot, behaviour: Behaviour, now: datetime | None) -> None:
        """Take a snapshot with all pods; ``now`` is when it was read, None where that is unknown."""
        self.snapshot = snapshot
        self.behaviour = behaviour
        self.weights = Weights()
        self.now = now
        self.kinds = Kinds(behaviour, snapshot.anti_affinity.namespaces)
        self.change: ConstraintChange | None = None
        self._classes = PodClasses(snapshot.schedulers, detailed=True)
        self._tables: dict[tuple[int, ...], tuple[NodeTable, Volumes, tuple[Node, ...]]] = {}
        self._adopted: dict[ObjectRef, ObjectRef] = {}
        self._adopted_by: dict[ObjectRef, list[ObjectRef]] = {}
        self._pods: Sequence[SimulatedPod] | None = None
        self.placements: Placements | None = None
        self.background: Background | None = None
        self.objects: dict[ObjectRef, WorkloadObject] = {}
        self.unknown: dict[str, None] = {}

    def variant(
        self,
        *,
        nodes: Sequence[Node] | None = None,
        change: ConstraintChange | None = None,
        budget: PodDisruptionBudget | None = None,
    ) -> World:
        """Return this cluster with other nodes, changed constraints or another budget; answers that hold are shared."""
        other = copy(self)
        if budget is not None:
            other.snapshot = copy(self.snapshot)
            other.snapshot.budgets = self.snapshot.budgets.with_budget(budget)
        else:
            other.__dict__ |= {"change": change, "_pods": None, "placements": None}
        if nodes is not None:
            other.__dict__["nodes"] = tuple(nodes)
        return other

    def alone(self, pods: Sequence[SimulatedPod], background: Background) -> World:
        """Return this cluster with only some pods, and others that take room."""
        other = copy(self)
        other.__dict__ |= {"_pods": pods, "placements": background.placements(pods), "background": background}
        return other

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes, by name."""
        return tuple(sorted(self.snapshot.nodes, key=lambda node: node.metadata.name))

    @property
    def records(self) -> Sequence[PodRecord]:
        """The pods that were read, also those out of scope, without mirror pods."""
        return (*self.snapshot.pods, *self.snapshot.other_pods)

    @cached_property
    def newest_pods(self) -> Mapping[ObjectRef, PodRecord]:
        """Maps each direct owner to its newest pod."""
        newest: dict[ObjectRef, PodRecord] = {}
        for (owner, _), pod in self._newest_by_revision.items():
            newest[owner] = max((newest.get(owner, pod), pod), key=_age)
        return newest

    @cached_property
    def _newest_by_revision(self) -> Mapping[tuple[ObjectRef, str], PodRecord]:
        newest: dict[tuple[ObjectRef, str], PodRecord] = {}
        for pod in self.records:
            owner = owner_of(pod)
            if owner is not None and not pod.terminating:
                key = (owner, revision_of(pod.pod_class.labels))
                newest[key] = max((newest.get(key, pod), pod), key=_age)
        return newest

    def table(self, nodes: tuple[Node, ...]) -> tuple[NodeTable, Volumes]:
        """Return the answers about a set of nodes, which runs share."""
        key = tuple(map(id, nodes))
        if key not in self._tables:
            table = NodeTable(nodes, self.behaviour)
            # The entry keeps the nodes, so that no other object gets their identities.
            self._tables[key] = (table, Volumes(self.snapshot, table.sets), nodes)
        table, volumes, _ = self._tables[key]
        return table, volumes

    def mirrors(self) -> list[SimulatedPod]:
        """Return the mirror pods, which take room on their nodes and which no controller replaces."""
        if self.background is not None:
            return []
        pods = (pod for pod in self.snapshot.mirror_pods if pod.node)
        return [SimulatedPod(pod, self.kinds.of(pod.pod_class), pod.ref, None) for pod in pods]

    def pods(self) -> Iterator[SimulatedPod]:
        """Yield the other pods that are not terminating, by name, for a run."""
        if self._pods is None:
            self._pods = [*self._read()]
        return (pod.copy() for pod in self._pods)

    def _read(self) -> Iterator[SimulatedPod]:
        # By name, so that equal clusters have equal runs in whichever order they were read.
        for record in sorted(self.records, key=_by_name):
            if not record.terminating:
                workload = self.snapshot.workload(record)
                pod = SimulatedPod(record, self.kind(record.pod_class, workload), workload, owner_of(record))
                if record.pod_class.pinned:
                    pod.pin = record.node or pod.state.only_node
                yield pod

    def terminating(self) -> Iterator[SimulatedPod]:
        """Yield the terminating pods that were on a node when the cluster was read."""
        snapshot = self.snapshot
        for record in self.records:
            if record.terminating and record.node:
                kind = self.kinds.of(record.pod_class, terminating=True)
                yield SimulatedPod(record, kind, snapshot.workload(record), owner_of(record))

    def object(self, ref: ObjectRef) -> WorkloadObject | None:
        """Return a workload that was read."""
        return self.objects.get(ref) or self.snapshot.workload_objects.get(ref)

    @cached_property
    def _numbers_of_pods(self) -> Counter[ObjectRef | None]:
        return Counter(owner_of(pod) for pod in self.records if not pod.terminating)

    def number_of_pods(self, owner: ObjectRef) -> int:
        """Return the number of pods that an owner had when the cluster was read."""
        return self._numbers_of_pods[owner]

    @cached_property
    def _ordinals(self) -> Mapping[ObjectRef, Sequence[int]]:
        ordinals: dict[ObjectRef, list[int]] = {}
        for pod in self.records:
            owner = owner_of(pod)
            if owner is not None and not pod.terminating and (ordinal := ordinal_of(pod.name)) >= 0:
                ordinals.setdefault(owner, []).append(ordinal)
        return ordinals

    def ordinals(self, owner: ObjectRef) -> Sequence[int]:
        """Return the ordinals of the pods that a StatefulSet had when the cluster was read."""
        return self._ordinals.get(owner, ())

    def forget(self) -> None:
        """Forget the manifests and ReplicaSets of a run before."""
        self.objects.clear()
        self._adopted.clear()
        self._adopted_by.clear()

    def adopt(self, owner: ObjectRef, workload: ObjectRef) -> None:
        """Note that a workload owns ``owner``, which a simulated rollout creates."""
        self._adopted[owner] = workload
        self._adopted_by.setdefault(workload, []).append(owner)

    def root(self, owner: ObjectRef) -> ObjectRef:
        """Return the root owner of an owner."""
        return self._adopted.get(owner) or self.snapshot.ownership.owners(owner)[-1]

    def owners_below(self, workload: ObjectRef) -> list[ObjectRef]:
        """Return the ReplicaSets of a Deployment, the oldest first; other objects that it owns take no part."""
        return [*self._below.get(workload, ()), *self._adopted_by.get(workload, ())]

    def owner_of_template(self, workload: ObjectRef, template: PodTemplateSpec) -> ObjectRef | None:
        """Return the newest ReplicaSet of a Deployment if it has the pod template of the Deployment."""
        for newest in self.owners_below(workload)[-1:]:
            stored = self.object(newest)
            if stored is not None:
                metadata = stored.template.metadata
                labels = {key: value for key, value in metadata.labels.items() if key not in LABELS}
                own = replace(stored.template, metadata=replace(metadata, labels=labels))
                return newest if own.equals(template) else None
        return None

    @cached_property
    def _below(self) -> Mapping[ObjectRef, Sequence[ObjectRef]]:
        """Maps each workload to the ReplicaSets that it owns directly, the oldest first."""
        below: dict[ObjectRef, list[OwnerRecord]] = {}
        for record in self.snapshot.ownership.records:
            if record.owner is not None and record.ref.kind == "ReplicaSet":
                below.setdefault(ObjectRef(record.ref.namespace, record.owner.kind, record.owner.name), []).append(
                    record
                )
        return {
            workload: [record.ref for record in sorted(records, key=_by_revision)]
            for workload, records in below.items()
        }

    def siblings(self, owner: ObjectRef, root: ObjectRef) -> list[ObjectRef]:
        """Return the owners whose pods count when an owner ranks its own: none where it has no owner itself.

        Source: kubernetes v1.37.1 pkg/controller/replicaset/replica_set.go, getReplicaSetsWithSameController.
        """
        if root == owner:
            return []
        return self.owners_below(root) if root.kind == "Deployment" else [owner]

    def record(self, owner: ObjectRef, pod_class: PodClass, name: str, like: PodRecord | None) -> PodRecord:
        """Return the record of a new pod, with the claims that the template of its owner names."""
        workload = self._holder(owner)
        names = None if workload is None else workload.claims
        claims = names.of(name) if names is not None else like.claims if like is not None else ()
        gates = tuple(gate.name for gate in pod_class.spec.scheduling_gates)
        return PodRecord(name, "", pod_class, 1, None, (), terminating=False, claims=claims, gates=gates)

    def refusal(self, owner: ObjectRef | None, pod_class: PodClass) -> str:
        """Return why the API server refuses a pod that an owner creates; "" if it does not, or for a bare pod."""
        workload = self._holder(owner)
        return "" if workload is None else self._refusal(workload.template, pod_class)

    @memoized_by_identity
    def _refusal(self, template: PodTemplateSpec, pod_class: PodClass) -> str:
        errors = pod_refusals(template.spec, pod_class.labels, self.behaviour)
        return f"the API server refuses pods of its template: {errors[0].message}" if errors else ""

    def _holder(self, owner: ObjectRef | None) -> WorkloadObject | None:
        """Return the object with the pod template of an owner: the owner itself, or its root owner."""
        return None if owner is None else self.object(owner) or self.object(self.root(owner))

    def makes_volumes_somewhere(self, owner: ObjectRef | None) -> bool:
        """Tell whether ephemeral volumes of new pods may be on some nodes only; their claims are not read."""
        workload = self._holder(owner)
        return workload is not None and workload.has_ephemeral_volumes and not self.snapshot.volumes.made_anywhere

    @memoized_by_identity
    def cordoned(self, node: Node) -> Node:
        """Return a node after ``kubectl cordon``, with the taint that follows."""
        taints = dict.fromkeys((*node.spec.taints, Taint(key=_CORDON, effect="NoSchedule")))
        return replace(node, spec=replace(node.spec, unschedulable=True, taints=tuple(taints)))

    @memoized_by_identity
    def unreachable(self, node: Node) -> Node:
        """Return a node that does not answer any more, with the taints that follow."""
        taints = dict.fromkeys((*node.spec.taints, nodelifecycle.NO_SCHEDULE, nodelifecycle.NO_EXECUTE))
        return replace(node, spec=replace(node.spec, taints=tuple(taints)))

    def uncordoned(self, node: Node) -> Node:
        """Return a node after ``kubectl uncordon``."""
        taints = tuple(taint for taint in node.spec.taints if taint.key != _CORDON)
        return replace(node, spec=replace(node.spec, unschedulable=False, taints=taints))

    @memoized_by_identity
    def copied(self, node: Node, name: str) -> Node:
        """Return a new node like another one, without the taints that are set by its state."""
        taints = tuple(taint for taint in node.spec.taints if not taint.key.startswith(_OF_CONDITIONS))
        return replace(
            node,
            metadata=ObjectMeta(name=name, labels={**node.metadata.labels, HOSTNAME: name}),
            spec=replace(node.spec, unschedulable=False, taints=taints),
        )

    def changed(self, node: Node, labels: Labels, taints: tuple[Taint, ...]) -> Node:
        """Return a node with other labels and taints."""
        return self._changed_node(node, tuple(sorted(labels.items())), taints)

    @memoized_by_identity
    def _changed_node(self, node: Node, labels: tuple[tuple[str, str], ...], taints: tuple[Taint, ...]) -> Node:
        return replace(
            node, metadata=replace(node.metadata, labels=dict(labels)), spec=replace(node.spec, taints=taints)
        )

    @memoized
    def numbered(self, pod_class: PodClass, name: str, index: int) -> PodClass:
        """Return the class of a pod of a StatefulSet from the class of another one."""
        return admission.created_again(pod_class, _numbered(pod_class.labels, name, index), self.behaviour)

    def kind(self, pod_class: PodClass, workload: ObjectRef) -> SchedulingKind:
        """Return the kind of pods of a class, with the change of the fix that is tried."""
        if self.change is not None and workload in self.change.workloads:
            pod_class = self._changed(self.change, pod_class)
        return self.kinds.of(pod_class)

    @memoized_by_identity
    def _changed(self, change: ConstraintChange, pod_class: PodClass) -> PodClass:
        """Return a class after the change of a fix."""
        terms: list[TopologyTerm] = []
        for term in pod_class.terms:
            if term.constraint is None or term.topology_key != change.topology_key:
                terms.append(term)
            else:
                constraint = replace(term.constraint, **change.fields)
                required = constraint.when_unsatisfiable == "DoNotSchedule"
                terms.append(replace(term, constraint=constraint, required=required))
        return replace(pod_class, terms=tuple(terms))

    def created(self, owner: ObjectRef, name: str = "", index: int = 0, *, former: bool = False) -> PodClass | None:
        """Return the class of a pod that an owner creates from the template that it has; None where it is unknown.

        Args:
            owner: The direct owner.
            name: The name of a pod of a StatefulSet, which is also in a label.
            index: The index of such a pod.
            former: Whether the pod is of the revision before the template.
        """
        like, fits = self._like(owner, index, former=former)
        if like is not None and fits:
            return self._created_like(owner, like.pod_class, name, index)
        if (workload := self.object(owner)) is None:
            return None
        revision = workload.status.update_revision if isinstance(workload, StatefulSet) else ""
        of_like = None if like is None else like.pod_class
        return self.from_template(workload.template, owner, of_like, revision=revision, name=name, index=index)

    @memoized
    def _created_like(self, owner: ObjectRef, like: PodClass, name: str, index: int) -> PodClass:
        """Return the class of a pod of the same template as others of its owner."""
        created = admission.created_again(like, self._labels(owner, like, name, index), self.behaviour)
        created = _with_revision(created)
        # A pod on a node has lost its gates, and has the name of its node.
        workload = self.object(owner)
        spec = like.spec if workload is None else workload.template.spec
        node = "" if workload is None else spec.node_name
        return replace(created, spec=replace(created.spec, scheduling_gates=spec.scheduling_gates, node_name=node))

    def created_again(self, pod: PodRecord) -> PodRecord:
        """Return a bare pod after its manifest, without what the API server merged, is created again."""
        pod_class = admission.created_again(pod.pod_class, pod.pod_class.labels, self.behaviour)
        # The class has the node of one of its pods.
        pod_class = replace(pod_class, spec=replace(pod_class.spec, node_name=""))
        return replace(pod, node="", pod_class=pod_class)

    def _like(self, owner: ObjectRef, index: int, *, former: bool) -> tuple[PodRecord | None, bool]:
        """Return a pod of an owner, and whether a new pod is like it: they have the same pod template.

        Source: kubernetes v1.37.1 pkg/controller/statefulset/stateful_set_utils.go, newVersionedStatefulSetPod.
        """
        newest, stored = self.newest_pods.get(owner), self.snapshot.workload_objects.get(owner)
        if newest is None or stored is None:
            return newest, newest is not None
        if isinstance(stored, StatefulSet):
            before = former or stored.keeps(index)
            revision = stored.status.current_revision if before else stored.status.update_revision
            of_revision = self._newest_by_revision.get((owner, revision))
            if of_revision is not None:
                return of_revision, True
            # A file may lack the status, and with it the revision.
            return newest, before or (not revision and self._has_made(stored.template, newest.pod_class))
        # Others with an owner, and Jobs, never have another template than their pods.
        replicated = owner.kind in ("ReplicaSet", "ReplicationController", "DaemonSet") and self.root(owner) == owner
        return newest, not replicated or self._has_made(stored.template, newest.pod_class)

    def _has_made(self, template: PodTemplateSpec, pod_class: PodClass) -> bool:
        """Tell whether pods of a class are those of a template, as far as it decides where they go.

        They may have more than it, which admission gives to all pods of a namespace.
        """
        spec, labels = pod_class.spec, pod_class.labels
        own = apiserver.prepare_for_create(template.spec, labels, self.behaviour)
        if pod_class.pinned:
            # The controller has put the name of its node in place of the node affinity of the template.
            own = replace(own, affinity=replace(own.affinity or Affinity(), node_affinity=None))
        containers = {getattr(each, "name", ""): each for each in (*spec.init_containers, *spec.containers)}
        return (
            template.metadata.labels.items() <= labels.items()
            and own.node_selector.items() <= spec.node_selector.items()
            and set(own.tolerations) <= set(spec.tolerations)
            and own.scheduler_name in ("", DEFAULT_SCHEDULER, spec.scheduler_name)
            and _priority_class(own) in ("", _priority_class(spec))
            and (own.affinity, own.topology_spread_constraints, nodeports.host_ports(own))
            == (spec.affinity, spec.topology_spread_constraints, nodeports.host_ports(spec))
            and all(
                each.name in containers and _amounts(each).items() <= _amounts(containers[each.name]).items()
                for each in (*template.spec.init_containers, *template.spec.containers)
            )
            and self._may_be_added(_additions(own, spec), pod_class)
        )

    def _may_be_added(self, additions: _Additions, pod_class: PodClass) -> bool:
        """Tell whether admission may have added something to pods of a class: no other pod of the namespace is without.

        Where there are no others, an earlier template may have had it, too.
        """
        if additions == _NO_ADDITIONS:
            return True
        own, others = pod_class.owner, self._others(pod_class)
        if not others and own is not None:
            self.unknown[
                f"whether admission, or an earlier template, gave pods of {named(own.kind, own.name)} more"
            ] = None
        return all(additions.are_in(each.spec) for each in others)

    def _others(self, pod_class: PodClass) -> list[PodClass]:
        """Return the classes of the pods of other owners in a namespace."""
        return [each for each in self._classes_in.get(pod_class.namespace, ()) if each.owner != pod_class.owner]

    @cached_property
    def _classes_in(self) -> Mapping[str, Sequence[PodClass]]:
        """Maps each namespace to the classes of its pods."""
        classes: dict[str, dict[int, PodClass]] = {}
        for pod in self.records:
            classes.setdefault(pod.namespace, {})[id(pod.pod_class)] = pod.pod_class
        return {namespace: [*each.values()] for namespace, each in classes.items()}

    def _labels(self, owner: ObjectRef, pod_class: PodClass, name: str, index: int) -> Labels:
        """Return the labels of a new pod: those of the template and of its controller, or those of a pod like it."""
        record = self.snapshot.ownership.record(owner)
        labels = pod_class.labels
        if record is not None and record.template_labels:
            of_controller = (key for key in labels_of_controller(owner.kind) if key in labels)
            labels = {**{key: labels[key] for key in of_controller}, **record.template_labels}
        return _numbered(labels, name, index)

    @memoized_by_identity
    def from_template(
        self,
        template: PodTemplateSpec,
        owner: ObjectRef,
        like: PodClass | None,
        *,
        revision: str = "",
        name: str = "",
        index: int = 0,
    ) -> PodClass:
        """Return the class of a pod of a template.

        Args:
            template: The pod template.
            owner: The direct owner.
            like: The class of pods of the same workload, which have what admission adds to every pod.
            revision: The value of the label that distinguishes revisions; "" for the value of a first one.
            name: The name of a pod of a StatefulSet.
            index: The index of such a pod.
        """
        # The controller of a ReplicaSet that has a Deployment is that of the Deployment.
        kind = self.root(owner).kind if owner.kind == "ReplicaSet" else owner.kind
        added: dict[str, str] = {
            label: revision or SIMULATED for label in LABELS if label in labels_of_controller(kind)
        }
        labels = _numbered({**added, **template.metadata.labels}, name, index)
        self._note_scheduler(owner, template.spec.scheduler_name, like)
        if like is None:
            return self._new(owner, template, labels)
        stored = self.snapshot.workload_objects.get(owner)
        former = () if stored is None else stored.template.spec.tolerations
        # Where the stored template is the new one, pods may have more of an earlier one.
        others = self._others(like) if stored is not None and stored.template is template else ()
        by_admission = (
            each
            for each in like.spec.tolerations
            if each not in former
            and (_is_of_kubernetes(each, like.spec) or all(each in other.spec.tolerations for other in others))
        )
        tolerations = dict.fromkeys((*template.spec.tolerations, *by_admission))
        spec = replace(self._admitted(template.spec, like), tolerations=tuple(tolerations))
        created = _with_revision(admission.created_from(like, spec, labels, self.behaviour))
        return self._with_priority(owner, created, like.spec)

    def _admitted(self, spec: PodSpec, like: PodClass) -> PodSpec:
        """Return the spec of a template with the labels of nodes and the amounts that admission gives pods like it.

        What a change leaves as it was in the template of the pods before is in new pods as in these, such as requests
        by default (of a LimitRange), or those of a VerticalPodAutoscaler.
        """
        maker = self._maker(like)
        if maker is None:
            return spec
        former, after = maker.template.spec, like.spec
        containers = {
            name: tuple(
                _admitted_container(each, getattr(former, name), getattr(after, name)) for each in getattr(spec, name)
            )
            for name in ("containers", "init_containers")
        }
        selected = dict(after.node_selector.items() - former.node_selector.items())
        overhead = spec.overhead or ({} if former.overhead else after.overhead)
        return replace(spec, node_selector={**selected, **spec.node_selector}, overhead=overhead, **containers)

    def _maker(self, pod_class: PodClass) -> WorkloadObject | None:
        """Return the owner of pods, if these were surely made from the pod template that it has."""
        owner = pod_class.owner and ObjectRef(pod_class.namespace, pod_class.owner.kind, pod_class.owner.name)
        maker = owner and self.snapshot.workload_objects.get(owner)
        if not (owner and maker):
            return None
        if isinstance(maker, StatefulSet):
            revision = maker.status.update_revision
            made = bool(revision) and revision == revision_of(pod_class.labels)
        elif isinstance(maker, DaemonSet):
            made = maker.is_of_template(pod_class.labels)
        else:
            # Those with an owner, and Jobs, never have another template than their pods.
            made = isinstance(maker, Job) or self.root(owner) != owner or self._has_made(maker.template, pod_class)
        return maker if made else None

    def _note_admission(self, owner: ObjectRef, spec: PodSpec) -> None:
        """Note that admission may give the first pods of a workload more, if it did so with others of its namespace."""
        without = {name for each in spec.containers for name in ("cpu", "memory") if name not in _amounts(each)}
        selects, resources = self._admitted_in(owner.namespace)
        if selects or resources & without:
            self.unknown[
                f"what admission gives the pods of {named(owner.kind, owner.name)} (others of its namespace got "
                f"{'a nodeSelector' if selects else 'requests'} that their template does not have)"
            ] = None

    @memoized
    def _admitted_in(self, namespace: str) -> tuple[bool, frozenset[str]]:
        """Return whether pods of a namespace got a nodeSelector from admission, and the resources that they got."""
        makers = ((pod_class, self._maker(pod_class)) for pod_class in self._classes_in.get(namespace, ()))
        added = [_additions(maker.template.spec, each.spec) for each, maker in makers if maker is not None]
        return any(each.selected for each in added), frozenset().union(*(each.resources for each in added))

    def _note_scheduler(self, owner: ObjectRef, name: str, like: PodClass | None) -> None:
        """Note the scheduler of a template, unless it is the default one, or that of pods like it."""
        if name not in ("", DEFAULT_SCHEDULER) and (like is None or like.scheduler_name != name):
            pods = named(owner.kind, owner.name)
            self.unknown[f"the rules of scheduler {name}, which places the pods of {pods}"] = None

    def _with_priority(self, owner: ObjectRef, pod_class: PodClass, like: PodSpec | None) -> PodClass:
        """Return the class with the priority of its PriorityClass; that of the pods before where they name the same."""
        spec = pod_class.spec
        name = spec.priority_class_name if isinstance(spec, DetailedPodSpec) else ""
        if isinstance(like, DetailedPodSpec) and like.priority_class_name == name:
            return pod_class
        priority_class = self.snapshot.priorities.of(name)
        if priority_class is None:
            self.unknown[
                f"the priority of the pods of {named(owner.kind, owner.name)} (PriorityClass {name} was not read)"
            ] = None
            return pod_class
        preempts = (getattr(spec, "preemption_policy", "") or priority_class.preemption_policy) != "Never"
        return replace(pod_class, priority=priority_class.value, preempts=preempts)

    def _new(self, owner: ObjectRef, template: PodTemplateSpec, labels: Labels) -> PodClass:
        """Return the class of the first pods of a workload."""
        self._note_admission(owner, template.spec)
        reference = OwnerReference(api_version="apps/v1", kind=owner.kind, name=owner.name, controller=True)
        metadata = ObjectMeta(
            namespace=owner.namespace, labels=dict(labels), owner_references=(reference,), uid=SIMULATED
        )
        pod = Pod(metadata=metadata, spec=template.spec)
        plain = self._classes.of(pod, requests_of(template.spec))
        created = admission.created_from(plain, template.spec, labels, self.behaviour)
        created = self._with_priority(owner, created, None)
        if not default_constraints.may_have_defaults(created):
            return created
        selector = self.snapshot.default_selectors.of(created)
        if labelselectors.is_empty(selector):
            workload = self.object(owner)
            selector = (workload and workload.selector) or selector
        return created if labelselectors.is_empty(selector) else default_constraints.with_defaults(created, selector)


def _by_name(pod: PodRecord) -> tuple[str, str]:
    return pod.namespace, pod.name


def owner_of(pod: PodRecord) -> ObjectRef | None:
    """Return the direct owner of a pod."""
    owner = pod.pod_class.owner
    return None if owner is None else ObjectRef(pod.namespace, owner.kind, owner.name)


def _by_revision(record: OwnerRecord) -> tuple[int, float, str]:
    return (record.revision, record.created.timestamp() if record.created else 0.0, record.ref.name)


def _priority_class(spec: PodSpec | None) -> str:
    return spec.priority_class_name if isinstance(spec, DetailedPodSpec) else ""


def _admitted_container(container: Container, former: Sequence[Container], after: Sequence[Container]) -> Container:
    """Return a container with the amounts that admission has given the one of its name, where it left those alone."""
    name = getattr(container, "name", "")
    before = next((each for each in former if getattr(each, "name", "") == name), None)
    made = next((each for each in after if getattr(each, "name", "") == name), None)
    if before is None or made is None:
        return container
    own, written, stored = container.resources, before.resources, made.resources
    changed = {
        name
        for name in {*stored.limits, *stored.requests}
        for field in ("limits", "requests")
        if _amount(own, field, name) != _amount(written, field, name)
    }
    return replace(
        container,
        resources=replace(
            own,
            limits={**own.limits, **{name: each for name, each in stored.limits.items() if name not in changed}},
            requests={**own.requests, **{name: each for name, each in stored.requests.items() if name not in changed}},
        ),
    )


def _amount(resources: ResourceRequirements, field: str, name: str) -> int | str:
    return quantity.comparable(getattr(resources, field).get(name, ""))


def _amounts(container: Container) -> dict[str, int | str]:
    """Return the requests of a container, where a limit stands for a missing request."""
    listed = {**container.resources.limits, **container.resources.requests}
    return {name: quantity.comparable(amount) for name, amount in listed.items()}


def _age(pod: PodRecord) -> tuple[float, str]:
    return (pod.created.timestamp() if pod.created else 0.0, pod.name)


class _Additions(msgspec.Struct, frozen=True):
    """What pods have that the template does not ask for, and that decides where they go.

    Attributes:
        selected: The labels of nodes.
        tolerations: The tolerations, without those that Kubernetes itself adds.
        resources: The resources that a container requests.
    """

    selected: frozenset[tuple[str, str]] = frozenset()
    tolerations: frozenset[Toleration] = frozenset()
    resources: frozenset[str] = frozenset()

    def are_in(self, spec: PodSpec) -> bool:
        """Tell whether another pod has all of that."""
        return (
            self.selected <= spec.node_selector.items()
            and self.tolerations <= set(spec.tolerations)
            and all(self.resources <= _amounts(each).keys() for each in spec.containers)
        )


_NO_ADDITIONS: Final = _Additions()


def _additions(template: PodSpec, spec: PodSpec) -> _Additions:
    containers = {getattr(each, "name", ""): each for each in template.containers}
    tolerations = (each for each in spec.tolerations if not _is_of_kubernetes(each, spec))
    return _Additions(
        frozenset(spec.node_selector.items() - template.node_selector.items()),
        frozenset(tolerations) - set(template.tolerations),
        frozenset(
            resource
            for each in spec.containers
            if (own := containers.get(getattr(each, "name", ""))) is not None
            for resource in _amounts(each).keys() - _amounts(own).keys()
        ),
    )


def _is_of_kubernetes(toleration: Toleration, spec: PodSpec) -> bool:
    """Tell whether Kubernetes adds a toleration to every pod, or to those that request a resource with its key.

    Source: kubernetes v1.37.1 plugin/pkg/admission/extendedresourcetoleration/admission.go, Admit.
    """
    resources = {name for each in (*spec.init_containers, *spec.containers) for name in _amounts(each)}
    return toleration.key.startswith(_OF_CONDITIONS) or toleration.key in resources


def _numbered(labels: Labels, name: str, index: int) -> Labels:
    """Return the labels of a pod of a StatefulSet with its name and index."""
    own = {_POD_NAME: name, _POD_INDEX: str(index)} if name else {}
    return {**labels, **own}


def _with_revision(pod_class: PodClass) -> PodClass:
    """Return a class whose default constraints select the revision of its labels."""
    if not any(term.default for term in pod_class.terms):
        return pod_class
    return replace(pod_class, terms=tuple(_of_revision(term, pod_class.labels) for term in pod_class.terms))


def _of_revision(term: TopologyTerm, labels: Labels) -> TopologyTerm:
    if not term.default or term.selector is None:
        return term
    expressions = tuple(
        replace(item, values=(labels[item.key],)) if item.key in LABELS and item.key in labels else item
        for item in term.selector.match_expressions
    )
    selector: LabelSelector = replace(term.selector, match_expressions=expressions)
    return replace(term, selector=selector)
