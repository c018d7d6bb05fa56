"""The pages of one list, one after another, each requested while the one before it is worked on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Final, TypeVar

from kubectl_spread.errors import SourceError
from kubectl_spread.kube.model import Message
from kubectl_spread.sources.answers import ExpiredError
from kubectl_spread.sources.page import Page
from kubectl_spread.sources.transport import Answer

T = TypeVar("T", bound=Message)

_UNEXPECTED: Final = "Server returned an unexpected response: "


def follow(
    request: Callable[[str], Answer], decode: Callable[[Answer], Page[T]], first: Future[Answer] | None = None
) -> Iterator[Page[T]]:
    """Yield all pages of a list; one without objects is not the last one if another follows.

    Args:
        request: Asks for the page that a token names; "" names the first one.
        decode: Reads a page.
        first: The first page, where it was asked for before.

    Raises:
        ExpiredError: A page is of another state of the cluster than those before it.
        SourceError: A page leads back to one that was read.
    """
    revision, tokens = "", {""}
    pending = first or ahead(request, "")
    while True:
        page = decode(pending.result())
        revision = revision or page.resource_version
        if page.resource_version != revision:
            raise ExpiredError(f"{_UNEXPECTED}pages of the revisions {revision} and {page.resource_version}")
        token = page.metadata.continue_
        if token and token in tokens:
            raise SourceError(f"{_UNEXPECTED}a page leads back to one that was read")
        tokens.add(token)
        if not token:
            yield page
            return
        pending = ahead(request, token)
        yield page


def ahead(request: Callable[[str], Answer], token: str) -> Future[Answer]:
    """Ask for a page in a thread that does not keep an interrupted program from ending."""
    future: Future[Answer] = Future()

    def run() -> None:
        try:
            future.set_result(request(token))
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is asked for
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future
