"""``kubectl spread rules``: the catalogue."""

from __future__ import annotations

import click

from kubectl_spread.cli import options, output
from kubectl_spread.render import structured
from kubectl_spread.rules import RULES
from kubectl_spread.rules.listing import listing


@click.command()
@click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(["json", "markdown", "yaml"]),
    help="How to print; the default is a table.",
)
@options.color
def rules(form: str | None, color: str) -> None:
    """List the rules; `kubectl spread explain CODE` explains one."""
    from kubectl_spread.render import catalogue  # noqa: PLC0415 - rich is only for people

    match form:
        case "json":
            output.data(structured.json(listing(RULES)))
        case "yaml":
            output.data(structured.yaml(listing(RULES)))
        case "markdown":
            output.data(catalogue.page(RULES))
        case _:
            output.data(catalogue.rules(RULES, output.terminal(color)))
