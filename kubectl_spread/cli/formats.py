"""The formats of the commands, and the end that commands share: print the answer in each format, and exit."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import click
import msgspec

from kubectl_spread.cli import output
from kubectl_spread.cli.commandline import option_of
from kubectl_spread.errors import SourceError, UsageError
from kubectl_spread.phrases import did_you_mean
from kubectl_spread.report.model import Severity

if TYPE_CHECKING:
    from kubectl_spread.render.document import Document
    from kubectl_spread.render.terminal import Terminal

UNANSWERED: Final = 2
"""The exit status if not everything could be read or checked."""
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
    "github": Format(["check"], "ci:github"),
    "junit": Format(["check"], "ci.junit:junit"),
    "sarif": Format(["check"], "ci.sarif:sarif"),
    METRICS: Format(["check"], "openmetrics:text"),
    SCRIPT: Format(_PLANS),
}
"""The formats by name."""


class Output(msgspec.Struct, frozen=True):
    """A format to print a report in.

    Attributes:
        form: The name of the format.
        file: The file to write; None for standard output.
    """

    form: str
    file: str | None = None


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


class Printer:
    """Prints the answer of a command as ``-o``, ``--color`` and ``--no-headers`` say, and ends the command.

    Attributes:
        context: The context of the command.
        outputs: The values of ``-o`` in the order of writing: standard output last.
        color: The value of ``--color``.
        headers: Whether tables have headers.
    """

    def __init__(self, context: click.Context, default: str = TABLE) -> None:
        """Read the options of a command, whose format is ``default`` without ``-o``.

        Raises:
            UsageError: Two outputs have one path, or an output would replace a file that an option names.
        """
        parameters = context.params
        self.context = context
        self.outputs = _outputs(context, parameters["forms"] or [Output(default)])
        self.color: str = parameters["color"]
        self.headers = not parameters.get("no_headers")

    def answer(
        self,
        report: msgspec.Struct,
        document: Callable[[str], Document] | None = None,
        others: Mapping[str, Callable[[Output], str]] = MappingProxyType({}),
        *,
        problems: Sequence[str] = (),
        severities: Iterable[Severity] = (),
    ) -> None:
        """Print a report in each format, and end the command.

        Args:
            report: The report.
            document: Returns the report as a document for a format; None where no format needs one.
            others: Maps each format that needs more than the report to the function that renders it.
            problems: The errors of the run.
            severities: The severities of what the report has, for ``--fail-on``.
        """
        for destination in self.outputs:
            render = others.get(destination.form)
            text = render(destination) if render else self._rendered(report, destination, document)
            write(text, destination.file)
        self.end(problems, severities)

    def _rendered(self, report: msgspec.Struct, destination: Output, document: Callable[[str], Document] | None) -> str:
        printer = FORMATS[destination.form].document
        if document is None or not printer:
            return rendered(report, destination.form)
        if printer != _SCREEN:
            return _function(printer)(document(destination.form))
        return self.screen(document(destination.form), destination)

    def screen(self, document: Document, destination: Output) -> str:
        """Return a document as a terminal, a pipe or a file shows it."""
        everything = destination.form == WIDE
        return _function(_SCREEN)(document, self.terminal(destination), headers=self.headers, everything=everything)

    @property
    def prints_header(self) -> bool:
        """Whether an output begins with a header about the cluster."""
        return self.headers and any(FORMATS[destination.form].document for destination in self.outputs)

    def terminal(self, destination: Output) -> Terminal:
        """Return the properties of the terminal, the pipe or the file that an output is written to."""
        return output.terminal(self.color, to_file=destination.file is not None)

    def end(self, problems: Sequence[str], severities: Iterable[Severity] = ()) -> None:
        """End the command: with status 2 after errors, with 1 if a severity is ``--fail-on`` or higher."""
        least = self.context.params.get("fail_on", Severity.WARNING.value)
        if problems:
            self.context.exit(UNANSWERED)
        if least != "never" and any(each >= Severity(least) for each in severities):
            self.context.exit(1)


def _function(name: str) -> Callable[..., str]:
    module, _, function = name.partition(":")
    printer: Callable[..., str] = getattr(import_module(f"kubectl_spread.render.{module}"), function)
    return printer


_DASH: Final = "-"
"""Stands for standard output in other programs."""
_READ: Final = (
    *("filename", "baseline", "scheduler_config", "kubeconfig"),
    *("certificate_authority", "client_certificate", "client_key"),
)
"""The parameters whose value is a file to read, or several."""


def _outputs(context: click.Context, chosen: Sequence[Output]) -> list[Output]:
    """Return the outputs in the order of writing: standard output last.

    Raises:
        UsageError: Two outputs have one path, a file is named ``-``, or an output would replace a file that an option
            names.
    """
    files = [each.file for each in chosen]
    if _DASH in files:
        raise UsageError(
            f"{_DASH} is not the name of an output file: without a file the report goes to standard output "
            f"(write ./{_DASH} for a file of that name)"
        )
    paths = [file and _absolute(file) for file in files]
    for file, path in zip(files, paths, strict=True):
        if paths.count(path) > 1:
            raise UsageError(f"several -o go to {file or 'standard output'}: write -o FORMAT=FILE")
    for name in _READ:
        value = context.params.get(name) or ()
        for read in value if isinstance(value, tuple) else (value,):
            if (path := _absolute(read)) in paths:
                file = files[paths.index(path)]
                raise UsageError(
                    f"-o would replace {file}, and {option_of(context, name)} reads that file: name another file"
                )
    return sorted(chosen, key=lambda each: each.file is None)


def _absolute(path: str) -> str:
    """Return an absolute path, or the path as it is where the current directory is gone; links are not followed."""
    try:
        return os.path.abspath(path)  # noqa: PTH100 - pathlib keeps ".."
    except OSError:
        return path


def write(text: str, file: str | None) -> None:
    """Print text to stdout, or write a whole file or nothing, so that no other process reads half of it.

    Raises:
        SourceError: The file cannot be written.
    """
    if file is None:
        output.data(text)
        return
    path = Path(file)
    try:
        try:
            is_file = stat.S_ISREG(path.stat().st_mode)
        except FileNotFoundError:
            is_file = True
        if is_file:
            _replace(path.resolve(), text.encode())
        else:
            # A device or a named pipe is written to, not replaced.
            path.write_bytes(text.encode())
    except OSError as error:
        raise SourceError(f"cannot write {file}: {error.strerror or error}") from None


def _replace(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("xb") as stream:
            stream.write(data)
        if path.exists():
            shutil.copymode(path, temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
