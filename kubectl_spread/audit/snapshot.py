"""The snapshot: pods, nodes and owners, folded object by object into what the audit needs.

Pods that are alike in everything but name and node share one Shape, so memory grows by one small record a pod.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from kubectl_spread.audit.clauses import Clause, clauses
from kubectl_spread.audit.scope import Scope, Target
from kubectl_spread.audit.tails import Split, split
from kubectl_spread.audit.templates import Refusal, Refused, Template, by_clause, judge_template
from kubectl_spread.kube import managedfields, nodeaffinity, podstrategy, validation
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.labels import Labels
from kubectl_spread.kube.managedfields import LabelOwner
from kubectl_spread.kube.model import Affinity, Node, ObjectMeta, OwnerReference, Pod, PodSpec
from kubectl_spread.kube.podtopologyspread import Placement
from kubectl_spread.kube.workloads import Workload

IGNORE_ANNOTATION: Final = "kubectl-spread/ignore"
_MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
_FINISHED: Final = frozenset({"Succeeded", "Failed"})
_DEFAULT_SCHEDULER: Final = "default-scheduler"
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """What pods of one template have in common; compared by identity.

    ``clauses`` hold the selectors as stored (for a manifest: as they would be stored); ``splits`` go with
    them. ``unsettled_keys`` are the keys of which some clause does not hold the current value. ``pinned`` pods
    may run on one node only. ``refusals`` are the API's on a manifest.
    """

    namespace: str
    owner: OwnerReference | None
    labels: Labels
    clauses: tuple[Clause, ...]
    splits: tuple[Split, ...]
    placement: Placement
    scheduler_name: str
    unsettled_keys: frozenset[str]
    bound: bool
    stored: bool
    pinned: bool
    ignored: str
    refusals: tuple[Refusal, ...]

    @property
    def default_scheduler(self) -> bool:
        """Whether the scheduler whose counting we know places these pods."""
        return self.scheduler_name == _DEFAULT_SCHEDULER


@dataclass(frozen=True, slots=True)
class PodRecord:
    """What is kept of one judged pod; ``node`` is "" while it is pending, ``owners`` are those of unsettled labels."""

    name: str
    node: str
    shape: Shape
    generation: int
    created: datetime | None
    owners: tuple[LabelOwner, ...]
    terminating: bool


@dataclass(frozen=True, slots=True)
class OwnerRecord:
    """What is kept of a workload: who owns it, its template's label keys, and the rules it asks to ignore."""

    target: Target
    owner: OwnerReference | None
    template_keys: frozenset[str]
    ignored: str


class Population:
    """The pods of one namespace that count: for each label set, the number of pods on each node."""

    def __init__(self) -> None:
        """Start without pods."""
        self._label_sets: dict[bytes, tuple[Labels, Counter[str]]] = {}

    def add(self, labels: Labels, node: str) -> None:
        """Count one pod."""
        key = _ENCODER.encode(labels)
        if key not in self._label_sets:
            self._label_sets[key] = (labels, Counter())
        self._label_sets[key][1][node] += 1

    def __iter__(self) -> Iterator[tuple[Labels, Counter[str]]]:
        """Yield each label set with its number of pods on each node."""
        return iter(self._label_sets.values())


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
        self._owners: dict[tuple[str, str, str], OwnerRecord] = {}
        self._shapes: dict[bytes, Shape] = {}
        self._met: set[Target] = set()

    def add_node(self, node: Node) -> None:
        """Keep a node's name, labels and taints."""
        metadata = ObjectMeta(name=node.metadata.name, labels=node.metadata.labels)
        self.nodes.append(msgspec.structs.replace(node, metadata=metadata))

    def add_workload(self, kind: str, workload: Workload, *, judge: bool = False) -> None:
        """Keep what a workload tells about the pods it owns; ``judge`` says that its template is asked for too."""
        metadata = workload.metadata
        owner, ignored = controller(metadata), metadata.annotations.get(IGNORE_ANNOTATION, "")
        if self.scope.covers(metadata.namespace):
            self._met.add(Target(kind, metadata.name))
        self._owners[metadata.namespace, kind, metadata.name] = OwnerRecord(
            target=Target(kind, metadata.name),
            owner=owner,
            template_keys=frozenset(workload.template.metadata.labels),
            ignored=ignored,
        )
        if judge and self.scope.selects_template(metadata.namespace, workload.template.metadata.labels):
            self.templates.append(judge_template(kind, workload, owner, self._behaviour, ignored))

    def add_pod(self, pod: Pod) -> None:
        """Count a pod where the scheduler counts it, and keep it where it is to be judged."""
        metadata = pod.metadata
        judged = self.scope.selects(pod)
        if pod.status.phase in _FINISHED:
            self._pass_over(pod, "finished", asked=judged)
            return
        terminating = metadata.deletion_timestamp is not None
        if pod.spec.node_name and not terminating:
            self._populations.setdefault(metadata.namespace, Population()).add(metadata.labels, pod.spec.node_name)
        if _MIRROR_ANNOTATION in metadata.annotations:
            self._pass_over(pod, "mirror", asked=judged)
            return
        if judged:
            self._keep(pod, terminating=terminating)

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

    def populations(self) -> Mapping[str, Population]:
        """Return the counted pods of every namespace."""
        return self._populations

    def owner_chain(self, pod: PodRecord) -> tuple[OwnerRecord, ...]:
        """Return the known owners of a pod, the direct one first, up to the root."""
        return self._chain(pod.shape.namespace, pod.shape.owner)

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
            owners = [record.target for record in self._chain(namespace, owner)]
            yield reason, [Target("Pod", name), *owners]

    def _chain(self, namespace: str, reference: OwnerReference | None) -> tuple[OwnerRecord, ...]:
        chain: list[OwnerRecord] = []
        while reference is not None:
            record = self._owners.get((namespace, reference.kind, reference.name))
            if record is None:
                target = Target(reference.kind, reference.name)
                record = OwnerRecord(target, None, frozenset(), "")
            if any(record.target == known.target for known in chain):
                break
            chain.append(record)
            reference = record.owner
        return tuple(chain)

    def workload(self, pod: PodRecord) -> Target:
        """Return the root owner of a pod; a pod without one is its own workload."""
        chain = self.owner_chain(pod)
        return chain[-1].target if chain else Target("Pod", pod.name)

    def _keep(self, pod: Pod, *, terminating: bool) -> None:
        shape = self._shape(pod)
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

    def _shape(self, pod: Pod) -> Shape:
        spec = pod.spec
        pinned = nodeaffinity.pinned_node(spec.affinity) is not None
        affinity = _without_node_affinity(spec.affinity) if pinned else spec.affinity
        alike = (
            pod.metadata.namespace,
            controller(pod.metadata),
            pod.metadata.labels,
            spec.topology_spread_constraints,
            affinity,
            spec.node_selector,
            spec.tolerations,
            spec.scheduler_name,
            bool(spec.node_name),
            bool(pod.metadata.uid),
            pinned,
            pod.metadata.annotations.get(IGNORE_ANNOTATION, ""),
        )
        key = _ENCODER.encode(alike)
        if key not in self._shapes:
            self._shapes[key] = self._new_shape(pod, affinity, pinned=pinned)
        return self._shapes[key]

    def _new_shape(self, pod: Pod, affinity: Affinity | None, *, pinned: bool) -> Shape:
        spec, refusals = (pod.spec, ()) if pod.metadata.uid else self._as_stored(pod)
        found = clauses(spec)
        splits = split(found)
        return Shape(
            namespace=pod.metadata.namespace,
            owner=controller(pod.metadata),
            labels=pod.metadata.labels,
            clauses=found,
            splits=splits,
            placement=Placement(spec.node_selector, affinity, spec.tolerations),
            scheduler_name=spec.scheduler_name,
            unsettled_keys=_unsettled_keys(found, splits, pod.metadata.labels),
            bound=bool(spec.node_name),
            stored=bool(pod.metadata.uid),
            pinned=pinned,
            ignored=pod.metadata.annotations.get(IGNORE_ANNOTATION, ""),
            refusals=refusals,
        )

    def _as_stored(self, pod: Pod) -> tuple[PodSpec, tuple[Refusal, ...]]:
        """Return a manifest's spec as the apiserver would store it; as written, and why, where it would refuse it."""
        stored = podstrategy.prepare_for_create(pod.spec, pod.metadata.labels, self._behaviour)
        if errors := validation.pod_errors(stored, self._behaviour):
            return pod.spec, by_clause(errors, Refused.POD, "spec")
        return stored, ()


def controller(metadata: ObjectMeta) -> OwnerReference | None:
    """Return the owner reference that says it controls the object, if any."""
    return next((owner for owner in metadata.owner_references if owner.controller), None)


def _unsettled_keys(found: tuple[Clause, ...], splits: tuple[Split, ...], labels: Labels) -> frozenset[str]:
    return frozenset(
        key
        for clause, part in zip(found, splits, strict=True)
        for key in (*clause.match_label_keys, *clause.mismatch_label_keys)
        if labels.get(key) not in {value for (_, name), value in part.tail.items() if name == key}
    )


def _without_node_affinity(affinity: Affinity | None) -> Affinity | None:
    return None if affinity is None else msgspec.structs.replace(affinity, node_affinity=None)
