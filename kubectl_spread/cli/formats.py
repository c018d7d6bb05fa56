"""The formats of ``check``: what each is called, how a report becomes text in it, and where that text goes."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Final

import click
import msgspec

from kubectl_spread.app import output
from kubectl_spread.cli import places
from kubectl_spread.errors import SourceError, UsageError
from kubectl_spread.report.model import Report

TABLE: Final = "table"
WIDE: Final = "wide"
FOR_PEOPLE: Final = frozenset({TABLE, WIDE, "name"})
"""Formats that say nothing where there is nothing to say, as kubectl's."""
_RENDERERS: Final = {
    "csv": "spreadsheet:csv",
    "github": "ci.github:github",
    "html": "html:page",
    "json": "structured:json",
    "junit": "ci.junit:junit",
    "markdown": "markdown:markdown",
    "name": "structured:names",
    "openmetrics": "openmetrics:openmetrics",
    "openreports": "ci.openreports:openreports",
    "sarif": "ci.sarif:sarif",
    "yaml": "structured:yaml",
}
"""Maps a format to its module in ``kubectl_spread.render`` and the function in it that takes a report to text."""
NAMES: Final = tuple(sorted((TABLE, WIDE, *_RENDERERS)))


class Output(msgspec.Struct, frozen=True):
    """One way in which a report is printed.

    Attributes:
        form: A name of ``NAMES``.
        file: Where it goes; None for stdout.
    """

    form: str
    file: str | None = None


def parsed(_context: click.Context, _option: click.Parameter, values: Sequence[str]) -> list[Output]:
    """Return what the values of ``-o`` ask for; kubectl's words where there is no such format."""
    return [_parsed(value) for value in values]


def _parsed(value: str) -> Output:
    form, separator, file = value.partition("=")
    if form not in NAMES:
        unmatched = f'unable to match a printer suitable for the output format "{form}"'
        raise click.BadParameter(f"{unmatched}, allowed formats are: {', '.join(NAMES)}")
    if separator and not file:
        raise click.BadParameter(f'"{value}" names no file')
    return Output(form, file or None)


def outputs(asked: Sequence[Output], output_file: str) -> list[Output]:
    """Return what is printed where, what goes to stdout last.

    Args:
        asked: The values of ``-o``; a table where there are none.
        output_file: The value of ``--output-file``: where that goes which would go to stdout; "" for stdout.

    Raises:
        UsageError: two would go to one place, or nothing to that file.
    """
    wanted = [Output(one.form, one.file or output_file or None) for one in asked or [Output(TABLE)]]
    targets = [one.file for one in wanted]
    places.refuse_shared(targets)
    if output_file and output_file not in targets:
        raise UsageError("--output-file: every -o names a file of its own")
    return sorted(wanted, key=lambda one: one.file is None)


def renderer(form: str) -> Callable[[Report], str]:
    """Return the function that prints a report in a format; it is imported only now."""
    module, _, function = _RENDERERS[form].partition(":")
    found: Callable[[Report], str] = getattr(import_module(f"kubectl_spread.render.{module}"), function)
    return found


def write(text: str, file: str | None) -> None:
    """Write text to stdout, or to a file: whole or not at all, so that who reads it meanwhile sees no half of it.

    Raises:
        SourceError: the file cannot be written.
    """
    if file is None:
        output.data(text)
        return
    try:
        _replace(Path(file), text.encode())
    except OSError as error:
        raise SourceError(f"cannot write {file}: {error.strerror or error}") from None


def _replace(path: Path, data: bytes) -> None:
    if _is_device(path):
        # A device or a named pipe is written to, not replaced.
        path.write_bytes(data)
        return
    path = path.resolve()
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        Path(name).chmod(_mode(path))
        Path(name).replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(name).unlink()
        raise


def _is_device(path: Path) -> bool:
    """Tell whether a path leads to something other than a file; links in a circle are an error of the system's."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return False


def _mode(path: Path) -> int:
    """Return the mode that a file has, or that a new one would get."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
