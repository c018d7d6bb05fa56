"""Outcome: what all runs of a simulation have in common, as a report, and what simulations leave out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import UNSET

from kubectl_spread.engine.answers import Reason
from kubectl_spread.engine.fixes import FixTrials
from kubectl_spread.engine.runs import RunResult, Simulation, WorkloadResult
from kubectl_spread.engine.world import World
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.phrases import listed, named, plural, some
from kubectl_spread.report import projections
from kubectl_spread.report.model import Cluster, CommandLine, Severity
from kubectl_spread.report.simulation import (
    AffectedWorkload,
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
    span,
)
from kubectl_spread.rules.remedy import flagged

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
_QUOTAS: Final = "quotas (they could refuse new pods)"
_AUTOSCALER: Final = "cluster-autoscaler"


def report(
    simulation: Simulation,
    runs: Sequence[RunResult],
    cluster: Cluster,
    scope: Callable[[ObjectRef], bool],
    skipped: Mapping[str, int],
    *,
    flags: Sequence[str] = (),
    proceed: Callable[[int], bool],
    not_applied: Mapping[str, int],
) -> SpreadSimulation:
    """Return the report on the runs of a simulation.

    Args:
        simulation: The simulation.
        runs: Its runs.
        cluster: The cluster.
        scope: Tells whether a workload is reported.
        skipped: The number of objects that were left out, by reason.
        flags: kubectl's flags for the cluster.
        proceed: Tells whether another fix may be tried after trials in which this number of pods came or went.
        not_applied: The number of objects of each kind in manifests that are not simulated.
    """
    before = simulation.before()
    unknown = [*not_known(simulation.world, max(each.preempting for each in runs))]
    unknown += _undone(simulation, before, runs)
    harmless = {kind: number for kind, number in not_applied.items() if kind in _HARMLESS}
    unknown += _others({kind: number for kind, number in not_applied.items() if kind not in harmless})
    workloads = sorted(ref for ref in {*before, *(ref for each in runs for ref in each.workloads)} if scope(ref))
    rows = [_workload(ref, before.get(ref, WorkloadResult()), runs) for ref in workloads]
    refused = sorted({eviction for each in runs for eviction in each.refused})
    findings = [
        *_pending(FixTrials(simulation, runs, proceed), runs, workloads, flags),
        *_stopped(rows),
        *_refused(refused),
    ]
    return SpreadSimulation(
        cluster=cluster,
        events=runs[0].texts,
        runs=len(runs),
        seed=simulation.seed,
        workloads=rows,
        refused_evictions=[RefusedEviction(namespace=each[0], pod=each[1], budget=each[2]) for each in refused],
        findings=findings,
        summary=SimulationSummary(
            workloads=len(rows),
            pods=sum(row.before.running + row.before.pending for row in rows),
            lost=sum(row.lost for row in rows),
            pending=span(sum(each.of(ref).pending for ref in workloads) for each in runs),
            stopped=span(_stopped_in(each, before, workloads) for each in runs),
            nodes_before=len(simulation.world.nodes),
            nodes_after=runs[0].nodes,
            unknown=unknown,
            not_simulated=[*unknown, *not_simulated(simulation, before, runs), *_others(harmless)],
            skipped={reason: skipped[reason] for reason in sorted(skipped) if skipped[reason]},
        ),
    )


def _stopped_in(run: RunResult, before: Mapping[ObjectRef, WorkloadResult], workloads: Iterable[ObjectRef]) -> int:
    return sum(ref in before and before[ref].running > 0 and not run.of(ref).running for ref in workloads)


def _workload(ref: ObjectRef, before: WorkloadResult, runs: Sequence[RunResult]) -> SimulatedWorkload:
    results = [each.of(ref) for each in runs]
    places = sorted({*before.domains, *(place for result in results for place in result.domains)})
    keys = sorted({key for result in results for key in result.skews})
    return SimulatedWorkload(
        namespace=ref.namespace,
        workload=projections.workload(ref),
        before=PodNumbers(running=before.running, pending=before.pending),
        lost=max(result.lost for result in results),
        after=PodRanges(
            running=span(result.running for result in results), pending=span(result.pending for result in results)
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


def _pending(
    trials: FixTrials, runs: Sequence[RunResult], workloads: Iterable[ObjectRef], flags: Sequence[str]
) -> Iterator[SimulationFinding]:
    """Yield a finding for the workloads whose pods stay pending for the same reason, most pods first."""
    groups: dict[object, list[tuple[ObjectRef, Reason, Range]]] = {}
    for ref in workloads:
        results = [each.of(ref) for each in runs]
        counted: dict[object, Range] = {
            key: span(result.reasons[key] for result in results) for result in results for key in result.reasons
        }
        for key, pods in counted.items():
            reason = next(each.reasons[key] for each in runs if key in each.reasons)
            groups.setdefault((reason.key, reason.lowest), []).append((ref, reason, pods))
    ordered = sorted(groups.values(), key=lambda group: -sum(pods.max for _, _, pods in group))
    for number, group in enumerate(ordered):
        reason = group[0][1]
        refs = frozenset(ref for ref, _, _ in group)
        fix = trials.first_that_helps(reason, refs) if number < _MOST_FIXES else None
        total = span((sum(pods.min for _, _, pods in group), sum(pods.max for _, _, pods in group)))
        number_of = f"{total.words} {'pod' if total.max == 1 else 'pods'}"
        names = [named(ref.kind, ref.name) for ref in sorted(refs)]
        end = "" if reason.text.endswith("?") else "."
        yield SimulationFinding(
            severity=Severity.ERROR,
            message=f"{number_of} of {some(names)} would stay pending: {reason.text}{end}",
            workloads=[
                AffectedWorkload(namespace=ref.namespace, workload=projections.workload(ref), pending=pods)
                for ref, _, pods in sorted(group, key=lambda item: item[0])
            ],
            fix=UNSET if fix is None else fix.text,
            commands=UNSET
            if fix is None or not fix.commands
            else [str(flagged(CommandLine(each), flags)) for each in fix.commands],
        )


def _stopped(rows: Iterable[SimulatedWorkload]) -> Iterator[SimulationFinding]:
    stopped = [row for row in rows if row.before.running and not row.after.running.min]
    if stopped:
        names = [named(row.workload.kind, row.workload.name) for row in stopped]
        verb = "would have" if all(not row.after.running.max for row in stopped) else "may have"
        yield SimulationFinding(
            severity=Severity.ERROR,
            message=f"{plural(len(stopped), 'workload')} {verb} no running pod: {some(names)}.",
            workloads=[
                AffectedWorkload(namespace=row.namespace, workload=row.workload, pending=row.after.pending)
                for row in stopped
            ],
        )


def _refused(refused: Sequence[tuple[str, str, str]]) -> Iterator[SimulationFinding]:
    for namespace, budget in sorted({(namespace, budget) for namespace, _, budget in refused}):
        pods = [pod for place, pod, name in refused if (place, name) == (namespace, budget)]
        yield SimulationFinding(
            severity=Severity.ERROR,
            message=f"The drain stops: budget {budget} in namespace {namespace} refuses to evict {some(pods)}.",
            workloads=[],
        )


def not_simulated(
    simulation: Simulation, before: Mapping[ObjectRef, WorkloadResult], runs: Sequence[RunResult]
) -> list[str]:
    """Return what the simulation leaves out, as far as it could matter."""
    pending = grown = False
    for ref, result in (item for each in runs for item in each.workloads.items()):
        former = before.get(ref, WorkloadResult())
        pending = pending or result.pending > 0
        grown = grown or (ref.kind != "DaemonSet" and result.running > former.running + former.pending)
    texts = [*left_out(simulation.world, pending=pending)]
    return [*texts, _QUOTAS] if grown else texts


def _others(kinds: Mapping[str, int]) -> Iterator[str]:
    """Yield the objects that a manifest has next to workloads."""
    if kinds:
        numbers = [f"{kinds[kind]} {kind}" for kind in sorted(kinds)]
        yield f"other objects in the applied manifest ({listed(numbers, len(numbers))})"


def _undone(
    simulation: Simulation, before: Mapping[ObjectRef, WorkloadResult], runs: Sequence[RunResult]
) -> Iterator[str]:
    """Yield the workloads whose number of replicas an event changes, and an autoscaler changes again."""
    for workload, autoscaler in sorted(simulation.world.snapshot.autoscalers.items()):
        former = before.get(workload, WorkloadResult())
        number = former.running + former.pending
        if any(each.of(workload).running + each.of(workload).pending != number for each in runs):
            name = named(workload.kind, workload.name)
            yield f"HorizontalPodAutoscaler {autoscaler}, which sets the replicas of {name} again"


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


def left_out(world: World, *, pending: bool = False) -> Iterator[str]:
    """Yield what simulations of a cluster leave out, and what could matter a little.

    Args:
        world: The cluster.
        pending: Whether any pod stays pending, so that a new node could matter.
    """
    snapshot = world.snapshot
    labels = {label for node in snapshot.nodes for label in node.metadata.labels}
    managed = any(label.startswith(_AUTOSCALED) for label in labels)
    if pending and (managed or any(_AUTOSCALER in ref.name for ref in snapshot.workload_objects)):
        yield "cluster autoscalers"
    _, volumes = world.table(world.nodes)
    unknown = {volumes.of(pod).unknown for pod in snapshot.pods if pod.claims}
    if unknown:
        yield "limits on the number of volumes of a node"
    if foreign := sorted({pod.pod_class.scheduler_name for pod in snapshot.pods if pod.pod_class.profile is None}):
        yield f"the rules of other schedulers ({', '.join(foreign)}): their pods are placed as by kube-scheduler"
