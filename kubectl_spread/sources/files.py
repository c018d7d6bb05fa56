"""The files that ``-f`` names, and what is in them."""

from __future__ import annotations

import codecs
import gzip
import os
import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from io import BufferedReader, FileIO, RawIOBase
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, cast

from kubectl_spread import errors
from kubectl_spread.errors import SourceError

STDIN: Final = "-"
_EXTENSIONS: Final = (".json", ".yaml", ".yml")
_BLOCK: Final = 1 << 20
_GZIP: Final = b"\x1f\x8b"
_UTF8_MARK: Final = b"\xef\xbb\xbf"
_UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")


class File(NamedTuple):
    """A file to read, and whether it was named itself, not as one of a directory."""

    path: str
    named: bool

    @property
    def source(self) -> str:
        """What the file is called in messages."""
        return source_name(self.path)


def source_name(path: str) -> str:
    """Return what a file is called in messages."""
    return errors.STDIN if path == STDIN else path


def expand(paths: Iterable[str], *, recursive: bool) -> list[File]:
    """Return the files that ``paths`` name, each once, in the order given; those of a directory by name.

    As kubectl does: a file that is named itself may have any extension, symlinks to directories are not
    followed inside a directory, ``-`` is standard input.

    Raises:
        SourceError: A path does not exist, or a directory holds no manifests.
    """
    files: dict[str, File] = {}
    for path in paths:
        if path == STDIN:
            files.setdefault(STDIN, File(STDIN, named=True))
            continue
        if not Path(path).exists():
            msg = f'the path "{path}" does not exist'
            raise SourceError(msg)
        named = not Path(path).is_dir()
        found = [path] if named else list(_manifests(path, recursive=recursive))
        if not found:
            extensions = " ".join(_EXTENSIONS)
            msg = f"error reading [{path}]: recognized file extensions are [{extensions}]"
            raise SourceError(msg)
        for file in found:
            known = files.setdefault(os.path.realpath(file), File(file, named=named))
            if named and not known.named:
                files[os.path.realpath(file)] = known._replace(named=True)
    return list(files.values())


def content(path: str, stdin: BinaryIO) -> bytes:
    """Return the bytes of a file as UTF-8 without a byte order mark, unpacked when gzipped.

    Raises:
        SourceError: It cannot be read.
    """
    return b"".join(blocks(path, stdin))


def blocks(path: str, stdin: BinaryIO) -> Generator[bytes, None, None]:
    """Yield what ``content`` returns piece by piece, so that a large file need not fit into memory.

    Raises:
        SourceError: It cannot be read, or not to its end.
    """
    try:
        with _opened(path, stdin) as file:
            yield from _as_utf8(iter(partial(file.read, _BLOCK), b""))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        msg = f"error reading {path}: {reason[:1].lower()}{reason[1:]}"
        raise SourceError(msg) from error


@contextmanager
def _opened(path: str, stdin: BinaryIO) -> Iterator[BinaryIO]:
    """Open a file, unpacked if its first bytes say that it is gzipped."""
    with ExitStack() as stack:
        if path == STDIN:
            file = BufferedReader(cast("RawIOBase", stdin))
            # Standard input is not closed with what reads it.
            stack.callback(file.detach)
        else:
            file = BufferedReader(stack.enter_context(FileIO(path)))
        packed = file.peek(len(_GZIP)).startswith(_GZIP)
        yield cast("BinaryIO", stack.enter_context(gzip.open(file)) if packed else file)


def _as_utf8(found: Iterator[bytes]) -> Iterator[bytes]:
    first = next(found, b"")
    if first.startswith(_UTF16_MARKS):
        yield from (text.encode() for text in codecs.iterdecode(chain([first], found), "utf-16"))
        return
    yield first.removeprefix(_UTF8_MARK)
    yield from found


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
        elif entry.name.removesuffix(".gz").endswith(_EXTENSIONS) and not Path(entry.path).is_dir():
            yield entry.path
