"""``kubectl spread check``: is every selector what the merge makes of it, and how skewed is each constraint now?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

import click

from kubectl_spread.audit.report import Report
from kubectl_spread.cli import formats, options, output
from kubectl_spread.cli.baseline import gone, load
from kubectl_spread.cli.formats import Output
from kubectl_spread.cli.gather import gather
from kubectl_spread.cli.gathered import Gathered
from kubectl_spread.rules.model import Severity

_FINDINGS: Final = 1
_UNANSWERED: Final = 2


@click.command()
@click.argument("arguments", nargs=-1, metavar="[NAME… | TYPE/NAME… | TYPE NAME…]")
@options.scope
@options.reading
@click.option(
    "-o",
    "--output",
    "forms",
    callback=formats.parsed,
    multiple=True,
    metavar="FORMAT[=FILE]",
    help=f"How to print, and to which file; repeatable. One of {', '.join(formats.NAMES)}. [default: table]",
)
@click.option("--output-file", default="", metavar="FILE", help="The file for what would go to standard output.")
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
    help="A report of an earlier check -o json or yaml; what it has is neither shown nor makes the exit status 1.",
)
@click.option("--show", type=click.Choice(["problems", "all"]), help="Rows to show. [default: all, where they are few]")
@click.option("--no-headers", is_flag=True, help="Print the table without headers.")
@options.color
@options.connection
@click.pass_context
def check(
    context: click.Context,
    /,
    *,
    filename: tuple[str, ...],
    forms: list[Output],
    output_file: str,
    fail_on: str,
    baseline: str,
    show: Literal["problems", "all"] | None,
    no_headers: bool,
    color: str,
    **asked: object,
) -> None:
    """Compare every pod's selectors with what the merge makes of them, and count every constraint.

    Exit status: 0 nothing at or above --fail-on, 1 findings, 2 not everything could be checked.
    """
    wanted = formats.outputs(forms, output_file)
    known = load(baseline, filename) if baseline else None
    question, gathered = gather({**asked, "filename": filename})
    report = gathered.completed(question, known)
    gathered.say()
    if text := gone(report.summary):
        output.note(text)
    for one in wanted:
        if one.form in formats.FOR_PEOPLE and gathered.empty:
            _say_nothing(gathered, one)
        else:
            render = _table(gathered, one, show, headers=not no_headers, color=color) or formats.renderer(one.form)
            formats.write(render(report), one.file)
    if gathered.problems:
        context.exit(_UNANSWERED)
    if _at_or_above(report, fail_on):
        context.exit(_FINDINGS)


def _say_nothing(gathered: Gathered, one: Output) -> None:
    """Say that there is nothing to print."""
    if not gathered.problems:
        output.note(gathered.nothing_found())
    if one.file is not None:
        formats.write("", one.file)


def _table(
    gathered: Gathered, one: Output, show: Literal["problems", "all"] | None, *, headers: bool, color: str
) -> Callable[[Report], str] | None:
    """Return what prints a report as a table; None where another format is asked for."""
    if one.form not in (formats.TABLE, formats.WIDE):
        return None
    from kubectl_spread.render import table  # noqa: PLC0415 - rich is only for people

    layout = table.Layout(
        wide=one.form == formats.WIDE,
        namespaces=gathered.scope.namespace is None and gathered.several_namespaces,
        headers=headers,
        show=show,
    )
    terminal = output.terminal(color) if one.file is None else output.page(color)
    return lambda report: table.check(report, layout, terminal)


def _at_or_above(report: Report, fail_on: str) -> bool:
    if fail_on == "never":
        return False
    limit = Severity.of(fail_on)
    return any(Severity.of(finding.severity) >= limit for finding in report.findings)
