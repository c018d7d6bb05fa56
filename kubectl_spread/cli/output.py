"""Printing: data goes to stdout, everything else to stderr."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Final

import click

from kubectl_spread.render.terminal import Terminal
from kubectl_spread.render.words import safe

_SPOKEN: Final = (
    "Error from server",
    "Error in configuration",
    "Server returned",
    "The connection to the server",
    "Unable to connect to the server",
)


def terminal(color: str) -> Terminal:
    """Return what stdout is: a terminal with its width, or a pipe."""
    interactive = sys.stdout.isatty()
    colored = color == "always" or (color == "auto" and interactive and not os.environ.get("NO_COLOR"))
    return Terminal(width=shutil.get_terminal_size().columns if interactive else None, color=colored)


def data(text: str) -> None:
    """Print what was asked for."""
    click.echo(text, nl=False, color=True)


def error(text: str) -> None:
    """Print what went wrong, on stderr, in one line; the apiserver's and kubectl's own words stand for themselves."""
    click.echo(safe(text if text.startswith(_SPOKEN) else f"error: {text}"), err=True)


def note(text: str) -> None:
    """Print something beside the data, on stderr."""
    click.echo(safe(text), err=True)


def give_up() -> None:
    """Print nothing more, where nobody reads it; the interpreter would complain when it writes the rest at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
