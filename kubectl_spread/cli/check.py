"""``kubectl spread check``: compare stored selectors with merged ones, and print the skew of each constraint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Literal

import click

from kubectl_spread.cli import ending, fleet, formats, options, output, values
from kubectl_spread.cli.commandline import ADVANCED, OUTPUT
from kubectl_spread.errors import UsageError
from kubectl_spread.report.model import Severity
from kubectl_spread.run import output_files
from kubectl_spread.run.output_files import Output

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
@options.flag("--manifests", about="Read each argument as a file, as with -f.", group=ADVANCED)
@options.outputs("check")
@options.severity(
    "Show findings of this severity or higher. [default: warning in tables, info in other formats]", OUTPUT
)
@options.fail_on(Severity.ERROR)
@options.file(
    "--baseline",
    about="Hide the findings of an earlier report (-o json or yaml). The exit status ignores them as well.",
    group=OUTPUT,
)
@options.option(
    "--show",
    type=options.Choice(["problems", "all"]),
    help="Show only rows with problems, or all rows. [default: all; on a terminal those that fit]",
    group=OUTPUT,
)
@options.no_headers
@options.flag("-w", "--watch", about="Print the result again whenever it changes, until Ctrl-C.", group=OUTPUT)
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
    forms: list[Output],
    fail_on: str,
    baseline: str,
    show: Literal["problems", "all"] | None,
    no_headers: bool,
    watch: bool,
    color: str,
    contexts: str,
    **parameters: object,
) -> None:
    """Show which pods are not spread as their constraints require, and how to fix that."""
    from kubectl_spread.run.collect import collect  # noqa: PLC0415 - completion of flags does not need the rules
    from kubectl_spread.run.hints import gone  # noqa: PLC0415 - likewise

    if manifests:
        filename, arguments = _files(filename, arguments), ()
    parameters |= {"arguments": arguments, "filename": filename}
    # What decides the exit status is shown.
    notes = Severity.INFO.value in (parameters["severity"], fail_on)
    outputs = output_files.outputs(forms, formats.TABLE, {**parameters, "baseline": baseline})
    loaded_baseline = _baseline(baseline, filename) if baseline else None
    layout_of = partial(_layout, show=show, notes=notes, headers=not no_headers)
    if contexts:
        names = fleet.contexts(contexts, {**parameters, "baseline": baseline, "watch": watch}, outputs)
        ask = partial(_read, layout_of, color)
        fleet.run(context, names, parameters, ask, outputs, color=color, fail_on=fail_on)
        return
    if watch:
        from kubectl_spread.cli.watch import View, follow  # noqa: PLC0415 - it needs urllib3 and protobuf

        follow(parameters, View(outputs, layout_of, color, loaded_baseline))
    run = collect(parameters, output)
    report = run.located(run.report(loaded_baseline))
    ending.keep(run, report)
    ending.trace(context, run.faults)
    output.messages(run, header=not no_headers and any(formats.FORMATS[each.form].document for each in outputs))
    if text := gone(report.summary):
        output.note(text)
    for destination in outputs:
        text = ""
        if not run.silent or not formats.FORMATS[destination.form].silent:
            text = _rendered(run, report, layout_of(run, destination.form), destination, color)
        elif not run.problems:
            output.note(run.nothing_found())
        formats.write(text, destination.file)
    options.end(context, run.problems, fail_on, (finding.severity for finding in report.findings))


def _read(
    layout_of: Callable[..., Layout | None], color: str, parameters: Mapping[str, object], console: fleet.ClusterConsole
) -> fleet.Answer:
    """Read one cluster of several."""
    from kubectl_spread.run.collect import collect  # noqa: PLC0415 - as above

    return partial(_of_one, collect(parameters, console), layout_of, color)


def _of_one(run: CheckRun, layout_of: Callable[..., Layout | None], color: str) -> fleet.ClusterAnswer:
    """Return the answer of one cluster of several."""
    report = run.report()

    def text(destination: Output) -> str:
        layout = layout_of(run, destination.form)
        return f"{run.nothing_found()}\n" if run.silent or not layout else _table(report, layout, destination, color)

    return fleet.ClusterAnswer(report, run.useful_notes, run.problems, text)


def _rendered(run: CheckRun, report: Report, layout: Layout | None, destination: Output, color: str) -> str:
    """Return the report in a format, whose module is imported only now; ``layout`` is that of a table."""
    if layout:
        return _table(report, layout, destination, color) + _survival(run)
    if destination.form == formats.METRICS:
        from kubectl_spread.render import openmetrics  # noqa: PLC0415

        return openmetrics.text(report, run.running_pods())
    return formats.rendered(report, destination.form)


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


def _layout(
    run: CheckRun, form: str, *, show: Literal["problems", "all"] | None, notes: bool, headers: bool
) -> Layout | None:
    """Return the layout of a table; None for other formats."""
    if form not in formats.TABLES:
        return None
    from kubectl_spread.render import table  # noqa: PLC0415 - only tables need it

    return table.Layout(
        wide=form == formats.WIDE,
        namespaces=run.several_namespaces,
        headers=headers,
        show=show,
        notes=notes,
    )


def _table(report: Report, layout: Layout, destination: Output, color: str) -> str:
    from kubectl_spread.render import table  # noqa: PLC0415 - only tables need it

    return table.check(report, layout, output.terminal(color, to_file=destination.file is not None))
