"""``kubectl spread plan``: which evictions make the placement what the constraints ask for, in which order?"""

from __future__ import annotations

from typing import Final

import click

from kubectl_spread.cli import formats, options, output, values
from kubectl_spread.cli.commandline import EVALUATE
from kubectl_spread.cli.formats import Printer
from kubectl_spread.report.model import Severity

_MOST_RUNS: Final = 1_000


@options.command(
    examples={
        "kubectl spread plan": "Plan for the current namespace",
        "kubectl spread plan -A": "Plan for all namespaces",
        "kubectl spread plan deploy/web -n shop": "Plan for one workload",
        "kubectl spread plan -n shop -o script | sh": "Carry the plan out",
        "kubectl spread plan -f cluster.json": "Plan for a captured cluster",
    },
    statuses={
        0: "There is nothing to correct.",
        1: "There are evictions, or workloads that evictions cannot correct.",
        2: "Not everything could be read, or the command line is wrong.",
    },
)
@click.argument("arguments", nargs=-1, metavar="[NAME… | TYPE/NAME… | TYPE NAME…]", shell_complete=values.objects)
@options.counting_scope
@options.selector("Correct only workloads of pods with these labels.")
@options.evaluated_as
@options.simulated
@options.flag("--soft", help="Correct the skew of ScheduleAnyway constraints too.", group=EVALUATE)
@options.number("--max-per-workload", "Evict at most this number of pods of a workload in a wave.", least=1, default=1)
@options.number("--runs", "Try each wave in this number of simulations.", least=1, most=_MOST_RUNS, default=10)
@options.outputs("plan")
@options.fail_on(Severity.WARNING, " All in a plan are warnings.")
@options.color
@options.connection
@click.pass_context
def plan(context: click.Context, /, **parameters: object) -> None:
    """Show which evictions correct skews above maxSkew and stale selectors, and in which order.

    Each eviction is tried in simulations before it is named, within disruption budgets. Nothing is changed. The format
    script prints commands for a shell, which carry the plan out.
    """
    from kubectl_spread.render import plan as plans  # noqa: PLC0415 - completion of flags does not need it
    from kubectl_spread.render import shell  # noqa: PLC0415 - likewise
    from kubectl_spread.run import plan as planning  # noqa: PLC0415 - likewise
    from kubectl_spread.run.options import options_of  # noqa: PLC0415 - likewise
    from kubectl_spread.run.simulate import collect  # noqa: PLC0415 - likewise

    printer = Printer(context)
    run = collect(parameters, output)
    chosen = options_of(parameters, planning.PlanOptions)
    report = planning.report(run, chosen)
    command = planning.command(run.options, chosen)
    output.result(run.notes, run.problems)
    printer.answer(
        report,
        lambda _: plans.document(report, command),
        {formats.SCRIPT: lambda _: shell.evictions(report, run.options.kubectl_flags)},
        problems=run.problems,
        severities=[Severity.WARNING] if report.waves or report.not_correctable else [],
    )
