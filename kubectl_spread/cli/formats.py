"""The formats of the commands: their names, and the functions that render reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final

import click
import msgspec

from kubectl_spread.cli import output
from kubectl_spread.phrases import did_you_mean
from kubectl_spread.run import output_files
from kubectl_spread.run.output_files import Output

if TYPE_CHECKING:
    from kubectl_spread.render.document import Document

TABLE: Final = "table"
WIDE: Final = "wide"
TEXT: Final = "text"
SCRIPT: Final = "script"
METRICS: Final = "openmetrics"
TABLES: Final = (TABLE, WIDE)
_SCREEN: Final = "screen:text"
_PLANS: Final = ("simulate", "plan")
_ALL: Final = ("check", "domains", *_PLANS, "recommend", "explain")


class Format(msgspec.Struct, frozen=True):
    """A format of reports. Functions are named with their module in ``kubectl_spread.render``.

    Attributes:
        commands: The commands that print it.
        report: The function that prints a report; "" where it needs more than the report.
        document: The function that prints a document, which begins with a header about the cluster; "" for none.
        silent: Whether it is empty for an empty report, as kubectl's tables are.
        of_several: Whether ``--contexts`` prints it.
        watched: Whether ``--watch`` prints it.
    """

    commands: Sequence[str]
    report: str = ""
    document: str = ""
    silent: bool = False
    of_several: bool = False
    watched: bool = False


FORMATS: Final[Mapping[str, Format]] = {
    "json": Format(_ALL, "structured:json", of_several=True, watched=True),
    "yaml": Format(_ALL, "structured:yaml", of_several=True),
    "name": Format(["check"], "structured:names", silent=True, watched=True),
    TABLE: Format(_ALL[:-1], document=_SCREEN, silent=True, of_several=True, watched=True),
    WIDE: Format(_ALL[:-2], document=_SCREEN, silent=True, of_several=True, watched=True),
    TEXT: Format(["explain"], document=_SCREEN),
    "html": Format(_ALL, "html:page", "html:document"),
    "markdown": Format(_ALL, "markdown:markdown", "markdown:document"),
    "github": Format(["check"], "ci.github:github"),
    "junit": Format(["check"], "ci.junit:junit"),
    "sarif": Format(["check"], "ci.sarif:sarif"),
    METRICS: Format(["check"], "openmetrics:text"),
    SCRIPT: Format(_PLANS),
}
"""The formats by name."""


def names(command: str) -> tuple[str, ...]:
    """Return the names of the formats of a command, in alphabetical order."""
    return tuple(sorted(name for name, each in FORMATS.items() if command in each.commands))


def parsed(value: str, allowed: Sequence[str]) -> Output:
    """Return the output that a value of ``-o`` names; an unknown format is an error in kubectl's words."""
    form, separator, file = value.partition("=")
    if form not in allowed:
        unmatched = f'unable to match a printer suitable for the output format "{form}"'
        raise click.BadParameter(f"{unmatched}, allowed formats are: {', '.join(allowed)}{did_you_mean(form, allowed)}")
    if separator and not file:
        raise click.BadParameter(f'"{value}" names no file')
    return Output(form, file or None)


def rendered(report: msgspec.Struct, form: str) -> str:
    """Return a report in a format that needs nothing else, whose module is imported only now."""
    return _function(FORMATS[form].report)(report)


def printed(
    report: msgspec.Struct,
    destination: Output,
    color: str,
    document: Callable[[], Document],
    *,
    headers: bool = True,
) -> str:
    """Return a report in a format, whose module is imported only now.

    Args:
        report: The report.
        destination: The format.
        color: The value of ``--color``.
        document: Returns the report as a document, for formats of documents.
        headers: Whether tables have headers.
    """
    printer = FORMATS[destination.form].document
    if not printer:
        return rendered(report, destination.form)
    if printer != _SCREEN:
        return _function(printer)(document())
    terminal = output.terminal(color, to_file=destination.file is not None)
    everything = destination.form == WIDE
    return _function(printer)(document(), terminal, headers=headers, everything=everything)


def _function(name: str) -> Callable[..., str]:
    module, _, function = name.partition(":")
    printer: Callable[..., str] = getattr(import_module(f"kubectl_spread.render.{module}"), function)
    return printer


def write(text: str, file: str | None) -> None:
    """Print text to stdout, or write it to a file.

    Raises:
        SourceError: The file cannot be written.
    """
    if file is None:
        output.data(text)
    else:
        output_files.write(text, file)
