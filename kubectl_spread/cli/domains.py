"""``kubectl spread domains``: the nodes and pods of each domain of a topology key, and what is lost with one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from kubectl_spread.cli import ending, formats, options, output, values
from kubectl_spread.run import output_files
from kubectl_spread.run.output_files import Output

if TYPE_CHECKING:
    from kubectl_spread.report.domains import SpreadDomains


@options.command(
    examples={
        "kubectl spread domains -A": "Show the nodes and pods of each zone",
        "kubectl spread domains zone a -A": "Show what is lost with one zone",
        "kubectl spread domains node worker-1 -A": "Show what is lost with one node",
        "kubectl spread domains topology.example.com/rack -n shop": "Show the domains of any label of the nodes",
        "kubectl spread domains zone -f cluster.json -o json": "Read a captured cluster, for a program",
    },
    statuses={0: "The domains were counted.", 2: "They could not be counted, or not completely."},
)
@click.argument("key", default="zone", metavar="[KEY]", shell_complete=values.key_or_domain)
@click.argument("value", default=None, required=False, metavar="[VALUE]", shell_complete=values.values_of_key)
@options.counting
@options.outputs("domains")
@options.no_headers
@options.color
@options.connection
@click.pass_context
def domains(
    context: click.Context,
    /,
    *,
    key: str,
    value: str | None,
    forms: list[Output],
    no_headers: bool,
    color: str,
    **parameters: object,
) -> None:
    """Show the nodes and pods of each zone, and what is lost with one of them.

    KEY is a label of the nodes; zone (the default), region, and hostname or node stand for those of Kubernetes. With a
    VALUE of the label, show the workloads there, those that lose most first. KEY=VALUE is the same as KEY VALUE.
    """
    from kubectl_spread.run.collect import collect_domains  # noqa: PLC0415 - completion of flags does not need it
    from kubectl_spread.run.domains import counted  # noqa: PLC0415 - likewise

    if value is None and "=" in key:
        key, _, value = key.partition("=")
    outputs = output_files.outputs(forms, formats.TABLE, parameters)
    run = collect_domains({**parameters, "key": key, "value": value}, output, with_budgets=value is not None)
    report = counted(run, key, value)
    ending.keep(run, report)
    output.result(run.notes, run.problems)
    if no_headers and any(destination.form in formats.TABLES for destination in outputs):
        _note_remarks(report)
    for destination in outputs:
        flags = run.options.command_flags
        text = _rendered(report, destination, color, [*flags.cluster, *flags.files], headers=not no_headers)
        formats.write(text, destination.file)
    options.end(context, run.problems, "never", ())


def _note_remarks(report: SpreadDomains) -> None:
    """Print what the numbers leave out, for tables that have lines about domains or workloads alone."""
    from kubectl_spread.render.domains import remarks  # noqa: PLC0415 - completion of flags does not need it

    for remark in remarks(report):
        output.note(remark)


def _rendered(report: SpreadDomains, destination: Output, color: str, inputs: Sequence[str], *, headers: bool) -> str:
    from kubectl_spread.render.domains import document  # noqa: PLC0415 - completion of flags does not need it

    wide = destination.form != formats.TABLE
    return formats.printed(report, destination, color, lambda: document(report, inputs, wide=wide), headers=headers)
