"""The content of a file, and the documents in it."""

from __future__ import annotations

import codecs
import errno
import gzip
import os
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from io import FileIO
from mmap import ACCESS_READ, mmap
from typing import IO, Any, BinaryIO, Final

from kubectl_spread import errors
from kubectl_spread.errors import SourceError
from kubectl_spread.sources.decode import json_documents
from kubectl_spread.sources.decode.json_documents import Marks, Record

STDIN: Final = "-"
LARGEST: Final = 4 << 30
"""The most bytes of a file, unpacked."""
_BLOCK: Final = 1 << 20
_GZIP: Final = b"\x1f\x8b"
_UTF8_MARK: Final = b"\xef\xbb\xbf"
_UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")


def source_name(path: str) -> str:
    """Return the name of a file in messages."""
    return errors.STDIN if path == STDIN else path


def standard_input() -> BinaryIO | None:
    """Return standard input; None where it is closed."""
    return sys.stdin.buffer if sys.stdin else None


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
