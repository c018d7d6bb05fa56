"""GET requests to one API server, with retries and the pauses before them; a response is always complete.

urllib3 repeats a request only until its headers arrive.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from threading import Event, Lock
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import msgspec
import urllib3
from urllib3.exceptions import InsecureRequestWarning, InvalidHeader
from urllib3.util import Retry

from kubectl_spread import __version__
from kubectl_spread.sources import exchange
from kubectl_spread.sources.auth.credentials import Login
from kubectl_spread.sources.exchange import UNANSWERED, Again, ConnectionFailedError, Deadline, failure

JITTER: Final = random.Random()  # noqa: S311 - not a secret
"""Spreads requests over time; it has a state of its own, because threads draw from it."""
RETRIES: Final = 10
"""The number of retries of one request. Source: kubernetes v1.37.1 client-go/rest/request.go, maxRetries."""
RETRIES_BEFORE_CONTACT: Final = 2
"""The number of retries before the server has answered at all: its address may be wrong."""
PATIENCE: Final = 120.0
"""Seconds after the first failure of a request in which it is repeated."""
LONGEST_BACKOFF: Final = 8.0
_FIRST_BACKOFF: Final = 0.5
_PASSING: Final = frozenset({429, 500, 502, 503, 504})
"""Statuses that may pass soon."""
_MAY_ASK_FOR_A_PAUSE: Final = 500
_HEADER: Final = Retry(retry_after_max=24 * 3600)


def is_passing(status: int, pause: float | None) -> bool:
    """Tell whether a retry may get another response.

    Args:
        status: The HTTP status.
        pause: The seconds of its Retry-After header, or None.

    Source: kubernetes v1.37.1 client-go/rest/with_retry.go, checkWait.
    Differs: the statuses of an overload are repeated without Retry-After too; proxies do not send it.
    """
    return status in _PASSING or (status >= _MAY_ASK_FOR_A_PAUSE and pause is not None)


def retry_after(header: str | None) -> float | None:
    """Return the seconds in a Retry-After header, which is a number or a date; None if there are none."""
    try:
        return None if header is None else float(_HEADER.parse_retry_after(header))
    except (InvalidHeader, ValueError, OverflowError):
        return None


def backoff(retries: int, share: float) -> float:
    """Return the pause in seconds before the retry after ``retries`` others; ``share``, 0 to 1, spreads clients."""
    longest = min(_FIRST_BACKOFF * 2.0**retries, LONGEST_BACKOFF)
    return longest * (0.5 + share / 2)


class Patience(Deadline):
    """The time of one request, its retries included, and the pauses before these."""

    def __init__(self, timeout: float, silence: float | None = None) -> None:
        """Start now; the response must have been read in ``timeout`` seconds, 0 for no limit; see ``Deadline``."""
        super().__init__(timeout or None, silence)
        self._last_start: float | None = None
        self._retries = 0

    @property
    def is_over(self) -> bool:
        """Whether the time of ``--request-timeout`` has passed."""
        return time.monotonic() >= self._end

    def pause(self, retry_after: float | None, limit: int = RETRIES) -> float | None:
        """Return the pause before the next retry, in seconds; None for no more retries.

        Args:
            retry_after: The pause that the server asks for, or None.
            limit: The number of allowed retries.
        """
        now = time.monotonic()
        if self._last_start is None:
            self._last_start = now + PATIENCE
        # Never shorter than the server asks for, because an overloaded server needs the pause.
        pause = max(backoff(self._retries, JITTER.random()), retry_after or 0)
        self._retries += 1
        return pause if self._retries <= limit and now + pause < min(self._last_start, self._end) else None


_USER_AGENT: Final = f"kubectl-spread/{__version__}"
_WORTH_SAYING: Final = 2.0
"""Pauses of so many seconds are reported to the user."""
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", None)
"""Linux stops ``time.monotonic`` while the machine sleeps. macOS and Windows do not need another clock."""


class Response(msgspec.Struct, frozen=True):
    """A response of the API server.

    Attributes:
        status: The HTTP status.
        content_type: The type of ``body``, or "".
        retry_after: The seconds of its Retry-After header, or None.
        location: The address of a redirect, or "".
    """

    status: int
    content_type: str
    body: bytes | bytearray
    retry_after: float | None = None
    location: str = ""


class Transport:
    """Sends GET requests only; may be used from several threads.

    Attributes:
        clock: The API server's clock, by the last response.
        silence: Seconds without any byte after which a connection counts as broken; None for no limit.
    """

    silence: float | None = None

    def __init__(
        self,
        login: Login,
        impersonation: Sequence[tuple[str, str]],
        *,
        timeout: float,
        compress: bool,
        renew: Callable[[], Login] | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Use the server and credentials of ``login``.

        Args:
            login: Connections with their credentials.
            impersonation: Headers that ask to act as somebody else.
            timeout: Seconds until a response must have been read to its end; 0 for no limit.
            compress: Whether to request compressed responses. They are never requested on loopback, where they only
                cost time.
            renew: Logs in again with new credentials; None if these cannot change.
            say: Receives the reason why a response takes long.
        """
        self.clock = ServerClock()
        self._login = login
        self._host = login.server
        self._impersonation = impersonation
        self._timeout = timeout
        self._compress = compress and urlsplit(self._host).hostname not in _LOOPBACK
        self._renew = renew
        self._renewing = Lock()
        self._say = say
        self._has_responded = False
        self._reported: set[str] = set()
        self._closed = Event()
        if not login.verifies:
            # The user asked for insecure connections, so a warning for each request is noise.
            urllib3.disable_warnings(InsecureRequestWarning)

    def get(self, path: str, query: Mapping[str, str | int], accept: str) -> Response:
        """Return the response to one request, whatever its status.

        A request is repeated while its failure may pass, and once with new credentials; expired credentials are
        replaced before.

        Args:
            path: The path of the URL.
            query: The parameters of the URL.
            accept: The media types.

        Raises:
            ConnectionFailedError: There is no response.
            SourceError: There are no new credentials.
        """
        url = self._host + path + (f"?{urlencode(query)}" if query else "")
        patience, login = Patience(self._timeout, self.silence), self._current()
        response = self._patiently(url, accept, patience)
        if response.status == HTTPStatus.UNAUTHORIZED and self._renewed(login):
            response = self._patiently(url, accept, patience)
        return response

    def close(self) -> None:
        """Send no more requests, and repeat none: nobody waits for their responses."""
        self._closed.set()
        self._login.pool.clear()

    @contextmanager
    def stream(
        self, path: str, query: Mapping[str, str | int], accept: str, silence: float, longest: float
    ) -> Iterator[tuple[Response, Iterator[bytes]]]:
        """Yield the head of an endless response, and the parts of its body as they arrive; nothing is repeated.

        A response with another status than 200 is complete and has no parts. The connection counts as broken after
        ``silence`` seconds without any part, and after ``longest`` seconds in any case. The head must arrive within
        ``--request-timeout``, or ``silence``.

        Raises:
            ConnectionFailedError: There is no response, or it breaks off.
            SourceError: There are no new credentials.
        """
        url, login = f"{self._host}{path}?{urlencode(query)}", self._current()
        deadline = Deadline(self._timeout or silence, silence)
        try:
            head = self._opened(url, accept, deadline)
            if head.status == HTTPStatus.UNAUTHORIZED and self._renewed(login):
                head.close()
                head = self._opened(url, accept, deadline)
            with closing(head):
                if head.status != HTTPStatus.OK:
                    yield _response(head, _body(head, deadline)), iter(())
                    return
                yield _response(head, b""), exchange.parts(head, Deadline(longest, silence))
        except UNANSWERED as error:
            raise self._failure(error) from error

    def _failure(self, error: BaseException) -> ConnectionFailedError:
        return _ended() if self._closed.is_set() else failure(error, self._host, self._timeout)

    def _opened(self, url: str, accept: str, deadline: Deadline) -> Any:
        if self._closed.is_set():
            raise _ended()
        login = self._login
        head = login.pool.request(
            "GET", url, headers=self._headers(login, accept), timeout=deadline.timeout(), preload_content=False
        )
        self.clock.hear(head.headers.get("Date"))
        return head

    def _current(self) -> Login:
        """Return the current login, or a new one if its credentials have expired."""
        login = self._login
        return self._login if login.expired and self._renewed(login) else login

    def _renewed(self, login: Login) -> bool:
        """Replace credentials that no longer work; tell whether there are others."""
        if self._renew is None or self._closed.is_set():
            return False
        with self._renewing:
            # Another thread may have logged in again meanwhile.
            if self._login is login:
                self._login = self._renew()
        return True

    def _patiently(self, url: str, accept: str, patience: Patience) -> Response:
        earlier: ConnectionFailedError | Response | None = None
        reported = False
        while True:
            try:
                response = self._once(url, accept, patience)
            except ConnectionFailedError as error:
                if earlier is not None and patience.is_over:
                    # A timeout says less than what the attempt before it got.
                    if isinstance(earlier, Response):
                        return earlier
                    raise earlier from error
                pause, reason, earlier = self._pause_after(error, patience), str(error), error
                if pause is None:
                    raise
            else:
                passes = is_passing(response.status, response.retry_after) and not self._closed.is_set()
                pause = patience.pause(response.retry_after) if passes else None
                if pause is None:
                    self._reported.clear()
                    return response
                reason, earlier = f"The server answers with HTTP status {response.status}", response
            if pause >= _WORTH_SAYING and not reported:
                self._report(reason)
                reported = True
            self._closed.wait(pause)

    def _report(self, reason: str) -> None:
        """Tell the user why a response takes long; once if many requests at a time fail for this reason."""
        if reason not in self._reported:
            self._reported.add(reason)
            self._say(f"{reason}; trying again")

    def _pause_after(self, error: ConnectionFailedError, patience: Patience) -> float | None:
        if error.again is Again.NEVER or (error.again is Again.AFTER_CONTACT and not self._has_responded):
            return None
        return patience.pause(None, RETRIES if self._has_responded else RETRIES_BEFORE_CONTACT)

    def _once(self, url: str, accept: str, deadline: Deadline) -> Response:
        try:
            with closing(self._opened(url, accept, deadline)) as head:
                response = _response(head, _body(head, deadline))
        except UNANSWERED as error:
            raise self._failure(error) from error
        self._has_responded = True
        return response

    def _headers(self, login: Login, accept: str) -> urllib3.HTTPHeaderDict:
        headers = urllib3.HTTPHeaderDict({"Accept": accept, "User-Agent": _USER_AGENT})
        if self._compress:
            headers["Accept-Encoding"] = "gzip"
        if login.authorization:
            headers["authorization"] = login.authorization
        for name, value in self._impersonation:
            headers.add(name, value)
        return headers


def _ended() -> ConnectionFailedError:
    return ConnectionFailedError("the run has ended", Again.NEVER)


def _response(head: Any, body: bytes | bytearray) -> Response:
    return Response(
        status=head.status,
        content_type=head.headers.get("Content-Type", ""),
        body=body,
        retry_after=retry_after(head.headers.get("Retry-After")),
        location=head.headers.get("Location", ""),
    )


def _body(head: Any, deadline: Deadline) -> bytes | bytearray:
    if deadline.left() is None:
        # In parts, of which TLS makes each 16 KiB long, a page of 500 pods takes 17 ms of processor time, not 11.
        return head.read()  # type: ignore[no-any-return]
    body = bytearray()
    for part in exchange.parts(head, deadline):
        body += part
    return body


def elapsed() -> float:
    """Return seconds since some moment; they continue while the machine sleeps."""
    return time.monotonic() if _CLOCK is None else time.clock_gettime(_CLOCK)


class ServerClock:
    """The time of the last Date header plus the seconds since; may be used from several threads."""

    def __init__(self) -> None:
        self._heard: tuple[datetime, float] | None = None

    def hear(self, date: str | None) -> None:
        """Take the time from a Date header; None, or a header that is not a date, leaves the clock as it is."""
        with suppress(ValueError, OverflowError):
            moment = parsedate_to_datetime(date or "")
            if moment.tzinfo:
                self._heard = moment.astimezone(UTC), elapsed()

    def now(self) -> datetime | None:
        """Return the time in UTC, to the second; None where no response had a date."""
        if self._heard is None:
            return None
        date, received = self._heard
        return date + timedelta(seconds=int(elapsed() - received))
