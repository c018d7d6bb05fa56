"""Outcome: what all runs of a simulation have in common, as a report, and what simulations leave out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import UNSET

from kubectl_spread.engine.answers import Fix, Reason
from kubectl_spread.engine.fixes import FixTrials
from kubectl_spread.engine.runs import RunResult, Simulation, WorkloadResult
from kubectl_spread.engine.world import World
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.phrases import domains, listed, named, plural, some, topology_name
from kubectl_spread.report import projections
from kubectl_spread.report.model import Cluster, CommandLine, Severity
from kubectl_spread.report.simulation import (
    AUTOSCALERS,
    NODES_TO_COME,
    AffectedWorkload,
    MadeNodes,
    PodNumbers,
    PodRanges,
    Range,
    RefusedEviction,
    SimulatedDomain,
    SimulatedReason,
    SimulatedSkew,
    SimulatedWorkload,
    SimulationFinding,
    SimulationSummary,
    SpreadSimulation,
    TriedFix,
    WithNewNodes,
    span,
)
from kubectl_spread.rules.remedy import NO_FLAGS, CommandFlags, flagged
from kubectl_spread.simulate import drains

_MOST_FIXES: Final = 10
"""The most findings for which fixes are tried."""
_AUTOSCALED: Final = ("karpenter.sh/", "cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup", "agentpool")
"""The beginnings of labels of nodes that an autoscaler may manage."""
NOT_SIMULATED: Final = "not simulated: {}"
"""The error on something unknown that decides about pods."""
_HARMLESS: Final = frozenset(
    {
        "ClusterRole",
        "ClusterRoleBinding",
        "ConfigMap",
        "Ingress",
        "NetworkPolicy",
        "Role",
        "RoleBinding",
        "Secret",
        "Service",
        "ServiceAccount",
    }
)
"""The kinds of objects that do not decide where pods go, nor how many there are."""
_DIFFERENT_NODES: Final = (
    "Whether a node could be made for them, and where, is not the same for all of them, or in all runs."
)
_QUOTAS: Final = "quotas (they could refuse new pods)"
_AUTOSCALER: Final = "cluster-autoscaler"


def report(
    simulation: Simulation,
    runs: Sequence[RunResult],
    cluster: Cluster,
    scope: Callable[[ObjectRef], bool],
    skipped: Mapping[str, int],
    *,
    flags: CommandFlags = NO_FLAGS,
    proceed: Callable[[int], bool],
    not_applied: Mapping[str, int],
    grown: Sequence[RunResult] = (),
) -> SpreadSimulation:
    """Return the report on the runs of a simulation.

    Args:
        simulation: The simulation.
        runs: Its runs.
        cluster: The cluster.
        scope: Tells whether a workload is reported.
        skipped: The number of objects that were left out, by reason.
        flags: The flags of commands for the cluster.
        proceed: Tells whether another fix may be tried after trials in which this number of pods came or went.
        not_applied: The number of objects of each kind in manifests that are not simulated.
        grown: Runs of the same events in which autoscalers make nodes.
    """
    before = simulation.before()
    unknown = [*not_known(simulation.world, max(each.preempting for each in runs))]
    harmless = {kind: number for kind, number in not_applied.items() if kind in _HARMLESS}
    unknown += _others({kind: number for kind, number in not_applied.items() if kind not in harmless})
    refs = sorted(ref for ref in {*before, *(ref for each in runs for ref in each.workloads)} if scope(ref))
    workloads = {ref: before.get(ref, WorkloadResult()) for ref in refs}
    rows = {ref: _workload(ref, former, runs) for ref, former in workloads.items()}
    trials = FixTrials(simulation, lambda: runs, proceed)
    findings = [
        *_pending(trials, runs, workloads, simulation.world, flags),
        *_not_replaced(trials, runs, workloads, rows, flags),
        *_unfinished(runs, rows),
        *_stopped(rows.values()),
        *_interrupted(rows.values()),
        *(_finding(Severity.ERROR, text, fixes=(fix,), flags=flags) for text, fix in drains.waits(trials, runs)),
        *(_finding(Severity.INFO, text) for text in drains.needs(runs)),
    ]
    findings.sort(key=lambda finding: finding.severity, reverse=True)
    return SpreadSimulation(
        cluster=cluster,
        events=runs[0].texts,
        runs=len(runs),
        seed=simulation.seed,
        workloads=[*rows.values()],
        refused_evictions=[
            RefusedEviction(node=each.node, namespace=each.namespace, pod=each.pod, budget=", ".join(each.budgets))
            for each in drains.refused(runs)
        ],
        findings=findings,
        with_new_nodes=_with_new_nodes(grown, workloads) if grown else UNSET,
        summary=SimulationSummary(
            workloads=len(rows),
            pods=sum(row.before.running + row.before.pending for row in rows.values()),
            lost=sum(row.lost for row in rows.values()),
            pending=span(sum(each.of(ref).pending for ref in workloads) for each in runs),
            new=span(sum(each.of(ref).new for ref in workloads) for each in runs),
            not_replaced=span(sum(_out_of_reach(each.of(ref)) for ref in workloads) for each in runs),
            refused=span(len(each.refused) for each in runs),
            interrupted=span(
                sum(
                    former.ready > 0 and not each.of(ref).least and each.of(ref).running > 0
                    for ref, former in workloads.items()
                )
                for each in runs
            ),
            stopped=span(
                sum(former.running > 0 and not each.of(ref).running for ref, former in workloads.items())
                for each in runs
            ),
            nodes_before=len(simulation.world.nodes),
            nodes_after=runs[0].nodes,
            unknown=unknown,
            not_simulated=[
                *unknown,
                *_not_simulated(simulation, before, runs, grown=bool(grown)),
                *_others(harmless),
            ],
            skipped={reason: skipped[reason] for reason in sorted(skipped) if skipped[reason]},
        ),
    )


def _with_new_nodes(grown: Sequence[RunResult], workloads: Iterable[ObjectRef]) -> WithNewNodes:
    made = sorted({each for run in grown for each in run.made})
    return WithNewNodes(
        runs=len(grown),
        total=span(run.made.total() for run in grown),
        nodes=[
            MadeNodes(maker=each.maker, zone=each.zone, nodes=span(run.made[each] for run in grown)) for each in made
        ],
        pending=span(sum(run.of(ref).pending for ref in workloads) for run in grown),
        new=span(sum(run.of(ref).new for ref in workloads) for run in grown),
        unsized=sorted({maker for run in grown for maker in run.unsized}),
        missed=sorted({zone for run in grown for zone in run.missed}),
    )


def _out_of_reach(result: WorkloadResult) -> int:
    """Return the number of pods that nothing replaces, without those that belong to their nodes."""
    return sum(number for why, number in result.not_replaced.items() if why)


def _workload(ref: ObjectRef, before: WorkloadResult, runs: Sequence[RunResult]) -> SimulatedWorkload:
    results = [each.of(ref) for each in runs]
    places = sorted({*before.domains, *(place for result in results for place in result.domains)})
    keys = sorted({key for result in results for key in result.skews})
    return SimulatedWorkload(
        namespace=ref.namespace,
        workload=projections.workload(ref),
        before=PodNumbers(running=before.running, ready=before.ready, pending=before.pending),
        lost=max(result.lost for result in results),
        least=span(result.least for result in results),
        after=PodRanges(
            running=span(result.running for result in results),
            pending=span(result.pending for result in results),
            new=span(result.new for result in results),
            not_replaced=span(result.not_replaced.total() for result in results),
        ),
        domains=[
            SimulatedDomain(
                topology_key=key,
                value=value,
                before=before.domains[key, value],
                pods=span(result.domains[key, value] for result in results),
            )
            for key, value in places
        ],
        skews=[
            SimulatedSkew(topology_key=key, skew=span(result.skews.get(key, 0) for result in results)) for key in keys
        ],
        reasons=[*_reasons(ref, runs, results)],
    )


def _reasons(ref: ObjectRef, runs: Sequence[RunResult], results: Sequence[WorkloadResult]) -> Iterator[SimulatedReason]:
    keys = dict.fromkeys(key for result in results for key in result.reasons)
    for key in keys:
        text = next(each.reasons[key].text for each in runs if key in each.reasons)
        yield SimulatedReason(text=text, pods=span(result.reasons[key] for result in results))
    if failed := next((each.failed[owner] for each in runs for owner in each.failed if owner == ref), ""):
        yield SimulatedReason(text=failed, pods=Range(min=0, max=0))


class _Group(msgspec.Struct):
    """Workloads whose pods stay pending for the same reason, and whether nodes could be made for these."""

    reason: Reason
    new_nodes: str
    workloads: list[AffectedWorkload]
    refs: list[ObjectRef]

    @property
    def new(self) -> Range:
        """The pods that were not pending before."""
        return _sum(each.new for each in self.workloads)

    @property
    def pending(self) -> Range:
        """All of the pods."""
        return _sum(each.pending for each in self.workloads)


def _sum(ranges: Iterable[Range]) -> Range:
    values = list(ranges)
    return span((sum(each.min for each in values), sum(each.max for each in values)))


def _pending(
    trials: FixTrials,
    runs: Sequence[RunResult],
    workloads: Iterable[ObjectRef],
    world: World,
    flags: CommandFlags,
) -> Iterator[SimulationFinding]:
    """Yield a finding for the workloads whose pods stay pending for the same reason.

    Those come first of domains that do not answer, and then those with the most new pods. Pods that have waited before
    are only named.
    """
    groups: dict[object, _Group] = {}
    for ref in workloads:
        results = [each.of(ref) for each in runs]
        for key in dict.fromkeys(key for result in results for key in result.reasons):
            reason = next(each.reasons[key] for each in runs if key in each.reasons)
            sentences = {text for each in runs for text in each.new_nodes.get(key, ())}
            new_nodes = _DIFFERENT_NODES if len(sentences) > 1 else next(iter(sentences), "")
            group = groups.setdefault((reason.key, reason.lowest, new_nodes), _Group(reason, new_nodes, [], []))
            group.refs.append(ref)
            group.workloads.append(
                AffectedWorkload(
                    namespace=ref.namespace,
                    workload=projections.workload(ref),
                    pending=span(result.reasons[key] for result in results),
                    new=span(result.new_reasons[key] for result in results),
                )
            )
    silent = {group.reason.lowest: _silent(group.reason, runs, world) for group in groups.values()}
    ordered = sorted(
        groups.values(),
        key=lambda group: (not silent[group.reason.lowest], -group.new.max, -group.pending.max),
    )
    for number, group in enumerate(ordered):
        reason, refs = group.reason, frozenset(group.refs)
        fix = trials.first_that_helps(reason, refs) if number < _MOST_FIXES else None
        other = trials.deletion(refs) if silent[reason.lowest] and number < _MOST_FIXES else None
        fixes = (other,) if fix and other and fix.commands == other.commands else (fix, other)
        severity, message = Severity.ERROR if group.new.max else Severity.INFO, _message(group, silent[reason.lowest])
        yield _finding(severity, message, group.workloads, fixes, flags)


def _silent(reason: Reason, runs: Sequence[RunResult], world: World) -> bool:
    """Tell whether no node of the domains that hold the minimum of a constraint answers."""
    key, values = reason.lowest
    unreachable = {name for each in runs for name in each.unreachable}
    of_domains = [node for node in world.nodes if node.metadata.labels.get(key) in values]
    return bool(values) and all(node.metadata.name in unreachable for node in of_domains)


def _message(group: _Group, silent: bool) -> str:
    reason, new, pending = group.reason, group.new, group.pending
    names = _owners(group.refs)
    end = "" if reason.text.endswith("?") else "."
    if not new.max:
        verb = "waits" if pending.max == 1 else "wait"
        return f"{pending.of('pod')} of {names} {verb} as before: {reason.text}{end}"
    # With some runs, more of them may have waited before than with others.
    before = pending.max - new.max
    others = f" ({plural(before, 'other')} waited before)" if before else ""
    nodes = f" {group.new_nodes}" if group.new_nodes else ""
    if silent:
        key, values = reason.lowest
        verb, holds = ("is", "holds") if len(values) == 1 else ("are", "hold")
        return (
            f"{new.of('pod')} of {names} would stay pending{others}: {domains(key, values)} {verb} unreachable, still "
            f"{'counts' if len(values) == 1 else 'count'}, and {holds} the minimum of their constraint on "
            f"{topology_name(key)} at {reason.constraint.minimum}.{nodes}"
        )
    return f"{new.of('pod')} of {names} would stay pending{others}: {reason.text}{end}{nodes}"


def _owners(refs: Iterable[ObjectRef]) -> str:
    """Return the name of the only workload, or the number of several, which the finding lists."""
    first, *others = dict.fromkeys(refs)
    return plural(len(others) + 1, "workload") if others else named(first.kind, first.name)


def _finding(
    severity: Severity,
    message: str,
    workloads: Iterable[AffectedWorkload] = (),
    fixes: Sequence[Fix | None] = (),
    flags: CommandFlags = NO_FLAGS,
) -> SimulationFinding:
    """Return a finding with its fixes, as far as there are any; those after the first are alternatives."""
    tried = [
        TriedFix(fix=each.text, commands=[str(flagged(CommandLine(line), flags)) for line in each.commands])
        for each in fixes
        if each is not None
    ]
    return SimulationFinding(
        severity=severity,
        message=message,
        workloads=sorted(workloads, key=lambda each: (each.namespace, each.workload.kind, each.workload.name)),
        fix=tried[0].fix if tried else UNSET,
        commands=tried[0].commands if tried and tried[0].commands else UNSET,
        alternatives=tried[1:] or UNSET,
    )


def _affected(row: SimulatedWorkload) -> AffectedWorkload:
    return AffectedWorkload(
        namespace=row.namespace, workload=row.workload, pending=row.after.pending, new=row.after.new
    )


def _not_replaced(
    trials: FixTrials,
    runs: Sequence[RunResult],
    workloads: Mapping[ObjectRef, WorkloadResult],
    rows: Mapping[ObjectRef, SimulatedWorkload],
    flags: CommandFlags,
) -> Iterator[SimulationFinding]:
    """Yield a finding for the pods on nodes that do not answer that nothing replaces for the same reason.

    As many as there were before are only named.
    """
    groups: dict[str, dict[ObjectRef, Range]] = {}
    for ref in workloads:
        results = [each.of(ref) for each in runs]
        for why in sorted({why for result in results for why in result.not_replaced if why}):
            groups.setdefault(why, {})[ref] = span(result.not_replaced[why] for result in results)
    for why, group in sorted(groups.items(), key=lambda item: -_sum(item[1].values()).max):
        number = _sum(group.values())
        verb = "is" if number.max == 1 else "are"
        more = any(pods.max > workloads[ref].not_replaced.total() for ref, pods in group.items())
        text = f"{number.of('pod')} of {_owners(group)} {verb} not replaced{'' if more else ', as before'}: {why}."
        fix = trials.deletion(frozenset(group))
        severity = Severity.ERROR if more else Severity.INFO
        yield _finding(severity, text, (_affected(rows[ref]) for ref in group), (fix,), flags)


def _unfinished(runs: Sequence[RunResult], rows: Mapping[ObjectRef, SimulatedWorkload]) -> Iterator[SimulationFinding]:
    """Yield a finding for each rollout that does not end in some run."""
    for ref, row in rows.items():
        left = span(each.unfinished.get(ref, 0) for each in runs)
        if left.max:
            verb = "would" if left.min else "may"
            names = "pod is" if left.max == 1 else "pods are"
            text = f"The rollout of {named(ref.kind, ref.name)} {verb} not end: {left.words} {names} not replaced."
            yield _finding(Severity.ERROR, text, [_affected(row)])


def _stopped(rows: Iterable[SimulatedWorkload]) -> Iterator[SimulationFinding]:
    stopped = [row for row in rows if row.before.running and not row.after.running.min]
    if stopped:
        verb = "would have" if all(not row.after.running.max for row in stopped) else "may have"
        yield _of_rows(Severity.ERROR, f"{plural(len(stopped), 'workload')} {verb} no running pod", stopped)


def _interrupted(rows: Iterable[SimulatedWorkload]) -> Iterator[SimulationFinding]:
    """Yield a warning about workloads of several pods without a ready pod at some moment, and a line about others."""
    interrupted = [row for row in rows if row.before.ready and not row.least.min and row.after.running.min]
    several = [row for row in interrupted if row.before.running + row.before.pending > 1]
    single = [row for row in interrupted if row not in several]
    for severity, affected, what in (
        (Severity.WARNING, several, "with several pods"),
        (Severity.INFO, single, "with one pod"),
    ):
        if affected:
            verb = "would have" if all(not row.least.max for row in affected) else "may have"
            number = plural(len(affected), "workload")
            yield _of_rows(severity, f"{number} {what} {verb} none that is ready for a time", affected)


def _of_rows(severity: Severity, text: str, rows: Sequence[SimulatedWorkload]) -> SimulationFinding:
    """Return a finding on workloads; its text names a single one, and it lists several."""
    name = "" if len(rows) > 1 else f": {named(rows[0].workload.kind, rows[0].workload.name)}"
    return _finding(severity, f"{text}{name}.", map(_affected, rows))


def _not_simulated(
    simulation: Simulation, before: Mapping[ObjectRef, WorkloadResult], runs: Sequence[RunResult], *, grown: bool
) -> Iterator[str]:
    """Yield what the simulation leaves out, as far as it could matter."""
    results = [
        (ref, result, before.get(ref, WorkloadResult())) for each in runs for ref, result in each.workloads.items()
    ]
    yield from left_out(simulation.world, pending=any(result.pending for _, result, _ in results), grown=grown)
    yield from _rescaled(simulation, before, runs)
    if any(
        ref.kind != "DaemonSet" and result.running > former.running + former.pending for ref, result, former in results
    ):
        yield _QUOTAS


def _others(kinds: Mapping[str, int]) -> Iterator[str]:
    """Yield the objects that a manifest has next to workloads."""
    if kinds:
        numbers = [f"{kinds[kind]} {kind}" for kind in sorted(kinds)]
        yield f"other objects in the applied manifest ({listed(numbers, len(numbers))})"


def _rescaled(
    simulation: Simulation, before: Mapping[ObjectRef, WorkloadResult], runs: Sequence[RunResult]
) -> Iterator[str]:
    """Yield the autoscalers that may change the number of pods of a workload again, by their metrics."""
    for workload, autoscaler in sorted(simulation.world.snapshot.autoscalers.items()):
        former = before.get(workload, WorkloadResult())
        if any(each.of(workload).running != former.running for each in runs):
            yield f"the metrics of {autoscaler.text} of {named(workload.kind, workload.name)}"


def not_known(world: World, preempting: int = 0) -> Iterator[str]:
    """Yield what was not read, or cannot be simulated, and decides about pods.

    Args:
        world: The cluster, in which pods were placed.
        preempting: The number of pending pods that could preempt others.
    """
    snapshot = world.snapshot
    names = {node.metadata.name for node in snapshot.nodes}
    elsewhere = {node: pods for node, pods in snapshot.pods_on_nodes().items() if node not in names}
    if elsewhere:
        number = plural(sum(elsewhere.values()), "pod")
        yield f"nodes that were not read, with {number} ({some(list(elsewhere))})"
    if unread := world.kinds.unread_namespaces():
        yield f"the labels of namespaces, which a namespaceSelector needs, were not read ({some(unread)})"
    yield from world.unknown
    if preempting:
        yield f"preemption ({plural(preempting, 'pod')} could preempt others)"


def left_out(world: World, *, pending: bool, grown: bool = False) -> Iterator[str]:
    """Yield what simulations of a cluster leave out, and what could matter a little.

    Args:
        world: The cluster.
        pending: Whether any pod stays pending, so that a new node could matter.
        grown: Whether new nodes are simulated.
    """
    snapshot = world.snapshot
    labels = {label for node in snapshot.nodes for label in node.metadata.labels}
    managed = snapshot.node_autoscalers.known or any(label.startswith(_AUTOSCALED) for label in labels)
    if pending and (managed or any(_AUTOSCALER in ref.name for ref in snapshot.workload_objects)):
        yield NODES_TO_COME if grown else AUTOSCALERS
    _, volumes = world.table(world.nodes)
    unknown = {volumes.of(pod).unknown for pod in snapshot.pods if pod.claims}
    if unknown:
        yield "limits on the number of volumes of a node"
    if foreign := sorted({pod.pod_class.scheduler_name for pod in snapshot.pods if pod.pod_class.profile is None}):
        yield f"the rules of other schedulers ({', '.join(foreign)}): their pods are placed as by kube-scheduler"
