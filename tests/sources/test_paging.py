"""Pages that are asked for before they are needed: in order, few at a time, and never a wrong one."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Final

import pytest

from kubectl_spread.errors import SourceError
from kubectl_spread.kube.api.types import ListMeta, Pod
from kubectl_spread.sources.apiserver import paging
from kubectl_spread.sources.apiserver.responses import ExpiredError
from kubectl_spread.sources.apiserver.transport import Response
from kubectl_spread.sources.decode.resources import Page

_PATIENCE: Final = 5.0


class Server:
    """Serves ``last`` + 1 pages, whose bodies are ``revision number next``."""

    def __init__(self, last: int) -> None:
        self.last = last
        self.tokens: list[str] = []
        self.revision = "7"
        self.broken: set[str] = set()

    def request(self, token: str) -> Response:
        self.tokens.append(token)
        number = int(token or 0)
        body = f"{self.revision} {number} {number + 1 if number < self.last else ''}".encode()
        if token in self.broken:
            raise SourceError(f"page {token} is broken")
        return Response(200, "", body)

    def pages(self) -> Generator[int | None, None, None]:
        for page in paging.follow(self.request, lambda: decode):
            yield page.metadata.remaining_item_count


def decode(response: Response) -> Page[Pod]:
    revision, number, token = response.body.decode().split(" ")
    metadata = ListMeta(resource_version=revision, continue_=token, remaining_item_count=int(number))
    return Page(metadata, [], lambda _: Pod())


def eventually(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_pages_come_in_order_each_once() -> None:
    server = Server(last=20)
    assert list(server.pages()) == list(range(21))
    assert server.tokens == ["", *map(str, range(1, 21))]


def test_one_page_is_requested_while_another_is_processed() -> None:
    server = Server(last=50)
    pages = server.pages()
    assert next(pages) == 0
    eventually(lambda: len(server.tokens) == 2)
    time.sleep(0.05)
    assert server.tokens == ["", "1"]
    assert next(pages) == 1
    eventually(lambda: len(server.tokens) == 3)


def test_what_is_wrong_with_a_page_is_raised_in_its_place() -> None:
    server = Server(last=9)
    server.broken = {"2"}
    pages = server.pages()
    assert [next(pages), next(pages)] == [0, 1]
    with pytest.raises(SourceError, match="page 2 is broken"):
        next(pages)


def test_pages_of_two_states_are_no_list() -> None:
    server = Server(last=9)
    pages = server.pages()
    next(pages)
    server.revision = "8"
    with pytest.raises(ExpiredError, match="pages of the revisions 7 and 8"):
        list(pages)
