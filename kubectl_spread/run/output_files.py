"""The files that reports are written to: no two reports to one path, and none to a path that the same run reads."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from kubectl_spread.errors import SourceError, UsageError
from kubectl_spread.phrases import option

_READ: Final = (
    "filename",
    "baseline",
    "scheduler_config",
    "kubeconfig",
    "certificate_authority",
    "client_certificate",
    "client_key",
)
"""Maps the parameter of an option whose value is a file to read, or several, to the name of that option."""
_DASH: Final = "-"
"""Stands for standard output in other programs."""


class Output(msgspec.Struct, frozen=True):
    """A format to print a report in.

    Attributes:
        form: The name of the format.
        file: The file to write; None for standard output.
    """

    form: str
    file: str | None = None


def outputs(chosen: Sequence[Output], default_form: str, parameters: Mapping[str, object]) -> list[Output]:
    """Return the outputs in the order of writing: standard output last.

    Args:
        chosen: The values of ``-o``.
        default_form: The format where there are none.
        parameters: The values of the command's options, by parameter name.

    Raises:
        UsageError: Two outputs have one path, a file is named ``-``, or an output would replace a file that an option
            names.
    """
    chosen = chosen or [Output(default_form)]
    files = [output.file for output in chosen]
    if _DASH in files:
        raise UsageError(
            f"{_DASH} is not the name of an output file: without a file the report goes to standard output "
            f"(write ./{_DASH} for a file of that name)"
        )
    paths = [None if file is None else _absolute(file) for file in files]
    for file, path in zip(files, paths, strict=True):
        if paths.count(path) > 1:
            raise UsageError(f"several -o go to {file or 'standard output'}: write -o FORMAT=FILE")
    _refuse_inputs(files, parameters)
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


def _refuse_inputs(files: Iterable[str | None], parameters: Mapping[str, object]) -> None:
    """Raise where an output would replace a file that an option names."""
    written = {_absolute(file): file for file in files if file is not None}
    for name in _READ:
        value = parameters.get(name) or ()
        for path in value if isinstance(value, tuple) else (str(value),):
            if file := written.get(_absolute(path)):
                raise UsageError(f"-o would replace {file}, and {option(name)} reads that file: name another file")


def _absolute(path: str) -> str:
    """Return an absolute path; links are not followed."""
    with suppress(OSError):
        return os.path.abspath(path)  # noqa: PTH100 - pathlib keeps ".."
    # There is no current directory.
    return path
