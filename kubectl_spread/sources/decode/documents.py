"""The one reader of files: it yields JSON and YAML documents that know the line and column of each field."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_spread.errors import SourceError
from kubectl_spread.sources.decode import json_documents
from kubectl_spread.sources.decode.json_documents import Marks
from kubectl_spread.sources.decode.listing import Record


def read(body: memoryview, source: str) -> Iterator[Record | SourceError]:
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

        first = Marks(body).at(end).line
        yield from yaml_values.documents(body[end:], source, first)


def records(body: memoryview, source: str) -> Iterator[Record]:
    """Yield the documents of a small file, each as a whole.

    Raises:
        SourceError: A document cannot be read.
    """
    for document in read(body, source):
        if isinstance(document, SourceError):
            raise document
        yield document
