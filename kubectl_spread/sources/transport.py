"""GET requests to one apiserver, repeated where that may help; an answer is always a whole one."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import urllib3
from kubernetes.client import ApiClient
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError, InsecureRequestWarning

from kubectl_spread import __version__
from kubectl_spread.sources import retries
from kubectl_spread.sources.failures import CONNECT_TIMEOUT, Again, ConnectionFailedError, TooLargeError, failure
from kubectl_spread.sources.retries import Patience

_USER_AGENT: Final = f"kubectl-spread/{__version__}"
_UNAUTHORIZED: Final = 401
_CHUNK: Final = 1 << 20
_LARGEST: Final = 1 << 30
"""Bytes of an answer. 500 pods, the default page, have a few millions."""
_SUSPICIOUS: Final = 64 << 20
_LARGEST_RATIO: Final = 200
"""How much larger than what was sent a suspiciously large answer may become; alike pods shrink to a fortieth."""
_WORTH_SAYING: Final = 2.0
"""Seconds of a pause that a user would wonder about."""
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True, slots=True)
class Answer:
    """What the apiserver answered.

    Attributes:
        status: The HTTP status.
        content_type: The type of ``body``, or "".
        retry_after: Seconds after which to ask again; None: the apiserver does not say.
        location: Where a redirect leads, or "".
    """

    status: int
    content_type: str
    body: bytes
    retry_after: float | None = None
    location: str = ""

    @property
    def is_passing(self) -> bool:
        """Whether another answer may be had by asking again."""
        return retries.is_passing(self.status, self.retry_after)


class Transport:
    """Sends GET requests, and no others; may be used from several threads."""

    def __init__(
        self,
        client: ApiClient,
        impersonation: Sequence[tuple[str, str]],
        *,
        timeout: float,
        compress: bool,
        renew: Callable[[], ApiClient] | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Use the server and credentials of ``client``.

        Args:
            client: A client of the kubernetes package.
            impersonation: Headers that ask to act as somebody else.
            timeout: Seconds until an answer must have been read; 0: as long as it takes.
            compress: Whether to ask for compressed answers, which on one machine would only cost
                both sides time, so that it is not done there.
            renew: Makes a client with credentials read anew; None: they cannot have changed.
            say: Is told why an answer takes long.
        """
        self._client = client
        self._host: str = client.configuration.host.rstrip("/")
        self._impersonation = impersonation
        self._timeout = timeout
        self._compress = compress and urlsplit(self._host).hostname not in _LOOPBACK
        self._renew = renew
        self._renewing = Lock()
        self._say = say
        self._known = False
        if not client.configuration.verify_ssl:
            # The user asked for it; a warning for each request says nothing new.
            urllib3.disable_warnings(InsecureRequestWarning)

    def get(self, path: str, query: Mapping[str, str | int], accept: str) -> Answer:
        """Return the answer to one request, whatever its status.

        A request is repeated while its failure may pass, and once with new credentials.

        Raises:
            ConnectionFailedError: There is no answer.
            SourceError: There are no new credentials.
        """
        url = self._host + path + (f"?{urlencode(query)}" if query else "")
        patience = Patience(self._timeout)
        client = self._client
        answer = self._patiently(url, accept, patience)
        if answer.status == _UNAUTHORIZED and self._renew:
            with self._renewing:
                # Another thread may have got new credentials meanwhile.
                if self._client is client:
                    self._client = self._renew()
            answer = self._patiently(url, accept, patience)
        return answer

    def _patiently(self, url: str, accept: str, patience: Patience) -> Answer:
        said = False
        while True:
            try:
                answer = self._once(url, accept, patience)
            except ConnectionFailedError as error:
                pause, reason = self._pause_after(error, patience), str(error)
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

    def _once(self, url: str, accept: str, patience: Patience) -> Answer:
        timeout: object = (CONNECT_TIMEOUT, None)
        if patience.left is not None:
            timeout = max(patience.left, 0.001)
        client = self._client
        try:
            headers = self._headers(client, accept)
            response = client.rest_client.request("GET", url, headers=headers, _request_timeout=timeout).response
            with closing(response):
                body = _body(response, patience)
        except (HTTPError, ApiException, OSError, TooLargeError) as error:
            raise failure(error, self._host, self._timeout) from error
        self._known = True
        return Answer(
            status=response.status,
            content_type=response.headers.get("Content-Type", ""),
            body=body,
            retry_after=retries.retry_after(response.headers.get("Retry-After")),
            location=response.headers.get("Location", ""),
        )

    def _headers(self, client: ApiClient, accept: str) -> urllib3.HTTPHeaderDict:
        headers = urllib3.HTTPHeaderDict({"Accept": accept, "User-Agent": _USER_AGENT})
        if self._compress:
            headers["Accept-Encoding"] = "gzip"
        client.update_params_for_auth(headers, [], ["BearerToken"], "", "GET", None)
        for name, value in self._impersonation:
            headers.add(name, value)
        return headers


def _body(response: Any, patience: Patience) -> bytes:
    """Read the body to its end; a server that sends it bit by bit is held to the limit of time, too."""
    # Only ``read1`` returns with what is there already.
    read = response.read if patience.left is None else response.read1
    chunks, size = [], 0
    while chunk := read(_CHUNK):
        chunks.append(chunk)
        size += len(chunk)
        _check_size(size, response.tell())
        if patience.left is not None and patience.left <= 0:
            raise TimeoutError
    return b"".join(chunks)


def _check_size(size: int, sent: int) -> None:
    """Raise before an answer fills the memory, be it by being compressed beyond measure."""
    if size > _LARGEST:
        raise TooLargeError(f"more than {_LARGEST >> 20} MiB (ask for fewer objects a page with --chunk-size)")
    if size > _SUSPICIOUS and size > sent * _LARGEST_RATIO:
        raise TooLargeError(f"{sent >> 10} KiB that are more than {size >> 20} MiB when unpacked")
