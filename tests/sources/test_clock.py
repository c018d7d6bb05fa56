"""The API server's clock is read from its responses, whatever their status."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_spread.sources.apiserver import transport
from kubectl_spread.sources.apiserver.transport import ServerClock

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def heard(*dates: str | None) -> datetime | None:
    clock = ServerClock()
    for date in dates:
        clock.hear(date)
    return clock.now()


@pytest.mark.parametrize(
    ("dates", "reported"),
    [
        pytest.param([], None, id="no response"),
        pytest.param([None], None, id="no header"),
        pytest.param(["Sat, 21 Nov 2026 12:00:00 GMT"], NOON, id="as HTTP has it"),
        pytest.param(["Sat, 21 Nov 2026 13:00:00 +0100"], NOON, id="of another zone"),
        pytest.param(["Sat, 21 Nov 2026 12:00:00 GMT", None, "never"], NOON, id="then none and nonsense"),
        pytest.param(
            ["Sat, 21 Nov 2026 12:00:00 GMT", "Sat, 21 Nov 2026 11:59:00 GMT"],
            NOON - timedelta(minutes=1),
            id="the last one counts",
        ),
        pytest.param(["Sat, 21 Nov 2026 12:00:00 -0000"], None, id="without a zone"),
        pytest.param(["Fri, 31 Dec 9999 23:59:59 -2300"], None, id="after the last year"),
    ],
)
def test_now(dates: list[str | None], reported: datetime | None) -> None:
    time_by_clock = heard(*dates)
    assert (time_by_clock is None) == (reported is None)
    assert time_by_clock is None or reported is None or reported <= time_by_clock < reported + timedelta(seconds=30)


def test_it_goes_on_between_responses(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ServerClock()
    monkeypatch.setattr(transport, "elapsed", lambda: 100.0)
    clock.hear("Sat, 21 Nov 2026 12:00:00 GMT")
    monkeypatch.setattr(transport, "elapsed", lambda: 190.9)
    assert clock.now() == NOON + timedelta(seconds=90)


@given(st.text() | st.dates().map("{:%a, %d %b %Y} 99:99:99 GMT".format))
def test_a_header_that_is_no_date_is_passed_over(text: str) -> None:
    assert heard("Sat, 21 Nov 2026 12:00:00 GMT", text) is not None
