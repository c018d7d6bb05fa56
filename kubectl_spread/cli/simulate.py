"""``kubectl spread simulate``: what happens to pods if nodes go, or workloads are restarted, scaled or changed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from kubectl_spread.cli import commandline, fleet, formats, options, output, values
from kubectl_spread.cli.commandline import EVALUATE, EVENTS, Command
from kubectl_spread.cli.formats import Output, Printer
from kubectl_spread.errors import UsageError
from kubectl_spread.report.model import Severity

if TYPE_CHECKING:
    from kubectl_spread.render.document import Document
    from kubectl_spread.report.simulation import SpreadSimulation
    from kubectl_spread.run.options import CheckOptions
    from kubectl_spread.run.simulate import Limits

_NAMES: Final = ("lose", "delete", "drain", "restart", "scale", "apply", "add")
"""The parameters of events."""
_ORDER: Final = "kubectl_spread.events"
_MOST_RUNS: Final = 10_000
_STDIN: Final = "-"


class _EventCommand(Command):
    """A command that knows in which order its events were given."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Note the order of the events, which click itself keeps for each option alone."""
        _, _, order = self.make_parser(ctx).parse_args(args=commandline.for_click(self, ctx, args))
        ctx.meta[_ORDER] = [parameter.name for parameter in order if parameter.name in _NAMES]
        return super().parse_args(ctx, args)


def _event(name: str, metavar: str, about: str, complete: values.Completer | None = None) -> options.Decorator:
    return options.option(name, multiple=True, metavar=metavar, help=about, shell_complete=complete, group=EVENTS)


@click.command(
    cls=_EventCommand,
    examples={
        "kubectl spread simulate --lose zone=a -A": "Let all nodes of a zone fail, as in an outage",
        "kubectl spread simulate --drain worker-1,worker-2": "Drain two nodes, one after another",
        "kubectl spread simulate --restart deploy/web": "Restart a workload",
        "kubectl spread simulate --delete zone=a --add zone=b:3 -A": "Replace the nodes of a zone by nodes of another",
        "kubectl spread simulate --apply web.yaml -n shop": "Apply a changed manifest",
        "kubectl spread simulate --scale deploy/web=12 -f cluster.json": "Ask a captured cluster",
    },
    statuses={
        0: "There are no findings at or above --fail-on.",
        1: "More pods would wait than before, pods would not be replaced, a workload would have none running, a "
        "rollout would not end, or a drain would leave pods.",
        2: "Not everything could be read, or the command line is wrong.",
    },
)
@_event(
    "--lose",
    "NODES,…",
    "Let nodes fail, by name or label (zone=a): they stop answering, and their Node objects stay; repeatable.",
    values.several_nodes,
)
@_event(
    "--delete",
    "NODES,…",
    "Delete nodes with their Node objects, as a scale-in does; repeatable.",
    values.several_nodes,
)
@_event(
    "--drain",
    "NODES,…",
    "Evict the pods of nodes within disruption budgets, one node after another; repeatable.",
    values.several_nodes,
)
@_event(
    "--restart",
    "TYPE/NAME,…",
    "Restart a Deployment, StatefulSet or DaemonSet by its own strategy; repeatable.",
    values.objects,
)
@_event("--scale", "TYPE/NAME=NUMBER,…", "Set the number of replicas; repeatable.", values.objects)
@_event("--apply", "FILE", "Apply the workloads of a manifest, and roll them out; repeatable.", values.files)
@_event(
    "--add",
    "NODES:NUMBER",
    "Add nodes like the newest one of this name or label (zone=a:3); repeatable.",
    values.several_nodes,
)
@options.counting_scope
@options.evaluated_as
@options.simulated
@options.option(
    "--seconds",
    type=click.FloatRange(min=0, max=3600),
    default=5.0,
    show_default=True,
    metavar="NUMBER",
    help="Run other simulations, by other random numbers, and try fixes for this long; at most 200 runs.",
    group=EVALUATE,
)
@options.option(
    "--autoscale/--no-autoscale",
    default=True,
    help="Add the nodes that Karpenter or cluster-autoscaler could make, in runs of their own (the default), or not.",
    group=EVALUATE,
)
@options.number("--runs", "Run exactly this number of simulations.", least=1, most=_MOST_RUNS)
@options.outputs("simulate")
@options.fail_on(Severity.ERROR)
@options.color
@fleet.option
@options.connection
@click.pass_context
def simulate(
    context: click.Context,
    /,
    *,
    contexts: str,
    **parameters: Any,
) -> None:
    """Show what would happen to pods if nodes went, or workloads were restarted, scaled or changed.

    Events happen in the order given. Controllers replace pods and kube-scheduler places them by their own rules, and
    what is random in a cluster is simulated several times. Nothing is changed. The format script prints commands for a
    shell, which apply the patches of all fixes, a few workloads at a time.
    """
    from kubectl_spread.render import shell  # noqa: PLC0415 - completion of flags does not need it
    from kubectl_spread.run import simulate as simulating  # noqa: PLC0415 - likewise
    from kubectl_spread.run.options import options_of  # noqa: PLC0415 - likewise

    events = _events(context, parameters)
    if not events:
        names = ", ".join(f"--{name}" for name in _NAMES)
        raise UsageError(f"nothing happens: give at least one event ({names})")
    printer = Printer(context)
    limits = options_of(parameters, simulating.Limits)
    if contexts:
        fleet.run(contexts, parameters, partial(_read, events, limits, printer), printer)
        return
    run = simulating.collect(parameters, output)
    report = run.report(events, limits, output)
    output.result(run.notes, run.problems)
    printer.answer(
        report,
        partial(_document, report, run.options),
        {formats.SCRIPT: lambda _: shell.patches(report, run.options.kubectl_flags)},
        problems=run.problems,
        severities=(finding.severity for finding in report.findings),
    )


def _read(
    events: list[tuple[str, str]],
    limits: Limits,
    printer: Printer,
    parameters: Mapping[str, Any],
    console: fleet.ClusterConsole,
) -> fleet.Answer:
    """Read one cluster of several."""
    from kubectl_spread.run.simulate import collect  # noqa: PLC0415 - as above

    run = collect(parameters, console)

    def answer() -> fleet.ClusterAnswer:
        report = run.report(events, limits, console)

        def text(destination: Output) -> str:
            return printer.screen(_document(report, run.options, destination.form), destination)

        return fleet.ClusterAnswer(report, run.notes, run.problems, text)

    return answer


def _document(report: SpreadSimulation, read: CheckOptions, form: str) -> Document:
    """Return a report as a document; ``read`` are the options that chose what was read."""
    from kubectl_spread.render import simulation  # noqa: PLC0415 - completion of flags does not need it

    return simulation.document(report, None if _STDIN in read.filename else read.inputs, wide=form == formats.WIDE)


def _events(context: click.Context, parameters: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the events in the order in which they were given, each with its value."""
    values_of = {name: iter(parameters.pop(name)) for name in _NAMES}
    return [(name, next(values_of[name])) for name in context.meta[_ORDER]]
