"""The pages of one list, in order; each is requested while the page before it is processed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from typing import Final, TypeAlias, TypeVar

from kubectl_spread.errors import SourceError
from kubectl_spread.kube.api.types import Message
from kubectl_spread.sources.apiserver.responses import ExpiredError
from kubectl_spread.sources.apiserver.transport import Response
from kubectl_spread.sources.decode.resources import Page

T = TypeVar("T", bound=Message)
R = TypeVar("R")
Request: TypeAlias = Callable[[str], Response]
"""Requests the page that a token names; "" for the first."""

_UNEXPECTED: Final = "Server returned an unexpected response: "


def follow(request: Request, prepare: Callable[[], Callable[[Response], Page[T]]]) -> Iterator[Page[T]]:
    """Yield all pages of a list; a page without objects is not the last if another follows.

    Args:
        request: Requests a page.
        prepare: Returns a decoder of pages. It is called after the first request is sent, because it takes some of
            the time until the response arrives.

    Raises:
        ExpiredError: A page is of another state of the cluster than earlier pages.
        SourceError: The API server repeated a continue token.
    """
    revision, tokens = "", {""}
    pending = background(partial(request, ""))
    decode = prepare()
    while True:
        page = decode(pending.result())
        revision = revision or page.resource_version
        if page.resource_version != revision:
            raise ExpiredError(f"{_UNEXPECTED}pages of the revisions {revision} and {page.resource_version}")
        token = page.metadata.continue_
        if not token:
            yield page
            return
        if token in tokens:
            raise SourceError(f"{_UNEXPECTED}the API server repeated a continue token")
        tokens.add(token)
        pending = background(partial(request, token))
        yield page


def background(work: Callable[[], R]) -> Future[R]:
    """Run ``work`` in a thread that does not stop an interrupted program from ending."""
    future: Future[R] = Future()
    threading.Thread(target=_settle, args=(future, work), daemon=True).start()
    return future


def _settle(future: Future[R], work: Callable[[], R]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:  # noqa: BLE001 - ``result`` raises it
        future.set_exception(error)
