"""One run of ``plan``: which evictions correct the placement of what was read?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedConstraint, EvaluatedPod, evaluate
from kubectl_spread.audit.evaluation.evaluators import Evaluator
from kubectl_spread.audit.merge.verdicts import BINDING_KEYS, Confidence, ServerFacts, Verdict
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.engine.planner import PlannedStep, Planner
from kubectl_spread.engine.targets import StalePod
from kubectl_spread.engine.world import World
from kubectl_spread.errors import NotFoundError
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.custom import base_kind
from kubectl_spread.report import projections
from kubectl_spread.report.model import CommandLine, Severity, Workload
from kubectl_spread.report.plan import (
    NotCorrectable,
    PlannedDomain,
    PlannedEviction,
    PlannedWave,
    PlanSummary,
    SpreadPlan,
)
from kubectl_spread.rules.engine import findings_of
from kubectl_spread.rules.remedy import CommandFlags, flagged
from kubectl_spread.rules.selectors import REMOVED_LABEL, STALE_LABEL
from kubectl_spread.run.options import CheckOptions
from kubectl_spread.run.run import no_resources
from kubectl_spread.simulate.outcome import NOT_SIMULATED, left_out, not_known

if TYPE_CHECKING:
    from kubectl_spread.run.simulate import SimulateRun

_NO_BUDGETS: Final = "no PodDisruptionBudgets in what was read: they may refuse evictions of the plan"
_STDIN: Final = "-"
_VERDICTS: Final = {STALE_LABEL.code: Verdict.STALE_LABEL, REMOVED_LABEL.code: Verdict.REMOVED_LABEL}
_STALE: Final = frozenset(_VERDICTS.values())
"""The verdicts on the keys of stale pods."""
_BOUND_AGAIN: Final = "label {key} gets its node's value when its replacement is bound, so that it would be stale too"
_AUTHORED: Final = "the API does not record whether label {key} was removed or never there"


class PlanOptions(msgspec.Struct, frozen=True):
    """How a plan is made.

    Attributes:
        runs: The number of runs in which each wave is tried.
        seed: Decides what is not determined.
        soft: Whether skews of soft constraints are ended too.
        max_per_workload: The most pods of a workload that a wave evicts.
    """

    runs: int
    seed: int
    soft: bool
    max_per_workload: int


def report(run: SimulateRun, options: PlanOptions) -> SpreadPlan:
    """Return the plan for the workloads in scope.

    Raises:
        NotFoundError: An argument names no workload.
    """
    if run.options.filename and not run.snapshot.budgets.read:
        run.notes.append(_NO_BUDGETS)
    world = run.world()
    plan = planner(run, options, world).plan()
    unknown = [*not_known(world, plan.preempting)]
    run.problems += run.unread.of_evictions
    run.problems += map(NOT_SIMULATED.format, unknown)
    return SpreadPlan(
        cluster=run.header(),
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
            runs=options.runs,
            seed=options.seed,
            unknown=unknown,
            not_simulated=[*unknown, *left_out(world, pending=_waits(run.snapshot))],
            skipped={reason: run.skipped[reason] for reason in sorted(run.skipped) if run.skipped[reason]},
        ),
    )


def _waits(snapshot: Snapshot) -> bool:
    """Tell whether a pod waits for a node, which an autoscaler may make before the plan is carried out."""
    return any(not (pod.node or pod.terminating or pod.gates) for pod in snapshot.pods)


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


def planner(run: SimulateRun, options: PlanOptions, world: World) -> Planner:
    """Return the planner for the workloads in scope of a world.

    Raises:
        NotFoundError: An argument names no workload, or the labels are those of none.
    """
    scope = _scope(run)
    if not any(scope(run.snapshot.workload(pod)) for pod in run.snapshot.pods):
        if run.options.selector:
            raise NotFoundError(no_resources(run.reported.namespace))
        run.note_nothing()
    stale = _stale(run.snapshot, run.target_version.facts(run.options))
    return Planner(
        world, stale, scope, runs=options.runs, seed=options.seed, soft=options.soft, most=options.max_per_workload
    )


def command(options: CheckOptions, plan: PlanOptions) -> str:
    """Return the command that carries a plan with these options out; "" where standard input was read."""
    if _STDIN in options.filename:
        return ""
    words = ["kubectl", "spread", "plan", *options.arguments]
    texts: dict[str, Sequence[str]] = {
        "-l": [options.selector],
        "-n": [options.namespace],
        "--exclude-namespace": options.exclude_namespace,
    }
    texts |= {"-f": options.filename, "--scheduler-config": [options.scheduler_config]}
    words += ["-A"] if options.all_namespaces else []
    words += (word for flag, values in texts.items() for value in values if value for word in (flag, value))
    words += ["--soft"] if plan.soft else []
    words += ["--max-per-workload", str(plan.max_per_workload)] if plan.max_per_workload > 1 else []
    return str(flagged(CommandLine([*words, "-o", "script", "|", "sh"]), CommandFlags(options.kubectl_flags)))


def _scope(run: SimulateRun) -> Callable[[ObjectRef], bool]:
    """Return whether a workload is in the plan: by namespace, by name, or by the labels of any of its pods."""
    scope = run.reported
    if scope.targets:
        return frozenset(run.roots(run.options.arguments)).__contains__
    if not scope.labels:
        return run.in_scope
    selected = {
        run.snapshot.workload(pod)
        for pod in run.snapshot.pods
        if all(labelselectors.satisfies(requirement, pod.pod_class.labels) for requirement in scope.labels)
    }
    return lambda workload: workload in selected and run.in_scope(workload)


def _stale(snapshot: Snapshot, facts: ServerFacts) -> list[StalePod]:
    """Return the stale pods; only classes of pods with such a verdict make an evaluation of the cluster necessary."""
    evaluator = Evaluator(snapshot, facts, nodes="none")
    classes = {pod.pod_class for pod in snapshot.pods if any(term.keyed for term in pod.pod_class.terms)}
    if not any(key.verdict in _STALE for each in classes for keys in evaluator.of(each).verdicts for key in keys):
        return []
    return _stale_pods(evaluate(snapshot, facts, nodes="listed"))


def _stale_pods(audit: Audit) -> list[StalePod]:
    """Return the running pods that rules report at severity warning or higher, each once, by namespace and name."""
    rows: dict[tuple[ObjectRef, str], list[EvaluatedConstraint]] = {}
    for row in audit.rows:
        if row.members:
            rows.setdefault((row.workload, str(row.path)), []).append(row)
    stale: dict[ObjectRef, StalePod] = {}
    for finding in findings_of(audit, (STALE_LABEL, REMOVED_LABEL), Severity.WARNING):
        counted = bool(finding.values["siblings"])
        for member in _members(rows.get((finding.ref, finding.path), ()), _VERDICTS[finding.code]):
            stale.setdefault(member.pod.ref, _stale_pod(member, finding.ref, finding.name, counted=counted))
    return [stale[ref] for ref in sorted(stale)]


def _members(rows: Iterable[EvaluatedConstraint], verdict: Verdict) -> Iterator[EvaluatedPod]:
    for row in rows:
        for member in row.members:
            if member.pod.node and not member.pod.terminating and any(key.verdict is verdict for key in member.keys):
                yield member


def _stale_pod(member: EvaluatedPod, workload: ObjectRef, rule: str, *, counted: bool) -> StalePod:
    keys = [key for key in member.keys if key.verdict in _STALE]
    why = "its siblings do not count it" if counted else f"its affinity still has the old value of {keys[0].key}"
    lasting = ""
    for key in keys:
        if key.key in BINDING_KEYS:
            lasting = _BOUND_AGAIN.format(key=key.key)
        elif key.verdict is Verdict.REMOVED_LABEL and key.confidence is not Confidence.CERTAIN:
            lasting = _AUTHORED.format(key=key.key)
    return StalePod(member.pod, workload, member.term.topology_key, f"{rule}: {why}", lasting)
