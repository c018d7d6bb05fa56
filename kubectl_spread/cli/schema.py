"""``kubectl spread schema``: the JSON Schemas of what ``-o json`` prints."""

from __future__ import annotations

from importlib import resources
from typing import Final

import click

from kubectl_spread.cli import options, output
from kubectl_spread.errors import NotFoundError
from kubectl_spread.suggestions import did_you_mean

_KINDS: Final = ("MergeReport", "RuleList", "SpreadDomains", "SpreadExplanation", "SpreadReport")


@options.command(
    examples={
        "kubectl spread schema": "Print the schema of check -o json",
        "kubectl spread schema SpreadExplanation": "Print the schema of explain -o json",
    }
)
@click.argument("kind", default="SpreadReport", metavar="[KIND]")
def schema(kind: str) -> None:
    """Print the JSON Schema of the documents that -o json prints.

    KIND is SpreadReport (check; the default), SpreadExplanation (explain), SpreadDomains (domains), MergeReport (merge
    and unmerge) or RuleList (rules and explain CODE).
    """
    name = next((name for name in _KINDS if name.lower() == kind.lower()), None)
    if name is None:
        raise NotFoundError(f'no schema of kind "{kind}" (there are {", ".join(_KINDS)}){did_you_mean(kind, _KINDS)}')
    output.data((resources.files("kubectl_spread") / "schemas" / f"{name}.json").read_text(encoding="utf-8"))
