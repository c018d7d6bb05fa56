"""The requests of one run: sent at once, and waited for where their objects are needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from kubectl_spread.audit.snapshot.scope import Scope
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.errors import ForbiddenError
from kubectl_spread.kube.api import sparse
from kubectl_spread.kube.api.sparse import DetailedPod, SparsePod
from kubectl_spread.kube.api.types import Object
from kubectl_spread.kube.api.workloads import WorkloadObject
from kubectl_spread.kube.scheduler.configuration import Profile
from kubectl_spread.run.options import CheckOptions
from kubectl_spread.sources.apiserver.cluster import LiveCluster, ServerVersion
from kubectl_spread.sources.apiserver.paging import background
from kubectl_spread.sources.decode import resources
from kubectl_spread.sources.decode.resources import Page, Resource

Kind = TypeVar("Kind", bound=Object)
NO_CLASSES: Final = "where new volumes can be is not known"
"""What follows where StorageClasses cannot be read."""
UNFINISHED: Final = "status.phase!=Succeeded,status.phase!=Failed"
"""The field selector with which the scheduler lists pods."""


class Requests:
    """The requests of one run.

    The first error that is reported is that of the response which is waited for first, whichever request fails first.

    Attributes:
        scope: The pods that are evaluated.
        version: The version of the API server.
        uid: The UID that identifies the cluster; "" if it cannot be read.
        pods: The pods in scope, and the counts of the others.
        read_at: When the pods were read, by the API server's clock.
        resource_versions: The resourceVersion of each list that was read.
        forbidden: The number of lists that the user may not read.
    """

    version: Future[ServerVersion]
    uid: Future[str]
    pods: Future[Snapshot]

    def __init__(
        self,
        cluster: LiveCluster,
        options: CheckOptions,
        scope: Scope,
        profiles: Mapping[str, Profile],
        *,
        detailed: bool = False,
    ) -> None:
        """Prepare the requests; ``send`` sends them. ``Snapshot`` says what is stored only ``detailed``."""
        self.read_at: datetime | None = None
        self.resource_versions: dict[str, str] = {}
        self.forbidden = 0
        self._cluster = cluster
        self._detailed = detailed
        self._needs_nodes = options.needs_nodes
        self.scope = scope
        self._profiles = profiles
        self._expected: dict[str, Future[list[Any]]] = {}

    def send(self) -> None:
        """Request version, UID, pods, nodes and workloads at once."""
        self.version = background(self._cluster.version)
        self.pods = background(self._read_pods)
        self.uid = background(self._cluster.uid)
        if self._needs_nodes:
            self._expected[resources.NODES.plural] = background(partial(self._read, resources.NODES))
        for resource in resources.WORKLOADS:
            self._expected[resource.plural] = background(partial(self._read, resource))

    def objects(self, resource: Resource[Kind]) -> list[Kind]:
        """Return all objects of a list in scope, which is requested now unless it was before.

        Raises:
            ForbiddenError: The user may not list them.
            SourceError: They cannot be read for another reason.
        """
        expected = self._expected.pop(resource.plural, None)
        return self._read(resource) if expected is None else expected.result()

    @contextmanager
    def optional(self, messages: list[str], consequence: str) -> Iterator[None]:
        """Count a list that the user may not read, and add a message with the consequence."""
        try:
            yield
        except ForbiddenError as error:
            self.forbidden += 1
            messages.append(f"{error}: {consequence}")

    # Each of these raises ForbiddenError or another SourceError, as ``objects`` does.

    def add(self, resource: Resource[Object], snapshot: Snapshot) -> None:
        """Read the objects of a list in scope, which only decide about pods, into a snapshot."""
        for each in self.objects(resource):
            snapshot.add(each)

    def add_workloads(self, resource: Resource[WorkloadObject], snapshot: Snapshot) -> None:
        """Read the workloads of one kind in scope into a snapshot."""
        for workload in self.objects(resource):
            snapshot.add_workload(resource.kind, workload)

    def add_volumes(self, snapshot: Snapshot) -> None:
        """Read the claims in scope, and then the volumes that they are bound to, into a snapshot."""
        self.add(resources.CLAIMS, snapshot)
        self.add(resources.VOLUMES, snapshot)
        snapshot.volumes.complete = True

    def add_storage_classes(self, snapshot: Snapshot) -> None:
        """Read what makes volumes into a snapshot."""
        self.add(resources.CLASSES, snapshot)
        snapshot.volumes.classes_complete = True
        self.add(resources.DRIVERS, snapshot)
        snapshot.volumes.drivers_complete = True

    def add_budgets(self, snapshot: Snapshot) -> None:
        """Read the PodDisruptionBudgets in scope into a snapshot."""
        self.add(resources.BUDGETS, snapshot)
        snapshot.budgets.read = True

    def _read_pods(self) -> Snapshot:
        def add(snapshot: Snapshot, page: Page[SparsePod]) -> None:
            # All pages have the state of the first one.
            self.read_at = self.read_at or self._cluster.now()
            self.resource_versions[resources.PODS.plural] = page.resource_version
            for pod in page:
                snapshot.add_sparse(pod)

        def add_full(snapshot: Snapshot, page: Page[DetailedPod]) -> None:
            add(snapshot, page.map(sparse.alone))

        def begin() -> Snapshot:
            self.read_at = None
            return Snapshot(self.scope, detailed=self._detailed, schedulers=self._profiles)

        if self._detailed or self.scope.fields:
            return self._cluster.fold(resources.PODS, begin, add_full, self.scope.namespace, field_selector=UNFINISHED)
        return self._cluster.fold(resources.SPARSE_PODS, begin, add, self.scope.namespace, field_selector=UNFINISHED)

    def _read(self, resource: Resource[Kind]) -> list[Kind]:
        def add(objects: list[Kind], page: Page[Kind]) -> None:
            self.resource_versions[resource.plural] = page.resource_version
            objects.extend(map(self._detached, page))

        return self._cluster.fold(resource, list[Kind], add, self.scope.namespace)

    def _detached(self, read: Kind) -> Kind:
        """Return an object without undecoded managedFields, which would keep the bytes of its page in memory."""
        needed = self._detailed and isinstance(read, WorkloadObject)
        fields = tuple(read.metadata.managed_fields) if needed else ()
        return replace(read, metadata=replace(read.metadata, managed_fields=fields))
