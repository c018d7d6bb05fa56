"""Standing: may pods of a workload be evicted at all? Its controller has to replace them, and to be idle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final

from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.audit.snapshot.revisions import revision_of
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.workloads import StatefulSet, ordinal_of
from kubectl_spread.kube.custom import NOT_REPLACED, base_kind
from kubectl_spread.memoization import memoized
from kubectl_spread.phrases import plural

_ROLLING: Final = "it is rolling out"


class Standing:
    """Whether the workloads of a snapshot are complete, computed at first use."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    @cached_property
    def _pods(self) -> Mapping[ObjectRef, Sequence[PodRecord]]:
        pods: dict[ObjectRef, list[PodRecord]] = {}
        for pod in self._snapshot.pods:
            pods.setdefault(self._snapshot.workload(pod), []).append(pod)
        return pods

    @memoized
    def obstacle(self, workload: ObjectRef) -> str:
        """Return why no pod of a workload may be evicted now; "" where one may be."""
        pods = self._pods.get(workload, ())
        owners = {pod.pod_class.owner for pod in pods}
        kinds = {base_kind(owner.kind) for owner in owners if owner is not None}
        if None in owners:
            return "nothing replaces its pod, which has no owner"
        if kinds & NOT_REPLACED:
            return "pods of a DaemonSet belong to their nodes"
        if "Job" in kinds:
            return "a Job counts a deleted pod as failed"
        if terminating := sum(pod.terminating for pod in pods):
            return f"{plural(terminating, 'pod')} {'is' if terminating == 1 else 'are'} terminating"
        if len({(owner.kind, owner.name) for owner in owners if owner is not None}) > 1 or self._revises(
            workload, pods
        ):
            return _ROLLING
        return self._incomplete(workload, pods)

    def _revises(self, workload: ObjectRef, pods: Sequence[PodRecord]) -> bool:
        """Tell whether a StatefulSet replaces pods of an older revision."""
        stored = self._snapshot.workload_objects.get(workload)
        if not isinstance(stored, StatefulSet) or stored.partition is None:
            return False
        rolled = [pod for pod in pods if ordinal_of(pod.name) >= stored.partition]
        return len({revision_of(pod.pod_class.labels) for pod in rolled}) > 1

    def _incomplete(self, workload: ObjectRef, pods: Sequence[PodRecord]) -> str:
        """Return how many pods are missing, not ready or too many; "" where none is."""
        record = self._snapshot.ownership.record(workload)
        replicas = len(pods) if record is None or record.replicas is None else record.replicas
        if len(pods) > replicas:
            return f"it has {plural(len(pods), 'pod')} and asks for {replicas}"
        ready = sum(bool(pod.node) and (pod.state is None or pod.state.ready) for pod in pods)
        if ready == replicas:
            return ""
        number = replicas - ready
        return f"{number} of {plural(replicas, 'pod')} {'is' if number == 1 else 'are'} not ready"
