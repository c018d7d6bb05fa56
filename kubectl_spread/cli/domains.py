"""``kubectl spread domains``: the nodes and pods of each domain of a topology key, and what is lost with one."""

from __future__ import annotations

import click

from kubectl_spread.cli import formats, options, output, values
from kubectl_spread.cli.formats import Printer


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
    **parameters: object,
) -> None:
    """Show the nodes and pods of each zone, and what is lost with one of them.

    KEY is a label of the nodes; zone (the default), region, and hostname or node stand for those of Kubernetes. With a
    VALUE of the label, show the workloads there, those that lose most first. KEY=VALUE is the same as KEY VALUE.
    """
    from kubectl_spread.render.domains import document, remarks  # noqa: PLC0415 - completion of flags does not need it
    from kubectl_spread.run.collect import collect_domains  # noqa: PLC0415 - likewise
    from kubectl_spread.run.domains import counted  # noqa: PLC0415 - likewise

    if value is None and "=" in key:
        key, _, value = key.partition("=")
    printer = Printer(context)
    run = collect_domains({**parameters, "key": key, "value": value}, output, with_budgets=value is not None)
    report = counted(run, key, value)
    output.result(run.notes, run.problems)
    if not printer.headers and any(destination.form in formats.TABLES for destination in printer.outputs):
        # Without headers, tables leave out what their numbers leave out.
        output.result(remarks(report), ())
    printer.answer(
        report,
        lambda form: document(report, run.options.inputs, wide=form != formats.TABLE),
        problems=run.problems,
    )
