"""The files that ``-f`` names, and their content."""

from __future__ import annotations

import codecs
import errno
import gzip
import os
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from io import BufferedReader, FileIO, RawIOBase
from itertools import chain
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, Final, NamedTuple, cast

from kubectl_spread import errors
from kubectl_spread.errors import SourceError
from kubectl_spread.phrases import plural, some
from kubectl_spread.sources.paths import is_directory, reason

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

STDIN: Final = "-"
_EXTENSIONS: Final = (".json", ".yaml", ".yml")
_GZIPPED: Final = tuple(f"{extension}.gz" for extension in _EXTENSIONS)
LARGEST: Final = 4 << 30
"""The most bytes of a file, unpacked."""
FREE: Final = 64 << 20
"""The bytes that compressed input may become at any ratio."""
RATIO: Final = 200
"""The largest ratio of larger input. Equal pods compress to a fortieth."""
_UNITS: Final = ((30, "GiB"), (20, "MiB"), (10, "KiB"))
_BLOCK: Final = 1 << 20
_GZIP: Final = b"\x1f\x8b"
_UTF8_MARK: Final = b"\xef\xbb\xbf"
_LOCAL: Final = "-k takes a local directory; for a URL, pipe the output of kubectl kustomize to -f -"
_UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")


class File(NamedTuple):
    """A file to read.

    Attributes:
        path: Its path, or ``-``.
        named: Whether the user named the file itself and not its directory.
        source: Its name in messages.
    """

    path: str
    named: bool
    source: str


class ChosenFiles(NamedTuple):
    """The files that ``-f`` names, or the manifests that kubectl renders for ``-k``.

    Attributes:
        paths: Files, directories and ``-``.
        recursive: Whether directories inside directories are read.
        stdin: The stream that ``-`` names.
        stdin_name: The name of that stream in messages.
        notes: Messages about files that are not read, and kubectl's warnings.
    """

    paths: tuple[str, ...]
    recursive: bool
    stdin: BinaryIO
    stdin_name: str = errors.STDIN
    notes: Sequence[str] = ()

    def expand(self) -> list[File]:
        """Return the files, as ``expand`` does."""
        return expand(self.paths, recursive=self.recursive, stdin_name=self.stdin_name)


def choose(filename: tuple[str, ...], *, recursive: bool, kustomize: str) -> ChosenFiles:
    """Return the files that options choose.

    Args:
        filename: The values of ``-f``.
        recursive: Whether there is ``-R``.
        kustomize: The value of ``-k``; "" for none.

    Raises:
        SourceError: ``kustomize`` is not a local directory, or kubectl cannot render it.
    """
    if not kustomize:
        return ChosenFiles(filename, recursive, standard_input(), notes=unread(filename, recursive=recursive))
    try:
        is_local = _is_directory(kustomize)
    except SourceError as error:
        raise SourceError(f"{error} ({_LOCAL})") from error
    if not is_local:
        raise SourceError(f'the path "{kustomize}" is not a directory ({_LOCAL})')
    # Only -k runs a program.
    from kubectl_spread.sources.files import kustomize as kubectl  # noqa: PLC0415

    rendering = kubectl.render(kustomize)
    return ChosenFiles(
        (STDIN,), recursive=False, stdin=rendering.manifests, stdin_name=kustomize, notes=rendering.warnings
    )


def source_name(path: str) -> str:
    """Return the name of a file in messages."""
    return errors.STDIN if path == STDIN else path


def expand(paths: Iterable[str], *, recursive: bool, stdin_name: str = errors.STDIN) -> list[File]:
    """Return the files that ``paths`` name, each once, in the order of ``paths``; files of a directory by name.

    As kubectl does: a file that is named itself may have any extension, symlinks to directories are not
    followed inside a directory, ``-`` is standard input.

    Raises:
        SourceError: A path does not exist, or a directory has no manifests.
    """
    files: dict[str, File] = {}
    for path in paths:
        if path == STDIN:
            files.setdefault(STDIN, File(STDIN, named=True, source=stdin_name))
            continue
        named = not _is_directory(path)
        manifests = [path] if named else list(_manifests(path, recursive=recursive))
        if not manifests:
            extensions = " ".join(_EXTENSIONS)
            msg = f"error reading [{path}]: recognized file extensions are [{extensions}]"
            if gzipped := passed_over([path], recursive=recursive):
                msg += f"; name a gzipped file to read it: -f {gzipped[0]}"
            raise SourceError(msg)
        for file in manifests:
            identity = os.path.realpath(file)
            first = files.setdefault(identity, File(file, named=named, source=file))
            files[identity] = first._replace(named=named or first.named)
    return list(files.values())


def passed_over(paths: Iterable[str], *, recursive: bool) -> list[str]:
    """Return the gzipped manifests in the directories among ``paths``; only named ones are read."""
    directories = (path for path in paths if path != STDIN and is_directory(Path(path)))
    return [file for path in directories for file in _manifests(path, recursive=recursive, extensions=_GZIPPED)]


def unread(paths: Iterable[str], *, recursive: bool) -> list[str]:
    """Return a note on the gzipped manifests in directories, which kubectl ignores without a message."""
    gzipped = passed_over(paths, recursive=recursive)
    if not gzipped:
        return []
    files = some(gzipped, most=1)
    return [f"{files} not read: name gzipped files to read them (-f {gzipped[0]})"]


def _is_directory(path: str) -> bool:
    """Tell whether a path that the user names is a directory."""
    try:
        return stat.S_ISDIR(Path(path).stat().st_mode)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise SourceError(f'the path "{path}" does not exist') from error
    except (OSError, ValueError) as error:
        raise SourceError(f'the path "{path}" cannot be accessed: {reason(error)}') from error


def content(path: str, stdin: BinaryIO) -> memoryview:
    """Return the content of a file as UTF-8 without a byte order mark, unpacked if it is gzipped.

    It is mapped into memory. What is not a plain file (standard input, a pipe, gzip, UTF-16) is written to a temporary
    file first.

    Raises:
        SourceError: It cannot be read to its end, or is too large, or it unpacks to much more than any real manifests.
    """
    try:
        with ExitStack() as stack:
            # Standard input is not closed with its reader.
            plain = cast("FileIO", stdin) if path == STDIN else stack.enter_context(FileIO(path))
            if path != STDIN and (body := _mapped(plain)) and not bytes(body[:2]).startswith((_GZIP, *_UTF16_MARKS)):
                if len(body) > LARGEST:
                    raise _too_large(path)
                return body[len(_UTF8_MARK) :] if bytes(body[: len(_UTF8_MARK)]) == _UTF8_MARK else body
            copy = stack.enter_context(tempfile.TemporaryFile())
            for block in _blocks(path, plain):
                copy.write(block)
                if copy.tell() > LARGEST:
                    raise _too_large(path)
            copy.flush()
            return _mapped(copy)
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise SourceError(f"error reading {path}: {problem[:1].lower()}{problem[1:]}") from error


def _mapped(file: IO[bytes] | FileIO) -> memoryview:
    """Return the content of a file; empty for a file without a size, such as a pipe."""
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode) or not status.st_size:
        return memoryview(b"")
    return memoryview(mmap(file.fileno(), 0, access=ACCESS_READ))


def _too_large(path: str) -> SourceError:
    return SourceError(f"error reading {path}: larger than {in_units(LARGEST)}, the most that is read of one file")


class _Counted(RawIOBase):
    """A file that counts the bytes read from it, as standard input has no position."""

    def __init__(self, file: RawIOBase) -> None:
        self._file = file
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int | None:
        size = self._file.readinto(buffer)
        self.count += size or 0
        return size


class _Closed(RawIOBase):
    """Standard input of a process that was started without it; reading it fails as in C."""

    def readable(self) -> bool:
        """Let a BufferedReader take the stream, so that the error comes with the first read."""
        return True

    def readinto(self, _buffer: object) -> int:
        """Fail."""
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


def standard_input() -> BinaryIO:
    """Return standard input, or where it is closed a stream that cannot be read."""
    return cast("BinaryIO", _Closed()) if sys.stdin is None else sys.stdin.buffer


def _blocks(path: str, plain: RawIOBase) -> Iterator[bytes]:
    """Yield the content of a file, unpacked unless it is a decompression bomb, as UTF-8."""
    packed = _Counted(plain)
    file = BufferedReader(packed)
    if not file.peek(len(_GZIP)).startswith(_GZIP):
        yield from _as_utf8(iter(partial(file.read, _BLOCK), b""))
        return
    with gzip.open(file) as unpacked:
        yield from _as_utf8(_checked(path, cast("BinaryIO", unpacked), packed))


def _checked(path: str, file: BinaryIO, packed: _Counted) -> Iterator[bytes]:
    """Yield the unpacked content of a file, unless it is a decompression bomb."""
    unpacked = 0
    for block in iter(partial(file.read, _BLOCK), b""):
        unpacked += len(block)
        check_ratio(path, packed.count, unpacked, "if it is meant so, unpack it first")
        yield block


def check_ratio(what: str, packed: int, unpacked: int, advice: str) -> None:
    """Check that compressed input is not a bomb, as far as it is decompressed.

    Args:
        what: The input.
        packed: The bytes that were read.
        unpacked: The bytes that they became.
        advice: Advice to users whose input is really so large.

    Raises:
        SourceError: Its ratio is unreasonable.
    """
    if unpacked > FREE and unpacked > packed * RATIO:
        growth = f"{in_units(packed)} became {in_units(unpacked)} when unpacked, more than {RATIO} times as much"
        raise SourceError(f"{what}: {growth} ({advice})")


def in_units(size: int) -> str:
    """Return a size for an error, in the largest unit of which it has at least one."""
    for shift, unit in _UNITS:
        if size >> shift:
            return f"{size >> shift:,} {unit}"
    return plural(size, "byte")


def _as_utf8(blocks: Iterator[bytes]) -> Iterator[bytes]:
    first = next(blocks, b"")
    if first.startswith(_UTF16_MARKS):
        yield from (text.encode() for text in codecs.iterdecode(chain([first], blocks), "utf-16"))
        return
    yield first.removeprefix(_UTF8_MARK)
    yield from blocks


def _manifests(directory: str, *, recursive: bool, extensions: tuple[str, ...] = _EXTENSIONS) -> Iterator[str]:
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except OSError as error:
        raise SourceError(f"error reading {directory}: {error.strerror}") from error
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            if recursive:
                yield from _manifests(entry.path, recursive=True, extensions=extensions)
        elif entry.name.endswith(extensions) and not is_directory(Path(entry.path)):
            yield entry.path
