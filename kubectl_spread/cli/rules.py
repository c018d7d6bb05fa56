"""``kubectl spread rules``: the catalogue."""

from __future__ import annotations

import click

from kubectl_spread.cli import options, output
from kubectl_spread.rules import RULES


@click.command()
@options.color
def rules(color: str) -> None:
    """List the rules; `kubectl spread explain CODE` explains one."""
    from kubectl_spread.render import catalogue  # noqa: PLC0415 - rich is only for people

    output.data(catalogue.rules(RULES, output.terminal(color)))
