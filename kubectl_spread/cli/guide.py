"""``kubectl spread rules``, ``help``, ``options``, ``version`` and ``schema``: what there is, and its form."""

from __future__ import annotations

import platform
from importlib import resources
from typing import TYPE_CHECKING, Final

import click

from kubectl_spread import __version__
from kubectl_spread.cli import VERSION, cli, commandline, options, output
from kubectl_spread.errors import NotFoundError
from kubectl_spread.kube.features import NEWEST_MINOR, OLDEST_MINOR
from kubectl_spread.phrases import did_you_mean

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from kubectl_spread.render.catalogue import Example

_KINDS: Final = (
    *("MergeReport", "RuleList", "SpreadDomains", "SpreadExplanation", "SpreadFleet", "SpreadPlan"),
    *("SpreadRecommendation", "SpreadReport", "SpreadSimulation"),
)
_MACHINES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
"""Maps the name of a machine to the name that Go gives it."""


def _commands(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Complete the name of a command."""
    return [item for item in cli.shell_complete(context.find_root(), incomplete) if not item.value.startswith("-")]


@options.command(
    "help", examples={"kubectl spread help": "List the commands", "kubectl spread help check": "Show the help of check"}
)
@click.argument("name", default="", metavar="[COMMAND]", shell_complete=_commands)
@click.pass_context
def help_of(context: click.Context, /, name: str) -> None:
    """Show the help of a command."""
    root = context.find_root()
    command = cli.get_command(root, name) if name else cli
    if command is None:
        raise click.NoSuchCommand(name, possibilities=cli.list_commands(root), ctx=root)
    described = click.Context(command, parent=root, info_name=name, **commandline.SETTINGS) if name else root
    output.data(f"{command.get_help(described)}\n")


@options.command("flags")
@options.connection
def _flags(**_: object) -> None:
    """Hold the options of ``connection``."""


@options.command("options", examples={"kubectl spread options": "List the options that connect to a cluster"})
@click.pass_context
def connection_options(context: click.Context) -> None:
    """List the options that connect to a cluster.

    All commands that read a cluster accept them. They have the names and the meaning that they have in kubectl.
    """
    flags = [flag for flag in _flags.params if commandline.group_of(flag) == commandline.CONNECTION]
    formatter = context.make_formatter()
    commandline.write_text(formatter, "The commands that read a cluster accept these options, as kubectl does.")
    commandline.write_sections(formatter, commandline.grouped(flags, context))
    output.data(formatter.getvalue())


@options.command(
    examples={
        "kubectl spread version": "Print the version",
        "kubectl spread version -o json": "Print the version for a program",
    }
)
@options.form("json", "yaml", about="Print in this format. [default: text]")
def version(form: str | None) -> None:
    """Print the version, and the Kubernetes minors that it evaluates.

    No cluster is contacted.
    """
    if form is None:
        output.data(f"{VERSION}\n")
        return
    from kubectl_spread.render import structured  # noqa: PLC0415 - text does not need it

    major, minor, *_ = __version__.split(".")
    machine = platform.machine().lower()
    document = {
        "clientVersion": {
            "major": major,
            "minor": minor,
            "gitVersion": f"v{__version__}",
            "platform": f"{platform.system().lower()}/{_MACHINES.get(machine, machine)}",
        },
        "kubernetesVersions": [f"1.{number}" for number in range(OLDEST_MINOR, NEWEST_MINOR + 1)],
    }
    output.data(structured.document(document, form))


@options.command(
    examples={
        "kubectl spread schema": "Print the schema of check -o json",
        "kubectl spread schema SpreadExplanation": "Print the schema of explain -o json",
    }
)
@click.argument("kind", default="SpreadReport", metavar="[KIND]")
def schema(kind: str) -> None:
    """Print the JSON Schema of the documents that -o json prints.

    KIND is SpreadReport (check; the default), SpreadExplanation (explain), SpreadDomains (domains), SpreadSimulation
    (simulate), SpreadFleet (--contexts), SpreadPlan (plan), SpreadRecommendation (recommend), MergeReport (merge and
    unmerge) or RuleList (rules and explain CODE).
    """
    name = next((name for name in _KINDS if name.lower() == kind.lower()), None)
    if name is None:
        raise NotFoundError(f'no schema of kind "{kind}" (there are {", ".join(_KINDS)}){did_you_mean(kind, _KINDS)}')
    output.data((resources.files("kubectl_spread") / "schemas" / f"{name}.json").read_text(encoding="utf-8"))


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
