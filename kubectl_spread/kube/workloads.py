"""The workload kinds that hold pod templates, and where each keeps its own."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from kubectl_spread.kube.model import Message, ObjectMeta, PodTemplateSpec

EMPTY: Final = PodTemplateSpec()


class _ThirdFieldSpec(Message, frozen=True):
    """The spec of a Deployment, ReplicaSet, StatefulSet or ReplicationController."""

    template: Annotated[PodTemplateSpec, 3] = EMPTY


class _DaemonSetSpec(Message, frozen=True):
    template: Annotated[PodTemplateSpec, 2] = EMPTY


class _JobSpec(Message, frozen=True):
    template: Annotated[PodTemplateSpec, 6] = EMPTY


class _JobTemplateSpec(Message, frozen=True):
    spec: Annotated[_JobSpec, 2] = _JobSpec()


class _CronJobSpec(Message, frozen=True):
    job_template: Annotated[_JobTemplateSpec, 5] = _JobTemplateSpec()


class Workload(Message, frozen=True):
    """An object with a pod template."""

    metadata: Annotated[ObjectMeta, 1] = ObjectMeta()

    @property
    def template(self) -> PodTemplateSpec:
        """The pod template."""
        raise NotImplementedError


class ReplicatedWorkload(Workload, frozen=True):
    """A Deployment, ReplicaSet, StatefulSet or ReplicationController."""

    spec: Annotated[_ThirdFieldSpec, 2] = _ThirdFieldSpec()

    @property
    def template(self) -> PodTemplateSpec:
        """The pod template."""
        return self.spec.template


class DaemonSet(Workload, frozen=True):
    """A DaemonSet."""

    spec: Annotated[_DaemonSetSpec, 2] = _DaemonSetSpec()

    @property
    def template(self) -> PodTemplateSpec:
        """The pod template."""
        return self.spec.template


class Job(Workload, frozen=True):
    """A Job."""

    spec: Annotated[_JobSpec, 2] = _JobSpec()

    @property
    def template(self) -> PodTemplateSpec:
        """The pod template."""
        return self.spec.template


class CronJob(Workload, frozen=True):
    """A CronJob; its template is that of the Jobs it makes."""

    spec: Annotated[_CronJobSpec, 2] = _CronJobSpec()

    @property
    def template(self) -> PodTemplateSpec:
        """The pod template."""
        return self.spec.job_template.spec.template


class PodTemplate(Workload, frozen=True):
    """A PodTemplate object."""

    pod_template: Annotated[PodTemplateSpec, 2] = msgspec.field(default=EMPTY, name="template")

    @property
    def template(self) -> PodTemplateSpec:
        """The pod template."""
        return self.pod_template


KINDS: Final[dict[tuple[str, str], type[Workload]]] = {
    ("apps", "Deployment"): ReplicatedWorkload,
    ("apps", "ReplicaSet"): ReplicatedWorkload,
    ("apps", "StatefulSet"): ReplicatedWorkload,
    ("apps", "DaemonSet"): DaemonSet,
    ("batch", "Job"): Job,
    ("batch", "CronJob"): CronJob,
    ("", "ReplicationController"): ReplicatedWorkload,
    ("", "PodTemplate"): PodTemplate,
}
"""Maps (API group, kind) to the type that decodes it."""
