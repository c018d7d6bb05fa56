"""The manual pages, generated from the help: ``kubectl-spread.1`` and one page for each command."""

from __future__ import annotations

import re
from collections.abc import Mapping
from inspect import cleandoc
from typing import Final

import click
from click_man.man import ManPage

from kubectl_spread import __version__
from kubectl_spread.cli import SpreadGroup, cli, commandline
from kubectl_spread.cli.commandline import Command

DIRECTORY: Final = "man"
_NAME: Final = "kubectl-spread"
_PROGRAM: Final = click.Context(cli, info_name=_NAME, **commandline.SETTINGS)
_COMMANDS: Final = {name: cli.get_command(_PROGRAM, name) for name in cli.list_commands(_PROGRAM)}
_HYPHENS: Final = re.compile(r"(?<!\w)-{1,2}(?=[\w-])")
"""The hyphens before an option, which man would print as dashes."""


def paths() -> Mapping[str, str]:
    """Map the path of each page to the name of its command; "" is the program itself."""
    return {f"{DIRECTORY}/{'-'.join(filter(None, (_NAME, name)))}.1": name for name in ("", *_COMMANDS)}


def page(name: str) -> str:
    """Return the page of a command, or that of the program for ""."""
    command = _COMMANDS[name] if name else cli
    if not isinstance(command, Command | SpreadGroup):
        raise TypeError(name)
    context = click.Context(command, parent=_PROGRAM, info_name=name, **commandline.SETTINGS) if name else _PROGRAM
    connection = _COMMANDS["check"]
    assert connection is not None
    parts = (
        _head(command, context, [] if name else list(_COMMANDS)),
        _examples(command.examples),
        *(_options(group, command, context) for group in commandline.GROUPS),
        # What this command prints.
        _options(commandline.CONNECTION, connection, context) if name == "options" else "",
        _statuses(command.statuses),
        f".SH SEE ALSO\n{f'{_NAME}(1), ' if name else ''}kubectl(1)\n",
    )
    return "".join(parts)


def _head(command: click.Command, context: click.Context, commands: list[str]) -> str:
    """Return name, synopsis, description and commands."""
    text = cleandoc(command.help or "")
    manual = ManPage(context.command_path)
    manual.version, manual.date = f"{_NAME} {__version__}", ""
    manual.short_help = _escaped(text.partition("\n\n")[0].rstrip("."))
    manual.synopsis = " ".join(command.collect_usage_pieces(context)).replace("[OPTIONS]", "[options]")
    manual.description = _escaped(text)
    summaries = {item.value: item.help or "" for item in cli.shell_complete(_PROGRAM, "")}
    manual.commands = [(name, _escaped(summaries[name])) for name in commands]
    title = context.command_path.upper()
    # A command is one word where ``man`` looks for it.
    head = str(manual).replace(f'"{title}"', f'"{title.replace(" ", "-")}"')
    # Long titles would overlap.
    return head.replace(f'"{context.command_path} Manual"', f'"{_NAME}"')


def _examples(examples: Mapping[str, str]) -> str:
    lines = (f".PP\n{comment}:\n.PP\n.RS 4\n.nf\n{_escaped(line)}\n.fi\n.RE\n" for line, comment in examples.items())
    return f".SH EXAMPLES\n{''.join(lines)}"


def _options(group: str, command: click.Command, context: click.Context) -> str:
    """Return the options of a group, as the library writes them, below the heading of the group."""
    manual = ManPage(_NAME)
    records = (
        option.get_help_record(context)
        for option in command.get_params(context)
        if isinstance(option, click.Option) and commandline.group_of(option) == group
    )
    manual.options = [(names, _escaped(text)) for names, text in filter(None, records)]
    options = str(manual).partition(".SH OPTIONS\n")[2]
    return f".SH {group.upper()}\n{options}" if options else ""


def _statuses(statuses: Mapping[int, str]) -> str:
    lines = "".join(f".TP\n\\fB{status}\\fP\n{_escaped(meaning)}\n" for status, meaning in statuses.items())
    return f".SH EXIT STATUS\n{lines}" if lines else ""


def _escaped(text: str) -> str:
    """Return text in which man finds no commands of its own."""
    return _HYPHENS.sub(lambda match: match[0].replace("-", r"\-"), text.replace("\\", r"\e"))
