"""The files that ``-f`` names, their content, and the documents in it."""

from __future__ import annotations

import codecs
import errno
import gzip
import os
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from io import FileIO
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import IO, Any, BinaryIO, Final, NamedTuple

from kubectl_spread import errors
from kubectl_spread.errors import SourceError
from kubectl_spread.sources.decode import json_documents
from kubectl_spread.sources.decode.json_documents import Marks, Record
from kubectl_spread.sources.paths import reason

STDIN: Final = "-"
_EXTENSIONS: Final = (".json", ".yaml", ".yml")
LARGEST: Final = 4 << 30
"""The most bytes of a file, unpacked."""
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
        stdin: The stream that ``-`` names; None where it is closed.
        stdin_name: The name of that stream in messages.
        notes: kubectl's warnings.
    """

    paths: Sequence[str]
    recursive: bool
    stdin: BinaryIO | None
    stdin_name: str = errors.STDIN
    notes: Sequence[str] = ()

    def expand(self) -> list[File]:
        """Return the files, each once, in the order of ``paths``; files of a directory by name.

        As kubectl does: a file that is named itself may have any extension, symlinks to directories are not followed
        inside a directory, ``-`` is standard input. Manifests in a directory may be gzipped, too.

        Raises:
            SourceError: A path does not exist, or a directory has no manifests.
        """
        files: dict[str, File] = {}
        for path in self.paths:
            if path == STDIN or not _is_directory(path):
                files[path] = File(path, named=True, source=self.stdin_name if path == STDIN else path)
                continue
            manifests = list(_manifests(path, recursive=self.recursive))
            if not manifests:
                extensions = " ".join(_EXTENSIONS)
                raise SourceError(f"error reading [{path}]: recognized file extensions are [{extensions}]")
            for file in manifests:
                files.setdefault(file, File(file, named=False, source=file))
        return list(files.values())

    def content(self, file: File) -> memoryview:
        """Return the content of a file, as ``content`` does.

        Raises:
            SourceError: It cannot be read, or the user named a file that is blank.
        """
        body = content(file.path, self.stdin)
        if file.named and json_documents.is_blank(body):
            problem = "empty, so there is nothing to check (did the command that wrote it fail?)"
            raise SourceError(f"{file.source}: {problem}")
        return body


def choose(filename: tuple[str, ...], *, recursive: bool, kustomize: str = "") -> ChosenFiles:
    """Return the files that options choose.

    Args:
        filename: The values of ``-f``.
        recursive: Whether there is ``-R``.
        kustomize: The value of ``-k``; "" for none.

    Raises:
        SourceError: ``kustomize`` is not a local directory, or kubectl cannot render it.
    """
    if not kustomize:
        return ChosenFiles(filename, recursive, standard_input())
    try:
        is_local = _is_directory(kustomize)
    except SourceError as error:
        raise SourceError(f"{error} ({_LOCAL})") from error
    if not is_local:
        raise SourceError(f'the path "{kustomize}" is not a directory ({_LOCAL})')
    # Only -k runs a program.
    from kubectl_spread.sources.files import kustomize as kubectl  # noqa: PLC0415

    manifests, warnings = kubectl.render(kustomize)
    return ChosenFiles((STDIN,), recursive=False, stdin=manifests, stdin_name=kustomize, notes=warnings)


def source_name(path: str) -> str:
    """Return the name of a file in messages."""
    return errors.STDIN if path == STDIN else path


def standard_input() -> BinaryIO | None:
    """Return standard input; None where it is closed."""
    return sys.stdin.buffer if sys.stdin else None


def _is_directory(path: str) -> bool:
    try:
        return stat.S_ISDIR(Path(path).stat().st_mode)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise SourceError(f'the path "{path}" does not exist') from error
    except (OSError, ValueError) as error:
        raise SourceError(f'the path "{path}" cannot be accessed: {reason(error)}') from error


def _manifests(directory: str, *, recursive: bool) -> Iterator[str]:
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except OSError as error:
        raise SourceError(f"error reading {directory}: {error.strerror}") from error
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            if recursive:
                yield from _manifests(entry.path, recursive=True)
        elif entry.name.removesuffix(".gz").endswith(_EXTENSIONS) and not os.path.isdir(entry.path):  # noqa: PTH112 - is_dir may raise
            yield entry.path


def documents(body: memoryview, source: str) -> Iterator[Record | SourceError]:
    """Yield the documents of a file, or their faults: JSON documents, then YAML, which may follow them.

    The content decides whether a file is JSON, as for kubectl: an extension may be wrong, and standard input has none.

    Args:
        body: The content of the file.
        source: The name of the file in messages.

    Raises:
        SourceError: The file is not JSON.
    """
    end = (yield from json_documents.documents(body, source)) if json_documents.begins(body) else 0
    if end < len(body):
        from kubectl_spread.sources.decode import yaml_values  # noqa: PLC0415 - JSON does not wait for it

        yield from yaml_values.documents(body[end:], source, Marks(body).at(end).line)


def records(path: str) -> Iterator[Record]:
    """Yield the documents of a file, or of standard input.

    Raises:
        SourceError: The file or a document cannot be read.
    """
    for document in documents(content(path, standard_input()), source_name(path)):
        if isinstance(document, SourceError):
            raise document
        yield document


def content(path: str, stdin: BinaryIO | None) -> memoryview:
    """Return the content of a file as UTF-8 without a byte order mark, unpacked if it is gzipped.

    It is mapped into memory. What is not a plain file (standard input, a pipe, gzip, UTF-16) is written to a temporary
    file first.

    Raises:
        SourceError: It cannot be read to its end, or is too large, packed or unpacked.
    """
    try:
        with ExitStack() as stack:
            # Standard input is not closed with its reader.
            file: Any = stdin if path == STDIN else stack.enter_context(FileIO(path))
            if file is None:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))  # noqa: TRY301 - as the system raises it
            if path == STDIN or not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                file = _copied(stack, path, _blocks(file))
            body = _mapped(path, file)
            if bytes(body[:2]) == _GZIP:
                body = _mapped(path, _copied(stack, path, _blocks(stack.enter_context(gzip.open(file)))))
            if bytes(body[:2]) in _UTF16_MARKS:
                texts = codecs.iterdecode(
                    (bytes(body[at : at + _BLOCK]) for at in range(0, len(body), _BLOCK)), "utf-16"
                )
                body = _mapped(path, _copied(stack, path, (text.encode() for text in texts)))
            return body[len(_UTF8_MARK) :] if bytes(body[: len(_UTF8_MARK)]) == _UTF8_MARK else body
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise SourceError(f"error reading {path}: {problem[:1].lower()}{problem[1:]}") from error


def _blocks(file: Any) -> Iterator[bytes]:
    return iter(partial(file.read, _BLOCK), b"")


def _copied(stack: ExitStack, path: str, blocks: Iterator[bytes]) -> IO[bytes]:
    copy = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
    for block in blocks:
        copy.write(block)
        if copy.tell() > LARGEST:
            raise _too_large(path)
    copy.seek(0)
    return copy


def _mapped(path: str, file: Any) -> memoryview:
    size = os.fstat(file.fileno()).st_size
    if size > LARGEST:
        raise _too_large(path)
    return memoryview(mmap(file.fileno(), 0, access=ACCESS_READ)) if size else memoryview(b"")


def _too_large(path: str) -> SourceError:
    return SourceError(f"error reading {path}: larger than {LARGEST >> 20:,} MiB, the most that is read of one file")
