"""GET requests to one apiserver, repeated where that may help; an answer is always a whole one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from http import HTTPStatus
from threading import Lock
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import msgspec
import urllib3
from urllib3.exceptions import InsecureRequestWarning

from kubectl_spread import __version__
from kubectl_spread.sources import exchange, memory
from kubectl_spread.sources.apiserver import retries
from kubectl_spread.sources.apiserver.clock import ServerClock
from kubectl_spread.sources.apiserver.retries import Patience
from kubectl_spread.sources.auth.credentials import Login
from kubectl_spread.sources.exchange import Deadline
from kubectl_spread.sources.failures import CONNECT_TIMEOUT, UNANSWERED, Again, ConnectionFailedError, failure
from kubectl_spread.sources.memory import Claim

_USER_AGENT: Final = f"kubectl-spread/{__version__}"
_SMALLER_PAGES: Final = "a smaller --chunk-size asks for smaller pages"
_PLAIN: Final = "--disable-compression asks for it as it is"
_WORTH_SAYING: Final = 2.0
"""Seconds of a pause that a user would wonder about."""
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


class Response(msgspec.Struct, frozen=True):
    """What the apiserver answered.

    Attributes:
        status: The HTTP status.
        content_type: The type of ``body``, or "".
        retry_after: Seconds after which to ask again; None: the apiserver does not say.
        location: Where a redirect leads, or "".
        claim: What ``body`` takes of the memory for input, as long as the answer is there.
    """

    status: int
    content_type: str
    body: bytes | bytearray
    retry_after: float | None = None
    location: str = ""
    claim: Claim | None = None

    @property
    def is_passing(self) -> bool:
        """Whether another answer may be had by asking again."""
        return retries.is_passing(self.status, self.retry_after)


class Transport:
    """Sends GET requests, and no others; may be used from several threads.

    Attributes:
        clock: The API server's clock, by the last response.
    """

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
            timeout: Seconds until an answer must have been read to its end; 0: as long as it takes.
            compress: Whether to ask for compressed answers, which on one machine would only cost
                both sides time, so that it is not done there.
            renew: Logs in again with credentials read anew; None: they cannot have changed.
            say: Is told why an answer takes long.
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
        self._known = False
        if not login.verifies:
            # The user asked for it; a warning for each request says nothing new.
            urllib3.disable_warnings(InsecureRequestWarning)

    def get(
        self,
        path: str,
        query: Mapping[str, str | int],
        accept: str,
        begun: Callable[[bytes], None] = lambda _: None,
    ) -> Response:
        """Return the answer to one request, whatever its status.

        A request is repeated while its failure may pass, and once with new credentials; those that have expired are
        replaced before. How the body of a good answer
        begins is passed to ``begun`` as soon as it is there, again where the rest of it does not come.

        Raises:
            ConnectionFailedError: There is no answer.
            SourceError: There are no new credentials.
        """
        url = self._host + path + (f"?{urlencode(query)}" if query else "")
        patience = Patience(self._timeout)
        login = self._current()
        answer = self._patiently(url, accept, patience, begun)
        if answer.status == HTTPStatus.UNAUTHORIZED and self._renewed(login):
            answer = self._patiently(url, accept, patience, begun)
        return answer

    @contextmanager
    def stream(
        self, path: str, query: Mapping[str, str | int], accept: str, silence: float, longest: float
    ) -> Iterator[tuple[Response, Iterator[bytes]]]:
        """Yield the head of an answer that continues, and the parts of its body as they come; nothing is repeated.

        An answer of another status than 200 is a whole one, without parts. ``silence`` are the seconds without any
        part after which the connection counts as broken, ``longest`` those after which it does even if parts come. The
        head must be there within ``--request-timeout``, or ``silence``.

        Raises:
            ConnectionFailedError: There is no answer, or it breaks off.
            SourceError: There are no new credentials.
        """
        url, login = f"{self._host}{path}?{urlencode(query)}", self._current()
        deadline = Deadline(self._timeout or silence, silence)
        try:
            with exchange.until(deadline):
                response = self._opened(url, accept)
                if response.status == HTTPStatus.UNAUTHORIZED and self._renewed(login):
                    response.close()
                    response = self._opened(url, accept)
            with closing(response):
                if response.status != HTTPStatus.OK:
                    yield _answer(response, *_body(response, path, lambda _: None)), iter(())
                    return
                deadline.restart(longest)
                yield _answer(response, bytearray(), None), exchange.parts(response, path, _PLAIN)
        except UNANSWERED as error:
            raise failure(error, self._host, self._timeout) from error

    def _opened(self, url: str, accept: str) -> Any:
        """Send a request and return the head of its answer, within the time that is left of it."""
        login, left = self._login, exchange.left()
        timeout = urllib3.Timeout(connect=CONNECT_TIMEOUT, read=None) if left is None else urllib3.Timeout(left)
        headers = self._headers(login, accept)
        response = login.pool.request("GET", url, headers=headers, timeout=timeout, preload_content=False)
        self.clock.hear(response.headers.get("Date"))
        return response

    def _current(self) -> Login:
        """Return the credentials to use now: new ones where the last have expired."""
        login = self._login
        return self._login if login.expired and self._renewed(login) else login

    def _renewed(self, login: Login) -> bool:
        """Replace credentials that are not good any more; tell whether there are others."""
        if self._renew is None:
            return False
        with self._renewing:
            # Another thread may have got new credentials meanwhile.
            if self._login is login:
                self._login = self._renew()
        return True

    def _patiently(self, url: str, accept: str, patience: Patience, begun: Callable[[bytes], None]) -> Response:
        earlier: ConnectionFailedError | None = None
        said = False
        while True:
            try:
                answer = self._once(url, accept, patience, begun)
            except ConnectionFailedError as error:
                if earlier and patience.is_over:
                    # That time ran out says less than what the earlier attempts ended with.
                    raise earlier from error
                pause, reason, earlier = self._pause_after(error, patience), str(error), error
                if pause is None:
                    raise
            else:
                pause = patience.pause(answer.retry_after) if answer.is_passing else None
                if pause is None:
                    return answer
                reason = f"The server answers with HTTP status {answer.status}"
            if pause >= _WORTH_SAYING and not said:
                self._say(f"{reason}; trying again")
                said = True
            time.sleep(pause)

    def _pause_after(self, error: ConnectionFailedError, patience: Patience) -> float | None:
        if error.again is Again.NEVER or (error.again is Again.KNOWN and not self._known):
            return None
        return patience.pause(None, retries.RETRIES if self._known else retries.RETRIES_BEFORE_CONTACT)

    def _once(self, url: str, accept: str, patience: Patience, begun: Callable[[bytes], None]) -> Response:
        try:
            with exchange.until(Deadline(patience.left)), closing(self._opened(url, accept)) as response:
                answer = _answer(response, *_body(response, urlsplit(url).path, begun))
        except UNANSWERED as error:
            raise failure(error, self._host, self._timeout) from error
        self._known = True
        return answer

    def _headers(self, login: Login, accept: str) -> urllib3.HTTPHeaderDict:
        headers = urllib3.HTTPHeaderDict({"Accept": accept, "User-Agent": _USER_AGENT})
        if self._compress:
            headers["Accept-Encoding"] = "gzip"
        if login.authorization:
            headers["authorization"] = login.authorization
        for name, value in self._impersonation:
            headers.add(name, value)
        return headers


def _answer(response: Any, body: bytes | bytearray, claim: Claim | None) -> Response:
    return Response(
        status=response.status,
        content_type=response.headers.get("Content-Type", ""),
        body=body,
        retry_after=retries.retry_after(response.headers.get("Retry-After")),
        location=response.headers.get("Location", ""),
        claim=claim,
    )


def _body(response: Any, path: str, begun: Callable[[bytes], None]) -> tuple[bytearray, Claim]:
    """Read the body to its end; return it, and what it takes of the memory for input."""
    body, claim = bytearray(), memory.RUN.claim(path, _SMALLER_PAGES)
    try:
        for part in exchange.parts(response, path, _PLAIN):
            if not body and response.status == HTTPStatus.OK:
                begun(part)
            claim.grow(len(part))
            body += part
    except BaseException:
        # The error may be kept for long, and its traceback would keep the claim.
        claim.resize(0)
        raise
    return body, claim
