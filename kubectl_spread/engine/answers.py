"""What the engine answers: why pods wait, which change would let them run, what a change makes worse."""

from __future__ import annotations

from typing import Final

import msgspec

from kubectl_spread.audit.evaluation.obstacles import ObstacleKind
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.kube.api.objects import ObjectRef


class RefusalCause(msgspec.Struct, frozen=True):
    """One cause for which nodes refuse a pod.

    Attributes:
        kind: The kind of obstacle that the nodes have for the pod.
        text: The cause in words.
        topology_key: That of the constraint that refuses; "" for other causes.
        nodes: The number of nodes.
        workloads: The workloads whose pods repel, or are repelled by, the pod.
        right_key: The label that was probably meant by a topology key that the nodes lack; None where they have it.
        lacks_domains: Whether there are fewer domains than the constraint's minDomains.
        lowest: The domains that hold the minimum of the constraint.
        minimum: The number of pods that these domains have.
        remedy: What a person can do; "" for what helps against most refusals of the filter.
    """

    kind: ObstacleKind
    text: str
    topology_key: str = ""
    nodes: int = 0
    workloads: tuple[ObjectRef, ...] = ()
    right_key: str | None = None
    lacks_domains: bool = False
    lowest: tuple[str, ...] = ()
    minimum: int = 0
    remedy: str = ""


_NO_CONSTRAINT: Final = RefusalCause(ObstacleKind.CONSTRAINED, "")


class Reason(msgspec.Struct, frozen=True):
    """Why pods find no node.

    Attributes:
        refusals: The causes, in the order of the scheduler's filters; none where the pods wait for no node.
        text: All of them in words.
        free: The nodes that would take one of the pods.
        too_large: Whether the pods request more than any node has that they may use, even without other pods.
        everywhere: The cause for which the scheduler puts the pods on no node, whatever the nodes are; None for none.
        unknown: What was not read of what decides; "" if everything was, or that was not asked.
    """

    refusals: tuple[RefusalCause, ...]
    text: str
    free: tuple[str, ...] = ()
    too_large: bool = False
    everywhere: RefusalCause | None = None
    unknown: str = ""

    @property
    def constraint(self) -> RefusalCause:
        """The first cause that is a spread constraint; one without a topology key for none."""
        return next((refusal for refusal in self.refusals if refusal.topology_key), _NO_CONSTRAINT)

    @property
    def lowest(self) -> tuple[str, tuple[str, ...]]:
        """The topology key of that constraint, and the domains that hold its minimum."""
        return self.constraint.topology_key, self.constraint.lowest

    @property
    def causes(self) -> tuple[RefusalCause, ...]:
        """All causes, those that no node decides about included."""
        return self.refusals if self.everywhere is None else (self.everywhere,)

    @property
    def key(self) -> object:
        """A value that is equal for pods that wait for the same."""
        return tuple((refusal.kind, refusal.topology_key or refusal.text) for refusal in self.refusals) or self.text


NO_NODES: Final = Reason((), "there are no nodes")


class Shortfall(msgspec.Struct, frozen=True):
    """What a change makes worse.

    Attributes:
        workload: The workload that has more pods without a node.
        pods: The number of these pods.
        why: Why they find no node.
    """

    workload: ObjectRef
    pods: int
    why: str


class Trial(msgspec.Struct, frozen=True):
    """What a change of one workload leaves, as far as its trials have shown.

    Attributes:
        shortfall: What it makes worse; None for nothing.
        waiting: The pods of the workload that may wait afterwards, of which none is new; None for none.
        together: The topology keys by which all of its running pods may be in one domain then, which they are not now.
        uneven: The topology keys of soft constraints whose skew may exceed maxSkew then, which it does not now.
        last: Whether no node may admit one more of its pods with hard constraints then, whatever room it has, although
            one does now.
    """

    shortfall: Shortfall | None = None
    waiting: Shortfall | None = None
    together: frozenset[str] = frozenset()
    uneven: frozenset[str] = frozenset()
    last: bool = False


class Removable(msgspec.Struct, frozen=True):
    """The pods that can be removed at once, because all of their replacements find nodes.

    Attributes:
        pods: The pods: all of those in question, one of them, or none.
        why: Why no further pod can be removed; "" where all can.
        trial: What their removal leaves.
    """

    pods: tuple[PodRecord, ...]
    why: str = ""
    trial: Trial = Trial()


class Fix(msgspec.Struct, frozen=True):
    """A fix: in words, and as arguments of commands."""

    text: str
    commands: tuple[tuple[str, ...], ...] = ()
