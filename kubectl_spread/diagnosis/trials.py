"""Trials: would the pods that a fix creates find nodes?

A fix is tried with the scheduler's filters before it is printed. Its scores are not modelled, so every trial is made
twice: with each new pod in the emptiest domain that its constraints allow, and in the fullest. What is unknown refuses
no pod.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from kubectl_spread.audit.evaluation import obstacles
from kubectl_spread.audit.evaluation.affinity import own_terms
from kubectl_spread.audit.evaluation.counted import SharedAnswers
from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.audit.evaluation.obstacles import Obstacle, ObstacleKind
from kubectl_spread.audit.evaluation.volumes import VolumeNodes
from kubectl_spread.audit.merge import admission
from kubectl_spread.audit.snapshot.records import ENCODER, PodClass, PodRecord
from kubectl_spread.audit.snapshot.revisions import LABELS, revision_of
from kubectl_spread.audit.snapshot.templates import PRESUMED, Template, labels_of_controller
from kubectl_spread.diagnosis.node_answers import FreeCells, NodeAnswers, Replacement, as_obstacle, domain_of
from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import PodSpec
from kubectl_spread.kube.api.workloads import Pace
from kubectl_spread.kube.scheduler.podtopologyspread.spread import place
from kubectl_spread.report.model import Operation

_ROLLED: Final = frozenset({"Deployment", "StatefulSet"})
"""The kinds whose rollouts are tried; the pods of a DaemonSet go to their own nodes."""
_TRIED: Final = 10
"""The most pods that are tried alone."""
_TAKEN: Final = Obstacle(ObstacleKind.FULL, "the room goes to another of these pods")


class Shortfall(msgspec.Struct, frozen=True):
    """New pods that would find no node.

    Attributes:
        pods: Their number.
        why: The obstacles of the first of them, in words.
    """

    pods: int
    why: str


class Removable(msgspec.Struct, frozen=True):
    """The pods that can be removed at once, because all of their replacements find nodes.

    Attributes:
        pods: The pods: all of those in question, one of them, or none.
        why: Why no further pod can be removed, as the obstacles of its replacement in words; "" where all can.
    """

    pods: tuple[PodRecord, ...]
    why: str = ""


class Trials:
    """The trials of fixes on one cluster."""

    def __init__(self, audit: Audit) -> None:
        """Try fixes on the nodes and pods of ``audit``."""
        self._audit = audit
        self._classes: dict[bytes, PodClass] = {}
        # In a closed zone thousands of workloads have the same reason why pods find no node.
        self._reasons = SharedAnswers()

    def removable(self, pods: Sequence[PodRecord]) -> Removable:
        """Return which of some pods of one workload can be removed at once; all where nodes were not read."""
        shortfall = self._removal(pods)
        if shortfall is None:
            return Removable(tuple(pods))
        alone = ((pod,) for pod in (pods[:_TRIED] if len(pods) > 1 else ()))
        single = next((removed for removed in alone if self._removal(removed) is None), ())
        return Removable(single, shortfall.why)

    def _removal(self, pods: Sequence[PodRecord]) -> Shortfall | None:
        """Return the shortfall of replacements if pods are removed together; None if each finds a node."""
        audit, pending = self._audit, sum(not pod.node for pod in pods)
        classes = {self._replacing(pod) for pod in pods}
        pod_class = next(iter(classes))
        if not audit.evaluator.lists_nodes or pod_class.profile is None or pod_class.pinned:
            return None
        alone = pods[0] if len(pods) == 1 else None
        if alone is None and (len(classes) > 1 or own_terms(pod_class)):
            return Shortfall(len(pods), "each one changes where the next one can go")
        placements = self._placements(pod_class, len(pods), alone)
        return _worst((_replace(pods, placement, audit) for placement in placements), pending)

    def rollout(self, workload: ObjectRef, operations: Sequence[Operation]) -> Shortfall | None:
        """Return the shortfall of new pods if a workload's pod template is changed; None if there is none to expect.

        Args:
            workload: A Deployment or StatefulSet; no other kind is tried.
            operations: A JSON patch of the workload; without any its pods are restarted.
        """
        audit = self._audit
        template = audit.template_of(workload)
        pods = audit.counted.siblings(workload)
        bound = [pod for pod in pods if pod.node]
        if workload.kind not in _ROLLED or template is None or not bound or not audit.evaluator.lists_nodes:
            return None
        pod_class = self._rolled_out(template, _newest(workload, bound, audit), operations)
        if pod_class is None or audit.snapshot.may_lack_siblings(bound[0]):
            return None
        roll = _roll_in_order if workload.kind == "StatefulSet" else _roll
        replicas = len(pods) if template.replicas is None else template.replicas
        placements = self._placements(pod_class, replicas + len(pods))
        shortfalls = (roll(pods, replicas, template.pace, placement, audit) for placement in placements)
        # A change may leave pods pending that are so now. A restart is to replace all pods, and to end.
        return _worst(shortfalls, len(pods) - len(bound) if operations else 0)

    def _placements(self, pod_class: PodClass, enough: int, gone: PodRecord | None = None) -> Iterator[_Placement]:
        for fullest in (False, True):
            yield _Placement(pod_class, enough, self._audit, self._reasons, gone, fullest=fullest)

    def _rolled_out(self, template: Template, like: PodClass, operations: Sequence[Operation]) -> PodClass | None:
        """Return the class of the pods of a changed template; None where the model cannot place them."""
        try:
            spec, labels = _changed(template, operations)
        except LookupError:
            return None
        pod_class = self._shared(admission.created_from(like, spec, labels, self._audit.context.behaviour))
        named = {key for term in pod_class.terms for key in term.mentions} - {*LABELS}
        unknown = any(labels.get(key) == PRESUMED for key in named)
        skipped = bool(spec.node_name) or pod_class.profile is None or pod_class.pinned
        return None if unknown or skipped or own_terms(pod_class) else pod_class

    def _replacing(self, pod: PodRecord) -> PodClass:
        behaviour = self._audit.context.behaviour
        return self._shared(admission.created_again(pod.pod_class, self._labels_at_creation(pod), behaviour))

    def _labels_at_creation(self, pod: PodRecord) -> Labels:
        """Return the labels of the replacement: those of the template and of its controller, or its own old ones."""
        labels = pod.pod_class.labels
        chain = self._audit.snapshot.owner_chain(pod)
        if chain and chain[0].template_labels:
            of_controller = (key for key in labels_of_controller(chain[0].ref.kind) if key in labels)
            return {**{key: labels[key] for key in of_controller}, **chain[0].template_labels}
        if pod.pod_class.owner is None:
            return labels
        stored = {key: value for part in pod.pod_class.splits for (_, key), value in part.tail.items()}
        return {**labels, **stored}

    def _shared(self, pod_class: PodClass) -> PodClass:
        """Return the first class that the scheduler cannot tell from this one, so that it is evaluated once."""
        spec, terms = pod_class.spec, [(term.constraint, term.selector) for term in pod_class.terms]
        placement = (spec.node_selector, spec.affinity, spec.tolerations, spec.scheduler_name)
        requests = None if pod_class.requests is None else sorted(pod_class.requests.items())
        parts = (pod_class.namespace, sorted(pod_class.labels.items()), terms, placement, requests)
        return self._classes.setdefault(ENCODER.encode(parts), pod_class)


def _worst(shortfalls: Iterable[Shortfall | None], pending: int) -> Shortfall | None:
    """Return the first shortfall that leaves more pods pending than there are now; None if none does."""
    return next((each for each in shortfalls if each is not None and each.pods > pending), None)


class _Placement:
    """The domains and nodes for pods of one class, while other pods are removed and these are created."""

    def __init__(
        self,
        pod_class: PodClass,
        enough: int,
        audit: Audit,
        reasons: SharedAnswers,
        gone: PodRecord | None,
        *,
        fullest: bool,
    ) -> None:
        """Start with the pods that run now; ``gone`` is a pod whose anti-affinity no longer acts.

        ``reasons`` are shared, and new pods go to the ``fullest`` domains that are allowed, or to the emptiest.
        """
        self._reasons = reasons
        self._pod_class = pod_class
        self._fullest = fullest
        self._audit = audit
        self._repelled = audit.affinity.refusals(pod_class, gone)
        self._spreads = audit.evaluator.of(pod_class).hard
        refused = frozenset(self._repelled or ())
        replacement = Replacement(audit.obstacles.representative(pod_class), refused, self._repelled is not None)
        self._free = FreeCells(replacement, self._spreads, 0, enough, audit)
        self._left: Counter[tuple[str | None, ...]] = Counter()

    def remove(self, pod: PodRecord) -> None:
        """Remove a pod, which leaves its room."""
        domains = [domain_of(pod, spread) for spread in self._spreads]
        self._spreads = [
            spread if domain is None else spread.without({domain: 1})
            for spread, domain in zip(self._spreads, domains, strict=True)
        ]
        self._left.update(self._free.left_by([pod]))

    def create(self, volumes: VolumeNodes) -> bool:
        """Place one more pod; tell whether it has found a node."""
        cell = self._free.choose(self._spreads, self._left, volumes, fullest=self._fullest)
        if cell is None:
            return False
        self._left[cell] -= 1
        self._spreads = place(self._spreads, cell)
        return True

    def why(self, volumes: VolumeNodes) -> str:
        """Return why no node takes one more pod, in words."""
        kind = self._audit.obstacles.representative(self._pod_class)
        refusing = ((each.constraint.topology_key, each.short_of_domains, *each.blocked) for each in self._spreads)
        if self._repelled:
            return self._why(volumes)
        return self._reasons.remember((kind, volumes, *refusing), lambda: self._why(volumes))

    def _why(self, volumes: VolumeNodes) -> str:
        answers = NodeAnswers(self._pod_class, self._audit, self._spreads, self._repelled, volumes)
        refusals = (answers.first_refusal(node.metadata.name) for node in self._audit.nodes.nodes)
        return obstacles.summary(_TAKEN if refusal is None else as_obstacle(refusal) for refusal in refusals)


def _replace(pods: Sequence[PodRecord], placement: _Placement, audit: Audit) -> Shortfall | None:
    """Remove pods together, and create their replacements."""
    for pod in pods:
        placement.remove(pod)
    for number, pod in enumerate(pods):
        if not placement.create(audit.volumes.of(pod)):
            return Shortfall(len(pods) - number, placement.why(audit.volumes.of(pod)))
    return None


def _roll(
    pods: Sequence[PodRecord], replicas: int, pace: Pace, placement: _Placement, audit: Audit
) -> Shortfall | None:
    """Replace the pods of a Deployment: create new ones within its surge, and remove old ones within its minimum.

    Of the old pods the controller removes those first that share a node with the most pods of the workload.

    Source: kubernetes v1.37.1 pkg/controller/deployment/rolling.go, rolloutRolling.
    """
    bound = [pod for pod in pods if pod.node]
    old, volumes = list(_crowded_first(bound)), audit.volumes.of(bound[0])
    running = 0
    while running < replicas:
        if len(old) + running < replicas + pace.surge and placement.create(volumes):
            running += 1
        elif old and len(old) + running > replicas - pace.unavailable:
            placement.remove(old.pop(0))
        else:
            waiting = min(replicas + pace.surge - len(old), replicas) - running
            return Shortfall(waiting, placement.why(volumes))
    return None


def _roll_in_order(
    pods: Sequence[PodRecord], _replicas: int, _pace: Pace, placement: _Placement, audit: Audit
) -> Shortfall | None:
    """Replace the pods of a StatefulSet one after another: the pending ones, then from the highest ordinal."""
    for pod in sorted(pods, key=lambda pod: (not pod.node, len(pod.name), pod.name), reverse=True):
        if pod.node:
            placement.remove(pod)
        if not placement.create(audit.volumes.of(pod)):
            return Shortfall(1, placement.why(audit.volumes.of(pod)))
    return None


def _crowded_first(pods: Iterable[PodRecord]) -> Iterator[PodRecord]:
    """Yield pods, always one next that shares its node with the most others."""
    by_node: dict[str, list[PodRecord]] = {}
    for pod in pods:
        by_node.setdefault(pod.node, []).append(pod)
    while by_node:
        node = max(sorted(by_node), key=lambda node: len(by_node[node]))
        yield by_node[node].pop()
        if not by_node[node]:
            del by_node[node]


def _newest(workload: ObjectRef, pods: Sequence[PodRecord], audit: Audit) -> PodClass:
    newest = audit.revisions.of(workload)[-1:]
    return next((pod.pod_class for pod in pods if revision_of(pod.pod_class.labels) in newest), pods[0].pod_class)


def _changed(template: Template, operations: Sequence[Operation]) -> tuple[PodSpec, Labels]:
    """Return the spec and the labels of a pod template after a JSON patch of its object.

    Raises:
        LookupError: The template, which may be newer than the pods, lacks what is patched.
    """
    root = template.path[:-1]
    spec: Any = msgspec.json.decode(msgspec.json.encode(template.spec))
    changed: Any = {"metadata": {"labels": dict(template.labels)}, "spec": spec}
    for operation in operations:
        steps = [step.replace("~1", "/").replace("~0", "~") for step in operation.path.split("/")[1:]]
        *parents, last = steps[len(root) :]
        parent = changed
        for step in parents:
            parent = parent[int(step) if isinstance(parent, list) else step]
        key: Any = int(last) if isinstance(parent, list) else last
        match operation.op:
            case "remove":
                del parent[key]
            case "add" if isinstance(parent, list):
                parent.insert(key, operation.value)
            case "add" | "replace":
                parent[key] = operation.value
    return msgspec.convert(changed["spec"], PodSpec), changed["metadata"]["labels"]
