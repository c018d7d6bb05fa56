"""Trials: what is left of a workload after each event that may happen, now and after a change?"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from kubectl_spread.engine.controllers import SimulatedEvent
from kubectl_spread.engine.events import Cordon, DrainNodes, Lose, NodeChoice, OnFullest, Restart, Watch
from kubectl_spread.engine.kinds import SchedulingKind
from kubectl_spread.engine.provisioning import Provisioning
from kubectl_spread.engine.runs import RunResult, Simulation
from kubectl_spread.engine.world import World
from kubectl_spread.kube.api.labels import ZONE, ascending
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.quantity import divide_up, scaled
from kubectl_spread.kube.api.workloads import Deployment, ReplicatedWorkload
from kubectl_spread.kube.custom import NOT_REPLACED, base_kind
from kubectl_spread.phrases import domains, named, plural

FAMILIES: Final = ("zone", "node", "drain", "restart")
"""The words of ``--survive``."""


class Hazard(msgspec.Struct, frozen=True):
    """An event that a workload is to survive.

    Attributes:
        text: The event in words.
        family: The word of ``--survive`` that stands for it; "" for the rollout of the change itself.
        events: The events on each domain that is tried; the domain is "" where the run chooses it.
        keep: The number of ready pods that is wanted at any moment.
        most: The largest number that any placement could keep.
        why: Why no placement could keep all pods.
    """

    text: str
    family: str
    events: Mapping[str, tuple[SimulatedEvent, ...]]
    keep: int
    most: int
    why: str = ""

    @property
    def limit(self) -> str:
        """Why the largest number is less than wanted; "" where it is not."""
        return self.why if self.most < self.keep else ""

    @property
    def goal(self) -> int:
        """The number of ready pods that a change has to keep."""
        return min(self.keep, self.most)


ROLLOUT: Final = Hazard("the rollout of the change", "", {"": ()}, 0, 0)
"""Nothing happens after the change."""


class Setting(msgspec.Struct, frozen=True):
    """A cluster, and what happens before an event: the rollout of a change or of a new workload.

    Attributes:
        world: The cluster.
        before: What happens before.
        provisions: Whether node autoscalers make nodes for pods that wait.
    """

    world: World
    before: tuple[SimulatedEvent, ...] = ()
    provisions: bool = False


class WorstCase(msgspec.Struct, frozen=True):
    """The worst that runs of a hazard leave of a workload.

    Attributes:
        domain: The domain with which that happens; "" where the run chose it.
        least: The fewest ready pods at any moment.
        running: The fewest running pods at the end.
        pending: The most pending pods at the end.
        not_replaced: The most pods that nothing replaces.
        budgets: The budgets of the pod whose eviction stopped the drain; none where it ended.
        why: Why pods are pending, or are not replaced.
        preempting: The most pending pods that could preempt others.
        others: The most pending and the fewest running pods of other workloads, by domain and workload.
    """

    domain: str
    least: int
    running: int
    pending: int
    not_replaced: int
    budgets: tuple[str, ...]
    why: str
    preempting: int
    others: Mapping[tuple[str, ObjectRef], tuple[int, int]]

    def shortfall(self, hazard: Hazard) -> int:
        """Return by how much it misses the goal of the hazard; 0 if it reaches it."""
        return max(0, hazard.goal - self.least) + self.pending + bool(self.budgets)


class Trials:
    """Trials of one workload."""

    def __init__(self, workload: ObjectRef, labels: Mapping[str, str], seed: int) -> None:
        """Take a workload; ``labels`` are those of its pod template."""
        self._workload, self._labels, self._seed = workload, labels, seed

    def worst(self, hazard: Hazard, setting: Setting, numbers: Sequence[int]) -> WorstCase:
        """Return the worst of some runs, which are given by their numbers.

        Raises:
            SpreadError: The workload cannot be rolled out.
        """
        return worst_of([*self._each(hazard, setting, numbers)], hazard)

    def failing(self, hazard: Hazard, setting: Setting, first: str) -> WorstCase | None:
        """Return the first case of one run in which a hazard is not survived; None where it is in all.

        Args:
            hazard: The hazard.
            setting: The cluster.
            first: The domain that is tried first.

        Raises:
            SpreadError: The workload cannot be rolled out.
        """
        events = dict(sorted(hazard.events.items(), key=lambda item: item[0] != first))
        for case in self._each(msgspec.structs.replace(hazard, events=events), setting, (0,)):
            if case.shortfall(hazard):
                return case
        return None

    def _each(self, hazard: Hazard, setting: Setting, numbers: Sequence[int]) -> Iterator[WorstCase]:
        """Yield the worst of some runs for each domain."""
        for domain, events in hazard.events.items():
            all_events = [*setting.before, Watch(), *events]
            maker = Provisioning if setting.provisions else None
            simulation = Simulation(setting.world, all_events, self._seed, maker=maker)
            runs = [simulation.run(number, about=(self._workload,)) for number in numbers]
            case = self._of(domain, runs, setting.world)
            # Where the run chooses what is lost, it may be another domain after a change, which others are in.
            chooses = any(isinstance(event, OnFullest) for event in events)
            yield msgspec.structs.replace(case, others={}) if chooses else case

    def _of(self, domain: str, runs: Sequence[RunResult], world: World) -> WorstCase:
        results = [run.of(self._workload) for run in runs]
        budgets = {each.metadata.name for each in world.snapshot.budgets.of(self._workload.namespace, self._labels)}
        refused = (pod.budgets for run in runs for pod in run.refused if not budgets.isdisjoint(pod.budgets))
        reasons = (run.reasons[key].text for run in runs for key in run.of(self._workload).reasons)
        stays = (why for result in results for why in result.not_replaced if why)
        return WorstCase(
            domain=domain,
            least=min(result.least for result in results),
            running=min(result.running for result in results),
            pending=max(result.pending for result in results),
            not_replaced=max(result.not_replaced.total() for result in results),
            budgets=next(refused, ()),
            why=next(reasons, "") or next(stays, ""),
            preempting=max(run.preempting for run in runs),
            others={
                (domain, ref): (max(run.of(ref).pending for run in runs), min(run.of(ref).running for run in runs))
                for ref in {ref for run in runs for ref in run.workloads}
                if ref != self._workload and base_kind(ref.kind) not in NOT_REPLACED
            },
        )


def worst_of(cases: Sequence[WorstCase], hazard: Hazard) -> WorstCase:
    """Return the worst of several cases; each of its numbers may be that of another one."""
    worst = max(cases, key=lambda case: (case.shortfall(hazard), -case.least, -case.running))
    others: dict[tuple[str, ObjectRef], tuple[int, int]] = {}
    for key, (pending, running) in (item for case in cases for item in case.others.items()):
        most, fewest = others.get(key, (pending, running))
        others[key] = max(most, pending), min(fewest, running)
    return msgspec.structs.replace(
        worst,
        least=min(case.least for case in cases),
        running=min(case.running for case in cases),
        pending=max(case.pending for case in cases),
        not_replaced=max(case.not_replaced for case in cases),
        preempting=max(case.preempting for case in cases),
        others=others,
    )


def harmed(after: WorstCase, before: WorstCase) -> str:
    """Return what a change makes worse for another workload with the same event; "" for nothing."""
    for (domain, ref), (pending, running) in sorted(after.others.items()):
        pending_before, running_before = before.others.get((domain, ref), (0, 0))
        if pending > pending_before:
            return f"{plural(pending - pending_before, 'more pod')} of {named(ref.kind, ref.name)} would wait"
        if running < running_before:
            return f"{plural(running_before - running, 'pod')} of {named(ref.kind, ref.name)} would no longer run"
    return ""


class Places(msgspec.Struct, frozen=True):
    """The nodes that may take pods of a workload.

    Attributes:
        nodes: The number of nodes.
        zones: Their zones.
        unlabelled: The number of those without a zone.
    """

    nodes: int
    zones: tuple[str, ...]
    unlabelled: int


def kind_of(world: World, workload: ObjectRef, manifest: ReplicatedWorkload) -> SchedulingKind:
    """Return what the scheduler reads of the pods of a manifest."""
    owner = workload if workload.kind == "StatefulSet" else (world.owners_below(workload) or [workload])[-1]
    like = world.newest_pods.get(owner)
    pod_class = world.from_template(manifest.template, workload, None if like is None else like.pod_class)
    return world.kind(pod_class, workload)


def places(world: World, kind: SchedulingKind) -> Places:
    """Return the nodes that may take pods."""
    table, _ = world.table(world.nodes)
    numbers = [*ascending(table.answers(kind).allowed)]
    zones = [table.values(ZONE)[number] for number in numbers]
    named_zones = sorted({zone for zone in zones if zone is not None})
    return Places(len(numbers), tuple(named_zones), sum(zone is None for zone in zones))


class Demand(msgspec.Struct, frozen=True):
    """What is to survive, and how much of it.

    Attributes:
        families: The words of ``--survive``.
        keep: The number or percentage of pods that must stay ready; None for all but one domain's share.
    """

    families: Collection[str] = FAMILIES
    keep: int | str | None = None

    def pods(self, replicas: int, of: int) -> int:
        """Return the number of pods to keep where ``of`` domains share them."""
        if self.keep is None:
            return max(1, replicas - divide_up(replicas, max(1, of)))
        return scaled(self.keep, replicas) or 0


def hazards(workload: ObjectRef, manifest: ReplicatedWorkload, where: Places, demand: Demand) -> list[Hazard]:
    """Return the events that a workload is to survive, in the order of the table."""
    return [
        *_losses(workload, manifest, where, demand),
        *_drains(workload, manifest, where, demand),
        *_restarts(workload, manifest, where, demand),
        *_loss_after_restart(workload, manifest, where, demand),
    ]


def _zone(value: str) -> NodeChoice:
    return NodeChoice(ZONE, (value,), f"zone={value}")


def _losses(workload: ObjectRef, manifest: ReplicatedWorkload, where: Places, demand: Demand) -> Iterator[Hazard]:
    replicas, zones, nodes = manifest.replicas, len(where.zones), where.nodes
    if "zone" in demand.families and zones:
        most, keep = replicas - divide_up(replicas, zones + bool(where.unlabelled)), demand.pods(replicas, zones)
        why = _kept_by_losses(replicas, zones, "zone", most)
        if zones == 1 and not where.unlabelled:
            why = f"all nodes that its pods can use are in {domains(ZONE, where.zones)}"
        yield Hazard("lose any zone", "zone", {each: (Lose(_zone(each)),) for each in where.zones}, keep, most, why)
    if "node" in demand.families:
        most, keep = replicas - divide_up(replicas, nodes or 1), demand.pods(replicas, nodes)
        why = _kept_by_losses(replicas, nodes, "node", most)
        yield Hazard("lose any node", "node", {"": (OnFullest(workload, "", Lose),)}, keep, most, why)


def _kept_by_losses(replicas: int, number: int, noun: str, most: int) -> str:
    """Return why the loss of one of some domains leaves at most so many replicas."""
    if replicas == 1:
        return f"its only replica is lost with its {noun}"
    return f"{plural(replicas, 'replica')} on {plural(number, noun)} leave at most {most}"


def _drains(workload: ObjectRef, manifest: ReplicatedWorkload, where: Places, demand: Demand) -> Iterator[Hazard]:
    replicas, zones = manifest.replicas, len(where.zones)
    if "drain" not in demand.families:
        return
    why = "a drain evicts its only replica" if replicas == 1 else "a drain evicts at least one pod"
    for text, number, events in (
        ("drain any zone", zones, {each: (DrainNodes(_zone(each)),) for each in where.zones}),
        ("drain any node", where.nodes, {"": (OnFullest(workload, "", DrainNodes),)}),
    ):
        if number > 1:
            yield Hazard(text, "drain", events, demand.pods(replicas, number), replicas - 1, why)


def _restarts(workload: ObjectRef, manifest: ReplicatedWorkload, where: Places, demand: Demand) -> Iterator[Hazard]:
    if "restart" not in demand.families:
        return
    replicas, zones = manifest.replicas, len(where.zones)
    keep, (most, why) = demand.pods(replicas, zones or where.nodes), _kept_by_rollouts(manifest)
    restart = Restart(workload)
    yield Hazard("restart", "restart", {"": (restart,)}, keep, most, why)
    if zones > 1:
        closed = {each: (Cordon(_zone(each)), restart) for each in where.zones}
        yield Hazard("restart, zone closed", "restart", closed, keep, most, why)


def _loss_after_restart(
    workload: ObjectRef, manifest: ReplicatedWorkload, where: Places, demand: Demand
) -> Iterator[Hazard]:
    """Yield the loss of a zone after a restart: where pods are now may be luck that their spec does not repeat."""
    replicas, zones = manifest.replicas, len(where.zones)
    if "zone" in demand.families and zones > 1:
        most, keep = replicas - divide_up(replicas, zones + bool(where.unlabelled)), demand.pods(replicas, zones)
        events = {"": (Restart(workload), Watch(), OnFullest(workload, ZONE, Lose))}
        yield Hazard(
            "restart, then lose a zone", "zone", events, keep, most, _kept_by_losses(replicas, zones, "zone", most)
        )


def _kept_by_rollouts(manifest: ReplicatedWorkload) -> tuple[int, str]:
    """Return the most ready pods that a rollout can keep, and why not all."""
    if isinstance(manifest, Deployment):
        pace = manifest.pace
        if not manifest.rolls:
            return 0, "its strategy Recreate stops all pods before new ones start; RollingUpdate does not"
        return manifest.replicas - pace.unavailable, f"its maxUnavailable is {plural(pace.unavailable, 'pod')}"
    return manifest.replicas - 1, "a StatefulSet stops a pod before it creates its replacement"
