"""Read a live cluster for ``domains``: pods, nodes, workloads and, for one domain, PodDisruptionBudgets."""

from __future__ import annotations

from msgspec.structs import replace

from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.errors import ForbiddenError
from kubectl_spread.kube.scheduler import configuration
from kubectl_spread.run import hints
from kubectl_spread.run.checkrun import ClusterIdentity
from kubectl_spread.run.domains import DomainsRun, read_cluster
from kubectl_spread.run.live import UID_TIMEOUT, confirm_namespace, pods_of, shown_without
from kubectl_spread.run.options import CheckOptions
from kubectl_spread.run.requests import Requests
from kubectl_spread.sources.apiserver.cluster import LiveCluster
from kubectl_spread.sources.apiserver.resources import NODES, WORKLOADS


def read(options: CheckOptions, cluster: LiveCluster, *, with_budgets: bool) -> DomainsRun:
    """Read a cluster.

    Raises:
        SourceError: Pods or nodes cannot be read, or anything else for another reason than a missing permission.
    """
    scope = options.scope(cluster.namespace)
    requests = Requests(cluster, options, replace(scope, labels=()), configuration.WITHOUT_DEFAULTS)
    requests.send()
    version = requests.version.result()
    snapshot = pods_of(requests, scope)
    try:
        for node in requests.objects(NODES, None):
            snapshot.add_node(node)
    except ForbiddenError as error:
        raise ForbiddenError(f"{error}: only nodes tell the domains") from None
    notes = _add_workloads(requests, scope.namespace, snapshot)
    if with_budgets:
        try:
            requests.add_budgets(snapshot)
        except ForbiddenError as error:
            notes.append(f"{error}: the minimum of the budgets is unknown")
    if not snapshot.objects():
        confirm_namespace(cluster, scope.namespace)
    skipped = snapshot.skipped
    skipped["forbidden"] = len(notes)
    identity = ClusterIdentity(cluster.context, cluster.name, _uid(requests), requests.read_at, version.text)
    return DomainsRun(
        snapshot,
        scope.labels,
        read_cluster(options, scope.namespace, identity, requests.resource_versions),
        everywhere=scope.namespace is None,
        skipped=skipped,
        problems=list(filter(None, [hints.unknown_nodes(snapshot)])) if snapshot.nodes else [],
        notes=notes,
        flags=options.kubectl_flags,
    )


def _add_workloads(requests: Requests, namespace: str | None, snapshot: Snapshot) -> list[str]:
    """Add the owners of the pods to a snapshot, and return notes on those that may not be read."""
    owning = {pod.pod_class.owner.kind for pod in snapshot.pods if pod.pod_class.owner}
    notes = []
    for resource in WORKLOADS:
        try:
            for workload in requests.objects(resource, namespace):
                snapshot.add_workload(resource.kind, workload)
        except ForbiddenError as error:
            if resource.kind in owning:
                notes.append(f"{error}: {shown_without(resource)}")
            if resource.kind == "ReplicaSet":
                snapshot.infer_deployments()
    return notes


def _uid(requests: Requests) -> str:
    try:
        return requests.uid.result(UID_TIMEOUT)
    except TimeoutError:
        return ""
