"""Read a live cluster: as little as the options need. Missing permissions become notes or errors."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from kubectl_spread.audit.evaluation import affinity
from kubectl_spread.audit.evaluation.evaluate import Audit, evaluate
from kubectl_spread.audit.evaluation.volumes import Volumes
from kubectl_spread.audit.snapshot.podclasses import REASONS
from kubectl_spread.audit.snapshot.scope import Scope, Target
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.audit.snapshot.templates import Refused
from kubectl_spread.diagnosis import needs, siblings
from kubectl_spread.diagnosis.needs import depend_on_budgets
from kubectl_spread.errors import ForbiddenError, NotFoundError, SourceError, UsageError
from kubectl_spread.kube import features
from kubectl_spread.kube.api.objects import ALL_NAMESPACES
from kubectl_spread.kube.api.sparse import SparsePod
from kubectl_spread.kube.api.types import Event
from kubectl_spread.kube.api.workloads import WorkloadObject
from kubectl_spread.kube.scheduler import configuration
from kubectl_spread.phrases import did_you_mean
from kubectl_spread.report import model
from kubectl_spread.run import hints, names, schedulers
from kubectl_spread.run.nodeautoscalers import add_node_autoscalers
from kubectl_spread.run.options import CheckOptions, TargetVersion, target_for
from kubectl_spread.run.requests import NO_CLASSES, Requests
from kubectl_spread.run.run import CheckRun, ClusterIdentity, Run
from kubectl_spread.sources.apiserver.cluster import LiveCluster
from kubectl_spread.sources.decode import resources
from kubectl_spread.sources.decode.resources import Page, Resource

_INCOMPLETE: Final = "not everything that decides where pods may go is known"
_MOST_NAMESPACES: Final = 10_000
"""The largest number of names to request when one of them may be misspelt."""
UID_TIMEOUT: Final = 2.0
"""Seconds to wait, when everything else has been read, for the UID that identifies the cluster."""


def _may_own(kind: str, target: Target, snapshot: Snapshot) -> bool:
    """Tell whether workloads of a kind may be between the target and its pods; below an unknown kind any may be."""
    if not target.kind:
        return all(pod.name != target.name for pod in snapshot.pods)
    return target.kind not in names.KINDS or names.BETWEEN.get(target.kind) == kind


def _shown_without(resource: Resource[WorkloadObject]) -> str:
    """Return how the pods of workloads are shown that may not be listed."""
    if resource.kind == "ReplicaSet":
        return "Deployments are known from the names of their ReplicaSets"
    return "pods are shown under their direct owner"


def pods_of(requests: Requests, scope: Scope) -> Snapshot:
    """Return the pods in scope, and the counts of the others.

    Raises:
        ForbiddenError: The user may not list them.
        SourceError: They cannot be read for another reason.
    """
    try:
        return requests.pods.result()
    except ForbiddenError as error:
        hint = " (name one that you may list with -n)" if scope.all_namespaces else ""
        raise ForbiddenError(f"{error}{hint}") from None


def confirm_namespace(cluster: LiveCluster, namespace: str) -> None:
    """Raise where a namespace in which nothing was found does not exist, as far as the user may list namespaces.

    Raises:
        NotFoundError: There is no such namespace; the message has the nearest name.
    """
    if namespace == ALL_NAMESPACES:
        return
    try:
        existing = cluster.names(resources.NAMESPACES, ALL_NAMESPACES, _MOST_NAMESPACES)
    except SourceError:
        return
    if existing and namespace not in existing and len(existing) < _MOST_NAMESPACES:
        raise NotFoundError(f'namespace "{namespace}" not found{did_you_mean(namespace, existing)}')


class LiveRun:
    """One reading of one cluster.

    Attributes:
        needed_gates: Whether an answer depended on feature gates that the version does not decide.
    """

    def __init__(
        self,
        options: CheckOptions,
        cluster: LiveCluster,
        requests: Requests | None = None,
        *,
        again: bool = False,
        events: bool = True,
        expects_gates: bool = False,
    ) -> None:
        """Prepare to read.

        Args:
            options: The options of the command.
            cluster: The connection.
            requests: The requests; None for those that the cluster answers.
            again: Whether the targets existed in an earlier reading; one that is gone is then no error.
            events: Whether to read events.
            expects_gates: Whether an earlier reading needed the feature gates; they are then read first.
        """
        self.needed_gates = False
        self._options = options
        self._cluster = cluster
        self._again = again
        self._reads_events = events
        self._expects_gates = expects_gates
        self._requests = requests or Requests(
            cluster,
            options,
            options.scope(cluster.namespace),
            schedulers.profiles(options),
            detailed=options.explaining,
        )
        self._scope = self._requests.scope
        if self._scope.all_namespaces and any(target.name for target in self._scope.targets):
            raise UsageError("a resource cannot be retrieved by name across all namespaces")
        self._problems: list[str] = []
        self._notes: list[str] = []

    def collect(self) -> CheckRun:
        """Read version, pods, nodes, owners and, where a verdict needs them, gates; then evaluate.

        Raises:
            SourceError: pods cannot be read, or anything else for another reason than a missing permission.
        """
        options = self._options
        requests = self._requests
        requests.send()
        server = requests.version.result().behaves_as
        target_version = target_for(options, server)
        snapshot = pods_of(requests, self._scope)
        snapshot.read_at = requests.read_at
        nodes = self._nodes(snapshot, target_version) if options.needs_nodes else "none"
        unread = self._owners(snapshot)
        self._defaults(snapshot, unread)
        self._notes += names.resolve(snapshot)
        target_version, audit = self._by_gates(snapshot, server, nodes)
        if options.explaining and self._read_to_explain(audit):
            audit = evaluate(snapshot, target_version.facts(options), nodes=nodes)
        audit = self._with_volumes(audit)
        self._budgets(audit)
        if not (self._again or snapshot.objects()):
            confirm_namespace(self._cluster, self._scope.namespace)
        self._node_autoscalers(audit)
        try:
            self._check_targets(snapshot, unread)
        except NotFoundError as error:
            if not self._again:
                raise
            self._problems.append(str(error))
        self._events(audit)
        return CheckRun(
            options=options,
            audit=audit,
            target_version=target_version,
            nodes=nodes,
            problems=[*target_version.problems, *self._problems],
            notes=[*target_version.warnings, *self._notes],
            **read_fields(self._cluster, requests, snapshot),
        )

    def _nodes(self, snapshot: Snapshot, target_version: TargetVersion) -> model.NodesKnown:
        try:
            self._requests.add(resources.NODES, snapshot)
        except ForbiddenError as error:
            inferred = target_version.behaviour.binding_writes_topology_labels
            so = "zones are inferred from the pods' own labels" if inferred else "placement is not evaluated"
            self._problems.append(f"{error}: {so}")
            self._requests.forbidden += 1
            return "inferred" if inferred else "none"
        if problem := hints.unknown_nodes(snapshot):
            self._problems.append(problem)
            return "none"
        return "listed"

    def _owners(self, snapshot: Snapshot) -> set[str]:
        """Read every workload: the owners of the pods, and the templates whose pods may be missing.

        A Deployment's annotations are also in its ReplicaSets, which carry them. A kind that may not be read is an
        error where a selected rule, or a target, asks about its objects. Returns the kinds that may not be read.
        """
        forbidden = set()
        needed = self._options.needs_workloads and not self._options.explaining
        owning = {pod.pod_class.owner.kind for pod in snapshot.pods if pod.pod_class.owner}
        unread = []
        for resource in resources.WORKLOADS:
            try:
                self._requests.add_workloads(resource, snapshot)
            except ForbiddenError as error:
                forbidden.add(resource.kind)
                self._requests.forbidden += 1
                leads_to_target = any(_may_own(resource.kind, target, snapshot) for target in self._scope.targets)
                if leads_to_target or resource.kind in owning:
                    messages = self._problems if leads_to_target or needed else self._notes
                    messages.append(f"{error}: {_shown_without(resource)}")
                else:
                    unread.append(resource)
        if "ReplicaSet" in forbidden:
            snapshot.infer_deployments()
        # A line of its own is about a target without pods.
        targets = {target.kind for target in snapshot.unmet()}
        if names_of_kinds := [resource.full_name for resource in unread if resource.kind not in targets]:
            (self._problems if needed else self._notes).append(
                f"this user may not list {', '.join(names_of_kinds)}: templates and pods that are refused are missed"
                + (" (--select SPR1,SPR3 asks about pods alone)" if needed else "")
            )
        return forbidden

    def _defaults(self, snapshot: Snapshot, unread: set[str]) -> None:
        """Read Services, which default constraints need, and add the default constraints to pods without any."""
        if not snapshot.default_selectors.enabled:
            return
        with self._requests.optional(self._problems, "default constraints are not known"):
            self._requests.add(resources.SERVICES, snapshot)
            self._problems += schedulers.apply(snapshot, unread)

    def _events(self, audit: Audit) -> None:
        """Read the events about pods and owners: to explain them, or where a template cannot have pods."""
        if not self._reads_events:
            return
        refused = any(
            refusal.refused is Refused.PODS
            for template in audit.templates
            for refusal in audit.admission.template(template)
        )
        if not refused and not self._options.explaining:
            return
        selector = EVENTS_BUT if self._options.explaining else "reason=FailedCreate"
        with self._requests.optional(self._notes, "the controllers' own words are not shown"):
            for event in events(self._cluster, self._scope.namespace, selector):
                audit.snapshot.ownership.add_event(event)

    def _read_to_explain(self, audit: Audit) -> bool:
        """Read pods of other namespaces, and namespaces; return whether the pods have to be evaluated again."""
        snapshot, scope = audit.snapshot, self._scope
        snapshot.anti_affinity.everywhere = scope.all_namespaces
        changed = False
        if not scope.all_namespaces and any(not pod.node for pod in audit.pods):
            with self._requests.optional(self._notes, _INCOMPLETE):
                snapshot.join(pods_elsewhere(self._cluster, scope.namespace))
                snapshot.anti_affinity.everywhere = changed = True
        if affinity.wants_namespaces((pod.pod_class for pod in audit.pods), snapshot):
            with self._requests.optional(self._notes, _INCOMPLETE):
                self._requests.add(resources.NAMESPACES, snapshot)
        return changed

    def _with_volumes(self, audit: Audit) -> Audit:
        """Read claims, and then the volumes that they are bound to, if an answer depends on them."""
        options, snapshot = self._options, audit.snapshot
        if not options.needs_nodes or not needs.claims_decide(audit):
            return audit
        with self._requests.optional(self._notes, "volumes may keep pods where they are"):
            self._requests.add_volumes(snapshot)
        if snapshot.volumes.unbound:
            with self._requests.optional(self._notes, NO_CLASSES):
                self._requests.add_storage_classes(snapshot)
        return msgspec.structs.replace(audit, volumes=Volumes(snapshot, audit.nodes))

    def _node_autoscalers(self, audit: Audit) -> None:
        """Read where nodes can be made, if a pod waits for one; like events, the objects are of no revision."""
        waiting = any(not (pod.node or pod.gates or pod.terminating) for pod in audit.pods)
        if not (waiting or self._options.asks_for_node_pools):
            return
        if self._reads_events and audit.evaluator.lists_nodes:
            alone = self._options.asks_for_node_pools_alone
            unread, forbidden = add_node_autoscalers(self._cluster, audit.snapshot, alone=alone)
            (self._problems if alone else self._notes).extend(unread)
            self._requests.forbidden += forbidden if alone else 0

    def _budgets(self, audit: Audit) -> None:
        """Read budgets if a fix may be to remove pods, or if only they tell that workloads belong together."""
        if self._options.needs_budgets and depend_on_budgets(audit):
            consequence = "disruption budgets may forbid what a fix deletes"
        elif self._options.needs_nodes and siblings.depend_on_budgets(audit):
            consequence = "disruption budgets may cover workloads of several zones"
        else:
            return
        with self._requests.optional(self._notes, consequence):
            self._requests.add_budgets(audit.snapshot)

    def _by_gates(
        self, snapshot: Snapshot, server: tuple[int, int], nodes: model.NodesKnown
    ) -> tuple[TargetVersion, Audit]:
        """Evaluate by the gates of the version, or by those of the API server where an answer depends on them."""
        options, with_gates = self._options, self._expects_gates
        while True:
            target_version, note, forbidden = target_for(options, server), "", False
            if with_gates:
                served, note, forbidden = self._gates(target_version.minor)
                target_version = target_for(options, server, served)
            audit = evaluate(snapshot, target_version.facts(options), nodes=nodes)
            # Whether gates matter is the same by all gates.
            self.needed_gates = self._needs_gates(audit, target_version)
            if with_gates == self.needed_gates:
                self._notes += filter(None, [note])
                self._requests.forbidden += forbidden
                return target_version, audit
            with_gates = self.needed_gates

    def _needs_gates(self, audit: Audit, target_version: TargetVersion) -> bool:
        if self._options.minor is not None:
            return False
        decide_counts = needs.gates_decide_counts(target_version.minor)
        return bool(target_version.upgrade) or decide_counts or needs.gates_decide(audit)

    def _gates(self, minor: int) -> tuple[dict[str, bool] | None, str, bool]:
        """Return the API server's feature gates, a note, and whether its metrics are forbidden.

        The gates are None where the metrics may not be read or do not name them.
        """
        assumed = "feature gates are assumed from the version"
        served = self._cluster.feature_gates()
        if served is None:
            return None, f"{assumed}: this user may not get /metrics", True
        missing = [gate for gate in features.merge_gates(minor) if gate not in served]
        if missing:
            return None, f"{assumed}: /metrics of the API server does not name {missing[0]}", False
        return served, "", False

    def _check_targets(self, snapshot: Snapshot, unread: set[str]) -> None:
        """Get each target that no pod led to, so that the API server itself reports a missing one."""
        namespace = self._scope.namespace
        for target in snapshot.unmet():
            nearest = names.suggestion(target, snapshot, namespace)
            kind = target.kind or "Pod"
            if kind not in resources.BY_KIND:
                raise NotFoundError(f'no pod that was read belongs to {kind} "{target.name}"{nearest}')
            resource = resources.BY_KIND[kind]
            try:
                self._cluster.get(resource, namespace, target.name)
            except (NotFoundError, ForbiddenError) as error:
                if isinstance(error, NotFoundError) and not target.kind:
                    raise NotFoundError(names.missing(target, snapshot, namespace)) from None
                raise type(error)(f"{error}{nearest}") from None
            if target.kind in unread:
                what = f'{resource.full_name} "{target.name}"'
                self._problems.append(
                    f"this user may not list {resource.full_name}: {what} has no pods, "
                    "and its template is not evaluated"
                )
            if kind == "Pod":
                self._notes.append(f"pod {target.name} is finished and not evaluated")


_FREQUENT: Final = ("BackOff", "Created", "Pulled", "Pulling", "Scheduled", "Started", "SuccessfulCreate", "Unhealthy")
EVENTS_BUT: Final = ",".join(f"reason!={reason}" for reason in _FREQUENT)
"""A field selector without the most frequent events; a field selector cannot name several reasons to include."""
_BOUND: Final = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"


def events(cluster: LiveCluster, namespace: str, selector: str) -> list[Event]:
    """Return the events about scheduling and scaling.

    Raises:
        ForbiddenError: the user may not list events.
        SourceError: the list cannot be read for another reason.
    """

    def add(events: list[Event], page: Page[Event]) -> None:
        events.extend(event for event in page if event.reason in REASONS)

    return cluster.fold(resources.EVENTS, list[Event], add, namespace, field_selector=selector)


def pods_elsewhere(cluster: LiveCluster, namespace: str) -> Snapshot:
    """Return a snapshot of the bound pods of all other namespaces, which are counted but not evaluated.

    Raises:
        ForbiddenError: the user may not list the pods of all namespaces.
        SourceError: the list cannot be read for another reason.
    """

    def begin() -> Snapshot:
        return Snapshot(Scope(namespace=namespace), detailed=True)

    def add(snapshot: Snapshot, page: Page[SparsePod]) -> None:
        for pod in page:
            snapshot.add_sparse(pod)

    return cluster.fold(resources.SPARSE_PODS, begin, add, field_selector=f"metadata.namespace!={namespace},{_BOUND}")


def read_domains(options: CheckOptions, cluster: LiveCluster, *, with_budgets: bool) -> Run:
    """Read pods, nodes, workloads and, for one domain, PodDisruptionBudgets of a cluster.

    Raises:
        SourceError: Pods or nodes cannot be read, or anything else for another reason than a missing permission.
    """
    scope = options.scope(cluster.namespace)
    requests = Requests(cluster, options, msgspec.structs.replace(scope, labels=()), configuration.WITHOUT_DEFAULTS)
    requests.send()
    # Where the server cannot be reached, this is the error.
    requests.version.result()
    snapshot = pods_of(requests, scope)
    try:
        requests.add(resources.NODES, snapshot)
    except ForbiddenError as error:
        raise ForbiddenError(f"{error}: only nodes tell the domains") from None
    notes = _add_readable_workloads(requests, snapshot)
    if with_budgets:
        with requests.optional(notes, "the minimum of the budgets is unknown"):
            requests.add_budgets(snapshot)
    if not snapshot.objects():
        confirm_namespace(cluster, scope.namespace)
    problems = list(filter(None, [hints.unknown_nodes(snapshot)])) if snapshot.nodes else []
    return Run(options=options, problems=problems, notes=notes, **read_fields(cluster, requests, snapshot))


def _add_readable_workloads(requests: Requests, snapshot: Snapshot) -> list[str]:
    """Add the owners of the pods to a snapshot, and return notes on those that may not be read."""
    owning = {pod.pod_class.owner.kind for pod in snapshot.pods if pod.pod_class.owner}
    notes = []
    for resource in resources.WORKLOADS:
        try:
            requests.add_workloads(resource, snapshot)
        except ForbiddenError as error:
            if resource.kind in owning:
                requests.forbidden += 1
                notes.append(f"{error}: {_shown_without(resource)}")
            if resource.kind == "ReplicaSet":
                snapshot.infer_deployments()
    return notes


def read_fields(cluster: LiveCluster, requests: Requests, snapshot: Snapshot) -> dict[str, Any]:
    """Return the fields of a run that say what was read, when everything else has been read."""
    try:
        uid = requests.uid.result(UID_TIMEOUT)
    except TimeoutError:
        uid = ""
    skipped = snapshot.skipped
    skipped["forbidden"] = requests.forbidden
    version = requests.version.result().text
    return {
        "snapshot": snapshot,
        "identity": ClusterIdentity(cluster.context, cluster.name, uid, requests.read_at, version),
        "resource_versions": requests.resource_versions,
        "skipped": skipped,
    }
