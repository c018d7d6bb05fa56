"""The world: the objects of a cluster as of the last change, and which workloads the changes concern.

A change is an object in its new state, or the name of an object that is gone. Changes of one object come in
their order, and a change that was applied before changes nothing.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal, TypeVar

import msgspec

from kubectl_spread.audit.evaluation.affinity import incoming
from kubectl_spread.audit.snapshot.ownership import Ownership
from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.audit.snapshot.scope import Scope
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.audit.snapshot.templates import Template
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.sparse import SparsePod
from kubectl_spread.kube.api.types import Node, NodeStatus
from kubectl_spread.kube.api.workloads import WorkloadObject
from kubectl_spread.kube.disruption import Budgets, PodDisruptionBudget
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.scheduler import interpodaffinity
from kubectl_spread.kube.scheduler.configuration import WITHOUT_DEFAULTS, Profile
from kubectl_spread.kube.scheduler.defaultconstraints import Service
from kubectl_spread.kube.scheduler.podtopologyspread.domains import NodeSets
from kubectl_spread.monitor.capacity import ClusterCapacity
from kubectl_spread.monitor.claims import ClusterClaims
from kubectl_spread.monitor.defaults import ClusterDefaults
from kubectl_spread.monitor.groups import CountingGroup
from kubectl_spread.monitor.mirror import ObjectName
from kubectl_spread.monitor.namespaces import NamespaceContent
from kubectl_spread.monitor.retained import PodReader, RetainedPod

_T = TypeVar("_T")


class World:
    """The pods, nodes and workloads of a cluster.

    Attributes:
        scope: The pods that are evaluated.
        namespaces: The content of each namespace.
        nodes: The nodes, in any order and without their status, which only the capacity depends on.
        ownership: The records of workloads.
        capacity: The resources of the nodes.
        claims: The claims and volumes.
        budgets: The PodDisruptionBudgets.
        changed_budgets: The namespaces whose budgets have changed since the last evaluation.
        schedulers: The known spread configurations of schedulers, by name.
        defaults: The default constraints of pods without constraints of their own.
        concerned: The workloads whose evaluation may have changed since ``settle``.
        concerns_all: Whether every evaluation may have changed since ``settle``.
    """

    def __init__(self, scope: Scope, schedulers: Mapping[str, Profile] = WITHOUT_DEFAULTS) -> None:
        """Start without objects."""
        self.scope = scope
        self.namespaces: dict[str, NamespaceContent] = {}
        self.nodes: list[Node] = []
        self.ownership = Ownership()
        self.capacity = ClusterCapacity[CountingGroup]()
        self.claims = ClusterClaims[CountingGroup]()
        self.budgets = Budgets()
        self.changed_budgets: set[str] = set()
        self.schedulers = schedulers
        self.defaults = ClusterDefaults(schedulers)
        self.concerned: set[ObjectRef] = set()
        self.concerns_all = True
        self._reader = PodReader(scope, schedulers)
        self._nodes: dict[str, Node] = {}
        self._nodes_changed = False
        self._node_sets: dict[Behaviour, NodeSets] = {}
        self._retained: Counter[PodClass] = Counter()
        self._bound: Counter[str] = Counter()
        self._evaluated: Counter[str] = Counter()
        self._unevaluated: dict[ObjectRef, str] = {}
        self._selecting: dict[PodClass, bool] = {}
        self._selecting_pods = 0
        self._last_facts: tuple[object, ...] = ()

    @property
    def selects_namespaces(self) -> bool:
        """Whether a bound pod repels pods of namespaces that it selects by labels."""
        return self._selecting_pods > 0

    @property
    def nodes_known(self) -> Literal["listed", "none"]:
        """Whether nodes are known: not where there are bound pods, and none of them is on a node in the list."""
        return "none" if self._bound and self._nodes.keys().isdisjoint(self._bound) else "listed"

    @property
    def skipped(self) -> Counter[str]:
        """The pods in scope that are not evaluated, by reason."""
        return Counter(self._unevaluated.values())

    def evaluated_on(self, node: str) -> int:
        """Return the number of evaluated pods on a node."""
        return self._evaluated[node]

    def node_sets(self, behaviour: Behaviour) -> NodeSets:
        """Return the nodes by their labels and taints."""
        if behaviour not in self._node_sets:
            self._node_sets[behaviour] = NodeSets(self.nodes, behaviour)
        return self._node_sets[behaviour]

    def put_pod(self, pod: SparsePod) -> None:
        """Store a pod in its present state."""
        retained = self._reader.read(pod)
        keep = retained.counts or retained.in_scope
        self._replace_pod(pod.like.metadata.namespace, pod.name, retained if keep else None)

    def remove_pod(self, namespace: str, name: str) -> None:
        """Remove a pod that no longer exists."""
        self._replace_pod(namespace, name, None)

    def pod_names(self) -> Iterable[ObjectName]:
        """Return the names of the stored pods."""
        return (ObjectName(space, name) for space, content in self.namespaces.items() for name in content.pods)

    def node_names(self) -> Iterable[ObjectName]:
        """Return the names of the stored nodes."""
        return (ObjectName("", name) for name in self._nodes)

    def service_names(self) -> Iterable[ObjectName]:
        """Return the names of the stored Services."""
        return itertools.starmap(ObjectName, self.defaults.selectors.service_names())

    def workload_names(self, kind: str) -> Iterable[ObjectName]:
        """Return the names of the stored workloads of a kind."""
        return (ObjectName(ref.namespace, ref.name) for ref in self.ownership.read if ref.kind == kind)

    def _replace_pod(self, namespace: str, name: str, pod: RetainedPod | None) -> None:
        content = self.namespaces.get(namespace)
        before = None if content is None else content.pods.get(name)
        if before == pod:
            return
        content = self._content(namespace)
        for changed in (before, pod):
            if changed is not None and (workload := content.workload_of(changed)) is not None:
                self.concerned.add(workload)
        if before is not None:
            self._count(before, -1)
        if pod is not None:
            self._count(pod, 1)
        content.replace(name, pod)

    def _count(self, pod: RetainedPod, number: int) -> None:
        """Add a pod to the counts of the cluster, or take it out."""
        record = pod.record
        pod_class, node = record.pod_class, record.node
        _change(self._retained, pod_class, number)
        if pod.in_scope and pod.reason:
            if number > 0:
                self._unevaluated[record.ref] = pod.reason
            else:
                del self._unevaluated[record.ref]
        if pod.evaluated:
            _change(self._evaluated, node, number)
        if pod.bound:
            _change(self._bound, node, number)
            (self.capacity.bind if number > 0 else self.capacity.unbind)(node, pod_class.requests)
            if self._selects_namespaces(pod_class):
                self._selecting_pods += number

    def _selects_namespaces(self, pod_class: PodClass) -> bool:
        if pod_class not in self._selecting:
            selectors = (term.namespace_selector for term in interpodaffinity.anti_affinity_terms(incoming(pod_class)))
            self._selecting[pod_class] = any(
                selector is not None and not labelselectors.is_empty(selector) for selector in selectors
            )
        return self._selecting[pod_class]

    def put_node(self, node: Node) -> None:
        """Store a node in its present state; its conditions decide nothing, and its resources only the capacity."""
        reduced = reduced_node(node)
        name, before = node.metadata.name, self._nodes.get(node.metadata.name)
        if before is None or (before.metadata, before.spec) != (reduced.metadata, reduced.spec):
            self._nodes_changed = True
        elif before.status != reduced.status:
            self.capacity.set_node(reduced)
        self._nodes[name] = reduced

    def remove_node(self, name: str) -> None:
        """Remove a node that no longer exists."""
        if self._nodes.pop(name, None) is not None:
            self._nodes_changed = True

    def put_workload(self, kind: str, workload: WorkloadObject) -> None:
        """Store the record and the template of a workload in its present state."""
        snapshot = Snapshot(self.scope)
        snapshot.add_workload(kind, workload)
        ref = ObjectRef(workload.metadata.namespace, kind, workload.metadata.name)
        record, content = snapshot.ownership.record(ref), self._content(ref.namespace)
        content.stale |= self.defaults.selectors.add_owner(kind, workload)
        template = next(iter(snapshot.templates), None)
        before, template_before = self.ownership.record(ref), content.templates.get(ref)
        same_template = _content_of(template) == _content_of(template_before)
        if record is None or (record == before and same_template):
            return
        self.concerned.update(self.ownership.owners(ref))
        self.ownership.add(record)
        self.concerned.update(self.ownership.owners(ref))
        if before is None or before.owner != record.owner:
            content.stale = True
        if not same_template:
            self._replace_template(content, ref, template)

    def remove_workload(self, kind: str, namespace: str, name: str) -> None:
        """Remove a workload that no longer exists."""
        ref, content = ObjectRef(namespace, kind, name), self._content(namespace)
        if self.ownership.record(ref) is not None:
            self.defaults.selectors.remove_owner(ref)
            self.concerned.update(self.ownership.owners(ref))
            self.ownership.remove(ref)
            self.concerned.update(self.ownership.owners(ref))
            self._replace_template(content, ref, None)

    def put_service(self, service: Service) -> None:
        """Store a Service in its present state."""
        if self.defaults.selectors.put_service(service):
            self._content(service.metadata.namespace).stale = True

    def remove_service(self, namespace: str, name: str) -> None:
        """Remove a Service that no longer exists."""
        if self.defaults.selectors.remove_service(namespace, name):
            self._content(namespace).stale = True

    def put_budget(self, budget: PodDisruptionBudget) -> None:
        """Store a PodDisruptionBudget in its present state."""
        if self.budgets.put(budget):
            self.changed_budgets.add(budget.metadata.namespace)

    def remove_budget(self, namespace: str, name: str) -> None:
        """Remove a PodDisruptionBudget that no longer exists."""
        self.budgets.remove(namespace, name)
        self.changed_budgets.add(namespace)

    def budget_names(self) -> Iterable[ObjectName]:
        """Return the names of the stored PodDisruptionBudgets."""
        return (ObjectName(budget.metadata.namespace, budget.metadata.name) for budget in self.budgets)

    def _replace_template(self, content: NamespaceContent, ref: ObjectRef, template: Template | None) -> None:
        content.stale = True
        content.templates.pop(ref, None)
        if template is not None:
            content.templates[ref] = template

    def _content(self, namespace: str) -> NamespaceContent:
        return self.namespaces.setdefault(namespace, NamespaceContent())

    def settle(self) -> None:
        """Prepare what all evaluations share, and find out whether it differs from the time of the last call."""
        if self._nodes_changed:
            self._nodes_changed = False
            self.nodes = [msgspec.structs.replace(node, status=NodeStatus()) for node in self._nodes.values()]
            self._node_sets.clear()
            self.capacity.set_nodes(self._nodes.values())
            self.concerns_all = True
        facts = (self.nodes_known, self.selects_namespaces)
        if facts != self._last_facts:
            self._last_facts, self.concerns_all = facts, True
        self._reader.forget(self._retained)
        self.defaults.keep_only(self._retained)
        self._selecting = {each: selects for each, selects in self._selecting.items() if each in self._retained}


def reduced_node(node: Node) -> Node:
    """Return a node as a snapshot stores it, without its conditions."""
    snapshot = Snapshot(Scope())
    snapshot.add_node(node)
    status = msgspec.structs.replace(node.status, conditions=())
    return msgspec.structs.replace(snapshot.nodes[0], status=status)


def _change(counter: Counter[_T], key: _T, number: int) -> None:
    """Change a count, and leave none that is 0."""
    counter[key] += number
    if not counter[key]:
        del counter[key]


def _content_of(template: Template | None) -> object:
    """Return a value that is equal for templates with equal content."""
    return None if template is None else msgspec.structs.astuple(template)
