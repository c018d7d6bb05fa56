"""The one reader of files: it yields JSON and YAML documents that know the line and column of each field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubectl_spread.errors import SourceError
from kubectl_spread.sources.decode import json_documents
from kubectl_spread.sources.decode.listing import Document, Listing, Record
from kubectl_spread.sources.decode.window import Window


def read(window: Window, source: str, *, listed: bool = True) -> Iterator[Document]:
    """Yield the documents of a file: JSON documents, then YAML, which may follow them.

    The content decides whether a file is JSON, as for kubectl: an extension may be wrong, and standard input has none.

    Args:
        window: The file.
        source: The name of the file in messages.
        listed: Whether a list is a ``Listing``, whose items must be exhausted before the next document is requested.

    Raises:
        SourceError: The rest of the file cannot be read.
    """
    if json_documents.begins(window):
        yield from (json_documents.documents if listed else json_documents.records)(window, source)
    if window.position < len(window.body):
        from kubectl_spread.sources.decode import yaml_stream  # noqa: PLC0415 - JSON does not wait for it

        yield from yaml_stream.documents(window, source, listed=listed)


def records(blocks: Iterable[bytes], source: str) -> Iterator[Record]:
    """Yield the documents of a small file, each as a whole.

    Raises:
        SourceError: A document cannot be read.
    """
    for document in read(Window(blocks, source), source, listed=False):
        if isinstance(document, SourceError):
            raise document
        if not isinstance(document, Listing):
            yield document
