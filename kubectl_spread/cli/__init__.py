"""The command line: one module a command; the only place that prints or exits."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NoReturn

import click
from click.exceptions import NoArgsIsHelpError

from kubectl_spread import __version__
from kubectl_spread.cli import output
from kubectl_spread.cli.check import check
from kubectl_spread.cli.explain import explain
from kubectl_spread.cli.merge import merge, unmerge
from kubectl_spread.cli.rules import rules
from kubectl_spread.errors import SpreadError
from kubectl_spread.kube.features import NEWEST_MINOR, OLDEST_MINOR
from kubectl_spread.render.words import safe

_FAILED = 2
_INTERRUPTED = 130
_PIPE_CLOSED = 141
"""As shells number the end of a program by the signals SIGINT and SIGPIPE."""


class MisusedError(click.UsageError):
    """A command line that click does not understand, told in one line."""

    def show(self, file: IO[Any] | None = None) -> None:
        """Say what is wrong and where help is."""
        see = f" (see {self.ctx.command_path} --help)" if self.ctx else ""
        click.echo(safe(f"error: {self.format_message().rstrip('.')}{see}"), file=file, err=True)


class SpreadGroup(click.Group):
    """The commands; the one place where an error becomes one line on stderr and exit status 2."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command line; what click itself prints may fail to be written too."""
        if sys.stdout is None:
            # The interpreter found it closed; click would print nothing and succeed.
            _unwritable(os.strerror(errno.EBADF))
        try:
            return super().main(*args, **kwargs)
        except OSError as error:
            if error.filename is not None:
                raise
            output.give_up()
            _unwritable(error.strerror or str(error))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options before the command."""
        try:
            return super().parse_args(ctx, args)
        except NoArgsIsHelpError:
            raise
        except click.UsageError as error:
            raise MisusedError(error.format_message(), error.ctx) from None

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; what the user can act on ends it with one line, Ctrl-C and a closed pipe with none."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            raise MisusedError(error.format_message(), error.ctx) from None
        except SpreadError as error:
            output.error(str(error))
            ctx.exit(_FAILED)
        except KeyboardInterrupt:
            ctx.exit(_INTERRUPTED)
        except BrokenPipeError:
            output.give_up()
            ctx.exit(_PIPE_CLOSED)


def _unwritable(problem: str) -> NoReturn:
    """Say that standard output cannot be written, and end the command."""
    with suppress(OSError):
        output.error(f"cannot write to standard output: {problem}")
    sys.exit(_FAILED)


@click.group(cls=SpreadGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(
    __version__, message=f"kubectl-spread %(version)s (Kubernetes 1.{OLDEST_MINOR} to 1.{NEWEST_MINOR})"
)
def cli() -> None:
    """Check that pods select what their constraints and affinity say, and how skewed they are.

    \b
      kubectl spread check                  the pods of this namespace
      kubectl spread check -A               the pods of all namespaces
      kubectl spread explain deploy/web     one workload, with its domains
      kubectl spread check -f manifests/    files instead of a cluster
    """  # noqa: D301 - click wants the backspace character itself


for command in (check, explain, merge, unmerge, rules):
    cli.add_command(command)


def main() -> None:
    """Run the command line; called as ``kubectl-spread`` it says ``kubectl spread``, as kubectl's users do."""
    called = Path(sys.argv[0]).name
    cli(prog_name="kubectl spread" if called.startswith("kubectl-") else "kubectl-spread")
