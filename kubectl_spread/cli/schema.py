"""``kubectl spread schema``: the JSON Schemas of what ``-o json`` prints."""

from __future__ import annotations

from importlib import resources
from typing import Final

import click

from kubectl_spread.cli import output
from kubectl_spread.errors import NotFoundError

_KINDS: Final = ("MergeReport", "RuleList", "SpreadExplanation", "SpreadReport")


@click.command()
@click.argument("kind", default="SpreadReport", metavar="[KIND]")
def schema(kind: str) -> None:
    """Print the JSON Schema of what `-o json` prints.

    KIND is the kind of the document: SpreadReport (the default; of check), SpreadExplanation (of explain),
    MergeReport (of merge and unmerge) or RuleList (of rules and explain CODE).
    """
    name = next((name for name in _KINDS if name.lower() == kind.lower()), None)
    if name is None:
        raise NotFoundError(f'no schema of kind "{kind}": there are {", ".join(_KINDS)}')
    output.data((resources.files("kubectl_spread") / "schemas" / f"{name}.json").read_text(encoding="utf-8"))
