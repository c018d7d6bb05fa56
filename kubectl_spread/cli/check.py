"""``kubectl spread check``: is every selector what the merge makes of it, and how skewed is each constraint now?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, NoReturn

import click

from kubectl_spread.app import output
from kubectl_spread.cli import formats, leaving, options, places, values
from kubectl_spread.cli.formats import Output
from kubectl_spread.errors import UsageError

if TYPE_CHECKING:
    from kubectl_spread.app.checkrun import CheckRun
    from kubectl_spread.render.table import Layout
    from kubectl_spread.report.model import Report
    from kubectl_spread.rules.engine import Baseline

_FINDINGS: Final = 1
_UNANSWERED: Final = 2


@click.command()
@click.argument("arguments", nargs=-1, metavar="[NAME… | TYPE/NAME… | TYPE NAME…]", shell_complete=values.objects)
@options.scope
@options.reading
@click.option("--manifests", is_flag=True, help="The arguments are files to read, as if -f stood before each.")
@click.option(
    "-o",
    "--output",
    "forms",
    callback=formats.parsed,
    multiple=True,
    metavar="FORMAT[=FILE]",
    shell_complete=values.formats,
    help=f"How to print, and to which file; repeatable. One of {', '.join(formats.NAMES)}. [default: table]",
)
@click.option(
    "--output-file",
    default="",
    metavar="FILE",
    shell_complete=values.files,
    help="The file for what would go to standard output.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "info", "never"]),
    default="error",
    show_default=True,
    help="The least severity that makes the exit status 1.",
)
@click.option(
    "--severity",
    type=click.Choice(["error", "warning", "info"]),
    default="info",
    show_default=True,
    help="The least severity that is shown and counted; less is silenced.",
)
@click.option(
    "--baseline",
    default="",
    metavar="FILE",
    shell_complete=values.files,
    help="A report of an earlier check -o json or yaml; what it has is neither shown nor makes the exit status 1.",
)
@click.option("--show", type=click.Choice(["problems", "all"]), help="Rows to show. [default: all, where they are few]")
@click.option("--no-headers", is_flag=True, help="Print the table without headers.")
@click.option("-w", "--watch", is_flag=True, help="Print the answer again whenever it has changed, until Ctrl-C.")
@options.color
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
    output_file: str,
    fail_on: str,
    baseline: str,
    show: Literal["problems", "all"] | None,
    no_headers: bool,
    watch: bool,
    color: str,
    **asked: object,
) -> None:
    """Compare every pod's selectors with what the merge makes of them, and count every constraint.

    Exit status: 0 nothing at or above --fail-on, 1 findings, 2 not everything could be checked.
    """
    from kubectl_spread.app.baseline import gone, load  # noqa: PLC0415 - completion of flags does not wait for the rules
    from kubectl_spread.app.collect import collect  # noqa: PLC0415 - likewise

    wanted = formats.outputs(forms, output_file)
    if manifests:
        filename, arguments = _files(filename, arguments), ()
    asked |= {"arguments": arguments, "filename": filename}
    places.refuse_inputs((one.file for one in wanted), {**asked, "baseline": baseline})
    known = load(baseline, filename) if baseline else None
    if watch:
        _watch(asked, wanted, known, partial(_layout, show=show, headers=not no_headers), color)
    question, gathered = collect(asked)
    report = gathered.completed(question, known)
    leaving.keep(gathered, report)
    if any(one.form not in formats.FOR_PEOPLE for one in wanted):
        report = gathered.located(report)
    gathered.say()
    if text := gone(report.summary):
        output.note(text)
    for one in wanted:
        if one.form in formats.FOR_PEOPLE and gathered.empty:
            _say_nothing(gathered, one)
        else:
            layout = _layout(gathered, one.form, show=show, headers=not no_headers)
            render = _table(layout, one, color) if layout else formats.renderer(one.form)
            formats.write(render(report), one.file)
    if gathered.problems:
        context.exit(_UNANSWERED)
    if _at_or_above(report, fail_on):
        context.exit(_FINDINGS)


def _files(filename: tuple[str, ...], arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Return the files that ``-f`` and the arguments name; without any the cluster would be asked instead."""
    if not filename and not arguments:
        raise UsageError("--manifests: no file is named")
    return (*filename, *arguments)


def _say_nothing(gathered: CheckRun, one: Output) -> None:
    """Say that there is nothing to print."""
    if not gathered.problems:
        output.note(gathered.nothing_found())
    if one.file is not None:
        formats.write("", one.file)


def _watch(
    asked: Mapping[str, object],
    wanted: Sequence[Output],
    known: Baseline | None,
    layout: Callable[[CheckRun, str], Layout | None],
    color: str,
) -> NoReturn:
    from kubectl_spread.cli import watch  # noqa: PLC0415 - it needs the kubernetes package, which takes half a second

    watch.watch(asked, watch.View(wanted, layout, color, known))


def _layout(gathered: CheckRun, form: str, *, show: Literal["problems", "all"] | None, headers: bool) -> Layout | None:
    """Return how a table is laid out; None where another format is asked for."""
    if form not in (formats.TABLE, formats.WIDE):
        return None
    from kubectl_spread.render import table  # noqa: PLC0415 - rich is only for people

    return table.Layout(
        wide=form == formats.WIDE,
        namespaces=gathered.scope.namespace is None and gathered.several_namespaces,
        headers=headers,
        show=show,
    )


def _table(layout: Layout, one: Output, color: str) -> Callable[[Report], str]:
    """Return what prints a report as a table."""
    from kubectl_spread.render import table  # noqa: PLC0415 - rich is only for people

    terminal = output.terminal(color) if one.file is None else output.page(color)
    return lambda report: table.check(report, layout, terminal)


def _at_or_above(report: Report, fail_on: str) -> bool:
    from kubectl_spread.rules.model import Severity  # noqa: PLC0415 - as above

    if fail_on == "never":
        return False
    limit = Severity.of(fail_on)
    return any(Severity.of(finding.severity) >= limit for finding in report.findings)
