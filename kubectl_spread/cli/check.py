"""``kubectl spread check``: compare stored selectors with merged ones, and print the skew of each constraint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Literal

import click

from kubectl_spread.cli import ending, fleet, formats, options, output, values
from kubectl_spread.cli.commandline import ADVANCED, OUTPUT
from kubectl_spread.cli.formats import Output, Printer
from kubectl_spread.errors import UsageError
from kubectl_spread.report.model import Severity

if TYPE_CHECKING:
    from kubectl_spread.render.table import Layout
    from kubectl_spread.report.model import Report
    from kubectl_spread.rules.engine import Baseline
    from kubectl_spread.run.run import CheckRun


@options.command(
    examples={
        "kubectl spread check": "Check the pods of the current namespace",
        "kubectl spread check -A": "Check the pods of all namespaces",
        "kubectl spread check deploy/web -n shop": "Check one workload",
        "kubectl spread check -f manifests/": "Check manifests before they are applied",
        "kubectl spread check -A --to 1.38": "Show what changes with an upgrade of Kubernetes",
        "kubectl spread check -A -o html=report.html": "Write a page for a browser",
    },
    statuses={
        0: "There are no findings at or above --fail-on.",
        1: "There are findings at or above --fail-on.",
        2: "Not everything could be checked, or the command line is wrong.",
    },
)
@click.argument("arguments", nargs=-1, metavar="[NAME… | TYPE/NAME… | TYPE NAME…]", shell_complete=values.objects)
@options.scope
@options.reading
@options.flag("--manifests", help="Read each argument as a file, as with -f.", group=ADVANCED)
@options.outputs("check")
@options.severity(
    "Show findings of this severity or higher. [default: warning in tables, info in other formats]", OUTPUT
)
@options.fail_on(Severity.ERROR)
@options.option(
    "--baseline",
    metavar="FILE",
    shell_complete=values.files,
    help="Hide the findings of an earlier report (-o json or yaml). The exit status ignores them as well.",
    group=OUTPUT,
)
@options.option(
    "--show",
    type=click.Choice(["problems", "all"]),
    help="Show only rows with problems, or all rows. [default: all; on a terminal those that fit]",
    group=OUTPUT,
)
@options.no_headers
@options.flag("-w", "--watch", help="Print the result again whenever it changes, until Ctrl-C.", group=OUTPUT)
@options.color
@fleet.option
@options.connection
@click.pass_context
def check(
    context: click.Context,
    /,
    *,
    arguments: tuple[str, ...],
    filename: tuple[str, ...],
    manifests: bool,
    baseline: str,
    show: Literal["problems", "all"] | None,
    watch: bool,
    contexts: str,
    **parameters: object,
) -> None:
    """Show which pods are not spread as their constraints require, and how to fix that."""
    from kubectl_spread.run.collect import collect  # noqa: PLC0415 - completion of flags does not need the rules
    from kubectl_spread.run.hints import gone  # noqa: PLC0415 - likewise

    if manifests:
        filename, arguments = _files(filename, arguments), ()
    parameters |= {"arguments": arguments, "filename": filename, "baseline": baseline, "watch": watch}
    printer = Printer(context)
    loaded_baseline = _baseline(baseline, filename) if baseline else None
    # What decides the exit status is shown.
    notes = Severity.INFO.value in (parameters["severity"], parameters["fail_on"])
    layout_of = partial(_layout, show=show, notes=notes, headers=printer.headers)
    if contexts:
        fleet.run(contexts, parameters, partial(_read, layout_of, printer), printer)
        return
    if watch:
        from kubectl_spread.cli.watch import follow  # noqa: PLC0415 - it needs urllib3 and protobuf

        follow(parameters, printer.outputs, printer.color, layout_of, loaded_baseline)
    run = collect(parameters, output)
    report = run.located(run.report(loaded_baseline))
    ending.trace(*(fault.error for fault in run.faults))
    output.messages(run, header=printer.prints_header)
    output.result(filter(None, [gone(report.summary)]), ())
    if run.silent and not run.problems and any(formats.FORMATS[each.form].silent for each in printer.outputs):
        output.note(run.nothing_found())
    printer.answer(
        report,
        others=_formats(run, report, layout_of, printer) | (_silent() if run.silent else {}),
        problems=run.problems,
        severities=(finding.severity for finding in report.findings),
    )


def _silent() -> dict[str, Callable[[Output], str]]:
    """Return the formats that are empty for an empty report."""
    return {name: lambda _: "" for name, form in formats.FORMATS.items() if form.silent}


def _formats(
    run: CheckRun, report: Report, layout_of: Callable[[CheckRun, str], Layout], printer: Printer
) -> dict[str, Callable[[Output], str]]:
    """Return the formats that need more than the report."""

    def table(destination: Output) -> str:
        return _table(report, layout_of(run, destination.form), destination, printer) + _survival(run)

    def metrics(_: Output) -> str:
        from kubectl_spread.render import openmetrics  # noqa: PLC0415 - no other format needs it

        return openmetrics.text(report, run.running_pods())

    return {**dict.fromkeys(formats.TABLES, table), formats.METRICS: metrics}


def _read(
    layout_of: Callable[[CheckRun, str], Layout],
    printer: Printer,
    parameters: Mapping[str, object],
    console: fleet.ClusterConsole,
) -> fleet.Answer:
    """Read one cluster of several."""
    from kubectl_spread.run.collect import collect  # noqa: PLC0415 - as above

    run = collect(parameters, console)

    def answer() -> fleet.ClusterAnswer:
        report = run.report()

        def text(destination: Output) -> str:
            if run.silent:
                return f"{run.nothing_found()}\n"
            return _table(report, layout_of(run, destination.form), destination, printer)

        return fleet.ClusterAnswer(report, run.useful_notes, run.problems, text)

    return answer


def _survival(run: CheckRun) -> str:
    """Return the lines about the loss of a zone, if the arguments name workloads."""
    if not any(target.name for target in run.scope.targets):
        return ""
    from kubectl_spread.run.recommend import survival  # noqa: PLC0415 - only a check of names simulates

    return "".join(f"{output.safe(sentence)}\n" for sentence in survival(run))


def _baseline(path: str, filename: tuple[str, ...]) -> Baseline:
    from kubectl_spread.run import baseline  # noqa: PLC0415 - a check without a baseline reads no documents

    return baseline.load(path, filename)


def _files(filename: tuple[str, ...], arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Return the files that ``-f`` and the arguments name; without any, the command would read the cluster instead."""
    if not filename and not arguments:
        raise UsageError("--manifests: no file is named")
    return (*filename, *arguments)


def _layout(run: CheckRun, form: str, *, show: Literal["problems", "all"] | None, notes: bool, headers: bool) -> Layout:
    """Return the layout of a table."""
    from kubectl_spread.render import table  # noqa: PLC0415 - only tables need it

    wide = form == formats.WIDE
    return table.Layout(wide=wide, namespaces=run.several_namespaces, headers=headers, show=show, notes=notes)


def _table(report: Report, layout: Layout, destination: Output, printer: Printer) -> str:
    from kubectl_spread.render import table  # noqa: PLC0415 - only tables need it

    return table.check(report, layout, printer.terminal(destination))
