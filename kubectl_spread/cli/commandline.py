"""Command lines as kubectl has them: forms of options that click does not accept, and help in kubectl's order.

The forms are ``-A=true``, ``--watch=false``, ``-n=shop`` and ``-v=6``. Help has a sentence, examples, options in
groups, and usage.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from inspect import cleandoc
from typing import Any, Final

import click
from click.core import ParameterSource

from kubectl_spread.errors import UsageError

_BOOLEANS: Final = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}
_LEVELS: Final = ("-v", "--v")
"""The names of kubectl's option whose value is a number; a level above 0 is the flag ``--verbose``."""


_WORD: Final = re.compile(r"(--[^=]+|-.)(=?)(.*)", re.DOTALL)
"""An option, or several one-letter options, with or without a value."""


def for_click(command: click.Command, ctx: click.Context, arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a command as click reads them: the flags that are true, then everything else.

    Of several values of a flag the last one holds.

    Raises:
        click.UsageError: The value of a flag is not a boolean.
    """
    parameters = [option for option in command.get_params(ctx) if isinstance(option, click.Option)]
    options = {name: option for option in parameters for name in option.opts}
    if "-v" in options:
        options["--v"] = options["-v"]
    words, others = deque(arguments), list[str]()
    flags: dict[str, bool] = {}
    while words:
        word = words.popleft()
        if word in ("-", "--") or not word.startswith("-"):
            others.append(word)
            if word == "--" or not ctx.allow_interspersed_args:
                break
            continue
        while match := _WORD.fullmatch(word):
            name, equals, text = match.groups()
            option = options.get(name)
            if option is None:
                others.append(word)
                break
            if not option.is_flag:
                # The next word is the value of an option without one.
                others += [name, text] if equals or text else [name, *([words.popleft()] if words else [])]
                break
            if name in _LEVELS and not equals and (text or (words[0] if words else "")).isdecimal():
                equals, text = "=", text or words.popleft()
            flags[_longest(option)] = not equals or _boolean(name, text, ctx)
            if equals or not text:
                break
            word = f"-{text}"
    # A flag that is true by default has another name by which it is false.
    spelled = (
        name for flag, value in flags.items() for name in ([flag] if value else options[flag].secondary_opts[:1])
    )
    return [*spelled, *others, *words]


def _boolean(name: str, text: str, ctx: click.Context) -> bool:
    """Return the value of a flag, as Go spells it, or whether a level of kubectl is above 0."""
    value = int(text) > 0 if name in _LEVELS and text.isdecimal() else _BOOLEANS.get(text)
    if value is None and not ctx.resilient_parsing:
        raise click.UsageError(f'{name}: "{text}" is not a boolean (write {name}=true or {name}=false)', ctx)
    return value is not False


EVENTS: Final = "What happens, in the order given"
READ: Final = "What to read"
EVALUATE: Final = "How to evaluate"
OUTPUT: Final = "Output"
SERVE: Final = "How to serve"
OTHER: Final = "Other"
ADVANCED: Final = "Advanced"
CONNECTION: Final = "Connection"
GROUPS: Final = (EVENTS, READ, EVALUATE, OUTPUT, SERVE, OTHER, ADVANCED, CONNECTION)
"""The headings of options, in their order."""
_LIST: Final = ",…"
"""Ends the metavar of an option whose value is a list."""
_USUAL: Final = frozenset({"kubeconfig", "context"})
"""The connection options that the help of a command shows; ``options`` shows all."""

SETTINGS: Final[dict[str, Any]] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""The settings of the context of the program and its commands."""


Section = tuple[str, Sequence[tuple[str, str]]]
"""A list with its heading."""
_READING_FILES: Final = ("filename", "kustomize", "manifests")
"""The parameters that choose files instead of a cluster."""


class Option(click.Option):
    """An option with the heading that it has in the help; one with a text is "" by default."""

    def __init__(self, *arguments: Any, group: str = READ, **settings: Any) -> None:
        if settings.get("metavar") and not (settings.get("multiple") or "type" in settings):
            settings.setdefault("default", "")
        super().__init__(*arguments, **settings)
        self.group = group

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Refuse an empty value, which is probably an empty variable of a shell.

        Raises:
            UsageError: A value is "", or a list without items.
        """
        separators = ", " if (self.metavar or "").endswith(_LIST) else ""
        if _is_given(self, ctx):
            for text in value if self.multiple else (value,):
                if isinstance(text, str) and not text.strip(separators):
                    raise UsageError(f"{_longest(self)}: the value is empty")
        return super().process_value(ctx, value)


def _is_given(option: click.Parameter, ctx: click.Context) -> bool:
    return ctx.get_parameter_source(str(option.name)) is not ParameterSource.DEFAULT


def _longest(option: click.Parameter) -> str:
    """Return the long name of an option."""
    return max(option.opts, key=len)


def option_of(ctx: click.Context, parameter: str) -> str:
    """Return the first name of the option that gives a command the value of a parameter."""
    return next(option.opts[0] for option in ctx.command.params if option.name == parameter)


class Command(click.Command):
    """A command whose help has examples, options in groups and exit statuses.

    Attributes:
        examples: Command lines, each with a comment.
        statuses: The meaning of each exit status.
    """

    def __init__(
        self,
        *arguments: Any,
        examples: Mapping[str, str] | None = None,
        statuses: Mapping[int, str] | None = None,
        **settings: Any,
    ) -> None:
        # A command keeps the first help option that it makes, also one made in a context without a parent.
        super().__init__(*arguments, **{"context_settings": SETTINGS} | settings)
        self.examples = examples or {}
        self.statuses = statuses or {}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments in kubectl's forms."""
        return super().parse_args(ctx, for_click(self, ctx, args))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; with files, refuse the options that connect to a cluster.

        Raises:
            UsageError: Such an option is given.
        """
        if any(ctx.params.get(name) for name in _READING_FILES):
            for option in self.get_params(ctx):
                if group_of(option) == CONNECTION and _is_given(option, ctx):
                    raise UsageError(f"{_longest(option)}: no cluster is contacted with -f or -k, so it has no effect")
        return super().invoke(ctx)

    def get_help(self, ctx: click.Context) -> str:
        """Return the help."""
        formatter = ctx.make_formatter()
        write_text(formatter, self.help or "")
        write_examples(formatter, ctx, self.examples)
        write_sections(formatter, self._sections(ctx))
        write_usage(formatter, ctx, " ".join(self.collect_usage_pieces(ctx)))
        if any(group_of(option) == CONNECTION for option in self.get_params(ctx)):
            program = ctx.find_root().command_path
            formatter.write(f'\nUse "{program} options" for all options that connect to a cluster.\n')
        return formatter.getvalue().rstrip("\n")

    def _sections(self, ctx: click.Context) -> list[Section]:
        visible = [option for option in self.get_params(ctx) if group_of(option) != CONNECTION or option.name in _USUAL]
        sections = grouped(visible, ctx)
        if self.statuses:
            meanings = [(str(status), meaning) for status, meaning in self.statuses.items()]
            sections.append(("Exit status", meanings))
        return sections


def write_sections(formatter: click.HelpFormatter, sections: Iterable[Section]) -> None:
    """Write lists, each below its heading."""
    for heading, rows in sections:
        with formatter.section(heading):
            formatter.write_dl(rows)


def group_of(parameter: click.Parameter) -> str:
    """Return the heading of an option; ``--help``, which click adds, has none of its own."""
    return getattr(parameter, "group", OTHER)


def grouped(parameters: Iterable[click.Parameter], ctx: click.Context) -> list[Section]:
    """Return the options in their groups, each with its description."""
    described = [
        (group_of(parameter), record)
        for parameter in parameters
        if isinstance(parameter, click.Option) and (record := parameter.get_help_record(ctx))
    ]
    rows = {group: [record for own_group, record in described if own_group == group] for group in GROUPS}
    return [(group, records) for group, records in rows.items() if records]


def write_text(formatter: click.HelpFormatter, text: str) -> None:
    """Write the first paragraphs of a help."""
    formatter.write_text(cleandoc(text))


def write_examples(formatter: click.HelpFormatter, ctx: click.Context, examples: Mapping[str, str]) -> None:
    """Write command lines, each below its comment."""
    if examples:
        program = ctx.find_root().command_path
        lines = [f"  # {comment}\n  {line.replace('kubectl spread', program)}\n" for line, comment in examples.items()]
        formatter.write("\nExamples:\n" + "\n".join(lines))


def write_usage(formatter: click.HelpFormatter, ctx: click.Context, pieces: str) -> None:
    """Write the syntax of a command, in one line."""
    formatter.write(f"\nUsage:\n  {ctx.command_path} {pieces.replace('[OPTIONS]', '[options]')}\n")
