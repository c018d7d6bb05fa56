"""The files that ``-f`` names, and what is in them."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from kubectl_spread.errors import SourceError

STDIN: Final = "-"
_EXTENSIONS: Final = (".json", ".yaml", ".yml")
_GZIP: Final = b"\x1f\x8b"
_UTF8_MARK: Final = b"\xef\xbb\xbf"
_UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")


def expand(paths: Iterable[str], *, recursive: bool) -> list[str]:
    """Return the files that ``paths`` name, each once, in the order given; folders by name.

    As kubectl does: a file that is named itself may have any extension, symlinks to folders are not
    followed inside a folder, ``-`` is standard input.

    Raises:
        SourceError: A path does not exist, or a folder holds no manifests.
    """
    files: dict[str, str] = {}
    for path in paths:
        if path == STDIN:
            files.setdefault(STDIN, STDIN)
            continue
        if not Path(path).exists():
            msg = f'the path "{path}" does not exist'
            raise SourceError(msg)
        found = list(_manifests(path, recursive=recursive)) if Path(path).is_dir() else [path]
        if not found:
            extensions = " ".join(_EXTENSIONS)
            msg = f"error reading [{path}]: recognized file extensions are [{extensions}]"
            raise SourceError(msg)
        for file in found:
            files.setdefault(os.path.realpath(file), file)
    return list(files.values())


def content(path: str, stdin: BinaryIO) -> bytes:
    """Return the bytes of a file as UTF-8 without a byte order mark, unpacked when gzipped.

    Raises:
        SourceError: It cannot be read.
    """
    try:
        body = stdin.read() if path == STDIN else Path(path).read_bytes()
        if body.startswith(_GZIP):
            body = gzip.decompress(body)
        if body.startswith(_UTF16_MARKS):
            return body.decode("utf-16").encode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        msg = f"error reading {path}: {reason[:1].lower()}{reason[1:]}"
        raise SourceError(msg) from error
    return body.removeprefix(_UTF8_MARK)


def _manifests(folder: str, *, recursive: bool) -> Iterator[str]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        msg = f"error reading {folder}: {error.strerror}"
        raise SourceError(msg) from error
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            if recursive:
                yield from _manifests(entry.path, recursive=True)
        elif entry.name.removesuffix(".gz").endswith(_EXTENSIONS) and not entry.is_dir():
            yield entry.path
