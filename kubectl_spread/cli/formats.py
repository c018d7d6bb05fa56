"""The formats of ``check`` and ``domains``: their names, and the functions that render the report of ``check``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final

import click

from kubectl_spread.cli import output
from kubectl_spread.phrases import did_you_mean
from kubectl_spread.report.model import Report
from kubectl_spread.run import output_files
from kubectl_spread.run.output_files import Output

if TYPE_CHECKING:
    from kubectl_spread.diagnosis.exposure import RunningPods

TABLE: Final = "table"
WIDE: Final = "wide"
FOR_PEOPLE: Final = frozenset({TABLE, WIDE, "name"})
"""Formats that print nothing for an empty report, as kubectl does."""
WITH_HEADER: Final = frozenset({TABLE, WIDE, "html", "markdown"})
"""Formats that begin with a header about the cluster and its version."""
_RENDERERS: Final = {
    "csv": "spreadsheet:csv",
    "github": "ci.github:github",
    "html": "html:page",
    "json": "structured:json",
    "junit": "ci.junit:junit",
    "markdown": "markdown:markdown",
    "name": "structured:names",
    "openreports": "ci.openreports:openreports",
    "sarif": "ci.sarif:sarif",
    "yaml": "structured:yaml",
}
"""Maps a format to its module in ``kubectl_spread.render`` and the function in it that renders a report."""
_METRICS: Final = "openmetrics"
NAMES: Final = tuple(sorted((TABLE, WIDE, _METRICS, *_RENDERERS)))
NAMES_FOR_DOMAINS: Final = ("csv", "html", "json", TABLE, WIDE, "yaml")
"""The formats of ``domains``."""
NAMES_FOR_SIMULATIONS: Final = ("html", "json", "markdown", TABLE, WIDE, "yaml")
"""The formats of ``simulate``."""
NAMES_FOR_PLANS: Final = ("json", "markdown", "script", TABLE, "yaml")
"""The formats of ``plan``."""


def parsed(_context: click.Context, _option: click.Parameter, values: Sequence[str]) -> list[Output]:
    """Return the outputs that the values of ``-o`` name; an unknown format is an error in kubectl's words."""
    return [_parsed(value, NAMES) for value in values]


def parsed_for_domains(_context: click.Context, _option: click.Parameter, values: Sequence[str]) -> list[Output]:
    """Return the outputs of ``domains`` as ``parsed`` does."""
    return [_parsed(value, NAMES_FOR_DOMAINS) for value in values]


def parsed_for_simulations(_context: click.Context, _option: click.Parameter, values: Sequence[str]) -> list[Output]:
    """Return the outputs of ``simulate`` as ``parsed`` does."""
    return [_parsed(value, NAMES_FOR_SIMULATIONS) for value in values]


def parsed_for_plans(_context: click.Context, _option: click.Parameter, values: Sequence[str]) -> list[Output]:
    """Return the outputs of ``plan`` as ``parsed`` does."""
    return [_parsed(value, NAMES_FOR_PLANS) for value in values]


def _parsed(value: str, names: Sequence[str]) -> Output:
    form, separator, file = value.partition("=")
    if form not in names:
        unmatched = f'unable to match a printer suitable for the output format "{form}"'
        raise click.BadParameter(f"{unmatched}, allowed formats are: {', '.join(names)}{did_you_mean(form, names)}")
    if separator and not file:
        raise click.BadParameter(f'"{value}" names no file')
    return Output(form, file or None)


def render(report: Report, form: str, running: Callable[[], Iterable[RunningPods]] = tuple) -> str:
    """Return a report in a format other than a table; the module of the format is imported only now.

    Args:
        report: The report.
        form: The format.
        running: Returns the running pods of each workload, which are only in metrics.
    """
    if form == _METRICS:
        from kubectl_spread.render import openmetrics  # noqa: PLC0415 - as other formats

        return openmetrics.text(report, running())
    module, _, function = _RENDERERS[form].partition(":")
    text: str = getattr(import_module(f"kubectl_spread.render.{module}"), function)(report)
    return text


def write(text: str, file: str | None) -> None:
    """Print text to stdout, or write it to a file.

    Raises:
        SourceError: The file cannot be written.
    """
    if file is None:
        output.data(text)
    else:
        output_files.write(text, file)
