"""``kubectl spread rules``: print the catalogue."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from kubectl_spread.cli import options, output

if TYPE_CHECKING:
    from kubectl_spread.render.catalogue import Example


@options.command(
    examples={"kubectl spread rules": "List all rules", "kubectl spread explain SPR301": "Explain one rule"}
)
@options.form("json", "markdown", "yaml", about="Print in this format. [default: table]")
@options.color
def rules(form: str | None, color: str) -> None:
    """List the rules, with their codes, names and severities."""
    from kubectl_spread.render import catalogue, structured  # noqa: PLC0415 - only people need it
    from kubectl_spread.rules import RULES  # noqa: PLC0415 - completion of flags does not need the rules
    from kubectl_spread.rules.model import listing  # noqa: PLC0415 - likewise

    match form:
        case None:
            output.data(catalogue.rules(RULES, output.terminal(color)))
        case "markdown":
            output.data(catalogue.page(RULES, examples()))
        case _:
            output.data(structured.document(listing(RULES), form))


def examples() -> dict[str, Example]:
    """Return the example of each rule, by its code."""
    import msgspec  # noqa: PLC0415 - completion of flags does not need it

    from kubectl_spread.render.catalogue import Example  # noqa: PLC0415 - likewise

    text = (resources.files("kubectl_spread") / "rules" / "examples.json").read_bytes()
    return msgspec.json.decode(text, type=dict[str, Example])
