"""The files that reports are written to: no two reports to one file, and none to a file that the same run reads."""

from __future__ import annotations

import os
import re
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from kubectl_spread.errors import SourceError, UsageError
from kubectl_spread.sources.files import inputs

_READ: Final = {
    "baseline": "--baseline",
    "scheduler_config": "--scheduler-config",
    "kubeconfig": "--kubeconfig",
    "certificate_authority": "--certificate-authority",
    "client_certificate": "--client-certificate",
    "client_key": "--client-key",
}
"""Maps the parameter of an option whose value is a file to read to the name of that option."""
_STANDARD_INPUT: Final = "/dev/stdin"
_DASH: Final = "-"
"""Stands for standard output in other programs."""
_HEAD: Final = 4096
"""The number of bytes at the start of a file that show whether it is a report."""
_OWN_REPORT: Final = re.compile(rb'"?apiVersion"?: *"?kubectl-spread/')
_FileIdentity: TypeAlias = tuple[object, ...]
"""A value that is equal for paths that lead to one file."""


class Output(msgspec.Struct, frozen=True):
    """A format to print a report in.

    Attributes:
        form: The name of the format.
        file: The file to write; None for standard output.
    """

    form: str
    file: str | None = None


def outputs(chosen: Sequence[Output], default_form: str) -> list[Output]:
    """Return the outputs in the order of writing: standard output last.

    Args:
        chosen: The values of ``-o``.
        default_form: The format where there are none.

    Raises:
        UsageError: Two outputs have one destination, or a file is named ``-``.
    """
    chosen = chosen or [Output(default_form)]
    files = [output.file for output in chosen]
    if _DASH in files:
        raise UsageError(
            f"{_DASH} is not the name of an output file: without a file the report goes to standard output "
            f"(write ./{_DASH} for a file of that name)"
        )
    _refuse_shared(files)
    return sorted(chosen, key=lambda output: output.file is None)


def write(text: str, file: str) -> None:
    """Write a whole file or nothing, so that another process never reads half of it.

    Raises:
        SourceError: The file cannot be written.
    """
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
    """Tell whether a path leads to a device or pipe, and not to a file; circular links are an error of the system."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return False


def _mode(path: Path) -> int:
    """Return the mode of a file, or the mode that a new file would get."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _refuse_shared(files: Sequence[str | None]) -> None:
    """Raise where two outputs go to one file, or both to standard output.

    Raises:
        UsageError: Two outputs have one destination, by the same path, by different paths, or by a link.
    """
    earlier_files: dict[_FileIdentity, str | None] = {}
    for file in files:
        identity = _standard_output() if file is None else _identity(file)
        if identity in earlier_files:
            raise UsageError(f"several -o go to {_names(earlier_files[identity], file)}: write -o FORMAT=FILE")
        earlier_files[identity] = file


def refuse_inputs(files: Iterable[str | None], parameters: Mapping[str, object]) -> None:
    """Raise where an output would replace a file that the command reads.

    Args:
        files: The files of the outputs; None for standard output.
        parameters: The values of the command's options, by parameter name.

    Raises:
        UsageError: An output would replace an input.
        SourceError: The files of ``-f`` cannot be found.
    """
    # For a name that is too long, os.path.isfile returns False where pathlib raises.
    output_files = {_identity(file): file for file in files if file is not None and os.path.isfile(file)}  # noqa: PTH113
    if not output_files:
        return
    for option, path in _inputs(parameters):
        if file := output_files.get(_identity(path)):
            same = "" if path in {file, _STANDARD_INPUT} else f", which is {path}"
            raise UsageError(f"-o would replace {file}{same}, and {option} reads that file: name another file")


def _inputs(parameters: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield the files that a command reads, each with the option that names it."""
    yield from ((option, str(parameters[name])) for name, option in _READ.items() if parameters.get(name))
    if directory := parameters.get("kustomize"):
        from kubectl_spread.sources.files import kustomize  # noqa: PLC0415 - only -k runs a program

        yield from (("-k", file) for file in kustomize.files(str(directory)) if not _is_own_report(file))
        return
    filename = parameters.get("filename")
    if not isinstance(filename, tuple) or not filename:
        from kubectl_spread.sources.auth import kubeconfig  # noqa: PLC0415 - only a cluster needs it

        explicit = str(parameters.get("kubeconfig") or "")
        yield from (("the kubeconfig", str(path)) for path in kubeconfig.paths(explicit, os.environ))
        return
    for file in inputs.ChosenFiles(filename, recursive=bool(parameters.get("recursive")), stdin=None).expand():
        if file.path == inputs.STDIN:
            # A shell may have opened a file as standard input.
            yield "-f -", _STANDARD_INPUT
        elif file.named or not _is_own_report(file.path):
            yield "-f", file.path


def _is_own_report(path: str) -> bool:
    """Tell whether a file in a directory is a report of an earlier run, which the next one may replace."""
    try:
        with Path(path).open("rb") as file:
            return _OWN_REPORT.search(file.read(_HEAD)) is not None
    except OSError:
        return False


def _standard_output() -> _FileIdentity:
    """Return the identity of the file, pipe or terminal of standard output, which is also that of ``/dev/stdout``."""
    try:
        return _inode(os.fstat(sys.stdout.fileno()))
    except (OSError, ValueError, AttributeError):
        return ("standard output",)


def _identity(path: str) -> _FileIdentity:
    """Return the identity of the file that a path leads to, which may not exist yet."""
    with suppress(OSError, ValueError):
        return _inode(Path(path).stat())
    resolved = os.path.normpath(path)
    # Without a current directory there is no path without links.
    with suppress(OSError):
        resolved = os.path.realpath(path)
    return ("new", resolved)


def _inode(status: os.stat_result) -> _FileIdentity:
    return (status.st_dev, status.st_ino)


def _names(first: str | None, second: str | None) -> str:
    names = ["standard output" if file is None else file for file in (first, second)]
    return names[0] if first == second else f"{names[0]} and {names[1]}, which are one file"
