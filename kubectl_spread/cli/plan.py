"""``kubectl spread plan``: which evictions make the placement what the constraints ask for, in which order?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from kubectl_spread.cli import ending, formats, options, output, values
from kubectl_spread.cli.commandline import EVALUATE
from kubectl_spread.report.model import Severity
from kubectl_spread.run import output_files
from kubectl_spread.run.output_files import Output

if TYPE_CHECKING:
    from kubectl_spread.report.plan import SpreadPlan

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
@options.text("-l", "--selector", metavar="SELECTOR", about="Correct only workloads of pods with these labels.")
@options.evaluated_as
@options.simulated
@options.flag("--soft", about="Correct the skew of ScheduleAnyway constraints too.", group=EVALUATE)
@options.number(
    "--max-per-workload", least=1, default=1, about="Evict at most this number of pods of a workload in a wave."
)
@options.number("--runs", least=1, most=_MOST_RUNS, default=10, about="Try each wave in this number of simulations.")
@options.outputs("plan")
@options.fail_on(Severity.WARNING, " All in a plan are warnings.")
@options.color
@options.connection
@click.pass_context
def plan(
    context: click.Context,
    /,
    *,
    soft: bool,
    max_per_workload: int,
    runs: int,
    seed: int,
    forms: list[Output],
    fail_on: str,
    color: str,
    **parameters: Any,
) -> None:
    """Show which evictions correct skews above maxSkew and stale selectors, and in which order.

    Each eviction is tried in simulations before it is named, within disruption budgets. Nothing is changed. The format
    script prints commands for a shell, which carry the plan out.
    """
    from kubectl_spread.run import plan as planning  # noqa: PLC0415 - completion of flags does not need it
    from kubectl_spread.run.simulate import collect  # noqa: PLC0415 - likewise

    outputs = output_files.outputs(forms, formats.TABLE, parameters)
    run = collect(parameters, output)
    chosen = planning.PlanOptions(runs=runs, seed=seed, soft=soft, most=max_per_workload)
    report = planning.report(run, chosen)
    command = planning.command(run.options, chosen)
    ending.keep(run, report)
    output.result(run.notes, run.problems)
    for destination in outputs:
        formats.write(_rendered(report, destination, color, run.options.kubectl_flags, command), destination.file)
    troubled = bool(report.waves or report.not_correctable)
    options.end(context, run.problems, fail_on, [Severity.WARNING] if troubled else [])


def _rendered(report: SpreadPlan, destination: Output, color: str, flags: tuple[str, ...], command: str) -> str:
    """Return a report in a format, whose module is imported only now.

    ``flags`` are kubectl's for the cluster, and ``command`` carries the plan out.
    """
    if destination.form == formats.SCRIPT:
        from kubectl_spread.render import shell  # noqa: PLC0415

        return shell.evictions(report, flags)
    from kubectl_spread.render import plan as plans  # noqa: PLC0415 - completion of flags does not need it

    return formats.printed(report, destination, color, lambda: plans.document(report, command))
