"""How do users call it? One module for each command; the only place that prints and exits. It may import all rooms."""

from __future__ import annotations

import errno
import gc
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NoReturn

import click
from click.exceptions import NoArgsIsHelpError

from kubectl_spread import __version__
from kubectl_spread.cli import fast_exit, output, unexpected
from kubectl_spread.errors import SpreadError
from kubectl_spread.frames import in_one_chunk
from kubectl_spread.kube.features import NEWEST_RELEASED_MINOR, OLDEST_MINOR

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

PROGRAM: Final = "kubectl-spread"
VARIABLE: Final = "_KUBECTL_SPREAD_COMPLETE"
"""Shells set this variable to ask for completion candidates."""
_FAILED = 2
_INTERRUPTED = 130
_PIPE_CLOSED = 141
"""Shells give these exit statuses to programs that SIGINT or SIGPIPE ended."""
_WRITING_FAILS: Final = frozenset({errno.EBADF, errno.EFBIG, errno.EINVAL, errno.EIO, errno.ENOSPC, errno.EDQUOT})
"""The errors of a standard output that cannot be written, which click's own writes raise."""


_COMMANDS: Final = {
    "check": (
        "check",
        "Compare every pod's selectors with those the API server would store, and count every constraint.",
    ),
    "completion": ("completion", "Print a script that makes a shell complete commands, options and names."),
    "explain": ("explain", "Explain one pod or workload, or one rule by its code or name."),
    "merge": ("merge", "Write manifests as kube-apiserver would store their selectors."),
    "rules": ("rules", "List the rules; `kubectl spread explain CODE` explains one."),
    "schema": ("schema", "Print the JSON Schema of what `-o json` prints."),
    "unmerge": (
        "merge",
        "Write stored pods without what the merge put into their selectors, so that they can be created again.",
    ),
}
"""Maps a command to its module, which is imported when the command runs, and to its line in the help."""


class MisusedError(click.UsageError):
    """A usage error of click, printed in one line."""

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the error, and how to get help."""
        see = f" (see {self.ctx.command_path} --help)" if self.ctx else ""
        click.echo(output.safe(f"error: {self.format_message().rstrip('.')}{see}"), file=file, err=True)


class SpreadGroup(click.Group):
    """The commands. Only this class turns an error into one line on stderr and an exit status."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command line; writes of click itself may fail too."""
        if sys.stdout is None:
            # stdout was closed at the start; click would print nothing and succeed.
            _unwritable(os.strerror(errno.EBADF))
        try:
            return super().main(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - the last handler
            cause = error.__cause__ if isinstance(error, unexpected.EscapedError) else error
            if isinstance(cause, OSError) and cause.errno in _WRITING_FAILS and cause.filename is None:
                output.give_up()
                _unwritable(cause.strerror or str(cause))
            arguments = args[0] if args else kwargs.get("args")
            unexpected.report(error, sys.argv[1:] if arguments is None else arguments)
            sys.exit(_FAILED)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - they are always the same
        """Return the names of the commands."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - likewise
        """Import a command; None: there is no such command."""
        if cmd_name not in _COMMANDS:
            return None
        module, _ = _COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(f"kubectl_spread.cli.{module}"), cmd_name)
        if unexpected.option not in command.params:
            command.params.append(unexpected.option)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Return the commands and options that begin with the incomplete word, without importing a command."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only completion needs it

        commands = [CompletionItem(name, help=summary) for name, (_, summary) in _COMMANDS.items()]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [candidate for candidate in commands if candidate.value.startswith(incomplete)] + options

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the summary of each command, without importing the commands."""
        commands = {name: click.Command(name, help=summary) for name, (_, summary) in _COMMANDS.items()}
        click.Group(commands=commands).format_commands(ctx, formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options before the command."""
        with _ending(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; an error ends it with its lines, Ctrl-C and a closed pipe with none."""
        with _ending(ctx):
            return super().invoke(ctx)


@contextmanager
def _ending(ctx: click.Context) -> Iterator[None]:
    """End the program with our own messages and exit statuses; click's would often be 1."""
    try:
        yield
    except NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        raise MisusedError(error.format_message(), error.ctx) from None
    except SpreadError as error:
        for message in error.messages:
            output.error(message)
        ctx.exit(_FAILED)
    except KeyboardInterrupt:
        output.wipe()
        ctx.exit(_INTERRUPTED)
    except BrokenPipeError:
        output.give_up()
        ctx.exit(_PIPE_CLOSED)
    except (EOFError, OSError) as error:
        raise unexpected.EscapedError from error


def _unwritable(problem: str) -> NoReturn:
    """Print that standard output cannot be written, and end the program."""
    with suppress(OSError):
        output.error(f"cannot write to standard output: {problem}")
    sys.exit(_FAILED)


@click.group(cls=SpreadGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(
    __version__, message=f"kubectl-spread %(version)s (Kubernetes 1.{OLDEST_MINOR} to 1.{NEWEST_RELEASED_MINOR})"
)
def cli() -> None:
    """Check that pods select what their constraints and affinity say, and how skewed they are.

    \b
      kubectl spread check                  the pods of this namespace
      kubectl spread check -A               the pods of all namespaces
      kubectl spread explain deploy/web     one workload, with its domains
      kubectl spread check -f manifests/    files instead of a cluster
    """  # noqa: D301 - click wants the backspace character itself


@in_one_chunk
def main() -> None:
    """Run the command line; called as ``kubectl-spread``, it calls itself ``kubectl spread``, as kubectl's users do."""
    output.tolerate_broken_stderr()
    fast_exit.exit_on_signals()
    # A run keeps its objects until its end: the search for cycles would take a tenth of its time and free nothing.
    gc.disable()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Characters outside the locale are written as escapes, instead of failing.
        sys.stdout.reconfigure(errors="backslashreplace")
    called = Path(sys.argv[0]).name
    if VARIABLE in os.environ:
        from kubectl_spread.cli import completion  # noqa: PLC0415 - only completion needs it

        completion.silence()
    program = "kubectl spread" if called.startswith("kubectl-") else PROGRAM
    fast_exit.run(lambda: cli(prog_name=program, complete_var=VARIABLE))
