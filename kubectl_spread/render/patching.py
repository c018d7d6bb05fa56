"""The patches of a simulation as a POSIX shell script, which applies them a few at a time with the user's kubectl."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from msgspec import UnsetType

from kubectl_spread.phrases import plural
from kubectl_spread.render import about, shell, simulation
from kubectl_spread.report.simulation import SpreadSimulation

_AT_ONCE: Final = 5
"""The workloads whose rollouts run at the same time."""
_ROLLED: Final = ("deploy/", "sts/", "ds/")
_END: Final = 'say "done: $rolled_out of $planned workloads rolled out"'


class _Workload(NamedTuple):
    """A workload that has rollouts, as kubectl names it."""

    namespace: str
    name: str


_Patches: TypeAlias = dict[_Workload, dict[tuple[str, str], None]]
"""Maps each workload to its patches: their type, and their body."""


def text(report: SpreadSimulation, flags: Sequence[str]) -> str:
    """Return the script of a simulation; ``flags`` are kubectl's for the cluster, where it is not the current one."""
    return "\n".join(_lines(report, flags)) + "\n"


def _lines(report: SpreadSimulation, flags: Sequence[str]) -> Iterator[str]:
    patches, others = _commands(report)
    yield from shell.title(*about.identified(report.cluster), *report.events, simulation.conclusion(report))
    for fix, commands in others.items():
        yield shell.comment(f"Not in this script: {fix}: {'; '.join(commands)}")
    if not patches:
        yield "echo 'nothing to patch'"
        return
    yield from shell.program(report.cluster, flags, "simulation.sh", len(patches), _main(report, patches))


def _main(report: SpreadSimulation, patches: _Patches) -> Iterator[str]:
    yield from shell.same_cluster(report.cluster, "simulation")
    workloads = list(patches)
    for first in range(0, len(workloads), _AT_ONCE):
        wave = workloads[first : first + _AT_ONCE]
        yield shell.say(f"wave {first // _AT_ONCE + 1}: {plural(len(wave), 'workload')}")
        yield from (shlex.join(["change", *each, form, body]) for each in wave for form, body in patches[each])
        yield from (shlex.join(["wait_rolled_out", *each]) for each in wave)
        yield ""
    yield _END


def _commands(report: SpreadSimulation) -> tuple[_Patches, dict[str, list[str]]]:
    """Return the patches of workloads, and the other commands of fixes, which a person has to decide on."""
    patches: _Patches = {}
    others: dict[str, list[str]] = {}
    for finding in report.findings:
        if isinstance(finding.fix, UnsetType) or isinstance(finding.commands, UnsetType):
            continue
        for command in finding.commands:
            match shlex.split(command):
                case [*_, "patch", name, "-n", namespace, form, "-p", body] if name.startswith(_ROLLED):
                    workload = _Workload(namespace, name)
                    patches.setdefault(workload, {})[form.removeprefix("--type="), body] = None
                case _:
                    others.setdefault(finding.fix, []).append(command)
    return patches, others
