"""The formats of the commands: their names, and the functions that render reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final

import click
import msgspec

from kubectl_spread.cli import output
from kubectl_spread.phrases import did_you_mean
from kubectl_spread.report.model import Report
from kubectl_spread.run import output_files
from kubectl_spread.run.output_files import Output

if TYPE_CHECKING:
    from kubectl_spread.diagnosis.exposure import RunningPods
    from kubectl_spread.render.document import Document

TABLE: Final = "table"
WIDE: Final = "wide"
TEXT: Final = "text"
SCRIPT: Final = "script"
FOR_PEOPLE: Final = frozenset({TABLE, WIDE, "name"})
"""Formats that print nothing for an empty report, as kubectl does."""
WITH_HEADER: Final = frozenset({TABLE, WIDE, TEXT, "html", "markdown"})
"""Formats that begin with a header about the cluster and its version."""
_EVERY: Final = {"json": "structured:json", "yaml": "structured:yaml"}
_RENDERERS: Final[Mapping[str, Mapping[str, str]]] = {
    "check": {
        **_EVERY,
        "github": "ci.github:github",
        "html": "html:page",
        "junit": "ci.junit:junit",
        "markdown": "markdown:markdown",
        "name": "structured:names",
        "sarif": "ci.sarif:sarif",
    },
    "domains": _EVERY,
    "simulate": _EVERY,
    "plan": _EVERY,
    "recommend": {"json": "structured:json"},
    "explain": _EVERY,
}
"""Maps a command to its formats, each with its module in ``kubectl_spread.render`` and the function in it."""
_PRINTERS: Final[Mapping[str, str]] = {"html": "html.document:page", "markdown": "markdown:document"}
"""Maps the formats of documents to their printers in ``kubectl_spread.render``."""
_METRICS: Final = "openmetrics"
_OTHERS: Final = {
    "check": (TABLE, WIDE, _METRICS),
    "domains": (TABLE, WIDE, *_PRINTERS),
    "simulate": (TABLE, WIDE, SCRIPT, *_PRINTERS),
    "plan": (TABLE, WIDE, SCRIPT, *_PRINTERS),
    "recommend": (TABLE, "yaml", *_PRINTERS),
    "explain": (TEXT, *_PRINTERS),
}
"""Maps a command to the formats that need more than its report."""
NAMES_BY_COMMAND: Final = {command: tuple(sorted((*_OTHERS[command], *forms))) for command, forms in _RENDERERS.items()}
NAMES: Final = NAMES_BY_COMMAND["check"]


def parsed(value: str, names: Sequence[str]) -> Output:
    """Return the output that a value of ``-o`` names; an unknown format is an error in kubectl's words."""
    form, separator, file = value.partition("=")
    if form not in names:
        unmatched = f'unable to match a printer suitable for the output format "{form}"'
        raise click.BadParameter(f"{unmatched}, allowed formats are: {', '.join(names)}{did_you_mean(form, names)}")
    if separator and not file:
        raise click.BadParameter(f'"{value}" names no file')
    return Output(form, file or None)


def render(report: Report, form: str, running: Callable[[], Iterable[RunningPods]] = tuple) -> str:
    """Return a report of ``check`` in a format other than a table; the module of the format is imported only now.

    Args:
        report: The report.
        form: The format.
        running: Returns the running pods of each workload, which are only in metrics.
    """
    if form == _METRICS:
        from kubectl_spread.render import openmetrics  # noqa: PLC0415 - as other formats

        return openmetrics.text(report, running())
    return rendered("check", report, form)


def rendered(command: str, report: msgspec.Struct, form: str) -> str:
    """Return the report of a command in a format that needs nothing else, whose module is imported only now."""
    return _function(_RENDERERS[command][form])(report)


def has_document(form: str) -> bool:
    """Tell whether a format prints a document."""
    return form in (TABLE, WIDE, TEXT, *_PRINTERS)


def printed(document: Document, destination: Output, color: str, *, headers: bool = True) -> str:
    """Return a document in a format, whose module is imported only now; ``headers`` are those of tables."""
    if destination.form in _PRINTERS:
        return _function(_PRINTERS[destination.form])(document)
    from kubectl_spread.render import screen  # noqa: PLC0415 - only tables need it

    terminal = output.terminal(color, to_file=destination.file is not None)
    return screen.text(document, terminal, headers=headers, everything=destination.form == WIDE)


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
