"""Outcome: a plan as a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubectl_spread.kube.custom import base_kind
from kubectl_spread.plan.planner import PlannedStep, PlannedWaves
from kubectl_spread.report import projections
from kubectl_spread.report.model import Cluster, Workload
from kubectl_spread.report.plan import (
    NotCorrectable,
    PlannedDomain,
    PlannedEviction,
    PlannedWave,
    PlanSummary,
    SpreadPlan,
)


def report(
    plan: PlannedWaves,
    cluster: Cluster,
    *,
    runs: int,
    seed: int,
    not_simulated: Sequence[str],
    skipped: Mapping[str, int],
) -> SpreadPlan:
    """Return the report on a plan that was tried in a number of runs."""
    return SpreadPlan(
        cluster=cluster,
        waves=[PlannedWave(evictions=[_eviction(step) for step in wave]) for wave in plan.waves],
        not_correctable=[
            NotCorrectable(namespace=ref.namespace, workload=projections.workload(ref), why="; ".join(plan.left[ref]))
            for ref in sorted(plan.left)
        ],
        summary=PlanSummary(
            evictions=sum(map(len, plan.waves)),
            waves=len(plan.waves),
            uneven=len(plan.uneven),
            corrected=len(set(plan.uneven) - set(plan.left)),
            runs=runs,
            seed=seed,
            not_simulated=list(not_simulated),
            skipped={reason: skipped[reason] for reason in sorted(skipped) if skipped[reason]},
        ),
    )


def _eviction(step: PlannedStep) -> PlannedEviction:
    state = step.record.state
    return PlannedEviction(
        namespace=step.record.namespace,
        pod=step.record.name,
        uid="" if state is None else state.uid,
        node=step.record.node,
        workload=projections.workload(step.workload),
        owner=Workload(kind=base_kind(step.owner.kind), name=step.owner.name),
        replicas=step.replicas,
        domain=PlannedDomain(topology_key=step.topology_key, value=step.value),
        to=list(step.to),
        why=step.why,
    )
