"""The snapshot: pods, nodes and owners, folded object by object into what the audit needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from kubectl_spread.audit.ownership import Ownership, controller
from kubectl_spread.audit.records import EventRecord, OwnerRecord, PodRecord, Population
from kubectl_spread.audit.scope import Scope, Target
from kubectl_spread.audit.shapes import IGNORE_ANNOTATION, Shapes
from kubectl_spread.audit.templates import Template, judge_template
from kubectl_spread.kube import managedfields
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.model import Event, Node, ObjectMeta, OwnerReference, Pod
from kubectl_spread.kube.workloads import KINDS, Workload

_MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
_TEMPLATE_KINDS: Final = frozenset(kind for _, kind in KINDS)
_FINISHED: Final = frozenset({"Succeeded", "Failed"})


class Snapshot:
    """Pods, nodes and owners read at one moment."""

    def __init__(self, scope: Scope, behaviour: Behaviour) -> None:
        """Judge what ``scope`` selects; ``behaviour`` says how manifests would be stored."""
        self.scope = scope
        self.pods: list[PodRecord] = []
        self.nodes: list[Node] = []
        self.templates: list[Template] = []
        self._unjudged: list[tuple[str, str, str, OwnerReference | None]] = []
        self._behaviour = behaviour
        self._populations: dict[str, Population] = {}
        self._leaving: dict[str, Population] = {}
        self._ownership = Ownership()
        self._shapes = Shapes(behaviour)
        self._met: set[Target] = set()

    def add_node(self, node: Node) -> None:
        """Keep a node's name, labels and taints."""
        metadata = ObjectMeta(name=node.metadata.name, labels=node.metadata.labels)
        self.nodes.append(msgspec.structs.replace(node, metadata=metadata))

    def add_workload(self, kind: str, workload: Workload) -> None:
        """Keep what a workload tells about the pods it owns, and its template where that is asked for."""
        metadata = workload.metadata
        owner, ignored = controller(metadata), metadata.annotations.get(IGNORE_ANNOTATION, "")
        if self.scope.covers(metadata.namespace):
            self._met.add(Target(kind, metadata.name))
        record = OwnerRecord(
            target=Target(kind, metadata.name),
            owner=owner,
            template_keys=frozenset(workload.template.metadata.labels),
            ignored=ignored,
            created=metadata.creation_timestamp,
        )
        self._ownership.add(metadata.namespace, record)
        if self._is_root(owner, workload) and self.scope.selects_template(
            metadata.namespace, workload.template.metadata.labels
        ):
            self.templates.append(judge_template(kind, workload, owner, self._behaviour, ignored))

    def add_pod(self, pod: Pod) -> None:
        """Count a pod where the scheduler counts it, and keep it where it is to be judged."""
        metadata = pod.metadata
        judged = self.scope.selects(pod)
        if pod.status.phase in _FINISHED:
            self._pass_over(pod, "finished", asked=judged)
            return
        terminating = metadata.deletion_timestamp is not None
        if pod.spec.node_name:
            populations = self._leaving if terminating else self._populations
            populations.setdefault(metadata.namespace, Population()).add(metadata.labels, pod.spec.node_name)
        if _MIRROR_ANNOTATION in metadata.annotations:
            self._pass_over(pod, "mirror", asked=judged)
            return
        if judged:
            self._keep(pod, terminating=terminating)

    def add_event(self, event: Event) -> None:
        """Keep what was said about an object."""
        self._ownership.add_event(event)

    def unmet(self) -> list[Target]:
        """Return the objects that were named and that were neither read nor own a pod that was."""
        if not self.scope.targets:
            return []
        pods = {Target("Pod", pod.name) for pod in self.pods}
        owners = {owner.target for pod in self.pods for owner in self.owner_chain(pod)}
        passed_over = {target for _, targets in self._passed_over() for target in targets}
        known = self._met | pods | owners | passed_over
        return [target for target in self.scope.targets if target.name and target not in known]

    def population(self, namespace: str) -> Population:
        """Return the counted pods of a namespace."""
        return self._populations.get(namespace, Population())

    def leaving(self, namespace: str) -> Population:
        """Return the terminating pods of a namespace, which do not count."""
        return self._leaving.get(namespace, Population())

    def events(self, namespace: str, target: Target, reason: str) -> list[EventRecord]:
        """Return what was said for one reason about an object and the workloads below it, the newest first."""
        return self._ownership.events(namespace, target, reason)

    def populations(self) -> Mapping[str, Population]:
        """Return the counted pods of every namespace."""
        return self._populations

    def owner_chain(self, pod: PodRecord) -> tuple[OwnerRecord, ...]:
        """Return the known owners of a pod, the direct one first, up to the root."""
        return self._ownership.chain(pod.shape.namespace, pod.shape.owner)

    @property
    def skipped(self) -> Counter[str]:
        """Count the pods that are asked for and not judged, by reason."""
        wanted = self.scope.targets
        return Counter(
            reason
            for reason, targets in self._passed_over()
            if not wanted or any(one.includes(other) for one in wanted for other in targets)
        )

    def _pass_over(self, pod: Pod, reason: str, *, asked: bool) -> None:
        if asked:
            self._unjudged.append((reason, pod.metadata.namespace, pod.metadata.name, controller(pod.metadata)))

    def _passed_over(self) -> Iterator[tuple[str, list[Target]]]:
        """Yield the reason for each pod that is not judged, and the objects that it is or belongs to."""
        for reason, namespace, name, owner in self._unjudged:
            owners = [record.target for record in self._ownership.chain(namespace, owner)]
            yield reason, [Target("Pod", name), *owners]

    def workload(self, pod: PodRecord) -> Target:
        """Return the root owner of a pod; a pod without one is its own workload."""
        chain = self.owner_chain(pod)
        return chain[-1].target if chain else Target("Pod", pod.name)

    def root(self, template: Template) -> Target:
        """Return the root owner of a template's pods: its workload, or what owns that."""
        chain = self._ownership.chain(template.namespace, template.owner)
        return chain[-1].target if chain else template.workload

    def _is_root(self, owner: OwnerReference | None, workload: Workload) -> bool:
        """Tell whether nothing that is read stands above a workload.

        Of one that an unknown kind owns (a Rollout's ReplicaSets) only a revision that has pods speaks for it.
        """
        if owner is None:
            return True
        return owner.kind not in _TEMPLATE_KINDS and workload.replicas != 0

    def _keep(self, pod: Pod, *, terminating: bool) -> None:
        shape = self._shapes.of(pod)
        self.pods.append(
            PodRecord(
                name=pod.metadata.name,
                node=pod.spec.node_name,
                shape=shape,
                generation=pod.metadata.generation,
                created=pod.metadata.creation_timestamp,
                owners=managedfields.label_owners(pod.metadata, shape.unsettled_keys),
                terminating=terminating,
            )
        )
