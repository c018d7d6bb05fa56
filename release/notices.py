"""The licences of the third-party parts of an archive."""

from __future__ import annotations

import re
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import Distribution
from pathlib import Path
from platform import python_version
from typing import Final

from release.environments import ROOT

_NAMES: Final = ("authors", "copying", "license", "licence", "notice")
_RULE: Final = "=" * 80
_HEAD: Final = (
    "kubectl-spread is licensed as LICENSE says. This archive also holds what follows, under its own licences.\n"
)
_LICENCES: Final = ROOT / "release" / "licences"
_BUILT_IN: Final[Mapping[str, str]] = {
    "Expat": r"(lib)?expat",
    "OpenSSL": r"lib(crypto|ssl)",
    "SQLite": r"(lib)?sqlite3",
    "bzip2": r"libbz2|bz2",
    "libffi": r"libffi",
    "liblzma": r"liblzma",
    "libmpdec": r"libmpdec",
    "libuuid": r"libuuid",
    "zlib": r"libz\b|zlib",
}
"""Maps a licence to the names of its library. Python has these built in, or as files next to it."""
_COMPILED: Final[Mapping[str, str]] = {
    "GCC-runtime": r"lib(gcc_s|stdc\+\+)",
    "Microsoft-runtime": r"vcruntime|msvcp|ucrtbase|api-ms-win-",
}
"""The libraries of compilers, of which not every archive has one."""


class UnlicensedError(RuntimeError):
    """The licence of a part of the archive is not known."""


def text(bundled: Sequence[Distribution], native: Sequence[str]) -> str:
    """Return the notices of distributions, of Python itself and of native libraries, by their file names.

    Raises:
        UnlicensedError: The licence of one of them is not known.
    """
    licences = [*_BUILT_IN, *sorted({_licence(name) for name in native} & _COMPILED.keys())]
    sections = [_section(f"Python {python_version()}", _python())]
    sections += [_section(name, (_LICENCES / f"{name}.txt").read_text(encoding="utf-8")) for name in licences]
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


def _licence(library: str) -> str:
    """Return the licence of a library that comes from the machine and its Python, by the name of its file."""
    for licence, names in {**_BUILT_IN, **_COMPILED}.items():
        if re.match(names, library, re.IGNORECASE):
            return licence
    raise UnlicensedError(f"{library} is none of the libraries whose licences are in release/licences")
