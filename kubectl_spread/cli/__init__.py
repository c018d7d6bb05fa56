"""How do users call it? One module for each command; the only place that prints and exits. It may import all rooms."""

from __future__ import annotations

import errno
import gc
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NoReturn

import click

from kubectl_spread import __version__
from kubectl_spread.cli import commandline, ending, output
from kubectl_spread.errors import SpreadError
from kubectl_spread.kube.features import NEWEST_MINOR, OLDEST_MINOR, PRE_RELEASES

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

PROGRAM: Final = "kubectl-spread"
VARIABLE: Final = "_KUBECTL_SPREAD_COMPLETE"
"""Shells set this variable to ask for completion candidates."""
_FAILED = 2
_PIPE_CLOSED = 141
"""Shells give this exit status to programs that SIGPIPE ended."""
_WRITING_FAILS: Final = frozenset({errno.EBADF, errno.EFBIG, errno.EINVAL, errno.EIO, errno.ENOSPC, errno.EDQUOT})
"""The errors of a standard output that cannot be written, which click's own writes raise."""


_SECTIONS: Final = {
    "Find what to fix": {
        "check": "Show which pods are not spread as their constraints require, and how to fix that.",
        "explain": "Explain how one pod or workload is spread and where its next pod may go, or explain one rule.",
        "domains": "Show the nodes and pods of each zone, and what is lost with one of them.",
        "simulate": "Show what would happen to pods if nodes went, or workloads were restarted, scaled or changed.",
        "plan": "Show which evictions correct skews above maxSkew and stale selectors, and in which order.",
        "recommend": (
            "Show what to write, so that losing any zone or node, a drain or a rollout leaves a workload running."
        ),
    },
    "Watch over time": {
        "monitor": "Serve the current skew and findings of a cluster as metrics and as a page.",
    },
    "Edit manifests": {
        "merge": "Print manifests with the selectors that the API server would store.",
        "unmerge": "Print stored pods without the selectors that the merge added, so that they can be created again.",
    },
    "Prevent": {
        "policy": "Print admission policies that warn of what the rules find, or refuse it.",
    },
    "Look up": {
        "rules": "List the rules, with their codes, names and severities.",
        "schema": "Print the JSON Schema of the documents that -o json prints.",
        "help": "Show the help of a command.",
        "options": "List the options that connect to a cluster.",
        "version": "Print the version, and the Kubernetes minors that it evaluates.",
        "completion": "Print a script that completes commands, options and names in a shell.",
    },
}
"""Maps a heading of the help to its commands, each with its line in the help."""
_MODULES: Final = {"unmerge": "merge", **dict.fromkeys(("rules", "schema", "help", "options", "version"), "guide")}
"""Maps a command to its module, which is imported when the command runs, where that has another name."""
_COMMANDS: Final = {name: summary for commands in _SECTIONS.values() for name, summary in commands.items()}


_EARLY: Final = "".join(f" (1.{minor} as {release})" for minor, release in PRE_RELEASES.items())
VERSION: Final = f"Client Version: v{__version__}\nKubernetes Versions: 1.{OLDEST_MINOR} to 1.{NEWEST_MINOR}{_EARLY}"
"""The lines about the version, and about the Kubernetes minors that it evaluates."""


class MisusedError(click.UsageError):
    """A usage error of click, printed in one line."""

    def show(self, file: IO[Any] | None = None) -> None:  # noqa: ARG002 - it is printed to stderr in any case
        """Print the error, and how to get help."""
        see = f" (see {self.ctx.command_path} --help)" if self.ctx else ""
        output.error(f"{' '.join(self.format_message().split()).rstrip('.')}{see}")


class SpreadGroup(click.Group):
    """The commands. Only this class turns an error into one line on stderr and an exit status."""

    examples: Final = {
        "kubectl spread check": "Check the pods of the current namespace",
        "kubectl spread check -A": "Check the pods of all namespaces",
        "kubectl spread explain deploy/web": "Explain one workload, with its domains",
        "kubectl spread check -f manifests/": "Check files instead of a cluster",
    }
    statuses: Final[dict[int, str]] = {}

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command line; writes of click itself may fail too."""
        if sys.stdout is None:
            # stdout was closed at the start; click would print nothing and succeed.
            _unwritable(os.strerror(errno.EBADF))
        try:
            return super().main(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - the last handler
            cause = error.__cause__ if isinstance(error, ending.EscapedError) else error
            if isinstance(cause, OSError) and cause.errno in _WRITING_FAILS and cause.filename is None:
                output.give_up()
                _unwritable(cause.strerror or str(cause))
            ending.report(error)
            sys.exit(_FAILED)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - they are always the same
        """Return the names of the commands."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - likewise
        """Import a command; None: there is no such command."""
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f"kubectl_spread.cli.{_MODULES.get(cmd_name, cmd_name)}")
        commands = (each for each in vars(module).values() if isinstance(each, click.Command))
        command = next(each for each in commands if each.name == cmd_name)
        if ending.option not in command.params:
            command.params.append(ending.option)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Return the commands and options that begin with the incomplete word, without importing a command."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only completion needs it

        commands = [CompletionItem(name, help=summary) for name, summary in _COMMANDS.items()]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [candidate for candidate in commands if candidate.value.startswith(incomplete)] + options

    def get_help(self, ctx: click.Context) -> str:
        """Return the help of the program, without importing the commands."""
        formatter = ctx.make_formatter()
        commandline.write_text(formatter, self.help or "")
        commandline.write_examples(formatter, ctx, self.examples)
        sections = [(heading, list(commands.items())) for heading, commands in _SECTIONS.items()]
        commandline.write_sections(formatter, [*sections, *commandline.grouped(self.get_params(ctx), ctx)])
        commandline.write_usage(formatter, ctx, "COMMAND [options]")
        program = ctx.command_path
        formatter.write(f'\nUse "{program} help COMMAND" for the help of a command.\n')
        formatter.write(f'Use "{program} options" for the options that connect to a cluster.')
        return formatter.getvalue()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options before the command; the options of a command come after it. Without words print the help."""
        words = list(args)
        with _ending(ctx):
            try:
                return super().parse_args(ctx, commandline.for_click(self, ctx, args or ["--help"]))
            except click.NoSuchOption as error:
                name = next((word for word in words if word in _COMMANDS), "check")
                command = self.get_command(ctx, name)
                if command is None or not any(error.option_name in option.opts for option in command.get_params(ctx)):
                    raise
                raise click.UsageError(
                    f"{error.option_name} comes after the command: {ctx.command_path} {name} {error.option_name} …", ctx
                ) from None

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; an error ends it with its lines, a signal and a closed pipe with none."""
        with _ending(ctx):
            return super().invoke(ctx)


@contextmanager
def _ending(ctx: click.Context) -> Iterator[None]:
    """End the program with our own messages and exit statuses; click's would often be 1."""
    try:
        yield
    except click.NoSuchCommand as error:
        error = click.NoSuchCommand(error.command_name, possibilities=_COMMANDS)
        raise MisusedError(error.format_message(), ctx) from None
    except click.UsageError as error:
        raise MisusedError(error.format_message(), error.ctx) from None
    except SpreadError as error:
        for message in error.messages:
            output.error(message)
        ctx.exit(_FAILED)
    except ending.SignalExit:
        output.wipe()
        raise
    except BrokenPipeError:
        output.give_up()
        ctx.exit(_PIPE_CLOSED)
    except (EOFError, OSError) as error:
        raise ending.EscapedError from error


def _unwritable(problem: str) -> NoReturn:
    """Print that standard output cannot be written, and end the program."""
    output.error(f"cannot write to standard output: {problem}")
    sys.exit(_FAILED)


@click.group(cls=SpreadGroup, context_settings=commandline.SETTINGS)
@click.version_option(__version__, message=VERSION)
def cli() -> None:
    """Find the pods that are not spread as their constraints require, why, and how to fix it."""


def main() -> None:
    """Run the command line; called as ``kubectl-spread``, it calls itself ``kubectl spread``, as kubectl's users do."""
    ending.exit_on_signals()
    # A run keeps its objects until its end: the search for cycles would take a tenth of its time and free nothing.
    gc.disable()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Characters outside the locale are written as escapes, instead of failing.
        sys.stdout.reconfigure(errors="backslashreplace")
    called = Path(sys.argv[0]).name
    if VARIABLE in os.environ:
        import_module("kubectl_spread.cli.completion").silence()
    program = "kubectl spread" if called.startswith("kubectl-") else PROGRAM
    ending.run(lambda: cli(prog_name=program, complete_var=VARIABLE))
