"""Where outputs go: no two to one file, and none to a file that the same run reads."""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from kubectl_spread.errors import UsageError
from kubectl_spread.sources.files import inputs

_READ: Final = {
    "baseline": "--baseline",
    "scheduler_config": "--scheduler-config",
    "kubeconfig": "--kubeconfig",
    "certificate_authority": "--certificate-authority",
    "client_certificate": "--client-certificate",
    "client_key": "--client-key",
}
"""Maps the parameter of an option whose value is a file to read to what users call that option."""
_STANDARD_INPUT: Final = "/dev/stdin"
_HEAD: Final = 4096
_OWN_REPORT: Final = re.compile(rb'"?apiVersion"?: *"?kubectl-spread/')
Identity: TypeAlias = tuple[object, ...]
"""Equal for paths that lead to one file."""


def refuse_shared(places: Sequence[str | None]) -> None:
    """Raise where two outputs go to one place, None being standard output.

    Raises:
        UsageError: They do, by the same path, by another, or by a link.
    """
    taken: dict[Identity, str | None] = {}
    for place in places:
        identity = _standard_output() if place is None else _identity(place)
        if identity in taken:
            raise UsageError(f"several -o go to {_names(taken[identity], place)}: write -o FORMAT=FILE")
        taken[identity] = place


def refuse_inputs(places: Iterable[str | None], asked: Mapping[str, object]) -> None:
    """Raise where an output would replace a file that the command reads.

    Args:
        places: The files of the outputs; None for standard output.
        asked: The options of the command line.

    Raises:
        UsageError: It would.
        SourceError: The files of ``-f`` cannot be found.
    """
    # os answers where pathlib raises, as for a name that is too long.
    existing = [place for place in places if place is not None and os.path.isfile(place)]  # noqa: PTH113
    written = {_identity(place): place for place in existing}
    if not written:
        return
    for option, path in _inputs(asked):
        place = written.get(_identity(path))
        if place is not None:
            same = "" if path in {place, _STANDARD_INPUT} else f", which is {path}"
            raise UsageError(f"-o would replace {place}{same}, and {option} reads that file: name another file")


def _inputs(asked: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield the files that a command reads, each with the option that names it."""
    yield from ((option, str(asked[name])) for name, option in _READ.items() if asked.get(name))
    filename = asked.get("filename")
    if not isinstance(filename, tuple) or not filename:
        yield from _kubeconfigs(str(asked.get("kubeconfig") or ""))
        return
    for file in inputs.expand(filename, recursive=bool(asked.get("recursive"))):
        if file.path == inputs.STDIN:
            # A shell may have opened a file for it.
            yield "-f -", _STANDARD_INPUT
        elif file.named or not _is_own_report(file.path):
            yield "-f", file.path


def _kubeconfigs(explicit: str) -> Iterator[tuple[str, str]]:
    from kubectl_spread.sources.auth import kubeconfig  # noqa: PLC0415 - only a cluster needs it

    yield from (("the kubeconfig", str(path)) for path in kubeconfig.paths(explicit, os.environ))


def _is_own_report(path: str) -> bool:
    """Return whether a file of a directory is a report of an earlier run, which the next one may replace."""
    try:
        with Path(path).open("rb") as file:
            return _OWN_REPORT.search(file.read(_HEAD)) is not None
    except OSError:
        return False


def _standard_output() -> Identity:
    """Return the identity of the file, pipe or terminal that standard output is; ``/dev/stdout`` has the same one."""
    try:
        status = os.fstat(sys.stdout.fileno())
    except (OSError, ValueError, AttributeError):
        return ("standard output",)
    return (status.st_dev, status.st_ino)


def _identity(path: str) -> Identity:
    """Return what is equal for paths that lead to one file.

    Names of new files that differ only in case, or in how Unicode writes an accent, are equal: some file systems keep
    only one of them.
    """
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return ("new", unicodedata.normalize("NFC", _resolved(path)).casefold())
    return (status.st_dev, status.st_ino)


def _resolved(path: str) -> str:
    """Return the path without links, or as it is written where the current directory no longer exists."""
    try:
        return os.path.realpath(path)
    except OSError:
        return os.path.normpath(path)


def _names(first: str | None, second: str | None) -> str:
    names = ["standard output" if place is None else place for place in (first, second)]
    return names[0] if first == second else f"{names[0]} and {names[1]}, which are one file"
