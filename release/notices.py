"""The licences of the third-party parts of an archive."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution
from pathlib import Path
from platform import python_version
from typing import Final

_NAMES: Final = ("authors", "copying", "license", "licence", "notice")
_RULE: Final = "=" * 80
_HEAD: Final = (
    "kubectl-spread is licensed as LICENSE says. This archive also holds what follows, under its own licences.\n"
)
_UNKNOWN: Final = """\
It comes with the Python build or with the compiler of the machine that built the archive: see
https://docs.python.org/3/license.html and https://gcc.gnu.org/onlinedocs/libstdc++/manual/license.html
"""


class UnlicensedError(RuntimeError):
    """A part of the archive does not state its licence."""


def text(bundled: Sequence[Distribution], native: Sequence[str]) -> str:
    """Return the notices of distributions, of Python itself and of the libraries of the system, by file name.

    Raises:
        UnlicensedError: One of them does not state its licence.
    """
    sections = [_section(f"Python {python_version()}", _python())]
    sections += [_section(name, _library(name)) for name in native if not name.startswith(("libpython", "python3"))]
    sections += [
        _section(f"{distribution.name} {distribution.version}", "\n".join(_own(distribution)))
        for distribution in bundled
    ]
    return "\n".join([_HEAD, *sections])


def _section(title: str, body: str) -> str:
    return f"{_RULE}\n{title}\n{_RULE}\n\n{body.strip()}\n"


def _own(distribution: Distribution) -> Iterator[str]:
    licence = _named(distribution)
    if licence:
        yield f"License: {licence}\n"
    files = sorted(file for file in distribution.files or () if _is_licence(file.parts))
    yield from (file.read_text(encoding="utf-8") for file in files)
    if not (files or licence):
        raise UnlicensedError(f"{distribution.name} has neither a licence file nor a licence in its metadata")


def _named(distribution: Distribution) -> str:
    metadata = distribution.metadata
    classified = [
        value.rpartition(" :: ")[2]
        for value in metadata.get_all("Classifier", [])
        if value.startswith("License :: OSI Approved :: ")
    ]
    fields = metadata.json
    named = fields.get("license_expression") or fields.get("license") or ", ".join(classified)
    # Some packages have the whole text there, which is also in a file.
    return str(named).partition("\n")[0]


def _is_licence(parts: tuple[str, ...]) -> bool:
    return parts[0].endswith(".dist-info") and any(name in parts[-1].lower() for name in _NAMES)


def _python() -> str:
    for directory in (sysconfig.get_path("stdlib"), sysconfig.get_config_var("installed_base")):
        licence = Path(directory, "LICENSE.txt")
        if licence.is_file():
            return licence.read_text(encoding="utf-8")
    raise UnlicensedError("this Python has no LICENSE.txt")


def _library(name: str) -> str:
    """Return the licence of a library of the system, from the documentation of its Debian package."""
    query = shutil.which("dpkg-query")
    if query is None:
        return _UNKNOWN
    done = subprocess.run([query, "--search", f"*/{name}"], check=False, capture_output=True, text=True)
    package = done.stdout.partition(":")[0]
    copying = Path("/usr/share/doc", package, "copyright")
    return copying.read_text(encoding="utf-8") if package and copying.is_file() else _UNKNOWN
