"""One run of ``recommend``: which change lets a workload survive the events that it is to survive?"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from kubectl_spread.engine.background import without_background
from kubectl_spread.engine.controllers import SimulatedEvent
from kubectl_spread.engine.events import Apply, Scale
from kubectl_spread.engine.world import World
from kubectl_spread.errors import CombinedError, NotFoundError, SourceError, UsageError
from kubectl_spread.kube.api.labels import ZONE
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.workloads import Deployment, ReplicatedWorkload, StatefulSet, WorkloadObject
from kubectl_spread.kube.autoscaling import HorizontalPodAutoscaler
from kubectl_spread.kube.disruption import PodDisruptionBudget
from kubectl_spread.phrases import domains, listed, named, plural
from kubectl_spread.recommend import candidates, trials
from kubectl_spread.recommend.candidates import Draft, Proposal, Proposals
from kubectl_spread.recommend.search import Recommendation, Search, Tried
from kubectl_spread.recommend.trials import Demand, Hazard, Places, Setting, Trials, WorstCase
from kubectl_spread.report import projections, recommendation
from kubectl_spread.report.model import CommandLine, Patch
from kubectl_spread.report.recommendation import WORKLOADS, SpreadRecommendation
from kubectl_spread.rules.remedy import flagged, patched
from kubectl_spread.run import names, written
from kubectl_spread.run.run import changed_lines
from kubectl_spread.simulate.outcome import NOT_SIMULATED, left_out, not_known

if TYPE_CHECKING:
    from kubectl_spread.run.run import CheckRun, Console
    from kubectl_spread.run.simulate import SimulateRun
    from kubectl_spread.sources.files.manifests import Loaded

_NO_BUDGETS: Final = "no PodDisruptionBudgets in what was read: a drain is not kept from evicting pods"
_MANY: Final = 10_000
"""The number of pods of a cluster above which others than the workload's are placed once for all changes."""
_LITTLE_ROOM: Final = (
    "The cluster has {:,} pods: after each event those of other workloads are placed first. There is little room then, "
    "and whether the change harms them was not tried, unless their constraints, terms, budgets or claims concern its "
    "pods."
)
_MOST_RUNS: Final = 10
"""The most runs of each event where their number is not given."""
_TIMES: Final = 4
"""How often all events are tried about: without the change, with it, and some of them with changes that do not help."""
_FIRST: Final = 2
"""The least time of a search, as a multiple of that of the first runs of all events."""
_ENDS: Final = "its pods end by themselves. Name a Deployment or StatefulSet"
_NO_ROLLOUT: Final = "it does not roll out changes of its template. Name a Deployment or StatefulSet"
_INSTEAD: Final = {
    "CronJob": _ENDS,
    "DaemonSet": "its pods belong to their nodes, so no spread decides where they are. To see an outage: "
    "kubectl spread simulate --lose zone=ZONE",
    "Job": _ENDS,
    "Pod": "nothing replaces a pod without an owner. Make it a Deployment",
    "ReplicaSet": _NO_ROLLOUT,
    "ReplicationController": _NO_ROLLOUT,
    "Rollout": "the steps of Argo Rollouts are not modelled. Ask about a Deployment with the same template, and write "
    "rollouts-pod-template-hash where the answer says pod-template-hash",
}
"""Maps the kinds for which nothing is recommended to the reason."""


class RecommendOptions(msgspec.Struct, frozen=True):
    """How a change is looked for.

    Attributes:
        demand: What is to survive.
        runs: The number of runs of each event; 0 for as many as there is time for.
        seconds: The time after which no further change is tried.
        seed: Decides what is not determined.
    """

    demand: Demand
    runs: int
    seconds: float
    seed: int


class Subject(msgspec.Struct, frozen=True):
    """The workload that the recommendation is for.

    Attributes:
        ref: Its name.
        manifest: The stored workload, or its manifest.
        loaded: The manifest with its place; None where the stored workload is meant.
    """

    ref: ObjectRef
    manifest: ReplicatedWorkload
    loaded: Loaded | None


class Answer(msgspec.Struct, frozen=True):
    """The report, with what the manifest of ``-o yaml`` is made from; ``chosen`` is None without a change."""

    report: SpreadRecommendation
    subject: Subject
    chosen: Proposal | None


def subject(run: SimulateRun, aside: Sequence[Loaded]) -> Subject:
    """Return the workload that the arguments name, or the only one of the manifests.

    Args:
        run: The run.
        aside: The manifests of workloads that are not stored, and of what limits these; the latter become part of the
            run.

    Raises:
        NotFoundError: There is no such workload, or it was not read.
        UsageError: There are several, or nothing can be recommended for its kind.
        CombinedError: The API server would refuse its manifest.
    """
    manifests = _manifests(run, aside)
    ref = _chosen(run, manifests)
    loaded_manifest = manifests.get(ref)
    stored = run.snapshot.workload_objects.get(ref) if loaded_manifest is None else loaded_manifest.object
    name = named(ref.kind, ref.name)
    if ref.kind not in WORKLOADS:
        raise UsageError(f"{name}: {_INSTEAD.get(ref.kind, f'a {ref.kind} cannot be simulated')}")
    if not isinstance(stored, Deployment | StatefulSet):
        raise NotFoundError(f"{name} was not read: capture workloads as well")
    if not stored.replicas:
        raise UsageError(f"{name} has no replicas, so there is nothing to lose")
    if isinstance(stored, Deployment) and stored.spec.paused:
        raise UsageError(f"{name} is paused, so no change of it is rolled out")
    refusals = run.refusals(Apply(ref, stored))
    places = ((f"{loaded_manifest.position_of(at)}: " if loaded_manifest else "", text) for at, text in refusals)
    if errors := [SourceError(f"{place}{text}") for place, text in places]:
        raise CombinedError(errors)
    return Subject(ref, stored, loaded_manifest)


def _manifests(run: SimulateRun, aside: Sequence[Loaded]) -> dict[ObjectRef, Loaded]:
    manifests: dict[ObjectRef, Loaded] = {}
    for loaded in aside:
        match loaded.object:
            case WorkloadObject():
                metadata = loaded.object.metadata
                manifests[ObjectRef(metadata.namespace, loaded.kind, metadata.name)] = loaded
            case PodDisruptionBudget():
                run.snapshot.budgets.put(loaded.object)
            case HorizontalPodAutoscaler():
                run.snapshot.add_autoscaler(loaded.object)
    return manifests


def _chosen(run: SimulateRun, manifests: dict[ObjectRef, Loaded]) -> ObjectRef:
    targets = names.parse(run.options.arguments)
    refs = [ref for ref in sorted(manifests) if run.in_scope(ref)]
    refs = [ref for ref in refs if not targets or any(target.includes(ref) for target in targets)]
    if not refs and not targets:
        raise UsageError("name a workload (deploy/web), or give its manifest with -f")
    refs = refs or run.roots(run.options.arguments)
    if len(refs) > 1:
        several = [f"{ref.namespace}/{named(ref.kind, ref.name)}" for ref in refs]
        raise UsageError(f"recommend is for one workload at a time: choose one of {listed(several, len(several))}")
    return refs[0]


def answer(run: SimulateRun, chosen: Subject, options: RecommendOptions, console: Console) -> Answer:
    """Return the recommendation for a workload.

    Raises:
        SpreadError: Nothing can be recommended for it.
    """
    ref, manifest, first = chosen.ref, *_at_least(run, chosen)
    keep = options.demand.keep
    if isinstance(keep, int) and keep > manifest.replicas:
        raise UsageError(f"--keep {keep}: {named(ref.kind, ref.name)} has {plural(manifest.replicas, 'replica')}")
    world, budgets = run.world(), run.snapshot.budgets
    kind = trials.kind_of(world, ref, manifest)
    where = trials.places(world, kind)
    if not where.nodes:
        raise UsageError(f"no node may take a pod of {named(ref.kind, ref.name)} (node selector, taints, cordons)")
    tests = Trials(ref, manifest.template.metadata.labels, options.seed)
    proposals = Proposals(ref, manifest, run.target_version.behaviour, budgets, stored=chosen.loaded is None)
    hazards = trials.hazards(ref, manifest, where, options.demand)
    pods = len(run.snapshot.pods)
    if pods > _MANY:
        world = without_background(world, ref, kind, manifest.selector)
    clock = _Clock(options, console)
    search = Search(world, ref, first, tests, runs=lambda: clock.runs, proceed=clock.proceed)
    result = search.best(hazards, proposals)
    autoscaled_by = run.snapshot.node_autoscalers
    grown = [*search.with_new_nodes(result)] if autoscaled_by.known else []
    if run.options.filename and not budgets.read and "drain" in options.demand.families:
        run.notes.append(_NO_BUDGETS)
    run.problems += (*run.unread.of_evictions, *run.unread.of_scales)
    unknown = [*not_known(world, max((case.preempting for case in result.patched), default=0))]
    run.problems += map(NOT_SIMULATED.format, unknown)
    autoscaler = run.snapshot.autoscalers.get(ref)
    report = SpreadRecommendation(
        cluster=run.header(),
        namespace=ref.namespace,
        workload=projections.workload(ref),
        events=[*_events(result)],
        change=UNSET if result.chosen is None else _change(run, chosen, result.chosen),
        tried=[*map(_tried, result.tried)],
        not_reachable=[
            recommendation.UnreachableEvent(event=hazard.text, why=hazard.limit or _why(hazard, case))
            for hazard, case in result.unmet()
        ],
        remarks=[
            *_remarks(manifest, where, autoscaler),
            *_about_new_nodes(grown),
            *([_LITTLE_ROOM.format(pods)] if world.background is not None and world.background.scarce else ()),
        ],
        summary=recommendation.RecommendationSummary(
            replicas=manifest.replicas,
            autoscaler=UNSET if autoscaler is None else autoscaler.metadata.name,
            nodes=where.nodes,
            zones=list(where.zones),
            tried=len(result.tried),
            complete=result.complete,
            runs=result.runs,
            seed=options.seed,
            unknown=unknown,
            not_simulated=[
                *unknown,
                *left_out(world, pending=any(case.pending for case in result.patched), grown=bool(grown)),
            ],
            skipped={reason: run.skipped[reason] for reason in sorted(run.skipped) if run.skipped[reason]},
        ),
    )
    return Answer(report, chosen, result.chosen)


def manifest(run: SimulateRun, result: Answer) -> str:
    """Return the manifest of the workload with the change, or as it is where none is recommended.

    Raises:
        UsageError: No manifest of it was read.
        SourceError: A file cannot be read again.
    """
    chosen = result.subject
    draft = Draft(chosen.manifest.template.spec.topology_spread_constraints)
    draft = draft if result.chosen is None else result.chosen.draft
    operations = candidates.operations(chosen.ref.kind, chosen.manifest, draft)
    return written.manifest(run.options, run.reported.namespace, chosen.ref, draft, operations)


class _Clock:
    """The time that a search may take: of the processor, so that a busy machine gives the same answer."""

    def __init__(self, options: RecommendOptions, console: Console) -> None:
        self._options, self._console = options, console
        self._begin, self._end = time.process_time(), 0.0

    @cached_property
    def runs(self) -> int:
        """The number of runs of each event; it is asked for after the first one of each."""
        options, passed = self._options, time.process_time() - self._begin
        # Where the first runs need long, changes may need as long again, so that some are tried in a large cluster.
        self._end = self._begin + max(options.seconds, _FIRST * passed)
        if options.runs:
            return options.runs
        return max(1, min(_MOST_RUNS, int(options.seconds / (_TIMES * passed))))

    def proceed(self) -> bool:
        """Tell whether there is time for another proposal."""
        self._console.progress("trying changes")
        return time.process_time() < self._end


def _at_least(run: SimulateRun, chosen: Subject) -> tuple[ReplicatedWorkload, list[SimulatedEvent]]:
    """Return the workload with the fewest replicas that its autoscaler may set, and what happens first."""
    ref, manifest = chosen.ref, chosen.manifest
    first: list[SimulatedEvent] = []
    autoscaler = run.snapshot.autoscalers.get(ref)
    fewest = 0 if autoscaler is None else autoscaler.least
    if fewest and fewest != manifest.replicas:
        manifest = replace(manifest, spec=replace(manifest.spec, replicas=fewest))
        first = [Scale(ref, fewest)]
    return manifest, first if chosen.loaded is None else [Apply(ref, manifest)]


def _events(result: Recommendation) -> Iterator[recommendation.RecommendedEvent]:
    for hazard, now, after in zip(result.hazards, result.now, result.patched, strict=True):
        yield recommendation.RecommendedEvent(
            event=hazard.text,
            survive=hazard.family,
            keep=hazard.keep,
            now=_loss(hazard, now),
            patched=UNSET if result.chosen is None else _loss(hazard, after),
        )


def _loss(hazard: Hazard, case: WorstCase) -> recommendation.EventLoss:
    return recommendation.EventLoss(
        least=case.least,
        running=case.running,
        pending=case.pending,
        not_replaced=case.not_replaced,
        survived=not case.shortfall(hazard) and case.least >= hazard.keep,
        domain=case.domain or UNSET,
        budget=", ".join(case.budgets) or UNSET,
        why=case.why or UNSET,
    )


def _why(hazard: Hazard, case: WorstCase) -> str:
    """Return why an event is not survived."""
    if len(case.budgets) > 1:
        return (
            f"the API server evicts no pod that several PodDisruptionBudgets select ({listed(case.budgets)}), so the "
            "drain does not end: narrow a selector of them"
        )
    if case.budgets:
        return f"PodDisruptionBudget {case.budgets[0]} refuses the eviction, so the drain does not end"
    if case.pending:
        return f"{plural(case.pending, 'pod')} would wait: {case.why}"
    return f"{case.least} ready at once, but {hazard.keep} are to stay"


def _tried(tried: Tried) -> recommendation.TriedChange:
    why = tried.harm or _why(tried.hazard, tried.case)
    return recommendation.TriedChange(changes=list(tried.proposal.texts), event=tried.hazard.text, why=why)


def _change(run: SimulateRun, chosen: Subject, proposal: Proposal) -> recommendation.RecommendedChange:
    ref, draft, is_file = chosen.ref, proposal.draft, chosen.loaded is not None
    operations = candidates.operations(ref.kind, chosen.manifest, draft)
    commands: list[CommandLine] = []
    if proposal.restarts:
        commands.append(CommandLine(("kubectl", "rollout", "restart", named(ref.kind, ref.name), "-n", ref.namespace)))
    if operations and not is_file:
        commands.append(patched(ref, operations))
    if draft.budget is not None:
        commands.append(_budget_command(run, draft.budget))
    return recommendation.RecommendedChange(
        changes=list(proposal.texts),
        commands=[str(flagged(command, run.options.command_flags)) for command in commands],
        limits=candidates.limits(draft.constraints),
        patch=Patch(operations=operations) if operations else UNSET,
        lines=UNSET if chosen.loaded is None else changed_lines(chosen.loaded.position_of, operations),
    )


def _budget_command(run: SimulateRun, budget: PodDisruptionBudget) -> CommandLine:
    """Return the command that creates a budget, or changes the one of its name."""
    name, namespace = budget.metadata.name, budget.metadata.namespace
    for stored in run.snapshot.budgets:
        if (stored.metadata.namespace, stored.metadata.name) == (namespace, name):
            ref = ObjectRef(namespace, "PodDisruptionBudget", name)
            return patched(ref, candidates.budget_operations(stored))
    manifest = msgspec.json.encode(candidates.budget_manifest(budget)).decode()
    return CommandLine(("echo", manifest, "|", "kubectl", "create", "-f", "-"))


def _about_new_nodes(grown: Sequence[tuple[Hazard, int]]) -> Iterator[str]:
    """Yield whether pods would still wait after each event if autoscalers made nodes."""
    helped = [hazard.text for hazard, pending in grown if not pending]
    others = [hazard.text for hazard, pending in grown if pending]
    if helped:
        yield f"If new nodes can be had, no pod waits after {_quoted(helped)}."
    if others:
        yield f"With new nodes, pods still wait after {_quoted(others)}."


def _quoted(events: Sequence[str]) -> str:
    return listed([f'"{event}"' for event in events], len(events))


def _remarks(manifest: ReplicatedWorkload, where: Places, autoscaler: HorizontalPodAutoscaler | None) -> Iterator[str]:
    replicas, zones = manifest.replicas, len(where.zones)
    if autoscaler is not None:
        name = autoscaler.metadata.name
        yield f"HorizontalPodAutoscaler {name} may set {plural(replicas, 'replica')}, its minReplicas."
    if replicas == 1:
        yield "One replica cannot survive the loss of its node. With two or more, some are left."
    elif replicas < zones:
        yield f"{plural(replicas, 'replica')} cannot be in all {zones} zones. More replicas would lose a smaller share."
    if not zones:
        yield "The nodes have no label topology.kubernetes.io/zone, so the loss of a zone was not tried."


_MOST_PODS: Final = 2_000
"""The most pods of a cluster for which the loss is simulated, so that a check stays quick."""
_MOST_WORKLOADS: Final = 3
_CHECK_RUNS: Final = 2


def survival(run: CheckRun) -> Iterator[str]:
    """Yield for each workload that the arguments name whether it survives the loss of any zone, if that is known."""
    snapshot = run.snapshot
    # Pods that were not read may take the room that replacements need.
    if not snapshot.anti_affinity.everywhere:
        return
    if run.nodes != "listed" or len(snapshot.pods) + len(snapshot.other_pods) > _MOST_PODS:
        return
    targets = [target for target in snapshot.scope.targets if target.name]
    workloads = [
        ref
        for ref in sorted({snapshot.workload(pod) for pod in snapshot.pods if not pod.terminating})
        if any(target.includes(ref) for target in targets)
        and isinstance(snapshot.workload_objects.get(ref), Deployment | StatefulSet)
    ]
    if not 0 < len(workloads) <= _MOST_WORKLOADS:
        return
    world = World(snapshot, run.target_version.behaviour, run.identity.read_at)
    for ref in workloads:
        if answer := _survives(run, world, ref):
            whose = f"{named(ref.kind, ref.name)} survives" if len(workloads) > 1 else "Survives"
            yield f"{whose} the loss of any zone: {answer}"


def _survives(run: CheckRun, world: World, ref: ObjectRef) -> str:
    """Return the answer for a workload; "" where there are no zones, or something that decides was not read."""
    manifest = run.snapshot.workload_objects[ref]
    if not isinstance(manifest, Deployment | StatefulSet) or not manifest.replicas:
        return ""
    where = trials.places(world, trials.kind_of(world, ref, manifest))
    for hazard in trials.hazards(ref, manifest, where, Demand(("zone",)))[:1]:
        tests = Trials(ref, manifest.template.metadata.labels, 0)
        case = tests.worst(hazard, Setting(world), range(_CHECK_RUNS))
        if world.unknown:
            return ""
        if not case.shortfall(hazard) and case.least >= hazard.keep:
            return "yes"
        left = min(case.least, case.running)
        command = CommandLine(("kubectl", "spread", "recommend", named(ref.kind, ref.name), "-n", ref.namespace))
        where_lost = domains(ZONE, (case.domain,))
        return f"no ({where_lost}: {left} of {manifest.replicas}): {flagged(command, run.options.command_flags)}"
    return ""
