"""Pods of a run."""

from __future__ import annotations

from typing import Final

from kubectl_spread.audit.snapshot.records import PodRecord, PodState
from kubectl_spread.engine.kinds import SchedulingKind
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.custom import NOT_REPLACED, base_kind
from kubectl_spread.phrases import listed

READY: Final = PodState()
"""The state of a new pod that has started, as controllers see it."""


class SimulatedPod:
    """A pod of a run.

    Attributes:
        name: Its name.
        kind: The facts that the scheduler reads of it.
        workload: Its root owner, or itself.
        owner: Its direct owner.
        record: Its record; that of a new pod has the claims of a pod like it.
        node: The name of its node; "" while it is pending.
        pin: The name of the only node that it may use; "" for any.
        order: Its place in the queue of the scheduler, among pods of one priority.
        state: The facts by which controllers choose pods.
        refused: The nodes that its volumes or its pin refuse, as a bitmap.
        held: Why the scheduler never sees it, which are its gates, or the errors of the API server; "" if it does.
        simulated: Whether a controller created it in this run.
        revised: Whether a simulated rollout created it.
        terminating: Whether it was deleted, and its node does not answer.
        lacks_volume: Whether it has a node, and its volume is still attached to one that does not answer.
    """

    __slots__ = (
        "held",
        "kind",
        "lacks_volume",
        "name",
        "node",
        "order",
        "owner",
        "pin",
        "record",
        "refused",
        "revised",
        "simulated",
        "state",
        "terminating",
        "workload",
    )

    def __init__(self, record: PodRecord, kind: SchedulingKind, workload: ObjectRef, owner: ObjectRef | None) -> None:
        self.name = record.name
        self.record = record
        self.kind = kind
        self.workload = workload
        self.owner = owner
        self.node = record.node
        self.pin = ""
        self.order = 0
        self.state = record.state or READY
        self.refused = 0
        self.held = f"it has scheduling gates: {listed(list(record.gates))}" if record.gates else ""
        self.simulated = False
        self.revised = False
        self.terminating = False
        self.lacks_volume = False

    def copy(self) -> SimulatedPod:
        """Return the same pod of another run, in which nothing has happened yet."""
        other = SimulatedPod(self.record, self.kind, self.workload, self.owner)
        other.pin = self.pin
        return other

    @property
    def key(self) -> str:
        """What distinguishes it from others of its owner; bare pods of two namespaces may have one name."""
        return self.name if self.owner else f"{self.namespace}/{self.name}"

    @property
    def ready(self) -> bool:
        """Whether it is on a node and ready."""
        return bool(self.node) and self.state.ready

    @property
    def is_daemon(self) -> bool:
        """Whether it belongs to its node, as those of a DaemonSet do."""
        return self.owner is not None and base_kind(self.owner.kind) in NOT_REPLACED

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return self.record.namespace
