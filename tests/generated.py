"""The pages, and parts of pages, that the code itself writes; run as a module it writes them (``make docs``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import click
from click.testing import CliRunner

from kubectl_spread.cli import cli
from kubectl_spread.rules import RULES
from kubectl_spread.rules.model import Rule

ROOT: Final = Path(__file__).parent.parent
SAMPLE: Final = "examples/cluster.json"
CHECK: Final = ("check", "-f", SAMPLE, "--server-version", "1.37")
EXPLAIN: Final = ("explain", "deploy/cart", "-n", "shop", "-f", SAMPLE, "--server-version", "1.37")


def page(path: str) -> str:
    """Return a page as the code would have it: generated as a whole, or its marked blocks filled in."""
    if path in PAGES:
        return PAGES[path]()
    text = (ROOT / path).read_text(encoding="utf-8")
    for name, block in BLOCKS[path].items():
        begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        if not pattern.search(text):
            raise ValueError(f"{path} has no block {name}")
        text = pattern.sub(lambda _: f"{begin}{block()}{end}", text)  # noqa: B023 - used at once
    return text


def run(*arguments: str) -> str:
    """Return what a command prints on stdout."""
    result = CliRunner().invoke(cli, arguments, prog_name="kubectl spread")
    return result.stdout


def sample(*arguments: str) -> str:
    """Return a command and what it prints, as a Markdown block."""
    return f"```console\n$ kubectl spread {' '.join(arguments)}\n{run(*arguments)}```\n"


def rules_page() -> str:
    """Return docs/rules.md."""
    head = "# Rules\n\nCodes are for ever. `kubectl spread explain CODE` prints the same.\n\n"
    table = ["| code | name | severity | summary |", "|---|---|---|---|"]
    table += [
        f"| [{rule.code}](#{rule.code.lower()}) | {rule.name} | {rule.severity} | {rule.summary} |" for rule in RULES
    ]
    return head + "\n".join(table) + "\n" + "".join(_rule(rule) for rule in RULES)


def _rule(rule: Rule) -> str:
    fix = rule.fix.replace("{restart}", "restart the pods by their owner")
    return (
        f"\n## {rule.code}\n\n**{rule.name}** ({rule.severity}): {rule.summary}.\n\n{rule.why}\n\n"
        f"- Message: `{rule.message}`\n- Fix: {fix}\n- Asks about nodes: {'yes' if rule.needs_nodes else 'no'}\n"
        f"- Source: <{rule.source}>\n"
    )


def cli_page() -> str:
    """Return docs/cli.md."""
    head = "# Commands\n\nWhat `--help` prints, for every command.\n"
    return head + "".join(f"\n## {name}\n\n```\n{text}```\n" for name, text in _helps())


def _helps() -> Iterator[tuple[str, str]]:
    yield "kubectl spread", run("--help")
    for name in cli.list_commands(click.Context(cli)):
        yield f"kubectl spread {name}", run(name, "--help")


PAGES: Final[dict[str, Callable[[], str]]] = {"docs/rules.md": rules_page, "docs/cli.md": cli_page}
BLOCKS: Final[dict[str, dict[str, Callable[[], str]]]] = {
    "README.md": {"check": lambda: sample(*CHECK)},
    "docs/getting-started.md": {"explain": lambda: sample(*EXPLAIN)},
}


def main() -> None:
    """Write every page."""
    for path in (*PAGES, *BLOCKS):
        (ROOT / path).write_text(page(path), encoding="utf-8")


if __name__ == "__main__":
    main()
