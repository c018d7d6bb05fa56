"""A plan as a POSIX shell script, which carries it out with the user's kubectl."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from kubectl_spread.phrases import plural
from kubectl_spread.render import about, plan, shell
from kubectl_spread.report.plan import PlannedEviction, PlannedWave, SpreadPlan

_MOST_VALUES: Final = 20
"""With more domains than this, a node in one of them is enough, and only the domain that the pod left is a surprise."""
_END: Final = """\
[ "$evicted" -gt 0 ] || stop 'all pods of the plan were gone already. Plan again'
say "done: $evicted of $planned pods evicted\""""


def text(report: SpreadPlan, flags: Sequence[str]) -> str:
    """Return the script of a plan; ``flags`` are kubectl's for the cluster, where it is not the current one."""
    return "\n".join(_lines(report, flags)) + "\n"


def _lines(report: SpreadPlan, flags: Sequence[str]) -> Iterator[str]:
    yield from shell.title(*about.identified(report.cluster), plan.conclusion(report))
    for why, names in plan.remaining(report).items():
        yield shell.comment(f"Not correctable: {', '.join(names)}, because {why}.")
    if not report.waves:
        yield "echo 'nothing to evict'"
        return
    yield from shell.program(report.cluster, flags, "plan.sh", report.summary.evictions, _main(report))


def _main(report: SpreadPlan) -> Iterator[str]:
    yield from shell.same_cluster(report.cluster, "plan")
    for index, wave in enumerate(report.waves, 1):
        yield from _wave(index, wave)
    yield from _END.split("\n")


def _wave(number: int, wave: PlannedWave) -> Iterator[str]:
    """Yield the lines of a wave: all checks, all evictions, and then all waits."""
    yield shell.say(f"wave {number}: {plural(len(wave.evictions), 'eviction')}")
    for step in wave.evictions:
        pod = [step.namespace, step.pod, step.uid, step.node]
        yield shlex.join(["check", *pod, step.owner.kind, step.owner.name, str(step.replicas), *_labels(step)])
    for step in wave.evictions:
        yield shell.comment(f"from {step.domain.value} to {plan.destination(step)}: {step.why}")
        yield shlex.join(["evict", step.namespace, step.pod, step.uid, step.owner.kind, step.owner.name])
    waits = [
        ["arrive", step.namespace, step.owner.kind, step.owner.name, str(step.replicas), *_labels(step)]
        for step in wave.evictions
    ]
    yield from dict.fromkeys(map(shlex.join, waits))
    yield ""


def _labels(step: PlannedEviction) -> list[str]:
    """Return label selectors for the nodes of the domains that the plan expects, one for each of a few domains."""
    key, left = step.domain.topology_key, step.domain.value
    if len(step.to) <= _MOST_VALUES:
        return [f"{key}={value}" for value in step.to]
    return [key if left in step.to else f"{key},{key}!={left}"]
