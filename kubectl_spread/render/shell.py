"""A plan, or the patches of a simulation, as a POSIX shell script, which carries it out with the user's kubectl."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from importlib import resources
from typing import Final, TypeAlias

from msgspec import UnsetType

from kubectl_spread.phrases import plural
from kubectl_spread.render import about, plan, simulation, words
from kubectl_spread.report.model import Cluster
from kubectl_spread.report.plan import PlannedEviction, PlannedWave, SpreadPlan
from kubectl_spread.report.simulation import SpreadSimulation

_MOST_VALUES: Final = 20
"""With more domains than this, a node in one of them is enough, and only the domain that the pod left is a surprise."""
_AT_ONCE: Final = 5
"""The workloads whose rollouts run at the same time."""
_ROLLED: Final = ("deploy/", "sts/", "ds/")
_END_OF_PLAN: Final = """\
[ "$evicted" -gt 0 ] || stop 'all pods of the plan were gone already. Plan again'
say "done: $evicted of $planned pods evicted\""""
_END_OF_PATCHES: Final = 'say "done: $rolled_out of $planned workloads rolled out"'


_Patches: TypeAlias = dict[tuple[str, str], dict[tuple[str, str], None]]
"""Maps each workload that has rollouts, by its namespace and its name for kubectl, to types and bodies of patches."""


def evictions(report: SpreadPlan, flags: Sequence[str]) -> str:
    """Return the script of a plan; ``flags`` are kubectl's for the cluster, where it is not the current one."""
    left = plan.remaining(report).items()
    comments = [
        plan.conclusion(report),
        *(f"Not correctable: {', '.join(names)}, because {why}." for why, names in left),
    ]
    if not report.waves:
        return _script(report.cluster, comments, ["echo 'nothing to evict'"])
    lines = (line for index, wave in enumerate(report.waves, 1) for line in _wave(index, wave))
    program = _program(report.cluster, flags, "plan", report.summary.evictions, [*lines, *_END_OF_PLAN.split("\n")])
    return _script(report.cluster, comments, program)


def patches(report: SpreadSimulation, flags: Sequence[str]) -> str:
    """Return the script of a simulation; ``flags`` are kubectl's for the cluster, where it is not the current one."""
    workloads, others = _commands(report)
    left = (f"Not in this script: {fix}: {'; '.join(commands)}" for fix, commands in others.items())
    comments = [*report.events, simulation.conclusion(report), *left]
    if not workloads:
        return _script(report.cluster, comments, ["echo 'nothing to patch'"])
    program = _program(report.cluster, flags, "simulation", len(workloads), [*_changes(workloads), _END_OF_PATCHES])
    return _script(report.cluster, comments, program)


def _script(cluster: Cluster, comments: Iterable[str], lines: Iterable[str]) -> str:
    head = map(_comment, (*about.identified(cluster), *comments))
    return "\n".join(("#!/bin/sh", *head, *lines)) + "\n"


def _program(cluster: Cluster, flags: Sequence[str], what: str, planned: int, lines: Iterable[str]) -> Iterator[str]:
    """Yield functions, and the lines of the script in one that is called last.

    Args:
        cluster: The cluster.
        flags: kubectl's flags for it, where it is not the current one.
        what: The name of the file with what the script does, as comments, and its functions, among them ``progress``.
        planned: The number of things that it is to do.
        lines: Its lines, which follow the comparison of the cluster.
    """
    yield _source(what)
    yield _kubectl(cluster, flags)
    yield f"planned={planned}\n"
    yield _source("common")
    yield from (f"    {line}" if line else "" for line in (_same_cluster(cluster, what), "", *lines))
    yield "} </dev/null  # kubectl does not read a script that comes from a pipe"
    yield "\nmain"


def _source(name: str) -> str:
    return (
        (resources.files("kubectl_spread.render") / "scripts" / f"{name}.sh").read_text(encoding="utf-8").rstrip("\n")
    )


def _kubectl(cluster: Cluster, flags: Sequence[str]) -> str:
    """Return the function that runs kubectl."""
    context = cluster.context
    pinned = [*flags, *(["--context", context] if isinstance(context, str) and "--context" not in flags else [])]
    return f'k() {{ {shlex.join(["kubectl", *pinned])} "$@"; }}'


def _same_cluster(cluster: Cluster, what: str) -> str:
    """Return the comparison of the cluster with the one that was read for ``what``, if anything is known to compare."""
    if isinstance(cluster.uid, str):
        return shlex.join(["same_cluster", cluster.uid, what])
    if isinstance(cluster.read_at, str):
        return "# The namespace kube-system could not be read: it is not known whether this is the cluster."
    return f'same_cluster "${{CLUSTER_UID:-}}" {what}'


def _say(text: str) -> str:
    return shlex.join(["say", text])


def _comment(text: str) -> str:
    return f"# {' '.join(words.safe(text).split())}"


def _wave(number: int, wave: PlannedWave) -> Iterator[str]:
    """Yield the lines of a wave: all checks, all evictions, and then all waits."""
    yield _say(f"wave {number}: {plural(len(wave.evictions), 'eviction')}")
    for step in wave.evictions:
        pod = [step.namespace, step.pod, step.uid, step.node]
        yield shlex.join(["check", *pod, step.owner.kind, step.owner.name, str(step.replicas), *_labels(step)])
    for step in wave.evictions:
        yield _comment(f"from {step.domain.value} to {plan.destination(step)}: {step.why}")
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


def _changes(workloads: _Patches) -> Iterator[str]:
    """Yield the lines that patch workloads, and wait for a few rollouts at a time."""
    refs = list(workloads)
    for first in range(0, len(refs), _AT_ONCE):
        wave = refs[first : first + _AT_ONCE]
        yield _say(f"wave {first // _AT_ONCE + 1}: {plural(len(wave), 'workload')}")
        yield from (shlex.join(["change", *each, form, body]) for each in wave for form, body in workloads[each])
        yield from (shlex.join(["wait_rolled_out", *each]) for each in wave)
        yield ""


def _commands(report: SpreadSimulation) -> tuple[_Patches, dict[str, list[str]]]:
    """Return the patches of workloads, and the other commands of fixes, which a person has to decide on."""
    workloads: _Patches = {}
    others: dict[str, list[str]] = {}
    for finding in report.findings:
        if isinstance(finding.fix, UnsetType) or isinstance(finding.commands, UnsetType):
            continue
        for command in finding.commands:
            match shlex.split(command):
                case [*_, "patch", name, "-n", namespace, form, "-p", body] if name.startswith(_ROLLED):
                    workloads.setdefault((namespace, name), {})[form.removeprefix("--type="), body] = None
                case _:
                    others.setdefault(finding.fix, []).append(command)
    return workloads, others
