"""Printing: data goes to stdout, everything else to stderr."""

from __future__ import annotations

import os
import shutil
import sys

import click

from kubectl_spread.render.terminal import Terminal


def terminal(color: str) -> Terminal:
    """Return what stdout is: a terminal with its width, or a pipe."""
    interactive = sys.stdout.isatty()
    colored = color == "always" or (color == "auto" and interactive and not os.environ.get("NO_COLOR"))
    return Terminal(width=shutil.get_terminal_size().columns if interactive else None, color=colored)


def data(text: str) -> None:
    """Print what was asked for."""
    click.echo(text, nl=False, color=True)


def note(text: str) -> None:
    """Print something beside the data, on stderr."""
    click.echo(text, err=True)
