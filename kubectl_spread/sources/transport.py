"""GET requests to one apiserver, with kubectl's words for a connection that fails."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from socket import gaierror
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import urllib3
from kubernetes.client import ApiClient
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError, InsecureRequestWarning
from urllib3.exceptions import TimeoutError as NoAnswerError

from kubectl_spread.errors import SourceError

_SERVER_ERRORS: Final = 500
_TOO_MANY_REQUESTS: Final = 429
_ATTEMPTS: Final = 6
_LONGEST_PAUSE: Final = 30.0
_CONNECT_TIMEOUT: Final = 30.0
_CHUNK: Final = 1 << 20
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_UNREACHABLE: Final = "Unable to connect to the server: "
_X509: Final = f"{_UNREACHABLE}tls: failed to verify certificate: x509: "
# What OpenSSL calls an unknown issuer, in the places of the chain where it can be found.
_UNKNOWN_AUTHORITY: Final = frozenset({2, 18, 19, 20, 21})
_EXPIRED: Final = 10


@dataclass(frozen=True, slots=True)
class Answer:
    """What the apiserver answered.

    Attributes:
        status: The HTTP status.
        content_type: The type of ``body``, or "".
        retry_after: Seconds after which to ask again; None: the apiserver does not want that.
    """

    status: int
    content_type: str
    body: bytes
    retry_after: float | None = None


class Transport:
    """Sends GET requests, and no others; may be used from several threads."""

    def __init__(
        self,
        client: ApiClient,
        impersonation: Sequence[tuple[str, str]],
        *,
        timeout: float,
        compress: bool,
    ) -> None:
        """Use the server and credentials of ``client``.

        Args:
            client: A client of the kubernetes package.
            impersonation: Headers that ask to act as somebody else.
            timeout: Seconds until an answer must have been read; 0: as long as it takes.
            compress: Whether to ask for compressed answers, which on one machine would only cost
                both sides time, so that it is not done there.
        """
        self._client = client
        self._host: str = client.configuration.host.rstrip("/")
        self._impersonation = impersonation
        self._timeout = timeout
        self._compress = compress and urlsplit(self._host).hostname not in _LOOPBACK
        if not client.configuration.verify_ssl:
            # The user asked for it; a warning for each request says nothing new.
            urllib3.disable_warnings(InsecureRequestWarning)

    def get(self, path: str, query: Mapping[str, str | int], accept: str) -> Answer:
        """Return the answer to one request, whatever its status, repeated as the server asks.

        Raises:
            SourceError: There is no answer.
        """
        deadline = time.monotonic() + self._timeout if self._timeout else None
        url = self._host + path + (f"?{urlencode(query)}" if query else "")
        for _ in range(_ATTEMPTS):
            answer = self._once(url, accept, deadline)
            if answer.retry_after is None:
                break
            if deadline is not None and time.monotonic() + answer.retry_after > deadline:
                break
            time.sleep(min(answer.retry_after, _LONGEST_PAUSE))
        return answer

    def _once(self, url: str, accept: str, deadline: float | None) -> Answer:
        timeout: object = (_CONNECT_TIMEOUT, None)
        if deadline is not None:
            timeout = max(deadline - time.monotonic(), 0.001)
        try:
            response = self._client.rest_client.request(
                "GET", url, headers=self._headers(accept), _request_timeout=timeout
            ).response
            body = _body(response, deadline)
        except (HTTPError, ApiException, OSError) as error:
            raise self._failure(error) from error
        return Answer(
            status=response.status,
            content_type=response.headers.get("Content-Type", ""),
            body=body,
            retry_after=_retry_after(response.status, response.headers.get("Retry-After")),
        )

    def _headers(self, accept: str) -> urllib3.HTTPHeaderDict:
        headers = urllib3.HTTPHeaderDict({"Accept": accept, "User-Agent": "kubectl-spread"})
        if self._compress:
            headers["Accept-Encoding"] = "gzip"
        self._client.update_params_for_auth(headers, [], ["BearerToken"], "", "GET", None)
        for name, value in self._impersonation:
            headers.add(name, value)
        return headers

    def _failure(self, error: BaseException) -> SourceError:
        causes = list(_causes(error))
        for cause in causes:
            if isinstance(cause, ConnectionRefusedError):
                host = urlsplit(self._host).netloc
                return SourceError(
                    f"The connection to the server {host} was refused - did you specify the right host or port?"
                )
            if isinstance(cause, ssl.SSLCertVerificationError):
                return SourceError(_X509 + _certificate_problem(cause))
            if isinstance(cause, gaierror):
                name = urlsplit(self._host).hostname
                return SourceError(f"{_UNREACHABLE}dial tcp: lookup {name}: no such host")
        if any(isinstance(cause, NoAnswerError | TimeoutError) for cause in causes):
            limit = self._timeout or _CONNECT_TIMEOUT
            return SourceError(f"{_UNREACHABLE}no answer within {limit:g}s")
        return SourceError(_UNREACHABLE + _describe(causes[-1]))


def _body(response: Any, deadline: float | None) -> bytes:
    """Read the body; a server that sends it bit by bit is held to the deadline, too."""
    if deadline is None:
        body: bytes = response.read()
        return body
    chunks = []
    for chunk in response.stream(_CHUNK):
        chunks.append(chunk)
        if time.monotonic() > deadline:
            raise TimeoutError
    return b"".join(chunks)


def _retry_after(status: int, header: str | None) -> float | None:
    """Return the pause that the apiserver asks for.

    Source: kubernetes v1.37.1 client-go/rest/with_retry.go, checkWait.
    """
    if status != _TOO_MANY_REQUESTS and status < _SERVER_ERRORS:
        return None
    return float(header) if header is not None and header.isdigit() else None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and what caused it, the root last."""
    while error is not None:
        yield error
        nested = next((part for part in error.args if isinstance(part, BaseException)), None)
        error = nested or error.__cause__ or error.__context__


def _certificate_problem(error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code in _UNKNOWN_AUTHORITY:
        return "certificate signed by unknown authority"
    if error.verify_code == _EXPIRED:
        return "certificate has expired or is not yet valid"
    return error.verify_message.rstrip(".")


def _describe(error: BaseException) -> str:
    if isinstance(error, ssl.SSLError):
        reason = (error.reason or str(error)).replace("_", " ").lower()
        if reason in {"wrong version number", "record layer failure"}:
            return "http: server gave HTTP response to HTTPS client"
        return f"tls: {reason}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return " ".join(str(error).split()) or type(error).__name__
