"""Events: what happens to the cluster, before controllers and the scheduler react."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.engine import controllers, outages
from kubectl_spread.engine.cluster import SimulatedCluster
from kubectl_spread.engine.controllers import (
    Actor,
    Begun,
    DaemonRollout,
    OrderedRollout,
    Rollout,
    SimulatedEvent,
)
from kubectl_spread.engine.drains import Drain
from kubectl_spread.engine.nodes import by_age
from kubectl_spread.errors import NotFoundError, UsageError
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import Node
from kubectl_spread.kube.api.workloads import (
    SCALABLE,
    Deployment,
    PodTemplateSpec,
    ReplicatedWorkload,
    StatefulSet,
    WorkloadObject,
)
from kubectl_spread.kube.autoscaling import HorizontalPodAutoscaler
from kubectl_spread.phrases import did_you_mean, domains, named, plural, some

ROLLED: Final = ("Deployment", "StatefulSet", "DaemonSet")
"""The kinds of which a rollout can be simulated."""
_NAMED: Final = 12
_PLACED_BETWEEN: Final = 0.5
"""How often pods that wait are tried while nodes are being cordoned."""


class NodeChoice(msgspec.Struct, frozen=True):
    """The nodes that an event names: by a value of a label, or by their names, which have the key ""."""

    key: str
    values: tuple[str, ...]
    written: str

    def of(self, nodes: Sequence[Node]) -> list[Node]:
        """Return the nodes with one of the values.

        Raises:
            NotFoundError: No node has one of the values; the message has the nearest one.
        """
        values = {_value(node, self.key) for node in nodes}
        for value in self.values:
            if value not in values:
                texts = sorted(text for text in values if text is not None)
                what = f"no node has {self.written}" if self.key else f'no node is named "{value}"'
                suggestion = did_you_mean(value, texts)
                names = "" if suggestion or not self.key else f" (nodes have {some(texts, _NAMED)})"
                raise NotFoundError(f"{what}{names}{suggestion}")
        return self.chosen(nodes)

    def chosen(self, nodes: Iterable[Node]) -> list[Node]:
        """Return the nodes with one of the values, which may be none."""
        return [node for node in nodes if _value(node, self.key) in self.values]

    @property
    def text(self) -> str:
        """The nodes in words, such as ``zone a``."""
        if self.key:
            return domains(self.key, self.values, most=_NAMED)
        return f"{'node' if len(self.values) == 1 else 'nodes'} {some(self.values)}"


def _value(node: Node, key: str) -> str | None:
    return node.metadata.labels.get(key) if key else node.metadata.name


class Lose(msgspec.Struct, frozen=True):
    """Nodes do not answer any more; their Node objects stay."""

    nodes: NodeChoice

    def begin(self, cluster: SimulatedCluster) -> Begun:
        """Let the nodes fail; their pods are evicted later."""
        lost = {node.metadata.name for node in self.nodes.of(cluster.nodes)}
        later = plural(outages.minutes(cluster, lost), "minute")
        text = f"lose {_numbers(cluster, self.nodes, lost)}, as of {later} later"
        cluster.lose(lost)
        return Begun(text)


class Delete(msgspec.Struct, frozen=True):
    """Nodes are gone, and their Node objects with them."""

    nodes: NodeChoice

    def begin(self, cluster: SimulatedCluster) -> Begun:
        """Remove the nodes and their pods."""
        gone = {node.metadata.name for node in self.nodes.of(cluster.nodes)}
        text = f"delete {_numbers(cluster, self.nodes, gone)}"
        cluster.delete_nodes(gone)
        for pod in [pod for pod in cluster.pending if pod.pin in gone and pod.is_daemon]:
            cluster.remove(pod)
        return Begun(text)


def _numbers(cluster: SimulatedCluster, choice: NodeChoice, names: Collection[str]) -> str:
    """Return nodes in words, with their number and that of their pods."""
    pods, running = len(cluster.on(names)), sum(bool(pod.node) for pod in cluster.all_pods())
    nodes = f"{len(names)} of {plural(len(cluster.nodes), 'node')}"
    return f"{choice.text}: {nodes}, {pods} of {plural(running, 'pod')}"


class DrainNodes(msgspec.Struct, frozen=True):
    """Nodes are cordoned one after another, and then drained one after another."""

    nodes: NodeChoice

    def begin(self, cluster: SimulatedCluster) -> Begun:
        """Cordon the nodes; pods that wait may be placed when only some of them are cordoned."""
        chosen = {node.metadata.name for node in self.nodes.of(cluster.nodes)}
        order = self.nodes.values if not self.nodes.key else sorted(chosen)
        text = f"drain {self.nodes.text}: {plural(len(chosen), 'node')}, {plural(len(cluster.on(chosen)), 'pod')}"
        if cluster.pending and len(order) > 1 and cluster.random.random() < _PLACED_BETWEEN:
            # Each number needs its own answers about nodes, so only few are tried.
            cluster.cordon(order[: cluster.random.choice([1, len(order) // 2, len(order) - 1])])
            cluster.settle()
        cluster.cordon(order)
        cluster.move_background(order)
        return Begun(text, drains=[Drain(cluster, order)])


class Cordon(msgspec.Struct, frozen=True):
    """Nodes take no more pods."""

    nodes: NodeChoice

    def begin(self, cluster: SimulatedCluster) -> Begun:
        """Cordon the nodes."""
        cluster.cordon([node.metadata.name for node in self.nodes.of(cluster.nodes)])
        return Begun(f"cordon {self.nodes.text}")


class Watch(msgspec.Struct, frozen=True):
    """Nothing happens; the fewest ready pods are those at any moment from now on."""

    def begin(self, cluster: SimulatedCluster) -> Begun:
        """Forget how many pods were ready before."""
        cluster.watch()
        return Begun("")


class OnFullest(msgspec.Struct, frozen=True):
    """An event on the domain that has the most pods of a workload when it begins.

    Attributes:
        workload: The workload.
        key: The label that makes the domains; "" for the nodes themselves.
        event: Makes the event from the nodes of the domain.
    """

    workload: ObjectRef
    key: str
    event: Callable[[NodeChoice], SimulatedEvent]

    def begin(self, cluster: SimulatedCluster) -> Begun:
        """Let the event happen; of several fullest domains, any may be the one.

        Raises:
            SpreadError: As the event.
        """
        values = {node.metadata.name: value for node in cluster.nodes if (value := _value(node, self.key)) is not None}
        counts = Counter(dict.fromkeys(values.values(), 0))
        pods = (pod for pod in cluster.all_pods() if pod.workload == self.workload and pod.node in values)
        counts.update(values[pod.node] for pod in pods)
        most = max(counts.values(), default=0)
        value = cluster.random.choice([value for value, number in counts.items() if number == most])
        return self.event(NodeChoice(self.key, (value,), value)).begin(cluster)


class Add(msgspec.Struct, frozen=True):
    """New nodes like the newest one that has a label, with the pods that DaemonSets create on them."""

    like: NodeChoice
    number: int

    def begin(self, cluster: SimulatedCluster) -> Begun:
        """Add the nodes."""
        try:
            models = self.like.of(cluster.nodes)
        except NotFoundError:
            # The nodes may be lost, and new ones replace them.
            models = self.like.of(cluster.world.nodes)
        model = max(models, key=by_age)
        names = {node.metadata.name for node in cluster.nodes}
        added: list[Node] = []
        number = 0
        while len(added) < self.number:
            number += 1
            name = f"{model.metadata.name}-added-{number}"
            if name not in names:
                added.append(cluster.world.copied(model, name))
        cluster.add_nodes([(node, model.metadata.name) for node in added])
        place = f" in {self.like.text}" if self.like.key else ""
        return Begun(f"add {plural(self.number, 'node')}{place} like {model.metadata.name}")


class Restart(msgspec.Struct, frozen=True):
    """A rollout of the same pod template, as ``kubectl rollout restart`` starts it."""

    workload: ObjectRef

    def begin(self, cluster: SimulatedCluster) -> Begun:
        """Start the rollout.

        Raises:
            UsageError: A workload of this kind has no rollouts, or this one is paused.
            NotFoundError: Neither its template nor a pod of it was read.
        """
        workload = self.workload
        _confirm_kind(workload, ROLLED, "a rollout")
        stored = cluster.world.object(workload)
        if stored is None:
            raise NotFoundError(f"{_missing(workload)}: its rollout cannot be simulated (capture workloads as well)")
        if isinstance(stored, Deployment) and stored.spec.paused:
            raise UsageError(f"{_named(workload)} is paused, so it is not rolled out")
        return Begun(
            f"restart {_named(workload)}", rollouts={workload: _rollout(cluster, workload, stored, stored.template)}
        )


class Scale(msgspec.Struct, frozen=True):
    """Another number of replicas."""

    workload: ObjectRef
    replicas: int

    def begin(self, cluster: SimulatedCluster) -> Begun:
        """Change the number.

        Raises:
            UsageError: A workload of this kind cannot be scaled.
            NotFoundError: Its pods have no owner that was read.
        """
        workload, world = self.workload, cluster.world
        _confirm_kind(workload, SCALABLE, "replicas")
        stored = world.object(workload)
        if stored is None or stored.replicas is None:
            raise NotFoundError(f"{_missing(workload)}: it cannot be scaled (capture workloads as well)")
        before = cluster.replicas.get(workload, stored.replicas)
        root = world.root(workload)
        if root.kind == "Deployment" and root != workload:
            return Begun(f"scale {_named(workload)} to {self.replicas}, which {_named(root)} undoes")
        scale(cluster, workload, before, self.replicas)
        number = plural(self.replicas, "replica")
        return Begun(
            f"scale {_named(workload)} from {before} to {number}{_undone(cluster, workload)}",
            rollouts=_autoscaling(cluster, workload),
        )


class Autoscaling(msgspec.Struct, frozen=True):
    """An autoscaler that brings the replicas of a workload inside its bounds; its metrics are not simulated."""

    workload: ObjectRef
    autoscaler: HorizontalPodAutoscaler

    def step(self, cluster: SimulatedCluster) -> bool:
        """Change the replicas if they are outside."""
        replicas = cluster.replicas[self.workload]
        bounded = self.autoscaler.bounded(replicas)
        if bounded == replicas:
            return False
        scale(cluster, self.workload, replicas, bounded)
        return True


def _autoscaling(cluster: SimulatedCluster, workload: ObjectRef) -> Mapping[ObjectRef, Actor]:
    autoscaler = cluster.world.snapshot.autoscalers.get(workload)
    if autoscaler is None or workload not in cluster.replicas:
        return {}
    ref = ObjectRef(workload.namespace, "HorizontalPodAutoscaler", autoscaler.metadata.name)
    cluster.changed[ref] = None
    return {ref: Autoscaling(workload, autoscaler)}


def _undone(cluster: SimulatedCluster, workload: ObjectRef) -> str:
    """Return what the autoscaler of a workload does to its replicas, as the rest of a sentence."""
    autoscaler, replicas = cluster.world.snapshot.autoscalers.get(workload), cluster.replicas.get(workload, 0)
    if autoscaler is None or autoscaler.bounded(replicas) == replicas:
        return ""
    return f", which {autoscaler.text} brings to {autoscaler.bounded(replicas)}"


def scale(cluster: SimulatedCluster, workload: ObjectRef, before: int, replicas: int) -> None:
    """Change the number of pods of a workload, by those of its owners that have pods."""
    cluster.replicas[workload], cluster.changed[workload] = replicas, None
    stored, numbers = cluster.world.object(workload), {workload: replicas}
    if isinstance(stored, Deployment):
        owners = cluster.world.owners_below(workload)
        numbers = _shares(stored, {owner: controllers.desired(cluster, owner) for owner in owners}, before, replicas)
    for owner, number in numbers.items():
        cluster.desired[owner] = number
        cluster.touch(owner)


def _shares(
    deployment: Deployment, numbers: Mapping[ObjectRef, int], before: int, replicas: int
) -> dict[ObjectRef, int]:
    """Return the new numbers of pods of the ReplicaSets of a Deployment, which are given with the oldest first.

    During a rollout, each has its share of the change.

    Source: kubernetes v1.37.1 pkg/controller/deployment/sync.go, scale, and util/deployment_util.go,
    GetReplicaSetProportion.
    """
    active = [owner for owner in numbers if numbers[owner]] or list(numbers)[-1:]
    if len(active) <= 1:
        return dict.fromkeys(active, replicas)
    if not deployment.rolls:
        return {}
    most, most_before = (number + deployment.pace_of(number).surge for number in (replicas, before))
    more = left = (most if replicas else 0) - sum(numbers.values())
    shares: dict[ObjectRef, int] = {}
    # Of equal ReplicaSets, new ones get more pods first, and old ones lose pods first.
    for owner in sorted(reversed(active) if more > 0 else active, key=lambda each: -numbers[each]):
        number = numbers[owner]
        share = (2 * number * most + most_before) // (2 * most_before) - number if replicas else -number
        share = min(share, left) if more > 0 else max(share, left)
        shares[owner] = number + share
        left -= share
    largest = next(iter(shares))
    shares[largest] = max(0, shares[largest] + left)
    return shares


class Apply(msgspec.Struct, frozen=True):
    """A manifest replaces the stored workload, or creates it."""

    workload: ObjectRef
    manifest: WorkloadObject

    def begin(self, cluster: SimulatedCluster) -> Begun:
        """Change the number of replicas and, where the pod template is another one, start its rollout.

        Raises:
            UsageError: A workload of this kind has no rollouts.
        """
        _confirm_kind(self.workload, ROLLED, "a rollout")
        begun = self._begin(cluster)
        text = f"{begun.text}{_undone(cluster, self.workload)}"
        return Begun(text, rollouts={**begun.rollouts, **_autoscaling(cluster, self.workload)})

    def _begin(self, cluster: SimulatedCluster) -> Begun:
        workload, world = self.workload, cluster.world
        stored, manifest = world.object(workload), self.manifest
        cluster.changed[workload] = None
        text = f"apply {_named(workload)}"
        if stored is None:
            world.objects[workload] = manifest
            return Begun(f"{text}, which is new", rollouts={workload: self._create(cluster)})
        if isinstance(self.manifest, ReplicatedWorkload) and isinstance(stored, ReplicatedWorkload):
            manifest = self.manifest.applied_to(stored)
            before = cluster.replicas.get(workload, stored.replicas)
            # A number that stays may have been changed by an event.
            stays = manifest.spec.replicas != self.manifest.spec.replicas
            replicas = before if stays else manifest.replicas
            if replicas != before:
                scale(cluster, workload, before, replicas)
            else:
                cluster.replicas[workload] = before
        world.objects[workload] = manifest
        if isinstance(manifest, Deployment) and manifest.spec.paused:
            same = manifest.template.equals(stored.template)
            return Begun(
                f"{text}, with the same pod template as far as it is read" if same else f"{text}, which is paused"
            )
        resumed = isinstance(stored, Deployment) and stored.spec.paused
        if manifest.template.equals(stored.template) and not resumed:
            return Begun(f"{text}, with the same pod template as far as it is read")
        if resumed and (newest := world.owner_of_template(workload, manifest.template)):
            return Begun(f"{text}, which resumes it", rollouts={workload: Rollout(cluster, workload, newest)})
        return Begun(text, rollouts={workload: _rollout(cluster, workload, manifest, manifest.template)})

    def _create(self, cluster: SimulatedCluster) -> Actor:
        if self.workload.kind == "DaemonSet":
            raise UsageError(f"{_named(self.workload)} is new: pods of a new DaemonSet cannot be simulated")
        return _rollout(cluster, self.workload, self.manifest, self.manifest.template)


def _rollout(
    cluster: SimulatedCluster, workload: ObjectRef, manifest: WorkloadObject, template: PodTemplateSpec
) -> Actor:
    """Return the rollout of a pod template, by the strategy of its workload."""
    like = _newest_pod(cluster, workload)
    revision = f"simulated-{len(cluster.rolled)}"
    like_class = None if like is None else like.pod_class
    pod_class = cluster.world.from_template(template, workload, like_class, revision=revision)
    if isinstance(manifest, Deployment):
        cluster.replicas.setdefault(workload, manifest.replicas)
        new = ObjectRef(workload.namespace, "ReplicaSet", f"{workload.name}-{revision}")
        cluster.world.adopt(new, workload)
        cluster.rolled[new] = pod_class
        return Rollout(cluster, workload, new)
    if isinstance(manifest, StatefulSet):
        replicas = cluster.replicas.setdefault(workload, manifest.replicas)
        cluster.desired[workload] = replicas
        cluster.touch(workload)
        partition = replicas + manifest.spec.ordinals.start if manifest.partition is None else manifest.partition
        return OrderedRollout(cluster, workload, pod_class, partition=partition, at_once=manifest.unavailable)
    stored = cluster.world.snapshot.workload_objects.get(workload)
    if stored is not None and _selection(stored.template) != _selection(template):
        cluster.world.unknown[f"the nodes that {_named(workload)} selects after its change"] = None
    return DaemonRollout(cluster, workload, pod_class)


def _selection(template: PodTemplateSpec) -> object:
    """Return the fields by which a DaemonSet selects nodes."""
    spec = template.spec
    return spec.node_selector, spec.affinity and spec.affinity.node_affinity, spec.tolerations


def _newest_pod(cluster: SimulatedCluster, workload: ObjectRef) -> PodRecord | None:
    owners = cluster.world.owners_below(workload) if workload.kind == "Deployment" else [workload]
    pods = (cluster.world.newest_pods.get(owner) for owner in reversed(owners))
    return next((pod for pod in pods if pod is not None), None)


def _confirm_kind(workload: ObjectRef, kinds: Sequence[str], what: str) -> None:
    if workload.kind not in kinds:
        raise UsageError(f"{_named(workload)} has no {what.removeprefix('a ')} (only {', '.join(kinds)})")


def _named(workload: ObjectRef) -> str:
    return named(workload.kind, workload.name)


def _missing(workload: ObjectRef) -> str:
    return f"{_named(workload)} was not read"
