"""Do the workloads that ``check`` was asked about survive the loss of any zone?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kubectl_spread.engine.world import World
from kubectl_spread.kube.api.labels import ZONE
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.workloads import Deployment, StatefulSet
from kubectl_spread.phrases import domains, named
from kubectl_spread.recommend import trials
from kubectl_spread.recommend.trials import Demand, Setting, Trials
from kubectl_spread.report.model import CommandLine
from kubectl_spread.rules.remedy import flagged

if TYPE_CHECKING:
    from kubectl_spread.run.run import CheckRun

_MOST_PODS: Final = 2_000
"""The most pods of a cluster for which the loss is simulated, so that a check stays quick."""
_MOST_WORKLOADS: Final = 3
_RUNS: Final = 2


def sentences(run: CheckRun) -> Iterator[str]:
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
        if answer := _answer(run, world, ref):
            whose = f"{named(ref.kind, ref.name)} survives" if len(workloads) > 1 else "Survives"
            yield f"{whose} the loss of any zone: {answer}"


def _answer(run: CheckRun, world: World, ref: ObjectRef) -> str:
    """Return the answer for a workload; "" where there are no zones, or something that decides was not read."""
    manifest = run.snapshot.workload_objects[ref]
    if not isinstance(manifest, Deployment | StatefulSet) or not manifest.replicas:
        return ""
    where = trials.places(world, ref, manifest)
    for hazard in trials.hazards(ref, manifest, where, Demand(("zone",)))[:1]:
        tests = Trials(ref, manifest.template.metadata.labels, 0)
        case = tests.worst(hazard, Setting(world), range(_RUNS))
        if world.unknown:
            return ""
        if not case.shortfall(hazard) and case.least >= hazard.keep:
            return "yes"
        left = min(case.least, case.running)
        command = CommandLine(("kubectl", "spread", "recommend", named(ref.kind, ref.name), "-n", ref.namespace))
        where_lost = domains(ZONE, (case.domain,))
        return f"no ({where_lost}: {left} of {manifest.replicas}): {flagged(command, run.options.kubectl_flags)}"
    return ""
