"""Pages that are asked for before they are needed: in order, few at a time, and never a wrong one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from typing import Final

import pytest

from kubectl_spread.errors import SourceError
from kubectl_spread.kube.api.types import ListMeta, Pod
from kubectl_spread.sources.apiserver import paging
from kubectl_spread.sources.apiserver.paging import Bodies
from kubectl_spread.sources.apiserver.responses import ExpiredError
from kubectl_spread.sources.apiserver.transport import Response
from kubectl_spread.sources.decode.page import Page

_PATIENCE: Final = 5.0


class Server:
    """Serves ``last`` + 1 pages, whose bodies are ``revision number next``; the first bytes tell the next one."""

    def __init__(self, last: int) -> None:
        self.last = last
        self.tokens: list[str] = []
        self.begun = True
        self.revision = "7"
        self.broken: set[str] = set()

    def request(self, token: str, begun: Callable[[bytes], None], _body: bytearray) -> Response:
        self.tokens.append(token)
        number = int(token or 0)
        body = f"{self.revision} {number} {number + 1 if number < self.last else ''}".encode()
        if self.begun:
            begun(body)
        if token in self.broken:
            raise SourceError(f"page {token} is broken")
        return Response(200, "", body)

    def pages(self) -> Generator[int | None, None, None]:
        for page in paging.follow(self.request, lambda: decode, token_in):
            yield page.metadata.remaining_item_count


def token_in(start: bytes) -> str | None:
    return start.decode().split(" ")[2] or None


def decode(response: Response) -> Page[Pod]:
    revision, number, token = response.body.decode().split(" ")
    metadata = ListMeta(resource_version=revision, continue_=token, remaining_item_count=int(number))
    return Page(metadata, [], lambda _: Pod())


def eventually(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.mark.parametrize("begun", [True, False], ids=["token in the first bytes", "token in the whole page"])
def test_pages_come_in_order_each_once(begun: bool) -> None:
    server = Server(last=20)
    server.begun = begun
    assert list(server.pages()) == list(range(21))
    assert server.tokens == ["", *map(str, range(1, 21))]


def test_the_next_page_is_asked_for_before_the_first_one_has_arrived() -> None:
    both = threading.Barrier(2, timeout=_PATIENCE)

    def request(token: str, begun: Callable[[bytes], None], _body: bytearray) -> Response:
        body = b"7 1 " if token else b"7 0 1"
        begun(body)
        both.wait()
        return Response(200, "", body)

    assert len(list(paging.follow(request, lambda: decode, token_in))) == 2


def test_no_more_pages_wait_than_there_is_room_for() -> None:
    server = Server(last=50)
    pages = server.pages()
    assert next(pages) == 0
    eventually(lambda: len(server.tokens) == 3)
    time.sleep(0.05)
    assert server.tokens == ["", "1", "2"]
    assert next(pages) == 1
    eventually(lambda: len(server.tokens) == 4)


def test_a_page_that_is_sent_again_may_lead_elsewhere() -> None:
    """The first page of a list that broke off is read again, from a later state of the cluster."""
    tokens = []

    def request(token: str, begun: Callable[[bytes], None], _body: bytearray) -> Response:
        tokens.append(token)
        if not token:
            begun(b"7 0 1")
            begun(b"8 0 2")
            return Response(200, "", b"8 0 2")
        number = int(token)
        body = f"{'7' if number == 1 else '8'} {number} {number + 1 if 1 < number < 9 else ''}".encode()
        begun(body)
        return Response(200, "", body)

    remaining_item_counts = [
        page.metadata.remaining_item_count for page in paging.follow(request, lambda: decode, token_in)
    ]
    assert remaining_item_counts == [0, *range(2, 10)]
    assert sorted(tokens) == ["", *map(str, range(1, 10))]


def test_pages_that_nobody_will_take_need_no_room() -> None:
    """What was asked for because of a page that broke off may lead on and on, and holds up nothing."""
    astray: list[str] = []

    def request(token: str, begun: Callable[[bytes], None], _body: bytearray) -> Response:
        if token.startswith("-"):
            astray.append(token)
            body = f"7 {token} {token}1".encode()
        elif token:
            body = f"8 {token} {int(token) + 1 if int(token) < 9 else ''}".encode()
        else:
            begun(b"7 0 -1")
            eventually(lambda: bool(astray))
            body = b"8 0 1"
        begun(body)
        return Response(200, "", body)

    pages = paging.follow(request, lambda: decode, token_in)
    reading = paging.background(lambda: [page.metadata.remaining_item_count for page in pages])
    assert reading.result(_PATIENCE) == [*range(10)]
    few = len(astray)
    time.sleep(0.05)
    assert len(astray) == few < 5


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


def test_nothing_is_asked_for_once_nobody_listens() -> None:
    server = Server(last=50)
    pages = server.pages()
    next(pages)
    eventually(lambda: len(server.tokens) == 3)
    before = threading.active_count()
    pages.close()
    eventually(lambda: threading.active_count() < before)
    assert server.tokens == ["", "1", "2"]


def test_the_memory_of_a_page_is_used_again() -> None:
    bodies, body = Bodies(), bytearray(b"page")
    bodies.give(body)
    assert bodies.take() is body
    assert bodies.take() == b""


def test_the_memory_of_a_page_is_not_used_again_while_there_is_a_view_of_it() -> None:
    bodies, body = Bodies(), bytearray(b"page")
    view = memoryview(body)
    bodies.give(body)
    assert bodies.take() is not body
    assert bytes(view) == b"page"
