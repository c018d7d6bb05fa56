"""One exchange with a server: whom to trust, its time, the body of its response, and kubectl's messages on failures."""

from __future__ import annotations

import math
import ssl
import time
from collections.abc import Iterator, Sequence
from enum import Enum, auto
from http.client import HTTPException, IncompleteRead, InvalidURL
from pathlib import Path
from socket import gaierror
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

import urllib3
from urllib3.exceptions import (
    HTTPError,
    LocationParseError,
    LocationValueError,
    NewConnectionError,
    ProxySchemeUnknown,
    URLSchemeUnknown,
)
from urllib3.exceptions import TimeoutError as NoAnswerError

from kubectl_spread.errors import SourceError
from kubectl_spread.sources.paths import without_secrets

_BUNDLES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Gentoo
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/pki/tls/cacert.pem",  # OpenELEC
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  # CentOS, RHEL
    "/etc/ssl/cert.pem",  # Alpine, macOS
)


def trust_system(context: ssl.SSLContext, bundles: Sequence[str] = _BUNDLES) -> None:
    """Trust the authorities of the system, or those of SSL_CERT_FILE and SSL_CERT_DIR.

    The OpenSSL of the archive looks for them where the system that it was built on has them; where there are none,
    those of ``bundles`` are trusted.
    """
    context.load_default_certs()
    paths = ssl.get_default_verify_paths()
    if paths.cafile or paths.capath or context.cert_store_stats()["x509_ca"]:
        return
    if bundle := next((bundle for bundle in bundles if Path(bundle).is_file()), ""):
        context.load_verify_locations(bundle)


CONNECT_TIMEOUT: Final = 30.0
"""Seconds until a server must accept the connection, without ``--request-timeout``."""
_UNREACHABLE: Final = "Unable to connect to the server: "
_X509: Final = "tls: failed to verify certificate: x509: "
# OpenSSL's codes for an unknown issuer at the different places of the chain.
_UNKNOWN_AUTHORITY: Final = frozenset({2, 18, 19, 20, 21})
_EXPIRED: Final = 10
_CUT_OFF: Final = (ssl.SSLEOFError, ssl.SSLZeroReturnError)
_NO_ADDRESS: Final = (InvalidURL, LocationParseError, LocationValueError, URLSchemeUnknown, ProxySchemeUnknown)


_NOT_VALID: Final = (ValueError, OverflowError)
UNANSWERED: Final = (HTTPError, HTTPException, OSError, *_NOT_VALID)
"""The errors that urllib3 raises; the last two are about a name or number that is not valid."""
_CHUNK: Final = 64 << 10
"""The most bytes that are read at a time."""


class Deadline:
    """The time until which a request must be complete; it is checked before each read, not within one."""

    def __init__(self, seconds: float | None, silence: float | None = None) -> None:
        """Start now.

        Args:
            seconds: The time for the whole request; None for no limit.
            silence: The longest time without any byte; None for no limit.
        """
        self._end = math.inf if seconds is None else time.monotonic() + seconds
        self._silence = math.inf if silence is None else silence

    def left(self) -> float | None:
        """Return the seconds for the next read; None for no limit.

        Raises:
            TimeoutError: There is no time left.
        """
        seconds = min(self._end - time.monotonic(), self._silence)
        if seconds <= 0:
            raise TimeoutError
        return seconds if seconds < math.inf else None

    def timeout(self) -> urllib3.Timeout:
        """Return the timeout until the headers of the response; without a limit only connecting has one.

        Raises:
            TimeoutError: There is no time left.
        """
        left = self.left()
        return urllib3.Timeout(total=left, connect=CONNECT_TIMEOUT if left is None else left)


def parts(response: Any, deadline: Deadline) -> Iterator[bytes]:
    """Yield the decompressed body of a response of urllib3 as it arrives, within the time of its request.

    Raises:
        TimeoutError: There is no time left.
    """
    while True:
        left, connection = deadline.left(), response.connection
        if connection is not None and connection.sock is not None:
            # The socket's own timeout starts again with each byte.
            connection.sock.settimeout(left)
        part: bytes = response.read1(_CHUNK)
        if not part:
            return
        yield part


class Again(Enum):
    """When to retry a failed request."""

    NEVER = auto()
    AFTER_CONTACT = auto()
    """Only after the server has answered once: before, its address may be wrong."""
    ALWAYS = auto()


class ConnectionFailedError(SourceError):
    """There is no response.

    Attributes:
        again: When to retry the request.
    """

    def __init__(self, message: str, again: Again) -> None:
        """Take the message without the secrets in its addresses."""
        super().__init__(without_secrets(message))
        self.again = again


def failure(error: BaseException, host: str, timeout: float) -> ConnectionFailedError:
    """Return the failure for an error of urllib3.

    Args:
        error: The error.
        host: The address of the server.
        timeout: The seconds of ``--request-timeout``; 0 for no limit.
    """
    causes = list(_causes(error))
    for cause in causes:
        match cause:
            case ConnectionRefusedError():
                text = f"The connection to the server {_parts(host).netloc.rpartition('@')[2]} was refused"
                return ConnectionFailedError(f"{text} - did you specify the right host or port?", Again.AFTER_CONTACT)
            case ssl.SSLCertVerificationError():
                return ConnectionFailedError(_UNREACHABLE + _X509 + _certificate_problem(cause), Again.NEVER)
            case gaierror():
                text = f"dial tcp: lookup {_parts(host).hostname}: no such host"
                return ConnectionFailedError(_UNREACHABLE + text, Again.AFTER_CONTACT)
    # For urllib3 a failed connection is a timeout, too.
    timeouts = [cause for cause in causes if isinstance(cause, NoAnswerError | TimeoutError)]
    if any(not isinstance(cause, NewConnectionError) for cause in timeouts):
        text = f"no answer within {timeout or CONNECT_TIMEOUT:g}s"
        return ConnectionFailedError(_UNREACHABLE + text, Again.AFTER_CONTACT)
    return ConnectionFailedError(_UNREACHABLE + _describe(causes[-1]), _again(causes))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        nested = next((part for part in error.args if isinstance(part, BaseException)), None)
        error = nested or error.__cause__ or error.__context__


def _again(causes: Sequence[BaseException]) -> Again:
    last = causes[-1]
    is_unusable = isinstance(causes[0], _NOT_VALID) and not isinstance(causes[0], HTTPError | OSError)
    if is_unusable or any(isinstance(cause, _NO_ADDRESS) for cause in causes):
        return Again.NEVER
    # A failed handshake will fail again, unless the connection broke off.
    is_handshake = isinstance(last, ssl.SSLError) and not isinstance(last, _CUT_OFF)
    return Again.NEVER if is_handshake else Again.ALWAYS


def _parts(address: str) -> SplitResult:
    try:
        return urlsplit(address)
    except ValueError:
        return SplitResult("", address, "", "", "")


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
        if "pem lib" in reason:
            return "the client certificate or its key is not PEM"
        return f"tls: {reason}"
    if isinstance(error, IncompleteRead):
        return "unexpected EOF"
    if type(error) in _NOT_VALID:
        return "malformed HTTP message"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return " ".join(str(error).split()) or type(error).__name__
