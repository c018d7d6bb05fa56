"""The current report: one part for each counting group, evaluated again when a change concerns the group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from kubectl_spread.audit.evaluation.affinity import incoming
from kubectl_spread.audit.evaluation.evaluate import evaluate
from kubectl_spread.audit.merge.admission_check import AdmissionCheck
from kubectl_spread.audit.merge.verdicts import ServerFacts
from kubectl_spread.audit.snapshot.capacity import NodeCapacity
from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.diagnosis import gates
from kubectl_spread.diagnosis.running_pods import running_pods
from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.disruption import Budgets, PodDisruptionBudget
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.scheduler.podtopologyspread.domains import NodeSets
from kubectl_spread.monitor import groups
from kubectl_spread.monitor.groups import CountingGroup
from kubectl_spread.monitor.namespaces import NamespaceContent
from kubectl_spread.monitor.retained import RetainedPod
from kubectl_spread.monitor.world import World
from kubectl_spread.report import model
from kubectl_spread.report.severity import Severity
from kubectl_spread.rules import engine
from kubectl_spread.rules.selection import SelectedRules

_NO_CLUSTER: Final = model.Cluster(
    judged_as="", version_source="flag", gates={}, gates_source="flag", nodes="none", resource_versions={}
)
"""The cluster in the parts of a report."""


class Refreshed(NamedTuple):
    """The counting groups that a refresh changed.

    Attributes:
        evaluated: The groups that were evaluated, each with its new part.
        gone: The groups that no longer exist.
    """

    evaluated: Sequence[CountingGroup]
    gone: Sequence[CountingGroup]


class CurrentReport:
    """The report of a world; ``refresh`` brings it up to date."""

    def __init__(
        self,
        world: World,
        context: ServerFacts,
        selected: SelectedRules,
        flags: tuple[str, ...] = (),
    ) -> None:
        """Start empty; the arguments are those of an evaluation and of ``rules.engine.complete``."""
        self._world = world
        self._context = context
        self._selected = selected
        self._flags = flags
        self._reaches = groups.Reaches()
        self._beyond: dict[str, frozenset[str] | None] = {}
        self._region_of: dict[str, frozenset[str]] = {}
        self._groups_of_region: dict[frozenset[str], list[CountingGroup]] = {}
        self._group_of: dict[ObjectRef, CountingGroup] = {}
        self._outdated: dict[CountingGroup, None] = {}
        self._evaluated: dict[CountingGroup, None] = {}
        self._gone: list[CountingGroup] = []

    def refresh(self, give_way: Callable[[], None] = lambda: None) -> Refreshed:
        """Evaluate the groups that changes concern, and return them; afterwards the report is that of the world.

        ``give_way`` is called before each evaluation.
        """
        self._find_outdated()
        for group in list(self._outdated):
            give_way()
            self._evaluate(group)
            # If an evaluation fails, the next call continues with this group, and returns also those before it.
            del self._outdated[group]
            self._evaluated[group] = None
        refreshed = Refreshed([*self._evaluated], self._gone)
        self._evaluated, self._gone = {}, []
        return refreshed

    def _find_outdated(self) -> None:
        """Take the changes of the world as groups to evaluate."""
        world = self._world
        world.settle()
        self._outdated.update(dict.fromkeys(self._regroup()))
        for workload in world.concerned:
            if workload in self._group_of:
                self._outdated[self._group_of[workload]] = None
        self._outdated.update(dict.fromkeys(world.capacity.answered_differently()))
        self._outdated.update(dict.fromkeys(world.claims.answered_differently()))
        if world.changed_budgets:
            changed = world.changed_budgets
            self._outdated.update(dict.fromkeys(group for group in self._groups() if group.budgets_of & changed))
        if world.concerns_all:
            self._outdated.update(dict.fromkeys(self._groups()))
        world.concerned.clear()
        world.changed_budgets.clear()
        world.concerns_all = False

    def parts(self) -> Sequence[model.Report]:
        """Return the parts of the report as of the last ``refresh``; they never change."""
        return [group.part for group in self._groups() if group.part is not None]

    def report(self, cluster: model.Cluster) -> model.Report:
        """Return the complete report as of the last ``refresh``."""
        return merged(self.parts(), cluster, self._world.skipped, self._unchanged)

    def summary(self) -> model.Summary:
        """Return the totals of the report as of the last ``refresh``."""
        return _summary([part.summary for part in self.parts()], self._world.skipped, self._unchanged)

    @property
    def _unchanged(self) -> model.Upgrade | UnsetType:
        """What another Kubernetes changes where there are no findings."""
        return engine.upgrade(self._context, self._selected, ())

    @property
    def needs_gates(self) -> bool:
        """Whether an answer depends on feature gates that the version does not decide, as of the last ``refresh``."""
        return any(group.needs_gates for group in self._groups())

    def set_context(self, context: ServerFacts) -> None:
        """Take other facts about the servers; ``refresh`` then evaluates everything again, unless they are equal."""
        if context != self._context:
            self._context = context
            self._world.concerns_all = True

    def _groups(self) -> Iterable[CountingGroup]:
        return (group for of_region in self._groups_of_region.values() for group in of_region)

    def _regroup(self) -> list[CountingGroup]:
        """Group the workloads of stale namespaces again; return the groups that did not exist before."""
        stale = self._assign()
        if not stale:
            return []
        regions = groups.regions(self._beyond)
        region_of = {namespace: region for region in regions for namespace in region}
        outdated = {
            region
            for namespace, region in self._region_of.items()
            if namespace in stale or region_of.get(namespace) != region
        }
        self._region_of = region_of
        earlier = {group.workloads: group for region in outdated for group in self._groups_of_region.pop(region)}
        new = [group for region in regions for group in self._grouped(region, earlier)]
        for group in earlier.values():
            self._forget(group)
            self._outdated.pop(group, None)
            self._evaluated.pop(group, None)
            self._gone.append(group)
            for workload in group.workloads:
                del self._group_of[workload]
        self._group_of.update((workload, group) for group in new for workload in group.workloads)
        self._reaches.keep_only(self._world.namespaces.values())
        return new

    def _assign(self) -> set[str]:
        """Assign the content of stale namespaces to workloads; return their names."""
        world = self._world
        stale = {namespace for namespace, content in world.namespaces.items() if content.stale}
        for namespace in stale:
            content = world.namespaces[namespace]
            world.concerned |= content.assign(world.ownership, world.defaults)
            if content.empty:
                del world.namespaces[namespace]
                self._beyond.pop(namespace, None)
            else:
                self._beyond[namespace] = self._reaches.beyond(namespace, content)
        return stale

    def _grouped(
        self, region: frozenset[str], earlier: dict[frozenset[ObjectRef], CountingGroup]
    ) -> list[CountingGroup]:
        """Group the workloads of a region unless that is done; take ``earlier`` groups and return the new ones."""
        if region in self._groups_of_region:
            return []
        new = []
        of_region = self._groups_of_region[region] = []
        for workloads in groups.groups({name: self._world.namespaces[name] for name in region}, self._reaches):
            group = earlier.pop(workloads, None)
            if group is None:
                group = CountingGroup(workloads)
                new.append(group)
            of_region.append(group)
        return new

    def _forget(self, group: CountingGroup) -> None:
        self._world.capacity.forget(group)
        self._world.claims.forget(group)

    def _evaluate(self, group: CountingGroup) -> None:
        """Give a group the result of its evaluation; none if nothing of it is in scope."""
        world = self._world
        self._forget(group)
        snapshot = GroupSnapshot(world, group)
        if not (snapshot.pods or snapshot.templates):
            group.part, group.running_pods, group.needs_gates, group.admission = None, (), False, None
            group.budgets_of = frozenset()
            return
        if group.admission is None or group.admission.behaviour != self._context.behaviour:
            group.admission = AdmissionCheck(self._context.behaviour)
        group.admission.forget_unasked()
        audit = evaluate(snapshot, self._context, nodes=world.nodes_known, admission=group.admission)
        group.part = engine.complete(audit, _NO_CLUSTER, self._selected, {}, flags=self._flags)
        group.budgets_of = frozenset(snapshot.budgets.requested)
        group.running_pods, group.needs_gates = tuple(running_pods(audit)), gates.decide(audit)


class _RequestedBudgets(Budgets):
    """The budgets of the world as one evaluation sees them; ``requested`` are the namespaces that it asked about."""

    def __init__(self, budgets: Budgets) -> None:
        super().__init__()
        self.read = budgets.read
        self.requested: set[str] = set()
        self._of_world = budgets

    def of(self, namespace: str, labels: Labels) -> tuple[PodDisruptionBudget, ...]:
        """Return the budgets that select a pod, by name."""
        self.requested.add(namespace)
        return self._of_world.of(namespace, labels)


class GroupSnapshot(Snapshot):
    """The snapshot of one counting group, which shares the nodes and owners of the world."""

    budgets: _RequestedBudgets

    def __init__(self, world: World, group: CountingGroup) -> None:
        """Take the pods and templates of the group's workloads."""
        super().__init__(world.scope, schedulers=world.schedulers)
        self._world = world
        self._group = group
        self._counters: dict[tuple[PodClass, bool], Sequence[Counter[str]]] = {}
        self.nodes = world.nodes
        self.ownership = world.ownership
        self.volumes = world.claims.asked_by(group)
        self.budgets = _RequestedBudgets(world.budgets)
        self.anti_affinity.selects_namespaces = world.selects_namespaces
        for workload in group.workloads:
            content = world.namespaces[workload.namespace]
            self.templates += content.templates_of(workload)
            for pod in content.pods_of(workload):
                self._add_retained(pod, content)

    def capacity(self) -> NodeCapacity:
        """Return the capacity that the nodes have left; each question is stored for the group."""
        return self._world.capacity.asked_by(self._group)

    def node_sets(self, behaviour: Behaviour) -> NodeSets:
        """Return the nodes of the world."""
        return self._world.node_sets(behaviour)

    def _add_retained(self, pod: RetainedPod, content: NamespaceContent) -> None:
        record = pod.record
        if pod.bound:
            for counter in self._counters_of(record.pod_class, terminating=record.terminating):
                counter[record.node] += 1
        if pod.evaluated:
            pod_class = content.with_defaults(record.pod_class)
            derived = pod_class is not record.pod_class
            self.pods.append(msgspec.structs.replace(record, pod_class=pod_class) if derived else record)

    def _counters_of(self, pod_class: PodClass, *, terminating: bool) -> Sequence[Counter[str]]:
        key = (pod_class, terminating)
        if key not in self._counters:
            self._counters[key] = self.counters(incoming(pod_class), terminating=terminating)
        return self._counters[key]


def merged(
    parts: Sequence[model.Report],
    cluster: model.Cluster,
    skipped: Mapping[str, int],
    unchanged: model.Upgrade | UnsetType = UNSET,
) -> model.Report:
    """Return the report that has the parts of all groups; ``unchanged`` is its upgrade without any part."""
    rows = sorted(
        ((row, number, index) for number, part in enumerate(parts) for index, row in enumerate(part.constraints)),
        key=lambda entry: _key(entry[0].namespace, entry[0].workload),
    )
    indices = {(number, index): position for position, (_, number, index) in enumerate(rows)}
    findings = [_moved(finding, number, indices) for number, part in enumerate(parts) for finding in part.findings]
    return model.Report(
        cluster=cluster,
        constraints=[row for row, _, _ in rows],
        groups=sorted(
            (group for part in parts for group in part.groups), key=lambda each: _key(each.namespace, each.workload)
        ),
        pods=sorted((pod for part in parts for pod in part.pods), key=lambda pod: (pod.namespace, pod.name)),
        findings=sorted(findings, key=lambda finding: _key(finding.namespace, finding.object)),
        summary=_summary([part.summary for part in parts], skipped, unchanged),
    )


def _key(namespace: str, workload: model.Workload) -> tuple[str, str, str]:
    return namespace, workload.kind, workload.name


def _moved(finding: model.Finding, part: int, indices: Mapping[tuple[int, int], int]) -> model.Finding:
    """Return a finding of a part with the indices of its rows in the whole report."""
    if isinstance(finding.rows, UnsetType):
        return finding
    return msgspec.structs.replace(finding, rows=[indices[part, index] for index in finding.rows])


def _summary(
    summaries: Sequence[model.Summary], skipped: Mapping[str, int], unchanged: model.Upgrade | UnsetType
) -> model.Summary:
    """Return the sums; the numbers of templates are left out where there are none."""
    templates = sum(summary.templates or 0 for summary in summaries)
    selected = next((summary.selected for summary in summaries), UNSET)
    return model.Summary(
        pods=sum(summary.pods for summary in summaries),
        pending=sum(summary.pending or 0 for summary in summaries) or UNSET,
        workloads=sum(summary.workloads for summary in summaries),
        without_pods=sum(summary.without_pods or 0 for summary in summaries) or UNSET,
        templates=templates or UNSET,
        template_constraints=sum(summary.template_constraints or 0 for summary in summaries) if templates else UNSET,
        constraints=sum(summary.constraints for summary in summaries),
        findings=model.FindingCounts(
            **{each.value: sum(summary.findings.of(each) for summary in summaries) for each in Severity}
        ),
        selected=selected,
        silenced=sum(summary.silenced for summary in summaries),
        upgrade=_upgrade([unchanged, *(summary.upgrade for summary in summaries)]),
        skipped={reason: number for reason, number in sorted(skipped.items()) if number},
    )


def _upgrade(parts: Sequence[model.Upgrade | UnsetType]) -> model.Upgrade | UnsetType:
    """Return the changes of another Kubernetes in all parts."""
    changes = [change for change in parts if not isinstance(change, UnsetType)]
    if not changes:
        return UNSET
    return model.Upgrade(
        minors=changes[0].minors,
        workloads=sum(change.workloads for change in changes),
        codes=sorted({code for change in changes for code in change.codes}),
        silenced=sum(change.silenced for change in changes),
    )
