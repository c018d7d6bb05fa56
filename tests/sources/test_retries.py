"""When a request is sent again."""

from __future__ import annotations

from email.utils import formatdate

import pytest

from kubectl_spread.sources.apiserver import transport
from kubectl_spread.sources.apiserver.transport import RETRIES, Patience


@pytest.mark.parametrize(
    ("status", "retry_after", "passing"),
    [(429, None, True), (500, None, True), (503, 1.0, True), (501, None, False), (501, 1.0, True)]
    + [(status, None, False) for status in (200, 302, 401, 403, 404, 410)]
    + [(404, 1.0, False)],
)
def test_is_passing(status: int, retry_after: float | None, passing: bool) -> None:
    assert transport.is_passing(status, retry_after) is passing


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("5", 5),
        (" 5 ", 5),
        ("soon", None),
        ("-1", None),
        (formatdate(0, usegmt=True), 0),
        ("9" * 30, 86400),
        ("Mon, 99 Jan 99999 00:00:00 GMT", None),
    ],
)
def test_retry_after(header: str | None, seconds: float | None) -> None:
    assert transport.retry_after(header) == seconds


def test_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_FIRST_BACKOFF", 0.5)
    assert [transport.backoff(number, 1.0) for number in range(7)] == [0.5, 1, 2, 4, 8, 8, 8]
    assert [transport.backoff(number, 0.0) for number in (0, 9)] == [0.25, 4]


def test_patience_ends_after_some_retries() -> None:
    patience = Patience(0)
    pauses = [patience.pause(None) for _ in range(RETRIES + 1)]
    assert None not in pauses[:RETRIES]
    assert pauses[RETRIES] is None


def test_patience_waits_as_long_as_asked_for() -> None:
    assert Patience(0).pause(7.0) == 7


@pytest.mark.parametrize(("timeout", "retry_after"), [(0, transport.PATIENCE), (3, 3.0)])
def test_patience_does_not_wait_beyond_its_end(timeout: float, retry_after: float) -> None:
    assert Patience(timeout).pause(retry_after) is None


def test_patience_is_short_with_a_server_that_never_answered() -> None:
    patience = Patience(0)
    assert [patience.pause(None, 2) is None for _ in range(3)] == [False, False, True]
